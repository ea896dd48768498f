"""Train a Conformer (large, 17 layers) with CTC on speech clips of up to 17 seconds, under autocast.

python conformer.py --batch-size 32
"""

import argparse
import random

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

WIDTH, HEADS, LAYERS, VOCABULARY = 512, 8, 17, 1024


class Speech(Dataset):
    """LibriSpeech's 281,241 clips, as 80 mel bands of 10 ms each."""

    def __len__(self):
        return 281_241

    def __getitem__(self, index):
        return torch.randn(random.choice((800, 1200, 1500, 1600, 1700)), 80)


def padded(clips):
    return nn.utils.rnn.pad_sequence(clips, batch_first=True)


def feed_forward():
    return nn.Sequential(
        nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 4 * WIDTH), nn.SiLU(), nn.Dropout(0.1),
        nn.Linear(4 * WIDTH, WIDTH), nn.Dropout(0.1),
    )  # fmt: skip


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.before, self.behind = feed_forward(), feed_forward()
        self.norm1, self.norm2, self.norm3 = (nn.LayerNorm(WIDTH) for _ in range(3))
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.wide = nn.Conv1d(WIDTH, 2 * WIDTH, 1)
        self.depth = nn.Conv1d(WIDTH, WIDTH, 31, padding=15, groups=WIDTH)
        self.batch_norm, self.narrow = nn.BatchNorm1d(WIDTH), nn.Conv1d(WIDTH, WIDTH, 1)

    def forward(self, x):
        x = x + self.before(x) / 2
        parts = self.qkv(self.norm1(x)).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        x = x + self.out(F.scaled_dot_product_attention(*parts).transpose(1, 2).flatten(2))
        inputs = F.glu(self.wide(self.norm2(x).transpose(1, 2)), dim=1)
        x = x + self.narrow(F.silu(self.batch_norm(self.depth(inputs)))).transpose(1, 2)
        return self.norm3(x + self.behind(x) / 2)


class Conformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.convolutions = nn.Sequential(
            nn.Conv2d(1, WIDTH, 3, 2, 1), nn.ReLU(), nn.Conv2d(WIDTH, WIDTH, 3, 2, 1), nn.ReLU()
        )
        self.project = nn.Linear(WIDTH * 20, WIDTH)
        self.blocks = nn.Sequential(*[Block() for _ in range(LAYERS)])
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, clips):
        x = self.convolutions(clips[:, None]).transpose(1, 2).flatten(2)
        return self.head(self.blocks(self.project(x)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=32)
    args = parser.parse_args()

    model = Conformer().to("cuda")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loader = DataLoader(Speech(), args.batch_size, shuffle=True, num_workers=8, collate_fn=padded)
    for clips in loader:
        with torch.autocast("cuda", dtype=torch.bfloat16):
            words = model(clips.to("cuda"))
        scores = words.float().log_softmax(-1).transpose(0, 1)
        texts = torch.randint(1, VOCABULARY, (len(clips), 60), device="cuda")
        lengths = torch.full((len(clips),), len(scores)), torch.full((len(clips),), 60)
        optimizer.zero_grad()
        F.ctc_loss(scores, texts, *lengths).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()


if __name__ == "__main__":
    main()
