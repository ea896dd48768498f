"""Gradient accumulation
PyTorch docs, "AMP examples: gradient accumulation", in FP32 with a cosine schedule per step.
"""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Regression(Dataset):
    def __init__(self, size):
        self.inputs = torch.randn(size, 64)
        self.targets = self.inputs.sum(dim=1, keepdim=True)

    def __len__(self):
        return len(self.inputs)

    def __getitem__(self, index):
        return {"input": self.inputs[index], "target": self.targets[index]}


iters_to_accumulate = 4
device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
model = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 1)).to(device)
loss_fn = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
loader = DataLoader(Regression(640), batch_size=8, shuffle=True, drop_last=True)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, len(loader) // iters_to_accumulate)
for epoch in range(3):
    for i, batch in enumerate(loader):
        input, target = batch["input"].to(device), batch["target"].to(device)
        output = model(input)
        loss = loss_fn(output, target)
        loss = loss / iters_to_accumulate
        loss.backward()
        if (i + 1) % iters_to_accumulate == 0:
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
            print(epoch, i, loss.item(), scheduler.get_last_lr()[0])
