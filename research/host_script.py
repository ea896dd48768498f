"""A few training steps of a torchvision model; run under the profiler.

MODEL BATCH SIDE OPTIMIZER PRECISION, such as ``resnet18 16 224 sgd amp``. Adam and Adadelta step tensor by
tensor, as they did before PyTorch had lists of them.
"""

import sys
from importlib import import_module

import torch
from torch import nn

OPTIMIZERS = {
    "sgd": lambda parameters: torch.optim.SGD(parameters, 0.01, foreach=True),
    "adam": lambda parameters: torch.optim.Adam(parameters, foreach=False),
    "adadelta": lambda parameters: torch.optim.Adadelta(parameters, foreach=False),
}

name, batch, side, optimizer_name, precision = sys.argv[1:]
model = import_module("torchvision.models").get_model(name, weights=None).train().to("cuda")
optimizer = OPTIMIZERS[optimizer_name](model.parameters())
for _ in range(4):
    images = torch.rand(int(batch), 3, int(side), int(side), device="cuda")
    labels = torch.zeros(int(batch), dtype=torch.long, device="cuda")
    optimizer.zero_grad()
    with torch.autocast("cuda", dtype=torch.float16, enabled=precision == "amp"):
        loss = nn.functional.cross_entropy(model(images), labels)
    loss.backward()
    optimizer.step()
