"""FSDP1: wrapped blocks in an outer wrapper with nothing of its own, or by a policy
PyTorch tutorials, "Advanced Model Training with FSDP", with enable_wrap; --auto-wrap as in "Getting Started with FSDP".
"""

import argparse
import functools
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from torch.distributed.fsdp import MixedPrecision
from torch.distributed.fsdp.wrap import enable_wrap, size_based_auto_wrap_policy, wrap


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.up = nn.Linear(dim, 4 * dim)
        self.down = nn.Linear(4 * dim, dim)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(x)))


def wrapped(model):
    with enable_wrap(wrapper_cls=FSDP, device_id=torch.cuda.current_device()):
        return wrap(nn.Sequential(*[wrap(block) for block in model]))


def auto_wrapped(model):
    policy = functools.partial(size_based_auto_wrap_policy, min_num_params=500_000)
    return FSDP(
        model,
        auto_wrap_policy=policy,
        device_id=int(os.environ["LOCAL_RANK"]),
        mixed_precision=MixedPrecision(param_dtype=torch.bfloat16),
        sync_module_states=True,
        use_orig_params=True,
    )


def main(args):
    dist.init_process_group("nccl")
    rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(rank)
    model = nn.Sequential(*[Block(256) for _ in range(4)])
    model = auto_wrapped(model) if args.auto_wrap else wrapped(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(10):
        x = torch.randn(64, 256, device=rank)
        model(x).square().mean().backward()
        model.clip_grad_norm_(1.0)
        optimizer.step()
        optimizer.zero_grad()
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--auto-wrap", action="store_true")
    main(parser.parse_args())
