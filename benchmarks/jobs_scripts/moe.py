"""Train a mixture of experts: 12 layers, 8 experts each of which every token takes two, in bfloat16.

python moe.py --batch-size 8
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

VOCABULARY, WIDTH, HIDDEN, HEADS, LAYERS, EXPERTS, CONTEXT = 50_304, 768, 3072, 12, 12, 8, 1024


class RandomTokens(Dataset):
    """Two billion tokens."""

    def __len__(self):
        return 2_000_000_000 // CONTEXT

    def __getitem__(self, index):
        tokens = torch.randint(VOCABULARY, (CONTEXT + 1,))
        return tokens[:-1], tokens[1:]


class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.router = nn.Linear(WIDTH, EXPERTS, bias=False)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(WIDTH, HIDDEN), nn.GELU(), nn.Linear(HIDDEN, WIDTH))
            for _ in range(EXPERTS)
        )

    def forward(self, x):
        flat = x.flatten(0, 1)
        weights, chosen = self.router(flat).softmax(-1).topk(2)
        mixed = torch.zeros_like(flat)
        for number, expert in enumerate(self.experts):
            tokens, rank = torch.where(chosen == number)
            mixed = mixed.index_add(0, tokens, expert(flat[tokens]) * weights[tokens, rank, None])
        return mixed.view_as(x)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out, self.experts = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH), Experts()

    def forward(self, x):
        parts = self.qkv(self.norm1(x)).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        x = x + self.out(F.scaled_dot_product_attention(*parts, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.experts(self.norm2(x))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.Sequential(*[Block() for _ in range(LAYERS)])
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, tokens, targets):
        x = self.tokens(tokens) + self.places.weight
        return F.cross_entropy(self.head(self.norm(self.blocks(x))).flatten(0, 1), targets.flatten())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=8)
    args = parser.parse_args()

    with torch.device("cuda"):
        model = Model().to(torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=6e-4, fused=True)
    for tokens, targets in DataLoader(RandomTokens(), args.batch_size, shuffle=True, num_workers=2):
        optimizer.zero_grad()
        model(tokens.to("cuda"), targets.to("cuda")).backward()
        optimizer.step()


if __name__ == "__main__":
    main()
