"""Checks a recipe's layer of four-bit weights: ``python -m tests.unit.recipes.four_bits SCRIPT [hidden]``.

Where `hidden` is said, bitsandbytes is not there.
"""

import runpy
import sys

import torch

if sys.argv[2:] == ["hidden"]:
    sys.modules["bitsandbytes"] = None
script = runpy.run_path(sys.argv[1])
layer = script["Linear4bit"](128, 3, False)
layer.packed.data[:] = torch.arange(192) % 256
layer.scales.data[:] = torch.tensor([1.0, 2, 3, 4, 5, 6])
values = torch.tensor(script["NF4"])
codes = torch.stack([layer.packed // 16, layer.packed % 16], dim=1).flatten().int()
expected = (values[codes].view(-1, 64) * layer.scales[:, None]).view(3, 128)
made = layer.weight(torch.float32)
assert torch.allclose(made, expected, atol=1e-3), (made - expected).abs().max()
inputs = torch.eye(128, requires_grad=True)
layer(inputs).sum().backward()
assert torch.allclose(inputs.grad[0], expected.sum(dim=0), atol=1e-2)
