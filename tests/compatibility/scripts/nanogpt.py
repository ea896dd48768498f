"""Evaluates both splits, then accumulates
karpathy/nanoGPT, train.py: its loop, estimate_loss, get_batch, fused AdamW; a file of random tokens.
"""

import argparse
import math
import os
import tempfile
import time
from contextlib import nullcontext

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--eval-iters", type=int, default=20)
parser.add_argument("--gradient-accumulation-steps", type=int, default=4)
parser.add_argument("--batch-size", type=int, default=4)
parser.add_argument("--block-size", type=int, default=64)
parser.add_argument("--n-layer", type=int, default=2)
parser.add_argument("--n-head", type=int, default=2)
parser.add_argument("--n-embd", type=int, default=64)
parser.add_argument("--vocab-size", type=int, default=512)
parser.add_argument("--dropout", type=float, default=0.0)
config = parser.parse_args()

eval_interval, max_iters, warmup_iters, lr_decay_iters = 2000, 600_000, 2000, 600_000
learning_rate, min_lr, weight_decay, grad_clip, decay_lr = 6e-4, 6e-5, 1e-1, 1.0, True
device, dtype = "cuda", "bfloat16" if torch.cuda.is_bf16_supported() else "float16"

ddp = int(os.environ.get("RANK", -1)) != -1
if ddp:
    torch.distributed.init_process_group("nccl")
    device = f"cuda:{os.environ['LOCAL_RANK']}"
    torch.cuda.set_device(device)
    config.gradient_accumulation_steps //= int(os.environ["WORLD_SIZE"])
is_main = int(os.environ.get("RANK", 0)) == 0
torch.manual_seed(1337)
torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
ctx = nullcontext() if device == "cpu" else torch.amp.autocast("cuda", dtype=getattr(torch, dtype))

folder = tempfile.mkdtemp()
for split, size in {"train": 200_000, "val": 50_000}.items():
    np.random.randint(config.vocab_size, size=size, dtype=np.uint16).tofile(f"{folder}/{split}.bin")


def get_batch(split):
    # A new memmap each time, so that it does not leak.
    data = np.memmap(f"{folder}/{split}.bin", dtype=np.uint16, mode="r")
    starts = torch.randint(len(data) - config.block_size, (config.batch_size,))
    x = torch.stack([torch.from_numpy(data[i : i + config.block_size].astype(np.int64)) for i in starts])
    y = torch.stack(
        [torch.from_numpy(data[i + 1 : i + 1 + config.block_size].astype(np.int64)) for i in starts]
    )
    return x.pin_memory().to(device, non_blocking=True), y.pin_memory().to(device, non_blocking=True)


class LayerNorm(nn.Module):
    """One without a bias."""

    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return F.layer_norm(x, self.weight.shape, self.weight, None, 1e-5)


class CausalSelfAttention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.c_attn = nn.Linear(width, 3 * width, bias=False)
        self.c_proj = nn.Linear(width, width, bias=False)
        self.resid_dropout = nn.Dropout(config.dropout)

    def forward(self, x):
        batch, length, width = x.size()
        q, k, v = (
            part.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
            for part in self.c_attn(x).split(width, dim=2)
        )
        dropout = config.dropout if self.training else 0
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=None, dropout_p=dropout, is_causal=True)
        return self.resid_dropout(self.c_proj(y.transpose(1, 2).contiguous().view(batch, length, width)))


class MLP(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.c_fc = nn.Linear(width, 4 * width, bias=False)
        self.gelu = nn.GELU()
        self.c_proj = nn.Linear(4 * width, width, bias=False)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x):
        return self.dropout(self.c_proj(self.gelu(self.c_fc(x))))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.ln_1, self.attn = LayerNorm(width), CausalSelfAttention(width, heads)
        self.ln_2, self.mlp = LayerNorm(width), MLP(width)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self, vocabulary, width, heads, layers):
        super().__init__()
        self.transformer = nn.ModuleDict({
            "wte": nn.Embedding(vocabulary, width),
            "wpe": nn.Embedding(config.block_size, width),
            "drop": nn.Dropout(config.dropout),
            "h": nn.ModuleList(Block(width, heads) for _ in range(layers)),
            "ln_f": LayerNorm(width),
        })  # fmt: skip
        self.lm_head = nn.Linear(width, vocabulary, bias=False)
        self.transformer.wte.weight = self.lm_head.weight
        self.apply(self._init_weights)
        for name, parameter in self.named_parameters():
            if name.endswith("c_proj.weight"):
                nn.init.normal_(parameter, mean=0.0, std=0.02 / math.sqrt(2 * layers))

    def _init_weights(self, module):
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, mean=0.0, std=0.02)

    def forward(self, tokens, targets):
        positions = torch.arange(tokens.size(1), dtype=torch.long, device=tokens.device)
        x = self.transformer.wte(tokens) + self.transformer.wpe(positions)
        x = self.transformer.drop(x)
        for block in self.transformer.h:
            x = block(x)
        logits = self.lm_head(self.transformer.ln_f(x))
        loss = F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1)
        return logits, loss

    def configure_optimizers(self):
        parameters = [parameter for parameter in self.parameters() if parameter.requires_grad]
        groups = [
            {"params": [p for p in parameters if p.dim() >= 2], "weight_decay": weight_decay},
            {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0},
        ]
        return torch.optim.AdamW(groups, lr=learning_rate, betas=(0.9, 0.95), fused="cuda" in device)


model = GPT(config.vocab_size, config.n_embd, config.n_head, config.n_layer).to(device)
scaler = torch.amp.GradScaler("cuda", enabled=dtype == "float16")
optimizer = model.configure_optimizers()
model = torch.compile(model)
if ddp:
    model = nn.parallel.DistributedDataParallel(model, device_ids=[int(os.environ["LOCAL_RANK"])])


@torch.no_grad()
def estimate_loss():
    out = {}
    model.eval()
    for split in ("train", "val"):
        losses = torch.zeros(config.eval_iters)
        for k in range(config.eval_iters):
            X, Y = get_batch(split)
            with ctx:
                _, loss = model(X, Y)
            losses[k] = loss.item()
        out[split] = losses.mean()
    model.train()
    return out


def get_lr(iteration):
    if iteration < warmup_iters:
        return learning_rate * (iteration + 1) / (warmup_iters + 1)
    if iteration > lr_decay_iters:
        return min_lr
    ratio = (iteration - warmup_iters) / (lr_decay_iters - warmup_iters)
    return min_lr + 0.5 * (1.0 + math.cos(math.pi * ratio)) * (learning_rate - min_lr)


X, Y = get_batch("train")
started = time.time()
best_val_loss = 1e9
for iteration in range(max_iters):
    for group in optimizer.param_groups:
        group["lr"] = get_lr(iteration) if decay_lr else learning_rate
    if iteration % eval_interval == 0 and is_main:
        losses = estimate_loss()
        print(f"step {iteration}: train loss {losses['train']:.4f}, val loss {losses['val']:.4f}")
        if losses["val"] < best_val_loss:
            best_val_loss = losses["val"]
            if iteration > 0:
                state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
                torch.save(state, f"{folder}/ckpt.pt")
    for micro_step in range(config.gradient_accumulation_steps):
        if ddp:
            # Gradients are summed over the ranks in the last micro step alone.
            model.require_backward_grad_sync = micro_step == config.gradient_accumulation_steps - 1
        with ctx:
            logits, loss = model(X, Y)
            loss = loss / config.gradient_accumulation_steps
        X, Y = get_batch("train")  # while the GPU works on the forward pass
        scaler.scale(loss).backward()
    if grad_clip != 0.0:
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), grad_clip)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad(set_to_none=True)
    if iteration % 10 == 0 and is_main:
        lossf = loss.item() * config.gradient_accumulation_steps
        print(f"iter {iteration}: loss {lossf:.4f}, time {(time.time() - started) * 1000:.2f}ms")
    started = time.time()
