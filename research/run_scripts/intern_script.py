"""InternLM as InternEvo trained it: torchrun --nproc-per-node 8 intern_script.py.

Weights are BF16. Gradients are summed in large buckets behind the last of a step's passes, and each rank of a
group keeps a part of the optimizer's state. Norms are one kernel, as apex's are.
"""

import argparse
import contextlib
import os

import torch
from torch import nn
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

VOCABULARY, WIDTH, HIDDEN, HEADS = 103_168, 4096, 11_008, 32
BUCKET_MB = 512


def rotated(x, cosine, sine):
    """Queries or keys at their positions."""
    first, second = x.chunk(2, dim=-1)
    return x * cosine + torch.cat((-second, first), dim=-1) * sine


class Block(nn.Module):
    """Attention whose layers have biases, and a gated feed-forward layer."""

    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = (nn.RMSNorm(WIDTH, eps=1e-5) for _ in range(2))
        self.mix, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.gate, self.up = (nn.Linear(WIDTH, HIDDEN, bias=False) for _ in range(2))
        self.down = nn.Linear(HIDDEN, WIDTH, bias=False)

    def forward(self, x, cosine, sine):
        """The stream behind the block."""
        heads = self.mix(self.norm1(x)).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        query, key = (rotated(part, cosine, sine) for part in heads[:2])
        mixed = F.scaled_dot_product_attention(query, key, heads[2], is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        inputs = self.norm2(x)
        return x + self.down(F.silu(self.gate(inputs)) * self.up(inputs))


class InternLM(nn.Module):
    """A decoder whose head is not its embedding."""

    def __init__(self, args):
        super().__init__()
        self.checkpoints = args.checkpoint
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(args.layers))
        self.norm = nn.RMSNorm(WIDTH, eps=1e-5)
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)
        size = WIDTH // HEADS
        angles = torch.outer(torch.arange(args.length), 10_000 ** (-torch.arange(0, size, 2) / size))
        angles = torch.cat((angles, angles), dim=-1)
        self.register_buffer("cosine", angles.cos())
        self.register_buffer("sine", angles.sin())

    def forward(self, tokens):
        """The loss of a batch."""
        x = self.tokens(tokens)
        for block in self.blocks:
            if self.checkpoints:
                x = checkpoint(block, x, self.cosine, self.sine, use_reentrant=False)
            else:
                x = block(x, self.cosine, self.sine)
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1).float(), tokens.flatten())


def main(args):
    """Train on random tokens."""
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    torch.distributed.init_process_group("nccl", device_id=device)
    with device:
        model = InternLM(args).bfloat16()
    model = nn.parallel.DistributedDataParallel(model, bucket_cap_mb=BUCKET_MB, gradient_as_bucket_view=True)
    if args.whole:
        optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    else:
        group = torch.distributed.new_subgroups(args.group)[0] if args.group else None
        optimizer = ZeroRedundancyOptimizer(
            model.parameters(), torch.optim.AdamW, process_group=group, lr=3e-4, fused=True
        )
    for _ in range(6):
        for number in range(args.passes):
            is_last = number == args.passes - 1
            tokens = torch.randint(VOCABULARY, (args.batch, args.length), device=device)
            with contextlib.nullcontext() if is_last else model.no_sync():
                model(tokens).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=True)
        optimizer.step()
        optimizer.zero_grad()
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("layers", "length", "batch", "passes"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--group", type=int, help="ranks that share the optimizer's state; all by default")
    parser.add_argument("--whole", action="store_true", help="each rank keeps all of the state")
    parser.add_argument("--checkpoint", action="store_true")
    main(parser.parse_args())
