"""Forward passes of a made-up table: which are read, of which models, and what they are compared by."""

from __future__ import annotations

import csv
import gzip
from dataclasses import replace
from pathlib import Path

import pytest

from advisor.core.errors import InputError
from advisor.core.values import Op, Phase, TensorSpec, Trace
from advisor.formats.trace_files import write_trace
from advisor.operators.convolution import is_channels_last
from research.training.convolution_calls import Geometry, convolution_call
from research.training.forward_passes import forward_of, forward_rows, is_compiled, read_forwards, seconds_of
from tests.builders import make_op, make_trace

BATCH, SIDE, CHANNELS = 4, 8, 16
COLUMNS = (
    "mode", "device", "model", "memory_format", "torch_compile", "framework_version", "batch_size",
    "image_size", "samples_per_s", "fwd_gmacs_per_sample", "params_millions",
)  # fmt: skip


def convolution() -> Op:
    shape = Geometry(
        in_channels=CHANNELS, size=(SIDE, SIDE), out_channels=CHANNELS, out=(SIDE, SIDE), filter=(3, 3),
        padding=(1, 1), stride=(1, 1),
    )  # fmt: skip
    return convolution_call(shape, batch=BATCH, dtype="float16", direction="forward", is_channels_last=False)


GMACS = convolution().flops / 2 / BATCH / 1e9


def row(**changes: object) -> dict[str, object]:
    usual = {
        "mode": "infer", "device": "RTX 4090", "model": "net_a", "memory_format": "nchw",
        "torch_compile": "0",
        "framework_version": "2.4.0", "batch_size": "1024", "image_size": str(SIDE), "samples_per_s": "2000",
        "fwd_gmacs_per_sample": f"{GMACS:.9f}", "params_millions": "1",
    }  # fmt: skip
    return {**usual, **changes}


def write(folder: Path, *rows: dict[str, object]) -> Path:
    path = folder / "figures.csv.gz"
    with gzip.open(path, "wt", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(rows)
    return path


def recorded(folder: Path, model: str = "net_a", side: int = SIDE) -> Path:
    step = make_op("aten::add_", phase=Phase.OPTIMIZER)
    trace: Trace = make_trace(ops=(convolution(), step), arguments=(model, str(BATCH), str(side)))
    write_trace(trace, folder / f"{model}.json.gz")
    return folder


def test_a_pass_takes_what_its_batch_takes_at_the_measured_rate(tmp_path: Path) -> None:
    (one,) = read_forwards(write(tmp_path, row()), recorded(tmp_path))
    assert (one.model, one.layout, one.gpu.name, one.release) == ("net_a", "nchw", "RTX-4090", "2.4.0")
    assert one.time_s == pytest.approx(BATCH / 2000)
    assert [op.phase for op in one.trace.ops] == [Phase.FORWARD]


def test_each_board_release_and_layout_is_a_pass_of_its_own(tmp_path: Path) -> None:
    figures = write(
        tmp_path,
        row(),
        row(memory_format="channels_last"),
        row(device="RTX 3090", framework_version="1.12"),
        row(framework_version="2.9.1"),
    )
    passes = read_forwards(figures, recorded(tmp_path))
    assert [(one.gpu.name, one.release, one.layout) for one in passes] == [
        ("RTX-4090", "2.4.0", "nchw"), ("RTX-4090", "2.4.0", "channels_last"), ("RTX-3090", "1.12", "nchw"),
        ("RTX-4090", "2.9.1", "nchw"),
    ]  # fmt: skip
    turned = [is_channels_last(one.trace.ops[0].inputs[0]) for one in passes]
    assert turned == [False, True, False, False]


@pytest.mark.parametrize(
    "changes",
    [
        {"torch_compile": "1"},
        {"image_size": "32"},
        {"model": "net_b"},
        {"mode": "train"},
        {"device": "i9_10940x"},
        {"framework_version": "1.10"},
        {"fwd_gmacs_per_sample": "9.99"},
    ],
)
def test_what_was_not_recorded_or_is_no_such_pass_is_left_out(
    tmp_path: Path, changes: dict[str, object]
) -> None:
    figures = write(tmp_path, row(), row(**changes, samples_per_s="1"))
    assert [one.time_s for one in read_forwards(figures, recorded(tmp_path))] == [BATCH / 2000]


def test_compiled_rows_are_read_and_told_apart(tmp_path: Path) -> None:
    rows = forward_rows(write(tmp_path, row(), row(torch_compile="1")))
    assert [is_compiled(one) for one in rows] == [False, True]
    assert seconds_of(make_trace(arguments=("net_a", "50", "8")), rows[0]) == pytest.approx(50 / 2000)


def test_the_step_that_ends_the_iteration_does_not_count() -> None:
    trace = make_trace(ops=(convolution(), make_op("aten::add_", phase=Phase.OPTIMIZER)))
    assert forward_of(trace) == replace(trace, ops=(convolution(),))


def test_missing_and_broken_files_are_said_to_be(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read published passes"):
        forward_rows(tmp_path / "none.csv.gz")
    broken = tmp_path / "broken.csv.gz"
    broken.write_bytes(gzip.compress(b"mode,device\n" * 99)[:-9])
    with pytest.raises(InputError, match="cannot read published passes"):
        forward_rows(broken)
    with pytest.raises(InputError, match="timm_recording --forward"):
        read_forwards(write(tmp_path, row()), tmp_path / "empty")


def test_one_pixel_has_no_layout_to_turn(tmp_path: Path) -> None:
    """A model without images in its trace runs the same in both layouts: only the first is a pass."""
    plain = TensorSpec(shape=(4, 4), dtype="float16", stride=(4, 1))
    product = replace(
        make_op("aten::mm", flops=int(2 * BATCH * 1e9)), inputs=(plain, plain), outputs=(plain,)
    )
    write_trace(
        make_trace(ops=(product,), arguments=("net_a", str(BATCH), str(SIDE))), tmp_path / "net_a.json.gz"
    )
    figures = write(
        tmp_path,
        row(fwd_gmacs_per_sample="1.0"),
        row(fwd_gmacs_per_sample="1.0", memory_format="channels_last"),
    )
    assert [one.layout for one in read_forwards(figures, tmp_path)] == ["nchw"]
