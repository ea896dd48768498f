"""MosaicML's MPT under FSDP, as llm-foundry trains it: torchrun --nproc-per-node 8 mpt_script.py.

Learned positions and biases, as the published numbers of parameters have them; no dropout. Parameters are
gathered in bf16 and kept in FP32, so products and norms run in bf16 (``low_precision_layernorm``). The loss
is one kernel that writes the gradient over the logits. With ``--pure`` parameters are kept in bf16 too; with
``--keep`` they stay gathered until the backward pass has used them (``SHARD_GRAD_OP``).
"""

import argparse
import os

import torch
from torch import nn
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

VOCABULARY = 50_368


class FusedLoss(torch.autograd.Function):
    """Cross entropy as far as memory traffic goes: reads the logits once, then overwrites them."""

    @staticmethod
    def forward(ctx, logits):
        ctx.save_for_backward(logits)
        return logits.sum()

    @staticmethod
    def backward(ctx, _):
        (logits,) = ctx.saved_tensors
        return logits.detach().mul_(1.0)


class Block(nn.Module):
    """Attention and a feed-forward layer, each behind its norm."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        """The stream behind the block."""
        qkv = self.qkv(self.norm1(x)).unflatten(-1, (3, self.heads, -1))
        query, key, value = (part.transpose(1, 2) for part in qkv.unbind(2))
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Mpt(nn.Module):
    """A decoder whose embedding is its head too."""

    def __init__(self, args):
        super().__init__()
        self.checkpoints = args.checkpoint
        self.tokens = nn.Embedding(VOCABULARY, args.width)
        self.positions = nn.Embedding(args.length, args.width)
        self.blocks = nn.ModuleList(Block(args.width, args.heads) for _ in range(args.layers))
        self.norm = nn.LayerNorm(args.width)

    def forward(self, tokens):
        """The loss of a batch."""
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.checkpoints else block(x)
        return FusedLoss.apply(F.linear(self.norm(x), self.tokens.weight))


def main(args):
    """Train on random tokens."""
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    torch.distributed.init_process_group("nccl", device_id=device)
    dtype = torch.bfloat16 if args.pure else torch.float32
    with device:
        model = Mpt(args).to(dtype)
    reduced = torch.bfloat16 if args.pure else torch.float32
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=reduced)
    for block in model.blocks:
        fully_shard(block, mp_policy=policy, reshard_after_forward=not args.keep)
    fully_shard(model, mp_policy=policy, reshard_after_forward=not args.keep)
    optimizer = torch.optim.AdamW(model.parameters(), lr=6e-4)
    for _ in range(10):
        tokens = torch.randint(VOCABULARY, (args.batch, args.length), device=device)
        model(tokens).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("width", "heads", "layers", "length", "batch"):
        parser.add_argument(f"--{name}", type=int, required=True)
    for name in ("checkpoint", "keep", "pure"):
        parser.add_argument(f"--{name}", action="store_true")
    main(parser.parse_args())
