"""Weights of four bits (NF4, Dettmers et al. 2023), of which bitsandbytes makes 16 bits for each product.

This stores what bitsandbytes' Linear4bit stores, half a byte a weight and a scale for each block of them. It
can be made on no device and sharded, which that one cannot.
"""

from collections.abc import Sequence

import torch
from torch import nn
from torch.nn import functional as F

BLOCK = 64
NF4 = (
    -1.0, -0.6962, -0.5251, -0.3949, -0.2844, -0.1848, -0.0911, 0.0,
    0.0796, 0.1609, 0.2461, 0.3379, 0.4407, 0.5626, 0.7230, 1.0,
)  # fmt: skip

try:
    import bitsandbytes  # noqa: F401 - brings the operator
except ImportError:
    # The same in plain PyTorch, which takes longer: pip install bitsandbytes
    @torch.library.custom_op("bitsandbytes::dequantize_4bit", mutates_args=())
    def dequantized(
        packed: torch.Tensor, scales: torch.Tensor, block: int, kind: str,  # noqa: ARG001 - NF4 alone
        shape: Sequence[int], dtype: torch.dtype,
    ) -> torch.Tensor:  # fmt: skip
        values = torch.tensor(NF4, dtype=dtype, device=packed.device)
        # A byte stands for two weights.
        pairs = F.embedding(packed.int(), torch.cartesian_prod(values, values))
        return pairs.view(-1, block).mul_(scales[:, None]).view(shape)

    @dequantized.register_fake
    def made(packed, *others):
        shape, dtype = others[-2:]
        return torch.empty(shape, dtype=dtype, device=packed.device)


class Linear4bit(nn.Module):
    def __init__(self, inputs, outputs, bias):
        super().__init__()
        self.in_features, self.out_features = inputs, outputs
        self.bias = nn.Parameter(torch.empty(outputs), requires_grad=False) if bias else None
        packed = torch.empty(outputs * inputs // 2, dtype=torch.uint8)
        scales = torch.empty(outputs * inputs // BLOCK)
        self.packed, self.scales = (nn.Parameter(part, requires_grad=False) for part in (packed, scales))

    def reset_parameters(self):
        # A sharded weight is drawn shard by shard.
        getattr(self.packed, "to_local", lambda: self.packed)().random_(0, 256)
        nn.init.constant_(self.scales, self.in_features**-0.5)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def weight(self, dtype):
        shape = (self.out_features, self.in_features)
        return torch.ops.bitsandbytes.dequantize_4bit(self.packed, self.scales, BLOCK, "nf4", shape, dtype)

    def forward(self, x):
        return Product.apply(x, self)


class Product(torch.autograd.Function):
    """Keeps no weights of 16 bits for the backward pass, and makes them again there."""

    @staticmethod
    def forward(ctx, x, layer):
        ctx.layer = layer
        return F.linear(x, layer.weight(x.dtype), layer.bias)

    @staticmethod
    def backward(ctx, gradient):
        return gradient @ ctx.layer.weight(gradient.dtype), None


def quantize(blocks):
    """Linear layers of four bits in place of the blocks' own."""
    for module in list(blocks.modules()):
        for name, layer in list(module.named_children()):
            if isinstance(layer, nn.Linear):
                setattr(
                    module, name, Linear4bit(layer.in_features, layer.out_features, layer.bias is not None)
                )


def packed(weights, model):
    """Published weights with those of layers of four bits as these keep them."""
    values = torch.tensor(NF4)
    middles = (values[1:] + values[:-1]) / 2
    layers = {name for name, module in model.named_modules() if isinstance(module, Linear4bit)}
    for name in list(weights):
        layer = name.removesuffix(".weight")
        if layer in layers:
            blocks = weights.pop(name).float().view(-1, BLOCK)
            scales = blocks.abs().amax(dim=1).clamp(min=1e-8)
            codes = torch.bucketize(blocks / scales[:, None], middles).view(-1, 2)
            weights[f"{layer}.packed"] = (codes[:, 0] * 16 + codes[:, 1]).to(torch.uint8)
            weights[f"{layer}.scales"] = scales
    return weights
