"""Optimizer steps fused into the backward pass
PyTorch tutorials, "How to save memory by fusing the optimizer step into the backward pass": hooks.
"""

import torch
from torch import nn

model = nn.Sequential(
    nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(),
    nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10),
).cuda()  # fmt: skip

# Instead of one optimizer for all parameters, one for each.
optimizer_dict = {p: torch.optim.Adam([p], foreach=False) for p in model.parameters()}


def optimizer_hook(parameter) -> None:
    optimizer_dict[parameter].step()
    optimizer_dict[parameter].zero_grad()


for p in model.parameters():
    p.register_post_accumulate_grad_hook(optimizer_hook)


def train(model):
    fake_image = torch.rand(8, 3, 64, 64).cuda()
    loss = model.forward(fake_image)
    loss.sum().backward()


for i in range(100):
    train(model)
    print(i, torch.cuda.memory_allocated())
