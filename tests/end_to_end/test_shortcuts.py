"""What repeats is recognised: a profile with shortcuts is the one without them, to the last count."""

import json
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from advisor.cli.listening import EVERY_S
from advisor.profile.attempt import AttemptJob, ChildLimits, ScriptGpu, record
from tests.compatibility.row import SCRIPTS

pytestmark = pytest.mark.torch

# Calls of one form again and again, where a memory that looks at too little would go wrong.
TRAPS = """
import torch

model = torch.nn.Sequential(
    torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU(inplace=True), torch.nn.Flatten(),
    torch.nn.Linear(8 * 36, 10), torch.nn.Dropout(0.1),
).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
counts = torch.zeros(4, dtype=torch.int64, device="cuda")
lengths = [3, 5, 3]
for step in range(9):
    optimizer.zero_grad()
    for length in lengths:
        images = torch.randn(4, 3, 8, 8, device="cuda")
        assert (counts + 1).dtype is torch.int64
        assert (counts + 1.0).dtype is torch.float32
        part = images[:, :2]
        assert part._base is images
        halves = images.chunk(2)
        assert [half._base is images for half in halves] == [True, True]
        assert images.add_(1) is images
        doubled = images.double() if length == 5 else images
        assert doubled.dtype is (torch.float64 if length == 5 else torch.float32)
        chosen = torch.arange(8).cuda()[torch.arange(8).cuda() < length]  # a shape that values decide
        assert chosen.shape == (length,)
        assert torch.tensor([length]).cuda().item() == length
        with torch.inference_mode():
            assert model(images).is_inference()
        grown = torch.zeros(2, device="cuda").resize_(length)
        assert grown.shape == (length,)
        loss = model(doubled.float()).square().mean() / len(lengths)
        loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
"""
# Evaluations before training; what is left of a pass, or may differ in the next, is computed each time.
EVALUATIONS = """
import collections, sys
import torch

calls = collections.Counter()
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.kept = torch.nn.Linear(8, 8), []
    def forward(self, x, how="plain", cache=None):
        calls[how] += 1
        y = self.inner(x)
        if how == "keeps":
            self.kept.append(y)
        return {"plain": {"loss": y.sum(), "out": (y, None)}, "alias": x, "cpu": y.cpu()}.get(how, y)

model = Net().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def passes(how, *more, sizes=(4,), number=24):
    with torch.no_grad():
        for index in range(number):
            result = model(torch.randn(sizes[index % len(sizes)], 8, device="cuda"), how, *more)
    return result
model.eval()
result = passes("plain")
assert result["loss"].item() == 0.5 and result["out"][0].shape == (4, 8) and result["out"][1] is None
assert not result["loss"].requires_grad and result["loss"].is_cuda
passes("sizes", sizes=(4, 5))
passes("keeps")
passes("alias")
passes("cpu")
passes("cache", object())
model.train()
passes("trains")
model.eval()
handle = model.register_forward_hook(lambda *_: None)
passes("hooked")
handle.remove()
for step in range(6):
    optimizer.zero_grad()
    model.train()(torch.randn(4, 8, device="cuda"), "step").sum().backward()
    optimizer.step()
    model.eval()
    passes("later", number=1)
    if step == 1 and sys.argv[1:]:
        assert dict(calls) == {"plain": 10, "sizes": 20, "keeps": 24, "alias": 24, "cpu": 24, "cache": 24,
                               "trains": 24, "hooked": 24, "step": 2, "later": 2}, dict(calls)
"""
CASES = {
    "evaluations": (None, ()),
    "traps": (None, ()),
    "GPT with accumulation": ("nanogpt", ("--gradient-accumulation-steps", "7", "--dropout", "0.1")),
    "accumulation over a data set": ("gradient_accumulation", ()),
    "batch norm under autocast": ("bf16_autocast", ()),
    "sparse gradients": ("dlrm", ()),
}


def recording(job: AttemptJob, python: Path) -> dict[str, Any]:
    """What the child recorded, but for how long the batches took."""
    recorded, _ = record(job, [python], ChildLimits(timeout_s=120.0, sandbox=False), None)
    contents: dict[str, Any] = json.loads(json.dumps(recorded))
    for name in ("seconds", "cpu_seconds"):
        (contents.get("loading") or {}).pop(name, None)
    contents.pop("making_s", None)
    return contents


@pytest.fixture(scope="module")
def recordings(tmp_path_factory, warm_folder):
    """By case, with shortcuts and without."""
    python = warm_folder / "bin" / "python"
    folder = tmp_path_factory.mktemp("shortcuts")
    for name, text in (("traps", TRAPS), ("evaluations", EVALUATIONS)):
        (folder / f"{name}.py").write_text(text)

    def both(name: str) -> list[dict[str, Any]]:
        script, arguments = CASES[name]
        path = folder / f"{name}.py" if script is None else SCRIPTS / f"{script}.py"
        job = AttemptJob(script=str(path), arguments=arguments, backend="fake", gpu=ScriptGpu())
        return [recording(job, python), recording(replace(job, shortcuts=False), python)]

    with ThreadPoolExecutor(2) as pool:
        return dict(zip(CASES, pool.map(both, CASES), strict=True))


@pytest.mark.parametrize("name", CASES)
def test_a_profile_is_the_same_without_shortcuts(name, recordings):
    short, whole = recordings[name]
    assert short["status"] == "ok"
    assert short == whole


def test_a_pass_like_the_ten_before_it_is_not_computed_before_training(tmp_path, warm_folder):
    script = tmp_path / "evaluations.py"
    script.write_text(EVALUATIONS)
    job = AttemptJob(script=str(script), arguments=("count",), backend="fake", gpu=ScriptGpu())
    found = recording(job, warm_folder / "bin" / "python")
    assert (found["status"], found.get("message")) == ("ok", None)


def test_sparse_gradients_are_seen_where_there_are_some(recordings):
    seen = [name for name, (short, _) in recordings.items() if short["has_sparse_gradients"]]
    assert seen == ["sparse gradients"]


def test_a_quick_profile_says_nothing_on_the_way(tmp_path):
    """Elsewhere than on a terminal, what takes less than ten seconds prints no progress."""
    script = tmp_path / "stops.py"
    script.write_text("raise SystemExit('no training here')")
    begin_s = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "advisor", "profile", script, "--backend", "fake"],
        capture_output=True, text=True, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert done.stderr.splitlines()[-1].startswith("error: ")
    assert done.stderr.count("profiling stops.py") <= (time.monotonic() - begin_s) // EVERY_S
