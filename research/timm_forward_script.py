"""Forward passes of a timm model as timm's own benchmark takes them in inference; run under the profiler.

    MODEL BATCH SIDE

fp16 autocast without gradients, cuDNN's autotuner on. Weights are never drawn: only shapes count. A step of
an optimizer over nothing that matters tells where an iteration ends.
"""

import sys

import torch


def _as_it_is(tensor: torch.Tensor, *_: object, **__: object) -> torch.Tensor:
    return tensor


for name in ("normal_", "uniform_", "erfinv_"):
    setattr(torch.Tensor, name, _as_it_is)
import timm  # noqa: E402 - after its random numbers are off

torch.backends.cudnn.benchmark = True
model = timm.create_model(sys.argv[1]).eval().cuda()
batch, side = int(sys.argv[2]), int(sys.argv[3])
images = torch.randn(batch, 3, side, side, device="cuda")
mark = torch.nn.Parameter(torch.zeros(1, device="cuda"))
optimizer = torch.optim.SGD([mark], lr=1e-4, foreach=False)
mark.grad = torch.zeros_like(mark)
optimizer.step()  # of nothing: it ends the set-up
with torch.no_grad(), torch.autocast("cuda"):
    model(images)
optimizer.step()
