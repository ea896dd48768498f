"""The training loop, on one GPU or several; it saves checkpoints and goes on from the last one."""

import itertools
import math
import os
from pathlib import Path

import torch
from torch import distributed, nn
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_state_dict, set_state_dict
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

CHECKPOINT = Path("checkpoint.pt")
SAVE_EVERY = 200  # steps
WARMUP = 100  # steps

# torchrun sets these.
WORLD = int(os.environ.get("WORLD_SIZE", "1"))
RANK = int(os.environ.get("RANK", "0"))


def start():
    """Join the other GPUs, if there are any."""
    if WORLD > 1:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        distributed.init_process_group("nccl")
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")


def placed(model, blocks, shard, **policy):
    """A model made on meta, on the GPU: a whole one, or its part of one that GPUs share (FSDP)."""
    if shard and WORLD > 1:
        for block in blocks:
            fully_shard(block, **policy)
        fully_shard(model, **policy)
    model.to_empty(device="cuda")
    for module in reversed(list(model.modules())):
        if hasattr(module, "reset_parameters"):
            module.reset_parameters()
    return model


def train(model, optimizer, data, *, batch, accumulation, epochs, learning_rate, amp=False):
    """Train on the data set; a batch is what the model's forward takes, which returns the mean loss."""
    if WORLD > 1 and not isinstance(model, FSDPModule):
        model = DistributedDataParallel(model)
    sampler = DistributedSampler(data) if WORLD > 1 else None
    loader = DataLoader(
        data, batch, shuffle=sampler is None, sampler=sampler, num_workers=4, drop_last=True, pin_memory=True
    )
    per_epoch = len(loader) // accumulation
    step, steps = resume(model, optimizer), epochs * per_epoch
    while step < steps:
        if sampler is not None:
            sampler.set_epoch(step // per_epoch)
        batches = iter(loader)
        for _ in range(per_epoch - step % per_epoch):
            for group in optimizer.param_groups:
                group["lr"] = learning_rate * schedule(step, steps)
            loss = accumulate(model, itertools.islice(batches, accumulation), accumulation, amp)
            nn.utils.clip_grad_norm_([p for p in model.parameters() if p.requires_grad], 1.0)
            optimizer.step()
            optimizer.zero_grad()
            step += 1
            if RANK == 0 and step % 10 == 0:
                print(f"step {step} of {steps}: loss {loss.item():.3f}", flush=True)
            if step % SAVE_EVERY == 0 or step == steps:
                save(model, optimizer, step)
    if WORLD > 1:
        distributed.destroy_process_group()


def accumulate(model, batches, accumulation, amp):
    """Gradients of several batches; returns the last one's loss."""
    for inputs in batches:
        with torch.autocast("cuda", torch.bfloat16, enabled=amp):
            loss = model(*(part.cuda(non_blocking=True) for part in inputs))
        (loss / accumulation).backward()
    return loss


def schedule(step, steps):
    """Linear warm-up, then a cosine down to a tenth."""
    if step < WARMUP:
        return (step + 1) / WARMUP
    return 0.55 + 0.45 * math.cos(math.pi * step / steps)


# Frozen weights are not saved: the published ones are at hand.
OPTIONS = StateDictOptions(full_state_dict=True, cpu_offload=True, ignore_frozen_params=True)


def save(model, optimizer, step):
    weights, moments = get_state_dict(model, optimizer, options=OPTIONS)
    if RANK == 0:
        # A run that is ended while it saves keeps its last checkpoint.
        torch.save({"model": weights, "optimizer": moments, "step": step}, f"{CHECKPOINT}.new")
        Path(f"{CHECKPOINT}.new").replace(CHECKPOINT)


def resume(model, optimizer):
    """The step at which to go on."""
    if not CHECKPOINT.exists():
        return 0
    state = torch.load(CHECKPOINT, map_location="cpu", mmap=True)
    options = StateDictOptions(full_state_dict=True, ignore_frozen_params=True, strict=False)
    set_state_dict(
        model,
        optimizer,
        model_state_dict=state["model"],
        optim_state_dict=state["optimizer"],
        options=options,
    )
    return state["step"]
