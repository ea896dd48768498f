"""Published tables of products as operators: sizes, layouts, what counts and what only judges."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from advisor.core.errors import InputError
from advisor.core.gpus import load_gpus
from advisor.core.values import Op
from advisor.operators.gemm import product_of
from advisor.predict.knowledge import shipped
from advisor.predict.roofline import KERNEL_FLOOR_S
from tests.shared import SHARED, needs_shared

pd = pytest.importorskip("pandas")
from research.accuracy.products import left_out, unseen_shapes  # noqa: E402 - they need pandas
from research.training.product_tables import BACKWARD, FORWARD, TABLES  # noqa: E402
from research.training.products import read_products, read_table  # noqa: E402
from research.training.samples import Samples  # noqa: E402
from research.training.tables import in_bursts  # noqa: E402

BURSTS, SCALED, VIDUR, DEEPBENCH, TRANSFORMERS = TABLES
MEASUREMENTS = SHARED / "measurements"
BURST = {
    "gpu": "H100-SXM-80GB", "kernel": "linear", "dtype": "bf16", "framework": "sglang", "weights": "random",
    "sustained": 0, "batch": 1, "m": 8192, "n": 4096, "k": 4096, "time_us": 400.0,
}  # fmt: skip
FP8_ROW = {"gpu": "H100-SXM-80GB", "scaling": "block_128", "m": 256, "n": 384, "k": 512, "time_us": 50.0}
LAYER = {
    "gpu": "GH200-120GB", "op": "linear3", "tensor_parallel": 2, "batch": 4, "heads": None, "seq_len": 1024,
    "hidden": 2048, "fwd_us": 200.0, "bwd_us": 420.0, "flag": None,
}  # fmt: skip
MATH = "fp16_tensor_core_fp32_add"
DEEP = {
    "gpu": "T4", "math": MATH, "a_t": "N", "b_t": "T", "m_run": 64, "n_run": 32, "k_run": 16, "time_us": 30,
}  # fmt: skip
VIDUR_ROW = {"gpu": "A40", "kind": "linear", "m": 64, "n": 128, "k": 256, "time_us": 20.0}


def written(folder: Path, **rows: list[dict]) -> Path:
    """All tables, each with one usual row unless said otherwise."""
    usual = {"bursts": [BURST], "scaled": [FP8_ROW], "vidur": [VIDUR_ROW], "deep": [DEEP], "layers": [LAYER]}
    for table, content in zip(TABLES, (usual | rows).values(), strict=True):
        path = folder / table.file
        path.parent.mkdir(parents=True, exist_ok=True)
        pd.DataFrame(content).to_csv(path, index=False)
    return folder


def every(folder: Path, table: int) -> Samples:
    """All rows of one table, whatever its share."""
    return read_table(folder, TABLES[table], share=1.0)


def sizes(op: Op) -> tuple[int, ...]:
    product = product_of(op)
    assert product is not None
    layout = (int(product.is_left_transposed), int(product.is_right_transposed))
    return (product.batch, product.rows, product.columns, product.inner, *layout)


def test_a_linear_layer_is_a_product_with_a_transposed_weight(tmp_path: Path) -> None:
    (op,) = every(written(tmp_path), 0).ops
    assert (op.name, sizes(op)) == ("aten::mm", (1, 8192, 4096, 4096, 0, 1))
    assert op.flops == 2 * 8192 * 4096 * 4096
    assert op.bytes == 2 * (2 * 8192 * 4096 + 4096 * 4096)
    assert {tensor.dtype for tensor in (*op.inputs, *op.outputs)} == {"bfloat16"}


@pytest.mark.parametrize("change", [{"weights": "uninitialised"}, {"sustained": 1}])
def test_unlike_weights_and_sustained_rows_are_left_out(tmp_path: Path, change: dict) -> None:
    samples = every(written(tmp_path, bursts=[BURST, BURST | change | {"time_us": 1.0}]), 0)
    assert samples.time_s.tolist() == [pytest.approx(400e-6)]


def test_products_whose_operands_stay_in_l2_are_left_out_where_memory_counts(tmp_path: Path) -> None:
    thin = BURST | {"m": 16, "n": 2048, "k": 1536}  # 6 x 6 MB, goes by its bytes
    wide = BURST | {"m": 16, "n": 32768, "k": 4096}  # more than L2 holds
    small = BURST | {"m": 64, "n": 64, "k": 64}  # so small that only the launch counts
    samples = every(written(tmp_path, bursts=[thin, wide, small]), 0)
    assert [sizes(op)[1:4] for op in samples.ops] == [(16, 32768, 4096), (64, 64, 64)]


def test_a_scaled_product_holds_the_bytes_of_quantising_and_not_its_launch(tmp_path: Path) -> None:
    samples = every(written(tmp_path, scaled=[FP8_ROW | {"m": 4096, "n": 4096, "k": 4096}]), 1)
    (op,) = samples.ops
    scales = 4 * (4096 * 32 + 32 * 32)
    assert op.name == "aten::_scaled_mm"
    assert op.bytes == 2 * 4096**2 + scales + 2 * 4096**2 + 3 * 4096**2
    assert samples.time_s.tolist() == [pytest.approx(50e-6 - KERNEL_FLOOR_S)]


def test_columns_of_cublas_are_our_rows(tmp_path: Path) -> None:
    # C = A B' of [64, 16] and [16, 32] by columns is C' = B A' by rows: B is stored [16, 32], so transposed.
    samples = every(written(tmp_path, deep=[DEEP, DEEP | {"time_us": 3}, DEEP | {"math": "fp32"}]), 3)
    (op,) = samples.ops
    assert (op.name, sizes(op)) == ("aten::addmm", (1, 32, 64, 16, 1, 0))
    assert op.bytes == 2 * (32 * 16 + 16 * 64 + 2 * 32 * 64)


def test_a_layer_has_a_forward_product_and_two_that_share_its_backward_time(tmp_path: Path) -> None:
    samples = every(written(tmp_path), 4)
    assert samples.gpus.tolist() == ["GH200-96GB"] * 3
    assert [sizes(op) for op in samples.ops] == [
        (1, 4096, 4096, 2048, 0, 1),  # y [b s, 4 h / 2] = x w'
        (1, 4096, 2048, 4096, 0, 0),  # dx = dy w
        (1, 4096, 2048, 4096, 1, 0),  # dw [4 h / 2, h] = dy' x
    ]
    assert samples.kinds.tolist() == [FORWARD, BACKWARD, BACKWARD]
    assert samples.time_s.tolist() == pytest.approx([200e-6, 210e-6, 210e-6])


def test_attention_scores_and_their_gradients(tmp_path: Path) -> None:
    row = LAYER | {"op": "baddbmm", "heads": 16, "seq_len": 512}  # d = 128, 4 x 8 products
    samples = every(written(tmp_path, layers=[row]), 4)
    assert [sizes(op) for op in samples.ops] == [
        (32, 512, 512, 128, 0, 1), (32, 512, 128, 512, 0, 0), (32, 512, 128, 512, 1, 0),
    ]  # fmt: skip
    value = every(written(tmp_path, layers=[row | {"op": "bmm"}]), 4)
    assert [sizes(op) for op in value.ops] == [
        (32, 512, 128, 512, 0, 0), (32, 512, 512, 128, 0, 1), (32, 512, 128, 512, 1, 0),
    ]  # fmt: skip


@pytest.mark.parametrize("change", [{"flag": "outlier;"}, {"tensor_parallel": 3}, {"op": "linear_final"}])
def test_doubtful_layers_are_left_out(tmp_path: Path, change: dict) -> None:
    assert len(every(written(tmp_path, layers=[LAYER, LAYER | change]), 4).ops) == 3


def test_equal_sizes_are_of_one_split_on_all_gpus_and_in_all_directions(tmp_path: Path) -> None:
    layers = [LAYER | {"seq_len": 256 * i, "gpu": gpu}
              for i in range(1, 60) for gpu in ("GH200-120GB", "A100-SXM4-80GB")]  # fmt: skip
    samples = every(written(tmp_path, layers=layers), 4)
    of_sizes: dict[tuple[int, ...], set[str]] = {}
    for op, split in zip(samples.ops, samples.splits.tolist(), strict=True):
        of_sizes.setdefault(tuple(sorted(sizes(op)[:4])), set()).add(split)
    assert all(len(splits) == 1 for splits in of_sizes.values())
    assert 0.03 < np.mean(samples.splits == "test") < 0.35


def test_missing_and_broken_tables_are_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="gemm_tensor_cores"):
        read_products(tmp_path)
    folder = written(tmp_path)
    (folder / VIDUR.file).write_bytes(b"no gzip")
    with pytest.raises(InputError, match="linear_and_pointwise"):
        read_products(folder)


def test_all_tables_together_are_samples_of_one_source(tmp_path: Path) -> None:
    samples = read_products(written(tmp_path))
    assert set(samples.sources.tolist()) == {"products"}
    assert set(samples.gpus.tolist()) <= set(load_gpus())


@pytest.fixture(scope="module")
def transformers() -> Samples:
    if not MEASUREMENTS.is_dir():
        pytest.skip(f"no reference data at {MEASUREMENTS}")
    return read_table(MEASUREMENTS, TRANSFORMERS, share=0.1)


@pytest.mark.shared
@needs_shared
def test_the_sizes_that_were_worked_out_give_rates_below_the_peak_and_near_it(transformers: Samples) -> None:
    """Sizes that were too large would pass the peak; too small ones would stay far below it."""
    rates = np.array([op.flops for op in transformers.ops]) / transformers.time_s
    for name in np.unique(transformers.gpus).tolist():
        own = transformers.gpus == name
        share = rates[own] / load_gpus()[name].tensor_flops_per_s["fp16"]
        assert 0.85 < share.max() < 1.0


@pytest.mark.shared
@needs_shared
@pytest.mark.parametrize("gpu", ["A100-SXM-80GB", "GH200-96GB"])
def test_unseen_layers_are_predicted_forward_and_backward(transformers: Samples, gpu: str) -> None:
    errors = {e.kind: e for e in unseen_shapes(transformers.where(transformers.gpus == gpu), shipped())}
    assert errors[FORWARD].mean <= 0.10
    assert errors[BACKWARD].mean <= 0.10
    assert abs(errors[BACKWARD].bias) <= 0.05


@pytest.mark.shared
@needs_shared
def test_an_uncalibrated_constant_is_told_by_twenty_kernels(transformers: Samples) -> None:
    """A GPU whose constant is a quarter too large: calibrating takes most of that back."""
    wrong = shipped()
    tables = {**wrong.tables, "gpu": {"GH200-96GB": {"gemm_fraction": {"fp16": 0.62}}}}
    wrong = type(wrong)(tables=tables, networks=wrong.networks)
    own = transformers.where(transformers.gpus == "GH200-96GB")
    before, after = (
        next(e for e in left_out(own, {"Hopper": wrong}) if (e.kind, e.state) == (FORWARD, state))
        for state in ("architecture left out", "and calibrated")
    )
    assert before.bias > 0.1
    assert after.mean < 0.8 * before.mean
    assert in_bursts(wrong).networks is wrong.networks
