"""Train a 3-D U-Net on patches of scans (128 voxels a side), as MLPerf's KiTS19 task, under autocast.

python unet3d.py --batch-size 2
"""

import argparse
import itertools

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset


class Scans(Dataset):
    """168 scans, a patch of each an epoch."""

    def __init__(self):
        self.scan = torch.rand(1, 128, 128, 128)
        self.organs = torch.randint(3, (128, 128, 128))

    def __len__(self):
        return 168

    def __getitem__(self, index):
        return self.scan, self.organs


def double_conv(inputs, outputs):
    layers = []
    for channels in (inputs, outputs):
        layers += [nn.Conv3d(channels, outputs, 3, padding=1), nn.InstanceNorm3d(outputs, affine=True)]
        layers += [nn.ReLU(inplace=True)]
    return nn.Sequential(*layers)


class UNet(nn.Module):
    def __init__(self, widths=(32, 64, 128, 256, 320)):
        super().__init__()
        pairs = list(itertools.pairwise(widths))
        self.first = double_conv(1, widths[0])
        self.down = nn.ModuleList(double_conv(small, large) for small, large in pairs)
        self.up = nn.ModuleList(nn.ConvTranspose3d(b, s, 2, stride=2) for s, b in reversed(pairs))
        self.join = nn.ModuleList(double_conv(2 * small, small) for small, _ in reversed(pairs))
        self.last = nn.Conv3d(widths[0], 3, 1)

    def forward(self, x):
        kept = [self.first(x)]
        for down in self.down:
            kept.append(down(F.max_pool3d(kept[-1], 2)))
        x = kept.pop()
        for up, join in zip(self.up, self.join, strict=True):
            x = join(torch.cat([kept.pop(), up(x)], dim=1))
        return self.last(x)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2000)
    parser.add_argument("--batch-size", type=int, default=2)
    args = parser.parse_args()

    model = UNet().to("cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.8, momentum=0.9)
    scaler = torch.amp.GradScaler("cuda")
    loader = DataLoader(Scans(), args.batch_size, shuffle=True, num_workers=8, drop_last=True)
    for _ in range(args.epochs):
        for scans, organs in loader:
            optimizer.zero_grad()
            with torch.autocast("cuda", dtype=torch.float16):
                loss = F.cross_entropy(model(scans.to("cuda")), organs.to("cuda"))
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()


if __name__ == "__main__":
    main()
