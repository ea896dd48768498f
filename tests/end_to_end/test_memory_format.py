"""The layout that a script trains in is what the trace tells, as on a GPU."""

import pytest

from advisor.core.values import Op
from advisor.operators.convolution import is_channels_last
from advisor.operators.family import base_name
from advisor.profile import profile

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm_children")]
SCRIPT = """
import sys
import torch
from torch import nn
model = nn.Sequential(
    nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 16, 1), nn.BatchNorm2d(16),
    nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 4),
).cuda()
images = torch.randn(2, 3, 16, 16, device="cuda")
if sys.argv[1] == "channels_last":
    model, images = model.to(memory_format=torch.channels_last), images.to(memory_format=torch.channels_last)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(4):
    optimizer.zero_grad()
    with torch.autocast("cuda"):
        loss = model(images).sum()
    loss.backward()
    optimizer.step()
"""


def layouts(op: Op) -> set[bool]:
    return {is_channels_last(tensor) for tensor in (*op.inputs[:2], *op.outputs[:1]) if len(tensor.shape) == 4
            and tensor.shape[1] > 1 and tensor.shape[2] * tensor.shape[3] > 1}  # fmt: skip


@pytest.mark.parametrize("layout", ["contiguous", "channels_last"])
def test_every_image_operator_has_the_layout_of_the_script(tmp_path, layout):
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    trace = profile(script, [layout])
    seen = {
        base_name(op.name): layouts(op) for op in trace.ops if "conv" in op.name or "batch_norm" in op.name
    }
    assert seen.keys() == {
        "convolution", "convolution_backward", "cudnn_batch_norm", "cudnn_batch_norm_backward"
    }  # fmt: skip
    assert set().union(*seen.values()) == {layout == "channels_last"}
