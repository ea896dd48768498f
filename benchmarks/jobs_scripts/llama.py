"""Train a Llama of 1.1 billion parameters on random tokens, in bfloat16: TinyLlama's sizes.

python llama.py --batch-size 4
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

VOCABULARY, WIDTH, HIDDEN, HEADS, KV_HEADS = 32_000, 2048, 5632, 32, 4


class RandomTokens(Dataset):
    """Two billion tokens."""

    def __init__(self, context):
        self.context = context

    def __len__(self):
        return 2_000_000_000 // self.context

    def __getitem__(self, index):
        tokens = torch.randint(VOCABULARY, (self.context + 1,))
        return tokens[:-1], tokens[1:]


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.size = WIDTH // HEADS
        self.norm1, self.norm2 = nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)
        self.query = nn.Linear(WIDTH, WIDTH, bias=False)
        self.key, self.value = (nn.Linear(WIDTH, KV_HEADS * self.size, bias=False) for _ in range(2))
        self.out = nn.Linear(WIDTH, WIDTH, bias=False)
        self.gate, self.up = (nn.Linear(WIDTH, HIDDEN, bias=False) for _ in range(2))
        self.down = nn.Linear(HIDDEN, WIDTH, bias=False)

    def heads_of(self, x, rotation):
        x = x.unflatten(-1, (-1, self.size)).transpose(1, 2)
        if rotation is None:
            return x
        cos, sin = rotation
        left, right = x.chunk(2, dim=-1)
        return x * cos + torch.cat([-right, left], dim=-1) * sin

    def forward(self, x, rotation):
        inputs = self.norm1(x)
        query, key = (self.heads_of(part(inputs), rotation) for part in (self.query, self.key))
        value = self.heads_of(self.value(inputs), None)
        key, value = (part.repeat_interleave(HEADS // KV_HEADS, dim=1) for part in (key, value))
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        inputs = self.norm2(x)
        return x + self.down(F.silu(self.gate(inputs)) * self.up(inputs))


class Llama(nn.Module):
    def __init__(self, context, layers=22):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(layers))
        self.norm = nn.RMSNorm(WIDTH)
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)
        angles = torch.arange(context)[:, None] / 10_000 ** (torch.arange(0, 64, 2) / 64)
        self.register_buffer("angles", torch.cat([angles, angles], dim=-1))

    def forward(self, tokens, targets):
        rotation = self.angles.cos(), self.angles.sin()
        x = self.tokens(tokens)
        for block in self.blocks:
            x = block(x, rotation)
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1), targets.flatten())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=4)
    parser.add_argument("--context", type=int, default=2048)
    args = parser.parse_args()

    with torch.device("cuda"):
        model = Llama(args.context).to(torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-4, fused=True)
    loader = DataLoader(RandomTokens(args.context), args.batch_size, shuffle=True, num_workers=2)
    for tokens, targets in loader:
        optimizer.zero_grad()
        model(tokens.to("cuda"), targets.to("cuda")).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()


if __name__ == "__main__":
    main()
