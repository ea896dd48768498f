"""3D convolution
MONAI's and torchvision's video models in plain torch: volumes, instance norm, max pooling in 3D, BF16.
"""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

model = nn.Sequential(
    nn.Conv3d(1, 16, 3, padding=1), nn.InstanceNorm3d(16, affine=True), nn.LeakyReLU(), nn.MaxPool3d(2),
    nn.Conv3d(16, 32, 3, padding=1), nn.BatchNorm3d(32), nn.PReLU(), nn.AvgPool3d(2),
    nn.Upsample(scale_factor=2, mode="trilinear"), nn.ConvTranspose3d(32, 8, 2, 2), nn.Conv3d(8, 2, 1),
).to("cuda")  # fmt: skip
optimizer = torch.optim.NAdam(model.parameters(), lr=1e-3)
data = TensorDataset(torch.rand(24, 1, 16, 32, 32), torch.randint(2, (24, 16, 32, 32)))
loader = DataLoader(data, batch_size=2, shuffle=True)
for _ in range(2):
    for volume, label in loader:
        optimizer.zero_grad()
        with torch.autocast("cuda", torch.bfloat16):
            logits = model(volume.to("cuda"))
        loss = nn.functional.cross_entropy(logits.float(), label.to("cuda"))
        loss.backward()
        optimizer.step()
    print(loss.item())
