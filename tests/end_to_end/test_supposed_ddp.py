"""A script that is supposed to be wrapped in DDP takes as long as the same script that is."""

from dataclasses import replace
from pathlib import Path

import pytest

from advisor.core.gpus import resolve_gpu
from advisor.predict import predict
from advisor.profile.profiling import profile

pytestmark = pytest.mark.usefixtures("warm_children")
SCRIPT = """
import sys
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

is_wrapped, width, depth = sys.argv[1] == "ddp", int(sys.argv[2]), int(sys.argv[3])
blocks = [nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.GELU()) for _ in range(depth)]
model = nn.Sequential(*blocks)
model = model.to("cuda")
if is_wrapped:
    torch.distributed.init_process_group("nccl")
    model = nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for (x,) in DataLoader(TensorDataset(torch.rand(4096, width)), 256):
    optimizer.zero_grad()
    model(x.cuda()).square().mean().backward()
    optimizer.step()
"""


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    script = tmp_path_factory.mktemp("ddp") / "train.py"
    Path(script).write_text(SCRIPT)
    plain = profile(script, ["plain", "1024", "24"])
    wrapped = profile(script, ["ddp", "1024", "24"], world_size=8)
    # What a loader takes is timed, so that two runs differ.
    timed = {"data_loading_s": None, "loader_cpu_s_per_sample": None}
    return replace(plain, **timed), replace(wrapped, **timed)


@pytest.mark.parametrize("gpu", ["A100-SXM-80GB", "H100-SXM-80GB", "L4", "T4"])
@pytest.mark.parametrize("num_gpus", [2, 8])
def test_a_supposed_wrap_takes_as_long_as_a_recorded_one(pair, gpu, num_gpus):
    supposed, recorded = (predict(trace, resolve_gpu(gpu), num_gpus) for trace in pair)
    assert supposed.iteration_s.p50 == pytest.approx(recorded.iteration_s.p50, rel=0.01)
    assert supposed.memory_bytes == pytest.approx(recorded.memory_bytes, rel=0.02)
