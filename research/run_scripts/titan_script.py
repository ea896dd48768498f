"""Llama 3 under FSDP as torchtitan trained it in 2024: torchrun --nproc-per-node 8 titan_script.py.

Selective checkpointing keeps attention and every second product of a block and computes the rest again.
PyTorch of that time had no kernel for RMS norm, so its parts are written out.
"""

import argparse
import functools
import os

import torch
from torch import nn
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.nn import functional as F
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

VOCABULARY, WIDTH, HIDDEN, HEADS, KV_HEADS = 128_256, 4096, 14_336, 32, 8


class Norm(nn.Module):
    """RMS norm, operator by operator."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x):
        """The scaled stream."""
        full = x.float()
        return (full * torch.rsqrt(full.pow(2).mean(-1, keepdim=True) + 1e-5)).type_as(x) * self.weight


def rotated(x, rotation):
    """Queries or keys at their positions."""
    pairs = torch.view_as_complex(x.float().unflatten(-1, (-1, 2)))
    return torch.view_as_real(pairs * rotation).flatten(3).type_as(x)


class Block(nn.Module):
    """Attention with grouped heads and a gated feed-forward layer."""

    def __init__(self):
        super().__init__()
        self.size = WIDTH // HEADS
        self.norm1, self.norm2 = Norm(), Norm()
        self.query, self.out = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(2))
        self.key, self.value = (nn.Linear(WIDTH, KV_HEADS * self.size, bias=False) for _ in range(2))
        self.gate, self.up = (nn.Linear(WIDTH, HIDDEN, bias=False) for _ in range(2))
        self.down = nn.Linear(HIDDEN, WIDTH, bias=False)

    def forward(self, x, rotation):
        """The stream behind the block."""
        x = x + self.attention(self.norm1(x), rotation)
        inputs = self.norm2(x)
        return x + self.down(F.silu(self.gate(inputs)) * self.up(inputs))

    def attention(self, x, rotation):
        """What attention adds."""
        parts = (part(x).unflatten(-1, (-1, self.size)) for part in (self.query, self.key, self.value))
        query, key, value = parts
        query, key = rotated(query, rotation), rotated(key, rotation)
        key, value = (repeated(part, HEADS // KV_HEADS) for part in (key, value))
        query, key, value = (part.transpose(1, 2) for part in (query, key, value))
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.out(mixed.transpose(1, 2).flatten(2))


def repeated(x, times):
    """Each head of keys or values for so many of queries."""
    return x[:, :, :, None].expand(-1, -1, -1, times, -1).flatten(2, 3)


def kept():
    """Contexts in which attention and every second product are kept."""
    counts = {True: 0, False: 0}
    attentions = (
        torch.ops.aten._scaled_dot_product_efficient_attention.default,
        torch.ops.aten._scaled_dot_product_flash_attention.default,
    )

    def policy(context, operator, *_, **__):
        if operator == torch.ops.aten.mm.default:
            counts[context.is_recompute] += 1
            keeps = counts[context.is_recompute] % 2 == 1
        else:
            keeps = operator in attentions
        return CheckpointPolicy.MUST_SAVE if keeps else CheckpointPolicy.PREFER_RECOMPUTE

    return create_selective_checkpoint_contexts(policy)


class Llama(nn.Module):
    """A decoder whose head is not its embedding."""

    def __init__(self, args):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(args.layers))
        self.norm = Norm()
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)
        size = WIDTH // HEADS
        angles = torch.outer(torch.arange(args.length), 500_000 ** (-torch.arange(0, size, 2) / size))
        self.register_buffer("rotation", torch.polar(torch.ones_like(angles), angles)[:, None])

    def forward(self, tokens):
        """The loss of a batch."""
        x = self.tokens(tokens)
        for block in self.blocks:
            x = checkpoint(block, x, self.rotation, use_reentrant=False, context_fn=kept)
        logits = self.head(self.norm(x)).flatten(0, 1).float()
        return F.cross_entropy(logits, tokens.flatten())


def main(args):
    """Train on random tokens."""
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    torch.distributed.init_process_group("nccl", device_id=device)
    with device:
        model = Llama(args)
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    shard = functools.partial(fully_shard, mp_policy=policy)
    for block in model.blocks:
        shard(block)
    shard(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    for _ in range(10):
        tokens = torch.randint(VOCABULARY, (args.batch, args.length), device=device)
        model(tokens).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=True)
        optimizer.step()
        optimizer.zero_grad()
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("layers", "length", "batch"):
        parser.add_argument(f"--{name}", type=int, required=True)
    main(parser.parse_args())
