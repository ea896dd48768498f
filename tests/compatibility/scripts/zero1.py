"""ZeRO-1: ZeroRedundancyOptimizer around AdamW, under DistributedDataParallel
PyTorch recipes, "Shard Optimizer States with ZeroRedundancyOptimizer", with an embedding before the layers.
"""

import argparse
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel as DDP


def main(args):
    dist.init_process_group("nccl")
    rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(rank)
    layers = [module for _ in range(args.layers) for module in (nn.Linear(512, 512), nn.ReLU())]
    model = DDP(nn.Sequential(nn.Embedding(args.words, 512), *layers).to(rank), device_ids=[rank])
    optimizer = ZeroRedundancyOptimizer(
        model.parameters(),
        optimizer_class=torch.optim.AdamW,
        parameters_as_bucket_view=args.bucket_view,
        lr=1e-3,
    )
    for _ in range(10):
        tokens = torch.randint(0, args.words, (16, 128), device=rank)
        model(tokens).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--words", type=int, default=4096)
    parser.add_argument("--layers", type=int, default=16)
    parser.add_argument("--bucket-view", action="store_true")
    main(parser.parse_args())
