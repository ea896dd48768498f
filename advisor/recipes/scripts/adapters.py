"""Low-rank adapters (LoRA, Hu et al. 2021) on the linear layers of a frozen model."""

import math

import torch
from torch import nn
from torch.nn import functional as F

DROPOUT = 0.0  # of the adapters' inputs
LINEAR = ("Linear", "Linear4bit", "Conv1D")


class LoRALinear(nn.Module):
    """A frozen linear layer, and two small trained ones beside it."""

    def __init__(self, base, rank, alpha):
        super().__init__()
        self.base, self.scale = base, alpha / rank
        # GPT-2's Conv1D is a linear layer that calls its sizes otherwise.
        inputs, outputs = (base.nx, base.nf) if hasattr(base, "nf") else (base.in_features, base.out_features)
        self.down = nn.Parameter(torch.empty(rank, inputs))
        self.up = nn.Parameter(torch.empty(outputs, rank))

    @property
    def weight(self):
        # Where a model initialises the layers of its blocks by their names.
        return self.base.weight

    def reset_parameters(self):
        nn.init.kaiming_uniform_(self.down, a=math.sqrt(5))
        nn.init.zeros_(self.up)

    def forward(self, x):
        # Adapters are kept in float32, where small updates are not rounded away; products are in x's dtype.
        dropped = F.dropout(x, DROPOUT, self.training)
        adapted = F.linear(F.linear(dropped, self.down.to(x.dtype)), self.up.to(x.dtype))
        return self.base(x) + self.scale * adapted


def add_adapters(model, blocks, targets, rank, alpha):
    """Freeze the model, and put adapters on the linear layers of its blocks that are named, or on all."""
    model.requires_grad_(False)
    for module in list(blocks.modules()):
        for name, layer in list(module.named_children()):
            if type(layer).__name__ in LINEAR and (name in targets or not targets):
                setattr(module, name, LoRALinear(layer, rank, alpha))
