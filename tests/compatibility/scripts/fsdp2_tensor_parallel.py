"""FSDP2 with tensor parallelism on a mesh of two dimensions
PyTorch tutorials, "Large Scale Transformer model training with Tensor Parallel": attention on DTensors.
"""

import os

import torch
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module


class Attention(nn.Module):
    def __init__(self, dim, n_heads):
        super().__init__()
        self.head_dim = dim // n_heads
        self.wq = nn.Linear(dim, dim, bias=False)
        self.wk = nn.Linear(dim, dim, bias=False)
        self.wv = nn.Linear(dim, dim, bias=False)
        self.wo = nn.Linear(dim, dim, bias=False)

    def forward(self, x):
        bs, seq_len, _ = x.shape
        q, k, v = (w(x).view(bs, seq_len, -1, self.head_dim) for w in (self.wq, self.wk, self.wv))
        q, k, v = (part.transpose(1, 2) for part in (q, k, v))
        output = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.wo(output.transpose(1, 2).contiguous().view(bs, seq_len, -1))


class Block(nn.Module):
    def __init__(self, dim, n_heads):
        super().__init__()
        self.attention = Attention(dim, n_heads)
        self.w1 = nn.Linear(dim, 4 * dim, bias=False)
        self.w2 = nn.Linear(4 * dim, dim, bias=False)

    def forward(self, x):
        x = x + self.attention(x)
        return x + self.w2(nn.functional.silu(self.w1(x)))


world_size, tp_size = int(os.environ["WORLD_SIZE"]), 2
mesh = init_device_mesh("cuda", (world_size // tp_size, tp_size), mesh_dim_names=("dp", "tp"))
model = nn.Sequential(*(Block(256, 8) for _ in range(2))).to("cuda")
plan = {
    # The heads stay DTensors up to the output's product.
    **{f"attention.{name}": ColwiseParallel(use_local_output=False) for name in ("wq", "wk", "wv")},
    "attention.wo": RowwiseParallel(),
    "w1": ColwiseParallel(),
    "w2": RowwiseParallel(),
}
for block in model:
    parallelize_module(block, mesh["tp"], plan)
    fully_shard(block, mesh=mesh["dp"])
fully_shard(model, mesh=mesh["dp"])
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, foreach=True)
for i in range(10):
    torch.manual_seed(i)
    x = torch.rand(4, 128, 256, device="cuda")
    model(x).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
