"""Train a click model (DLRM): 26 tables of 1,000,000 rows, 13 dense features, Criteo's sizes.

python dlrm.py --batch-size 16384
"""

import argparse
import itertools

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

TABLES, ROWS, WIDTH = 26, 1_000_000, 128


class Clicks(Dataset):
    """195 million samples, one in twenty of Criteo's month; each element is a batch."""

    def __init__(self, batch_size):
        self.batch_size = batch_size
        self.batch = (
            torch.rand(batch_size, 13),
            torch.randint(ROWS, (batch_size, TABLES)),
            torch.rand(batch_size).round(),
        )

    def __len__(self):
        return 195_000_000 // self.batch_size

    def __getitem__(self, index):
        return self.batch


def mlp(*widths):
    layers = []
    for inputs, outputs in itertools.pairwise(widths):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


class DLRM(nn.Module):
    def __init__(self):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(ROWS, WIDTH) for _ in range(TABLES))
        self.bottom = mlp(13, 512, 256, WIDTH)
        pairs = (TABLES + 1) * TABLES // 2
        self.top = mlp(WIDTH + pairs, 1024, 1024, 512, 256, 1)
        rows, columns = torch.tril_indices(TABLES + 1, TABLES + 1, -1)
        self.register_buffer("rows", rows)
        self.register_buffer("columns", columns)

    def forward(self, dense, ids):
        first = self.bottom(dense)
        all_of = torch.stack([first, *(table(ids[:, i]) for i, table in enumerate(self.tables))], dim=1)
        pairs = torch.bmm(all_of, all_of.transpose(1, 2))[:, self.rows, self.columns]
        return self.top(torch.cat([first, pairs], dim=1)).squeeze(1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=16_384)
    args = parser.parse_args()

    with torch.device("cuda"):
        model = DLRM()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for dense, ids, clicks in DataLoader(Clicks(args.batch_size), batch_size=None, num_workers=4):
        loss = F.binary_cross_entropy_with_logits(model(dense.to("cuda"), ids.to("cuda")), clicks.to("cuda"))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
