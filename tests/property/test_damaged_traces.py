"""Whatever the file of a trace or a job log holds, it is answered, or told in words what is wrong."""

import gzip
import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from advisor.cli import app
from advisor.core.errors import AdvisorError, InputError
from advisor.core.findings.about_traces import KernelsLeftOut, LengthAssumed
from advisor.core.values import Collective, Flow, Kernel, Op, Phase, Trace
from advisor.formats.trace_files import FORMAT
from advisor.report.words import finding_json
from advisor.site_files.job_logs import read_job_log
from recommender.queue.fitted import fit
from tests.builders import make_op, make_trace
from tests.end_to_end.cli import Shell
from tests.findings import named, sample, texts
from tests.jobs import SACCT_COLUMNS, csv_of, make_job, sacct_of, swf_of
from tests.recordings import make_measurement

KERNEL = Kernel(
    name="k",
    grid=(4096, 1, 1),
    block=(256, 1, 1),
    registers_per_thread=32,
    shared_bytes=1024,
    duration_s=1e-4,
)
Path_ = tuple[str | int, ...]


def measured_op(name: str, **changes: Any) -> Op:
    """As a GPU measured it, with what a convolution or a layer has for arguments."""
    op = make_measurement(name, **changes).op
    facts: dict[str, Any] = {"stride": (1, 1), "groups": 1, "p": 0.5, "is_causal": True, "mode": None}
    return Op(
        **{**{field: getattr(op, field) for field in Op.__slots__}, "attributes": facts, "kernels": (KERNEL,)}
    )


WARNINGS = (
    *texts("a warning"),
    sample(LengthAssumed, of="several-loaders"),
    sample(KernelsLeftOut, which="unjoined"),
)
TRACES: dict[str, Trace] = {
    "measured": make_trace(
        ops=(measured_op("aten::mm"), measured_op("aten::add"), measured_op("aten::sum")),
        origin_gpu="V100-PCIE-32GB", iteration_s=0.01, warnings=WARNINGS, arguments=("--lr", "1"),
    ),
    "distributed": make_trace(
        ops=(make_op(), make_op("aten::_cudnn_rnn", dtype="float16"), make_measurement("aten::_softmax").op),
        collectives=(
            Collective(kind="all_reduce", num_bytes=10**8, world_size=8, count=2),
            Collective(kind="reduce_scatter", num_bytes=None, world_size=None, count=1),
        ),
        data_loading_s=0.5, num_workers=4, world_size=8, is_sharded=True,
        loader_cpu_s_per_sample=0.01,
    ),
    "followed": make_trace(ops=(
        replace(make_op(), flows=(Flow(id=3, count=1, sources=(1,)),)),
        replace(make_op(phase=Phase.BACKWARD), flows=(Flow(id=4, count=1, sources=(3,), forward=3),)),
    )),
}  # fmt: skip


def document_of(trace: Trace) -> dict[str, Any]:
    """As a file holds it."""
    members = asdict(trace)
    told = {"warnings": named(trace.warnings), "warning_findings": list(map(finding_json, trace.warnings))}
    document: dict[str, Any] = json.loads(json.dumps({"format": FORMAT, **members, **told}))
    return document


DOCUMENTS = {name: document_of(trace) for name, trace in TRACES.items()}
ABSURD: tuple[Any, ...] = (
    -1, 0, 1, 2**31, 2**53, 2**63 - 1, 2**63, 10**30, 10**400, True, -0.5, 0.5, 1e-300, 1e300, float("nan"),
    float("inf"), float("-inf"), None, "", "text", "\ud800", "\x1b[2J", "x" * 10_000, [], [1], [-1, 2**62],
    [[[]]], {}, {"a": 1},
)  # fmt: skip


def paths(value: object, start: Path_ = ()) -> Iterator[Path_]:
    """Where every value of a document is."""
    if start:
        yield start
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from paths(item, (*start, key))


PLACES = [(name, path) for name, document in DOCUMENTS.items() for path in paths(document)]


def damaged(name: str, path: Path_, value: object) -> str:
    """The document with another value at one place."""
    document = json.loads(json.dumps(DOCUMENTS[name]))
    inner = document
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return json.dumps(document)


def exit_code(*arguments: str) -> int:
    """Of a command in this process; what is no error of ours is raised."""
    try:
        app(["predict", *arguments], standalone_mode=False)
    except AdvisorError as error:
        return error.exit_code
    return 0


GPUS = ("-g", "V100-PCIE-32GB", "-g", "A100-SXM-80GB:1,8")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("damaged")


@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_traces_themselves_can_be_predicted(name, folder):
    (folder / "whole.json").write_text(json.dumps(DOCUMENTS[name]))
    assert exit_code(str(folder / "whole.json"), *GPUS) == 0


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(place=("measured", ("ops", 0, "outputs", 0, "stride")), value={}, output="table")
@example(place=("measured", ("memory", "gradient_bytes")), value=2**53, output="json")
@given(
    place=st.sampled_from(PLACES),
    value=st.sampled_from(ABSURD),
    output=st.sampled_from(["table", "json", "csv"]),
)
def test_one_absurd_value_is_answered_or_told(place, value, output, folder, capsys):
    name, path = place
    (folder / "t.json").write_text(damaged(name, path, value))
    code = exit_code(str(folder / "t.json"), *GPUS, "--format", output)
    printed = capsys.readouterr().out
    assert code in (0, 2)
    assert (code == 0) == bool(printed)
    assert "nan" not in printed.lower()
    printed.encode()


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (("ops", 0, "flops"), -1, "flops of aten::mm is -1"),
        (("ops", 0, "flops"), 10**400, "flops of aten::mm is 1000"),
        (("ops", 0, "bytes"), None, "bytes of aten::mm is None"),
        (("ops", 0, "count"), 0, "count of aten::mm is 0"),
        (("ops", 0, "count"), 10**7 + 1, "count of aten::mm is 10000001"),
        (("ops", 0, "count"), 10**7, "the number of all calls is 10000002"),
        (("ops", 0, "name"), "\x1b[2J", "the name of an operator is '\\x1b[2J'"),
        (("ops", 0, "measured_s"), float("nan"), "measured_s of aten::mm is nan"),
        (("ops", 0, "inputs", 0, "shape"), [2**62, 4], "the shape of a tensor of aten::mm"),
        (("ops", 0, "inputs", 0, "stride", 0), -4096, "stride of inputs of aten::mm is -4096"),
        (("ops", 0, "inputs", 0, "dtype"), None, "dtype of inputs of aten::mm is None"),
        (("ops", 0, "attributes", "mode"), {"a": 1}, "mode of attributes of aten::mm is {'a': 1}"),
        (("ops", 0, "kernels", 0, "registers_per_thread"), -1, "registers_per_thread of k of kernels of"),
        (("ops", 0, "kernels", 0, "shared_bytes"), "much", "shared_bytes of k of kernels of aten::mm"),
        (("ops", 0, "kernels", 0, "duration_s"), None, "duration_s of k of kernels of aten::mm is None"),
        (("ops", 0, "kernels", 0, "grid"), [1, 1], "grid of k of kernels of aten::mm is [1, 1]"),
        (("ops", 0, "kernels", 0, "block", 2), 0, "block of k of kernels of aten::mm is 0"),
        (("collectives", 0, "num_bytes"), -1, "num_bytes of collectives is -1"),
        (("collectives", 0, "world_size"), 0, "world_size of collectives is 0"),
        (("collectives", 0, "count"), None, "count of collectives is None"),
        (("collectives", 0, "count"), 2**31, "count of collectives is 2147483648"),
        (("collectives", 0, "count"), 10**7, "the number of all collectives is 10000001"),
        (("num_workers",), "four", "num_workers is 'four'"),
        (("iteration_s",), 0, "iteration_s is 0"),
        (("loader_cpu_s_per_sample",), -1.0, "loader_cpu_s_per_sample is -1.0"),
        (("is_sharded",), "false", "is_sharded is 'false'"),
        (("awaits_reductions",), 0, "awaits_reductions is 0"),
        (("has_sparse_gradients",), 1, "has_sparse_gradients is 1"),
        (("compile_mode",), 3, "compile_mode is 3"),
        (("parallel_by",), 3, "parallel_by is 3"),
        (("precision", "tf32_matmul"), 1, "tf32_matmul of precision is 1"),
        (("warnings",), "a text", "warnings is 'a text'"),
        (("warning_findings",), {}, "warning_findings is {}"),
        (("warning_findings",), [], "0 findings of 3 warnings"),
        (("warning_findings", 0, "facts"), {}, "the facts of text are {}"),
        (("warning_findings", 0, "facts", "text"), 3, "text of text is 3"),
        (("warning_findings", 1, "facts", "others"), [1, -1], "others of length-assumed is -1"),
        (("warning_findings", 2, "facts", "share_of_time"), "", "share_of_time of kernels-left-out is"),
        (("arguments", 0), 3, "arguments is 3"),
    ],
)  # fmt: skip
def test_the_message_names_the_field_and_its_value(path, value, words, tmp_path):
    name = "distributed" if path[0] == "collectives" else "measured"
    (tmp_path / "t.json").write_text(damaged(name, path, value))
    answer = Shell(folder=tmp_path).run("predict", "t.json", "-g", "T4")
    assert answer.code == 2
    assert answer.out == ""
    (line,) = answer.err.splitlines()
    assert words in line
    assert line.startswith("error: the trace 't.json' is damaged")
    assert line.endswith("Profile the script again.")


JOBS = [make_job(i, size=2**i, wait_s=600.0 * i, walltime_s=90000.0, queue="7") for i in range(12)]
WHOLE = [form(JOBS).encode() for form in (csv_of, sacct_of, swf_of)]
HUGE = "9" * 400
FIELD = st.sampled_from(
    ["", "0", "-1", "1", "1e308", "-1e308", HUGE, "nan", "Unknown", f"{HUGE}-00:00:00", "1:00", "9999-12-31",
     "0001-01-01T00:00:00+14:00", f"gres/gpu={HUGE}", "gres/gpu=1", "CANCELLED", '"', "\x00", "\u0663:\u0664"]
)  # fmt: skip


def read(payload: bytes) -> None:
    """Read and fit; only an InputError may come of it."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "log"
        path.write_bytes(payload)
        try:
            log = read_job_log(path)
            fitted = fit(log)
        except InputError:
            return
    assert log.jobs == tuple(sorted(log.jobs))
    assert all(job.wait_s >= 0 for job in log.jobs)
    assert all(0 <= one.p50_s <= one.p90_s for one in fitted.bins)


@given(st.binary(max_size=200))
@example(b"\x1f\x8b")
@example(b"|")
@example(b",")
@example(gzip.compress(WHOLE[0])[:-9])
def test_any_bytes(payload):
    read(payload)


@given(st.sampled_from(WHOLE), st.integers(0, 2000), st.binary(max_size=4), st.integers(0, 4))
def test_a_log_with_a_hole(whole, at, put, cut):
    read(whole[:at] + put + whole[at + cut :])


@given(st.lists(st.lists(FIELD, min_size=11, max_size=11), max_size=15))
def test_any_fields_under_the_columns_of_slurm(rows):
    read("\n".join([SACCT_COLUMNS, *("|".join(row) for row in rows)]).encode())


@given(st.lists(st.lists(FIELD, min_size=5, max_size=5), max_size=15))
def test_any_fields_under_the_columns_of_csv(rows):
    read("\n".join(["submit,start,gpus,walltime,queue", *(",".join(row) for row in rows)]).encode())
