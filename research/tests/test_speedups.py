"""Published speed-ups: which rows pair, and what is predicted of them."""

import csv
from dataclasses import replace
from itertools import product

import pytest

from advisor.core.gpus import resolve_gpu
from advisor.core.values import Precision
from advisor.predict.iteration import predict
from research import speedups
from research.speedups import FILE, NETWORKS, Network, SpeedUp, speed_ups
from tests.builders import make_trace
from tests.published import recorded_network
from tests.shared import SHARED, needs_shared

COLUMNS = ("model", "variant", "gpu", "n_gpus", "precision", "batch_per_gpu", "throughput")
ROWS = (
    ("Tiny", "base", "V100 SXM2/3 16GB", "1", "FP32", "", "10.0"),
    ("Tiny", "base", "V100 SXM2/3 32GB", "1", "FP32", "8", "12.0"),
    ("Tiny", "large", "V100 SXM2/3 32GB", "1", "FP32", "4", "3.0"),
    ("Tiny", "base", "A100 SXM4 80GB", "1", "TF32", "", "30.0"),
    ("Tiny", "large", "A100 SXM4 80GB", "1", "TF32", "16", "9.0"),
    ("Tiny", "base", "A100 SXM4 80GB", "8", "TF32", "", "200.0"),
    ("Tiny", "base", "A100 SXM4 80GB", "1", "AMP-FP16", "8", "60.0"),
    ("Other", "base", "V100 SXM2/3 16GB", "1", "AMP-FP16", "", "1.0"),
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

    def build(amp, batch_size):
        asked.append((amp, batch_size))
        return make_trace()

    network = Network(
        name="Tiny",
        published="Tiny",
        variant="base",
        build=build,
        batch_sizes={"TF32": 8},
        fitted=frozenset({("V100-SXM-32GB", "TF32")}),
    )
    monkeypatch.setattr(speedups, "NETWORKS", (network,))
    return asked


def test_pairs_are_of_one_model_precision_and_one_gpu_each(folder, built):
    pairs = list(speed_ups(folder))
    assert [(pair.precision, pair.origin, pair.destination) for pair in pairs] == [
        ("TF32", "V100-SXM-16GB", "A100-SXM-80GB"),
        ("TF32", "V100-SXM-32GB", "A100-SXM-80GB"),
    ]
    assert [pair.published for pair in pairs] == pytest.approx([3.0, 2.5])
    assert [pair.fitted for pair in pairs] == [False, True]
    # Profiled once for both; nothing without a partner is profiled.
    assert built == [(False, 8)]
    assert {pair.name for pair in pairs} == {"Tiny"}


def test_each_side_has_its_own_batch_and_the_name_says_so(folder, built, monkeypatch):
    (network,) = speedups.NETWORKS
    monkeypatch.setattr(speedups, "NETWORKS", (replace(network, variant="large", batch_sizes={}),))
    (pair,) = speed_ups(folder)
    assert (pair.name, pair.published) == ("Tiny, batch 4 to 16", 3.0)
    assert sorted(built) == [(False, 4), (False, 16)]
    # The made-up iterations are the same whatever the batch, so four times the batch is four times the rate.
    trace = make_trace(precision=Precision(amp_dtype=None, tf32_matmul=True, tf32_cudnn=True))
    slow, fast = (predict(trace, resolve_gpu(gpu)).iteration_s.p50 for gpu in (pair.origin, pair.destination))
    assert pair.predicted == pytest.approx(4 * slow / fast)


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
    ratios, batches = {}, {}
    for network in NETWORKS:
        v100 = speedups._published(network, rows, speedups._V100, "AMP", "AMP-FP16")
        a100 = speedups._published(network, rows, speedups._A100, "AMP", "AMP-FP16")
        pairs = list(product(v100, a100))
        ratios[network.name] = [round(fast / slow, 2) for (_, slow, _), (_, fast, _) in pairs]
        batches[network.name] = [(few, many) for (*_, few), (*_, many) in pairs]
    assert ratios["ResNet-50"] == [2.06, 2.14]
    assert ratios["GNMT v2"] == [1.84]
    assert ratios["BERT-large, 128 tokens"] == [2.59]
    assert ratios["BERT-large fine-tuning"] == [2.12]
    assert ratios["Transformer (big)"] == [2.49, 2.06]
    assert batches["Transformer (big)"] == [(2560, 10_240), (5120, 10_240)]
    assert batches["Transformer-XL"] == [(16, 32), (32, 32)]
    assert batches["ResNet-50"] == [(256, 256)] * 2
    assert all(ratios.values())


@pytest.mark.shared
@needs_shared
@pytest.mark.parametrize(
    ("name", "num_pairs", "tolerance"),
    [
        # Published with a loader. MLPerf's best of both GPUs are 2.48 apart, as predicted.
        ("ResNet-50", 4, {"AMP": 0.26, "TF32": 0.2}),
        ("Transformer (big)", 4, {"AMP": 0.2, "TF32": 0.2}),
        # Published with the first software for the A100.
        ("GNMT v2", 2, {"AMP": 0.2, "TF32": 0.45}),
        ("Transformer-XL", 3, {"AMP": 0.2, "TF32": 0.45}),
    ],
)
def test_speed_ups_as_published(name, num_pairs, tolerance):
    pairs = list(_of(name))
    assert len(pairs) == num_pairs
    assert all(abs(pair.error) < tolerance[pair.precision] for pair in pairs), pairs


@pytest.mark.shared
@needs_shared
@pytest.mark.parametrize(
    ("name", "tolerance"), [("BERT-large, 128 tokens", 0.1), ("BERT-large fine-tuning", 0.25)]
)
def test_transformers_speed_up_as_published(name, tolerance):
    pairs = list(_of(name))
    assert len(pairs) == 2
    assert all(abs(pair.error) < tolerance for pair in pairs), pairs


def _of(name):
    folder = SHARED / "measurements" / "third_party"
    chosen = tuple(recorded_network(network) for network in NETWORKS if network.name == name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(speedups, "NETWORKS", chosen)
        yield from speed_ups(folder)
