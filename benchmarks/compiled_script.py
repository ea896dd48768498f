"""A few training steps of a timm model, as PyTorch's dashboards take them; run under the profiler.

MODEL BATCH
"""

import sys

import timm
import torch
from torch import nn

model = timm.create_model(sys.argv[1]).train().to("cuda")
batch = int(sys.argv[2])
optimizer = torch.optim.SGD(model.parameters(), 0.01)
for _ in range(5):
    images = torch.rand(batch, 3, 224, 224, device="cuda")
    labels = torch.zeros(batch, dtype=torch.long, device="cuda")
    optimizer.zero_grad()
    with torch.autocast("cuda", dtype=torch.float16):
        loss = nn.functional.cross_entropy(model(images), labels)
    loss.backward()
    optimizer.step()
