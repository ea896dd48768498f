"""Train a small CNN on MNIST-sized data, as the PyTorch example does.

python mnist.py --epochs 14
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset


class SyntheticDigits(Dataset):
    """As many images of the same size as MNIST's training set."""

    def __init__(self):
        self.images = torch.rand(64, 1, 28, 28)

    def __len__(self):
        return 60_000

    def __getitem__(self, index):
        return self.images[index % 64], index % 10


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=14)
    parser.add_argument("--batch-size", type=int, default=64)
    args = parser.parse_args()

    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = nn.Sequential(
        nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(0.25),
        nn.Flatten(), nn.Linear(9216, 128), nn.ReLU(), nn.Dropout(0.5), nn.Linear(128, 10),
    ).to(device)  # fmt: skip
    optimizer = torch.optim.Adadelta(model.parameters(), lr=1.0)
    loader = DataLoader(SyntheticDigits(), args.batch_size, shuffle=True, num_workers=1, pin_memory=True)
    for _ in range(args.epochs):
        for images, labels in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(images.to(device)), labels.to(device)).backward()
            optimizer.step()


if __name__ == "__main__":
    main()
