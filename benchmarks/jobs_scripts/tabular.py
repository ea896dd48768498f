"""Train a small network on a table of 20 columns and 200,000 rows.

python tabular.py --epochs 20
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch-size", type=int, default=512)
    args = parser.parse_args()

    table = TensorDataset(torch.randn(200_000, 20), torch.randint(2, (200_000,)).float())
    layers = [nn.Linear(20, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 1)]
    model = nn.Sequential(*layers).to("cuda")
    optimizer = torch.optim.Adam(model.parameters())
    loader = DataLoader(table, args.batch_size, shuffle=True)
    for _ in range(args.epochs):
        for rows, labels in loader:
            loss = F.binary_cross_entropy_with_logits(model(rows.to("cuda")).squeeze(1), labels.to("cuda"))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


if __name__ == "__main__":
    main()
