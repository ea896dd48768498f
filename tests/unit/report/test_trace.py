"""What a trace holds, summed up, with units a person reads."""

from pathlib import Path
from typing import Any

from advisor.core.findings.about_traces import World
from advisor.core.units import GIB, MIB
from advisor.core.values import Collective, MemoryUse, Phase, Precision
from advisor.report.estimates import summary, trace_document
from tests.builders import make_op, make_trace
from tests.findings import texts
from tests.unit.report.printed import json_of, rows_of

OPS = (
    make_op(flops=10, num_bytes=1, count=3),
    make_op(flops=100, num_bytes=20, count=2, phase=Phase.BACKWARD),
    make_op(flops=0, num_bytes=300, count=7, phase=Phase.OPTIMIZER),
    make_op(flops=1000, num_bytes=4000, count=1),
)
UNKNOWN = MemoryUse(
    parameter_bytes=None, gradient_bytes=None, optimizer_bytes=None, activation_bytes=None, peak_bytes=None
)


def lines(**changes: Any) -> dict[str, str]:
    """The printed text of each fact."""
    return {
        row["Trace"]: row[""]
        for row in rows_of(trace_document(make_trace(**changes), Path("folder/x.trace")))
    }


def test_calls_are_counted_by_phase_and_work_is_summed_over_all_calls():
    facts = summary(make_trace(ops=OPS))
    assert (facts["forward_ops"], facts["backward_ops"], facts["optimizer_ops"]) == (4, 2, 7)
    assert facts["flops"] == 3 * 10 + 2 * 100 + 1000
    assert facts["bytes"] == 3 * 1 + 2 * 20 + 7 * 300 + 4000
    facts = summary(make_trace(ops=()))
    assert (facts["flops"], facts["bytes"], facts["forward_ops"]) == (0, 0, 0)


def test_numbers_have_thousands_and_bytes_their_unit():
    memory = MemoryUse(
        parameter_bytes=GIB,
        gradient_bytes=2 * GIB,
        optimizer_bytes=512,
        activation_bytes=3 * MIB,
        peak_bytes=0,
    )
    texts = lines(memory=memory, ops=(make_op(flops=12_345, num_bytes=2 * MIB),))
    assert (texts["parameter_bytes"], texts["gradient_bytes"]) == ("1 GiB", "2 GiB")
    assert (texts["optimizer_bytes"], texts["activation_bytes"]) == ("512 B", "3 MiB")
    assert (texts["peak_bytes"], texts["bytes"], texts["flops"]) == ("0 B", "2 MiB", "12,345")
    assert (texts["samples_per_epoch"], texts["batch_size"]) == ("1,281,167", "64")


def test_what_is_unknown_says_so_and_no_autocast_is_none():
    texts = lines(memory=UNKNOWN, batch_size=None, samples_per_epoch=None, num_workers=None)
    for name in ("batch_size", "samples_per_epoch", "num_workers", "peak_bytes", "data_loading_s"):
        assert texts[name] == "unknown", name
    assert texts["amp_dtype"] == "none"


def test_flags_arguments_versions_and_loading_time_are_words_below_the_path():
    precision = Precision(amp_dtype="bfloat16", tf32_matmul=True, tf32_cudnn=False)
    versions = {"torch": "2.13.0", "python": "3.12"}
    texts = lines(precision=precision, arguments=("--lr", "0.1"), versions=versions, data_loading_s=0.25)
    assert next(iter(texts.values())) == str(Path("folder/x.trace"))
    assert (texts["amp_dtype"], texts["tf32_matmul"], texts["tf32_cudnn"]) == ("bfloat16", "yes", "no")
    assert texts["arguments"] == "'--lr 0.1"  # no formula
    assert texts["versions"] == "torch 2.13.0, python 3.12"
    assert texts["data_loading_s"].startswith("250 ms")
    assert lines()["arguments"] == "none"


def test_json_holds_the_summary_the_path_and_the_warnings():
    trace = make_trace(ops=OPS, warnings=(*texts("mind this"), World(of="unused", world_size=8)))
    document = json_of(trace_document(trace, Path("x.trace")))
    assert document["trace"] == {"path": "x.trace", **summary(trace)}
    assert document["warnings"] == [
        "mind this", "--world 8 had no effect: the script made no process group",
    ]  # fmt: skip
    assert document["warning_findings"][1] == {
        "code": "world",
        "severity": "warning",
        "facts": {"of": "unused", "num_ranks": None, "world_size": 8},
    }


def test_collectives_are_counted_with_size_and_ranks():
    bucket = Collective(kind="all_reduce", num_bytes=25 * MIB, world_size=8, count=4)
    unknown = Collective(kind="nccl", num_bytes=None, world_size=None, count=3)
    text = lines(collectives=(bucket, unknown))["collectives"]
    assert text == "4 all_reduce of 25 MiB among 8, 3 nccl of unknown size"
    assert lines()["collectives"] == "none"
