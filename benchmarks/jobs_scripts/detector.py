"""Train a one-stage detector on COCO-sized data: a backbone, features of three sizes, a box in each cell.

python detector.py --batch-size 16
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

CLASSES, STRIDES = 80, (8, 16, 32)


class SyntheticCoco(Dataset):
    """As many images as COCO's training set; a target for every cell."""

    def __init__(self, size=640):
        self.images = torch.rand(2, 3, size, size)
        cells = sum((size // stride) ** 2 for stride in STRIDES)
        self.targets = torch.rand(2, 5 + CLASSES, cells)

    def __len__(self):
        return 118_287

    def __getitem__(self, index):
        return self.images[index % 2], self.targets[index % 2]


def conv(inputs, outputs, size=3, stride=1):
    layer = nn.Conv2d(inputs, outputs, size, stride, size // 2, bias=False)
    return nn.Sequential(layer, nn.BatchNorm2d(outputs), nn.SiLU(inplace=True))


class Stage(nn.Module):
    """Halves the image, then bottlenecks on half of the channels."""

    def __init__(self, inputs, outputs, repeats):
        super().__init__()
        half = outputs // 2
        self.down = conv(inputs, outputs, 3, 2)
        self.left, self.right = conv(outputs, half, 1), conv(outputs, half, 1)
        self.blocks = nn.ModuleList(
            nn.Sequential(conv(half, half, 1), conv(half, half)) for _ in range(repeats)
        )
        self.join = conv(outputs, outputs, 1)

    def forward(self, x):
        x = self.down(x)
        left = self.left(x)
        for block in self.blocks:
            left = left + block(left)
        return self.join(torch.cat([left, self.right(x)], dim=1))


class Detector(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.stem = nn.Sequential(conv(3, width, 3, 2), Stage(width, 2 * width, 2))
        self.stages = nn.ModuleList(
            Stage(width * 2**level, width * 2 ** (level + 1), repeats)
            for level, repeats in ((1, 4), (2, 6), (3, 2))
        )
        widths = [width * 2**level for level in (2, 3, 4)]
        self.lateral = nn.ModuleList(conv(channels, 4 * width, 1) for channels in widths)
        self.smooth = nn.ModuleList(conv(4 * width, 4 * width) for _ in widths)
        self.heads = nn.ModuleList(nn.Conv2d(4 * width, 5 + CLASSES, 1) for _ in widths)

    def forward(self, x):
        x = self.stem(x)
        features = []
        for stage in self.stages:
            x = stage(x)
            features.append(x)
        maps = [lateral(feature) for lateral, feature in zip(self.lateral, features, strict=True)]
        for level in (1, 0):
            above = F.interpolate(maps[level + 1], size=maps[level].shape[-2:])
            maps[level] = maps[level] + above
        levels = zip(self.heads, self.smooth, maps, strict=True)
        return torch.cat([head(smooth(feature)).flatten(2) for head, smooth, feature in levels], dim=2)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--batch-size", type=int, default=16)
    args = parser.parse_args()

    model = Detector().to("cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.937, nesterov=True)
    scaler = torch.amp.GradScaler("cuda")
    loader = DataLoader(SyntheticCoco(), args.batch_size, shuffle=True, num_workers=8, pin_memory=True)
    for _ in range(args.epochs):
        for images, targets in loader:
            optimizer.zero_grad()
            with torch.autocast("cuda", dtype=torch.float16):
                loss = F.binary_cross_entropy_with_logits(model(images.to("cuda")), targets.to("cuda"))
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()


if __name__ == "__main__":
    main()
