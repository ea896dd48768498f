"""Fused optimizers
PyTorch docs, torch.optim with fused=True: AdamW (as nanoGPT asks for it) and SGD for the embeddings.
"""

import inspect

import torch
from torch import nn

device = "cuda"


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(100, 32)
        self.body = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 100))

    def forward(self, idx):
        return self.body(self.embedding(idx))


model = Model().to(device)
param_dict = {pn: p for pn, p in model.body.named_parameters() if p.requires_grad}
decay_params = [p for n, p in param_dict.items() if p.dim() >= 2]
nodecay_params = [p for n, p in param_dict.items() if p.dim() < 2]
optim_groups = [
    {"params": decay_params, "weight_decay": 0.1},
    {"params": nodecay_params, "weight_decay": 0.0},
]
fused_available = "fused" in inspect.signature(torch.optim.AdamW).parameters
use_fused = fused_available and device == "cuda"
optimizer = torch.optim.AdamW(optim_groups, lr=6e-4, betas=(0.9, 0.95), fused=use_fused)
sgd = torch.optim.SGD(model.embedding.parameters(), lr=0.1, momentum=0.9, fused=True)
scaler = torch.amp.GradScaler(device)
for iteration in range(10):
    idx = torch.randint(100, (8, 17)).pin_memory().to(device, non_blocking=True)
    with torch.amp.autocast(device_type=device, dtype=torch.float16):
        loss = nn.functional.cross_entropy(model(idx[:, :-1]).flatten(0, 1), idx[:, 1:].flatten())
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.step(sgd)
    scaler.update()
    optimizer.zero_grad(set_to_none=True)
    sgd.zero_grad(set_to_none=True)
    print(f"iter {iteration}: loss {loss.item():.4f}")
