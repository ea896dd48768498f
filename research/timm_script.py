"""A few training steps of a timm model as timm's own benchmark takes them; run under the profiler.

    MODEL BATCH SIDE

fp16 autocast, cross entropy, SGD with Nesterov momentum, cuDNN's autotuner on, attention by single operators
as in the releases that were measured. Weights are never drawn: only shapes count.
"""

import sys

import torch


def _as_it_is(tensor: torch.Tensor, *_: object, **__: object) -> torch.Tensor:
    return tensor


for name in ("normal_", "uniform_", "erfinv_"):
    setattr(torch.Tensor, name, _as_it_is)
import timm  # noqa: E402 - after its random numbers are off
from timm.layers.config import set_fused_attn  # noqa: E402

set_fused_attn(enable=False)
torch.backends.cudnn.benchmark = True
model = timm.create_model(sys.argv[1]).train().cuda()
batch, side = int(sys.argv[2]), int(sys.argv[3])
images = torch.randn(batch, 3, side, side, device="cuda")
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9, nesterov=True, foreach=False)
for parameter in model.parameters():
    optimizer.state[parameter]["momentum_buffer"] = torch.zeros_like(parameter)
optimizer.step()  # of nothing: it ends the set-up
optimizer.zero_grad()
with torch.autocast("cuda"):
    scores = model(images)
    scores = scores[0] if isinstance(scores, tuple) else scores
    target = torch.zeros(batch, dtype=torch.long, device="cuda")
    torch.nn.functional.cross_entropy(scores, target).backward()
optimizer.step()
