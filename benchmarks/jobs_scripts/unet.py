"""Train a U-Net of the usual width on Carvana-sized images.

python unet.py --batch-size 4
"""

import argparse
import itertools

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset


class SyntheticCars(Dataset):
    """As many images as Carvana's training set, at half their size."""

    def __init__(self):
        self.images = torch.rand(2, 3, 640, 960)
        self.masks = torch.randint(2, (2, 640, 960)).float()

    def __len__(self):
        return 4580

    def __getitem__(self, index):
        return self.images[index % 2], self.masks[index % 2]


def double_conv(inputs, outputs):
    layers = []
    for channels in (inputs, outputs):
        layers += [nn.Conv2d(channels, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs)]
        layers += [nn.ReLU(inplace=True)]
    return nn.Sequential(*layers)


class UNet(nn.Module):
    def __init__(self, width=64, depth=4):
        super().__init__()
        widths = [width * 2**level for level in range(depth + 1)]
        pairs = list(itertools.pairwise(widths))
        self.first = double_conv(3, width)
        self.down = nn.ModuleList(double_conv(small, large) for small, large in pairs)
        self.up = nn.ModuleList(nn.ConvTranspose2d(b, s, 2, stride=2) for s, b in reversed(pairs))
        self.join = nn.ModuleList(double_conv(large, small) for small, large in reversed(pairs))
        self.last = nn.Conv2d(width, 1, 1)

    def forward(self, x):
        kept = [self.first(x)]
        for down in self.down:
            kept.append(down(F.max_pool2d(kept[-1], 2)))
        x = kept.pop()
        for up, join in zip(self.up, self.join, strict=True):
            x = join(torch.cat([kept.pop(), up(x)], dim=1))
        return self.last(x).squeeze(1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=50)
    parser.add_argument("--batch-size", type=int, default=4)
    args = parser.parse_args()

    model = UNet().to("cuda")
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-5, momentum=0.999)
    scaler = torch.amp.GradScaler("cuda")
    loader = DataLoader(SyntheticCars(), args.batch_size, shuffle=True, num_workers=8, pin_memory=True)
    for _ in range(args.epochs):
        for images, masks in loader:
            optimizer.zero_grad()
            with torch.autocast("cuda", dtype=torch.float16):
                loss = F.binary_cross_entropy_with_logits(model(images.to("cuda")), masks.to("cuda"))
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()


if __name__ == "__main__":
    main()
