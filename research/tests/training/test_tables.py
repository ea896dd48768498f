"""What networks learn from: rates of data sheets, weights that even out kinds."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from advisor.core.gpus import load_gpus
from advisor.core.values import Op
from advisor.predict.learned import shape_of
from advisor.predict.roofline import KERNEL_FLOOR_S
from research.tests.training.values import make_samples
from research.training.overhead import EVENT_SHARE, floors_of
from tests.builders import make_op
from tests.unit.predict.learned.values import EXAMPLES, add, board, half, mm, softmax

pytest.importorskip("torch")
from research.training.tables import tables

pytestmark = pytest.mark.torch
GPUS = ("T4", "A100-PCIE-40GB")


def table_of(*ops: Op, gpu: str = "T4") -> dict:
    return dict(tables(make_samples([(gpu, "kind", "train", 1e-3)] * len(ops), ops)))


def test_each_family_has_its_table() -> None:
    by_family = table_of(*EXAMPLES.values(), make_op("aten::embedding"))
    assert {family: len(table.time_s) for family, table in by_family.items()} == dict.fromkeys(EXAMPLES, 1)


@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("family", EXAMPLES)
def test_work_is_over_the_rates_of_the_data_sheet(family: str, gpu: str) -> None:
    op, spec = EXAMPLES[family], load_gpus()[gpu]
    table = table_of(op, gpu=gpu)[family]
    flops = op.flops if family in ("gemm", "conv") else 0
    assert table.compute_s == pytest.approx([flops / spec.vector_flops_per_s["fp32"]])
    assert table.memory_s == pytest.approx([op.bytes / spec.memory_bytes_per_s])


@pytest.mark.parametrize("family", EXAMPLES)
def test_features_are_those_of_the_call_and_the_board(family: str) -> None:
    ops = (EXAMPLES[family],) * 2
    table = tables(make_samples([(gpu, "kind", "train", 1e-3) for gpu in GPUS], ops))[family]
    shape = shape_of(EXAMPLES[family])
    assert shape is not None
    for row, gpu in zip(table.features, GPUS, strict=True):
        assert row == pytest.approx([*shape.values, *board(load_gpus()[gpu])], rel=1e-6)


def test_rows_keep_their_times_and_floors_in_order() -> None:
    rows = [
        (gpu, kind, "train", time) for gpu in GPUS for kind, time in (("a", 1e-3), ("b", 2e-3), ("a", 3e-3))
    ]
    samples = make_samples(rows, [add(64), softmax(8, 8), add(32)] * 2)
    by_family, floors = tables(samples), floors_of(samples)
    assert by_family["pointwise"].time_s.tolist() == [1e-3, 3e-3] * 2
    assert by_family["norm"].time_s.tolist() == [2e-3] * 2
    assert by_family["norm"].floor_s.tolist() == [floors[gpu, "b"] for gpu in GPUS]
    expected = [floors[gpu, "a"] for gpu in GPUS for _ in range(2)]
    assert by_family["pointwise"].floor_s.tolist() == expected


def test_calls_of_recordings_have_their_launch_and_others_their_floor() -> None:
    rows = [("T4", kind, "train", 1e-4) for kind in ("a", "recorded add", "a")]
    table = tables(make_samples(rows, [add(64), add(32), add(16)]))["pointwise"]
    assert table.floor_s.tolist() == [pytest.approx(1e-4), KERNEL_FLOOR_S, pytest.approx(1e-4)]
    assert table.event_share.tolist() == [EVENT_SHARE, 1.0, EVENT_SHARE]


def test_equal_calls_may_share_one_value_or_not() -> None:
    shared = add(64)
    copies = [replace(shared), replace(shared), shared]
    rows = [("T4", "a", "train", seconds) for seconds in (1e-3, 2e-3, 3e-3)]
    together = tables(make_samples(rows, [shared] * 3))["pointwise"]
    apart = tables(make_samples(rows, copies))["pointwise"]
    for name in ("features", "compute_s", "memory_s", "floor_s", "event_share", "time_s", "weight"):
        assert (getattr(together, name) == getattr(apart, name)).all()


def test_weights_add_up_to_the_calls_and_even_out_kinds_and_splits() -> None:
    rows = [("T4", "a", "train", 1e-3)] * 6 + [("T4", "a", "test", 1e-3)] * 3 + [("T4", "b", "train", 1e-3)]
    table = tables(make_samples(rows, [add(64)] * 10))["pointwise"]
    assert table.weight.sum() == pytest.approx(10)
    groups = [table.weight[:6].sum(), table.weight[6:9].sum(), table.weight[9:].sum()]
    assert groups == pytest.approx([10 / 3] * 3)


def test_weights_do_not_see_other_families() -> None:
    rows = [("T4", "a", "train", 1e-3)] * 5 + [("T4", "b", "train", 1e-3)] * 2
    by_family = tables(make_samples(rows, [add(64)] * 5 + [softmax(8, 8)] * 2))
    assert by_family["norm"].weight == pytest.approx([1, 1])
    assert by_family["pointwise"].weight == pytest.approx([1] * 5)


def test_a_gpu_with_few_products_on_tensor_cores_weighs_by_the_root_of_their_number() -> None:
    rows = [("A40", "a", "train", 1e-3)] * 9 + [("T4", "a", "train", 1e-3)]
    weight = tables(make_samples(rows, [half(mm(64, 64, 64))] * 10))["tensor_gemm"].weight
    assert weight.sum() == pytest.approx(10)
    assert weight[:9].sum() == pytest.approx(3 * weight[9])
    assert tables(make_samples(rows, [mm(64, 64, 64)] * 10))["gemm"].weight == pytest.approx([1] * 10)


def test_calls_of_no_network_shift_no_row() -> None:
    ops = [mm(8, 8, 16), make_op("aten::embedding"), mm(8, 65536, 32)]
    rows = [("T4", "a", "train", seconds) for seconds in (1e-3, 2e-3, 3e-3)]
    table = tables(make_samples(rows, ops))["gemm"]
    assert table.time_s.tolist() == [1e-3, 3e-3]
    assert [round(math.exp(row[3])) for row in table.features] == [16, 32]


def test_columns_have_the_types_that_the_training_takes() -> None:
    table = table_of(add(64))["pointwise"]
    assert table.features.dtype == np.float32
    for name in ("compute_s", "memory_s", "floor_s", "event_share", "time_s", "weight"):
        assert getattr(table, name).dtype == np.float64


def test_operators_of_no_network_give_no_tables() -> None:
    assert table_of(make_op("aten::embedding")) == {}
