"""Published speed-ups: which rows pair, and what is predicted of them."""

import csv

import pytest

from advisor.gpus import resolve_gpu
from advisor.predict import predict
from advisor.types import Precision
from benchmarks import speedups
from benchmarks.speedups import FILE, NETWORKS, Network, SpeedUp, speed_ups
from tests.builders import make_trace
from tests.shared import SHARED, needs_shared

COLUMNS = ("model", "gpu", "n_gpus", "precision", "batch_per_gpu", "throughput")
ROWS = (
    ("Tiny", "V100 SXM2/3 16GB", "1", "FP32", "8", "10.0"),
    ("Tiny", "V100 SXM2/3 32GB", "1", "FP32", "8", "12.0"),
    ("Tiny", "A100 SXM4 80GB", "1", "TF32", "8", "30.0"),
    ("Tiny", "A100 SXM4 80GB", "8", "TF32", "8", "200.0"),
    ("Tiny", "A100 SXM4 80GB", "1", "AMP-FP16", "8", "60.0"),
    ("Other", "V100 SXM2/3 16GB", "1", "AMP-FP16", "8", "1.0"),
)


@pytest.fixture
def folder(tmp_path):
    with (tmp_path / FILE).open("w", newline="") as file:
        csv.writer(file).writerows([COLUMNS, *ROWS])
    return tmp_path


@pytest.fixture
def built(monkeypatch):
    """One network whose traces are made up; remembers what was asked for."""
    asked = []

    def build(amp):
        asked.append(amp)
        return make_trace()

    network = Network(
        name="Tiny", published="Tiny", build=build, fitted=frozenset({("V100-SXM-32GB", "TF32")})
    )
    monkeypatch.setattr(speedups, "NETWORKS", (network,))
    return asked


def test_pairs_are_of_one_model_precision_and_one_gpu_each(folder, built):
    found = list(speed_ups(folder))
    assert [(pair.precision, pair.origin, pair.destination) for pair in found] == [
        ("TF32", "V100-SXM-16GB", "A100-SXM-80GB"),
        ("TF32", "V100-SXM-32GB", "A100-SXM-80GB"),
    ]
    assert [pair.published for pair in found] == pytest.approx([3.0, 2.5])
    assert [pair.fitted for pair in found] == [False, True]
    # Profiled once for both; nothing without a partner is profiled.
    assert built == [False]


def test_the_prediction_is_a_ratio_of_iterations(folder, built):
    pair = next(speed_ups(folder))
    precision = Precision(amp_dtype=None, tf32_matmul=True, tf32_cudnn=True)
    trace = make_trace(precision=precision)
    slow, fast = (predict(trace, resolve_gpu(gpu)).iteration_s.p50 for gpu in (pair.origin, pair.destination))
    assert pair.predicted == pytest.approx(slow / fast)


def test_errors_are_signed():
    pair = SpeedUp(
        name="", precision="", origin="", destination="", published=2.0, predicted=2.5, fitted=False
    )
    assert pair.error == pytest.approx(0.25)


def test_a_missing_table(tmp_path):
    with pytest.raises(OSError, match=FILE):
        list(speed_ups(tmp_path))


@pytest.mark.shared
@needs_shared
def test_the_published_table_has_both_ends_of_every_network():
    with (SHARED / "measurements" / "third_party" / FILE).open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["n_gpus"] == "1"]
    ratios = {}
    for network in NETWORKS:
        v100 = speedups._throughputs(network, rows, speedups._V100, "AMP-FP16")
        a100 = speedups._throughputs(network, rows, speedups._A100, "AMP-FP16")
        ratios[network.name] = [round(fast / slow, 2) for slow in v100.values() for fast in a100.values()]
    assert ratios["ResNet-50"] == [2.06, 2.14]
    assert ratios["GNMT (LSTM of its size)"] == [1.84]
    assert all(ratios.values())


@pytest.mark.shared
@pytest.mark.torch
@needs_shared
def test_resnet_50_speeds_up_as_published():
    """NHWC in AMP and TF32; within 20 %."""
    found = list(_of("ResNet-50"))
    assert len(found) == 4
    assert all(abs(pair.error) < 0.2 for pair in found), found


def _of(name):
    folder = SHARED / "measurements" / "third_party"
    chosen = tuple(network for network in NETWORKS if network.name == name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(speedups, "NETWORKS", chosen)
        yield from speed_ups(folder)
