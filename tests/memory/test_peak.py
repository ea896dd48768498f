"""The fake backend's peak memory against real tensors, and against torch's own tracker."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from advisor.profile import profile

FOLDER = Path(__file__).parent
NAMES = ("perceptron", "residual network", "language model", "u-net", "vision transformer", "recommender")
pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm_children")]


@pytest.fixture(scope="module")
def peaks(warm_module):
    """Peak bytes by model: fake, by the same tracker on real CPU tensors, by torch's MemTracker."""

    def memory(job):
        name, backend = job
        device = "cpu" if backend == "cpu" else "cuda"
        return profile(FOLDER / "train.py", [name, device], backend=backend).memory

    with ThreadPoolExecutor(2) as pool:
        by_torch = pool.submit(warm_module, "tests.memory.peaks_by_torch")
        fake = pool.map(memory, [(name, "fake") for name in NAMES])
        real = pool.map(memory, [(name, "cpu") for name in NAMES])
        counted = json.loads(by_torch.result().splitlines()[-1])
        return {
            name: (on_fake, on_real, counted[name])
            for name, on_fake, on_real in zip(NAMES, fake, real, strict=True)
        }


@pytest.mark.parametrize("name", NAMES)
def test_same_peak_as_with_real_tensors(name, peaks):
    fake, real, _ = peaks[name]
    assert fake.peak_bytes == pytest.approx(real.peak_bytes, rel=0.002)


@pytest.mark.parametrize("name", NAMES)
def test_same_peak_as_torch_counts(name, peaks):
    fake, _, by_torch = peaks[name]
    # Ours rounds each storage up to the allocator's 512 bytes.
    assert fake.peak_bytes == pytest.approx(by_torch, rel=0.005)
    assert fake.peak_bytes >= by_torch


@pytest.mark.parametrize("name", NAMES)
def test_the_same_parts(name, peaks):
    fake, real, _ = peaks[name]
    for part in ("parameter_bytes", "gradient_bytes"):
        assert getattr(fake, part) == getattr(real, part) > 0
    assert fake.optimizer_bytes == pytest.approx(real.optimizer_bytes, rel=0.01)
