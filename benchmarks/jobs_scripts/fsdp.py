"""Train all weights of a Llama of 6.7 billion parameters, divided among eight GPUs (FSDP), in bfloat16.

torchrun --nproc-per-node 8 fsdp.py
"""

import os

import torch
from torch import distributed as dist
from torch import nn
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, Dataset, DistributedSampler

VOCABULARY, WIDTH, HIDDEN, HEADS, LAYERS, CONTEXT = 32_000, 4096, 11_008, 32, 32, 2048


class Texts(Dataset):
    """52,000 instructions of 2,048 tokens."""

    def __len__(self):
        return 52_000

    def __getitem__(self, index):
        tokens = torch.randint(VOCABULARY, (CONTEXT + 1,))
        return tokens[:-1], tokens[1:]


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
        self.gate, self.up = (nn.Linear(WIDTH, HIDDEN, bias=False) for _ in range(2))
        self.down = nn.Linear(HIDDEN, WIDTH, bias=False)

    def forward(self, x):
        parts = self.qkv(self.norm1(x)).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        x = x + self.out(F.scaled_dot_product_attention(*parts, is_causal=True).transpose(1, 2).flatten(2))
        inputs = self.norm2(x)
        return x + self.down(F.silu(self.gate(inputs)) * self.up(inputs))


class Llama(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm, self.head = nn.RMSNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, tokens, targets):
        x = self.tokens(tokens)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False)
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1), targets.flatten())


def main():
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    with torch.device("cuda"):
        model = Llama()
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for block in model.blocks:
        fully_shard(block, mp_policy=policy)
    fully_shard(model, mp_policy=policy)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-5, fused=True)
    data = Texts()
    loader = DataLoader(data, 4, sampler=DistributedSampler(data), num_workers=2)
    for _ in range(3):
        for tokens, targets in loader:
            optimizer.zero_grad()
            model(tokens.to("cuda"), targets.to("cuda")).backward()
            optimizer.step()


if __name__ == "__main__":
    main()
