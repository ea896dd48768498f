"""A small model that waits for its augmented images
PyTorch tutorials, "Writing Custom Datasets, DataLoaders and Transforms": four workers transform images.
"""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset


class Augmented(Dataset):
    def __init__(self, count=50_000):
        self.count = count
        self.photo = torch.randint(256, (3, 480, 640), dtype=torch.uint8)
        self.mean = torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1)
        self.std = torch.tensor([0.229, 0.224, 0.225]).view(3, 1, 1)

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        top, left = (int(torch.randint(limit, ())) for limit in (130, 200))
        image = self.photo[:, top : top + 350, left : left + 440].float() / 255
        image = F.interpolate(image[None], (224, 224), mode="bilinear", antialias=True)[0]
        if torch.rand(()) < 0.5:
            image = image.flip(2)
        for factor in (torch.rand(3) * 0.4 + 0.8).tolist():
            image = (image * factor).clamp_(0, 1)
        return (image - self.mean) / self.std, index % 100


loader = DataLoader(Augmented(), batch_size=64, shuffle=True, num_workers=4, pin_memory=True)
model = nn.Sequential(
    nn.Conv2d(3, 32, 7, stride=4), nn.ReLU(), nn.Conv2d(32, 64, 3, stride=2), nn.ReLU(),
    nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 100),
).cuda()  # fmt: skip
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for epoch in range(10):
    for images, labels in loader:
        loss = F.cross_entropy(model(images.cuda(non_blocking=True)), labels.cuda(non_blocking=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
