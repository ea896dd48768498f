"""Gradient checkpointing
PyTorch docs, torch.utils.checkpoint; --use-reentrant chooses the older of its two ways.
"""

import argparse

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.layers = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), nn.Dropout(0.1)
        )

    def forward(self, x):
        return x + self.layers(self.norm(x))


class Model(nn.Module):
    def __init__(self, width, depth, use_reentrant):
        super().__init__()
        self.stem = nn.Linear(32, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(depth))
        self.head = nn.Linear(width, 10)
        self.use_reentrant = use_reentrant

    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            if self.training:
                x = checkpoint(block, x, use_reentrant=self.use_reentrant)
            else:
                x = block(x)
        return self.head(x)


parser = argparse.ArgumentParser()
parser.add_argument("--use-reentrant", action="store_true")
args = parser.parse_args()
model = Model(128, 4, args.use_reentrant).cuda()
optimizer = torch.optim.AdamW(model.parameters())
loader = DataLoader(TensorDataset(torch.rand(256, 32), torch.randint(10, (256,))), batch_size=32)
for _ in range(2):
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x.cuda()), y.cuda())
        loss.backward()
        optimizer.step()
    print(loss.item(), torch.cuda.max_memory_allocated() // 2**20, "MiB")
