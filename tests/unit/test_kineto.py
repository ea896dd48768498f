"""Exported profiler traces: both schemas by hand-made events, the real files where they are at hand."""

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from advisor.core.errors import InputError, TraceError, UnknownGpuError
from advisor.core.findings.about_traces import KernelsLeftOut
from advisor.core.gpus import resolve_gpu
from advisor.core.values import Op, Phase, Trace
from advisor.formats.trace_files import read_trace
from advisor.kineto.export import read_kineto
from advisor.predict.iteration import predict
from advisor.report.words import sentence, sentences
from tests.findings import said
from tests.shared import SHARED, needs_shared

MAIN, AUTOGRAD = 100, 200


class Export:
    """Builds a Chrome trace step by step, in the names of one schema."""

    def __init__(self, *, new: bool = True, device: str | None = "Tesla V100-SXM2-16GB") -> None:
        self.new = new
        self.events: list[dict[str, Any]] = []
        self.document: dict[str, Any] = {"schemaVersion": 1, "traceEvents": self.events}
        if device:
            self.document["deviceProperties"] = [{"id": 0, "name": device}]
        self.now = 1000
        self.correlation = 0

    def op(self, name: str, dims: list[Any], *, tid: int = MAIN, dur: int = 50, **args: Any) -> int:
        """An operator; its external id."""
        self.now += 100
        self.correlation += 1
        external = self.correlation
        self.events.append(
            {
                "ph": "X",
                "cat": "cpu_op" if self.new else "Operator",
                "name": name,
                "pid": 1,
                "tid": tid,
                "ts": self.now,
                "dur": dur,
                "args": {
                    "External id": external,
                    "Input Dims" if self.new else "Input dims": dims,
                    "Input type": ["float"] * len(dims),
                    **args,
                },
            }
        )
        return external

    def kernel(self, name: str, dur: int, *, external: int | None, tid: int = MAIN, **changes: Any) -> None:
        """A kernel with its launch, which lies within the last operator."""
        self.correlation += 1
        runtime = {"correlation": self.correlation}
        if external is not None:
            runtime["External id"] = external
        self.events.append(
            {
                "ph": "X",
                "cat": "cuda_runtime" if self.new else "Runtime",
                "name": "cudaLaunchKernel",
                "pid": 1,
                "tid": tid,
                "ts": self.now + 5,
                "dur": 5,
                "args": runtime,
            }
        )
        self.events.append(
            {
                "ph": "X",
                "cat": "kernel" if self.new else "Kernel",
                "name": name,
                "pid": 0,
                "tid": "stream 7",
                "ts": self.now + 20,
                "dur": dur,
                "args": {
                    "correlation": self.correlation,
                    "grid": [160, 1, 1],
                    "block": [256, 1, 1],
                    "registers per thread": 32,
                    "shared memory": 0,
                }
                | changes,
            }
        )

    def copy(self, name: str, num_bytes: int) -> None:
        """A copy outside of any operator."""
        self.now += 100
        args = {"bytes": num_bytes, "correlation": None}
        self.events.append(
            {
                "ph": "X",
                "cat": "gpu_memcpy" if self.new else "Memcpy",
                "name": name,
                "pid": 0,
                "tid": "stream 7",
                "ts": self.now,
                "dur": 10,
                "args": args,
            }
        )

    def mark(self, name: str, begin: int) -> None:
        """A span from ``begin`` until now."""
        category = "user_annotation" if self.new else "Operator"
        span = {"name": name, "ts": begin, "dur": self.now + 90 - begin}
        self.events.append({"ph": "X", "cat": category, "pid": 1, "tid": MAIN, "args": {}} | span)

    def step(self, number: int, *, slower: int = 0) -> None:
        """Forward product, its gradients, an optimizer addition."""
        begin = self.now + 50
        forward = self.op("aten::mm", [[64, 32], [32, 16]], **{"Sequence number": number})
        self.kernel("sgemm", 40 + slower, external=forward)
        node = {"Sequence number": number, "Fwd thread id": 1}
        self.op("MmBackward0", [[64, 16]], tid=AUTOGRAD, dur=400, **node)
        for shape in ([[32, 64], [64, 16]], [[64, 16], [16, 32]]):
            gradient = self.op("aten::mm", shape, tid=AUTOGRAD)
            self.kernel("sgemm", 45, external=gradient, tid=AUTOGRAD)
        accumulated = self.op("torch::autograd::AccumulateGrad", [[32, 16]], tid=AUTOGRAD)
        assert accumulated
        optimizer = self.now + 100
        add = self.op("aten::add_", [[32, 16], [32, 16]])
        self.kernel("elementwise", 5, external=add)
        self.mark("Optimizer.step#SGD.step", optimizer)
        self.mark(f"ProfilerStep#{number}", begin)

    def write(self, folder: Path, name: str = "x.pt.trace.json") -> Path:
        """The file; gzipped if its name says so."""
        text = json.dumps(self.document).encode()
        path = folder / name
        path.write_bytes(gzip.compress(text) if name.endswith("gz") else text)
        return path


def three_steps(**kinds: Any) -> Export:
    export = Export(**kinds)
    for number, slower in ((1, 100), (2, 10), (3, 0)):
        export.step(number, slower=slower)
    return export


def find(trace: Trace, name: str, phase: Phase) -> list[Op]:
    return [op for op in trace.ops if op.name == name and op.phase is phase]


@pytest.mark.parametrize("new", [True, False], ids=["newest schema", "schema of 2021"])
@pytest.mark.parametrize("name", ["x.json", "x.json.gz"])
def test_the_median_step_with_phases_and_kernels(tmp_path, new, name):
    trace = read_kineto(three_steps(new=new).write(tmp_path, name))
    assert trace.origin_gpu == "V100-SXM-16GB"
    assert trace.backend == "kineto"
    assert "ProfilerStep#2" in sentences(trace.warnings)[0]
    (forward,) = find(trace, "aten::mm", Phase.FORWARD)
    assert forward.measured_s == pytest.approx(50e-6)
    assert forward.flops == 2 * 64 * 32 * 16
    (kernel,) = forward.kernels
    assert (kernel.grid, kernel.block) == ((160, 1, 1), (256, 1, 1))
    assert (kernel.registers_per_thread, kernel.shared_bytes) == (32, 0)
    assert len(find(trace, "aten::mm", Phase.BACKWARD)) == 2
    (add,) = find(trace, "aten::add_", Phase.OPTIMIZER)
    assert add.bytes == 3 * 32 * 16 * 4
    assert trace.memory.gradient_bytes == 32 * 16 * 4
    assert trace.memory.peak_bytes is None


def test_equal_launches_are_counted(tmp_path):
    export = Export()
    begin = export.now
    for dur in (10, 20, 30):
        export.kernel("relu", dur, external=export.op("aten::relu", [[8, 8]]))
    export.mark("ProfilerStep#0", begin)
    (op,) = read_kineto(export.write(tmp_path)).ops
    assert op.count == 3
    assert op.measured_s == pytest.approx(20e-6)
    assert op.kernels[0].duration_s == pytest.approx(20e-6)


def test_kernels_of_unknown_operators_are_kept_and_their_share_is_told(tmp_path):
    export = Export()
    begin = export.now
    export.kernel("relu", 30, external=export.op("aten::relu", [[8, 8]]))
    export.now += 1000  # past the operator, so that its span does not enclose the launch
    export.kernel("void lost<float>(int)", 10, external=None)
    export.mark("ProfilerStep#0", begin)
    trace = read_kineto(export.write(tmp_path))
    assert [op.name for op in trace.ops] == ["aten::relu", "unjoined::lost"]
    (unjoined,) = [
        one for one in trace.warnings if isinstance(one, KernelsLeftOut) and one.which == "unjoined"
    ]
    assert sentence(unjoined).startswith("50.0% of the kernels (25.0% of their time) could not be joined")


def test_a_launch_without_an_id_belongs_to_the_operator_around_it(tmp_path):
    export = Export()
    begin = export.now
    export.op("aten::relu", [[8, 8]])
    export.kernel("relu", 30, external=None)
    export.mark("ProfilerStep#0", begin)
    assert [op.name for op in read_kineto(export.write(tmp_path)).ops] == ["aten::relu"]


def test_copies_cross_the_link(tmp_path):
    export = Export()
    begin = export.now
    export.kernel("relu", 30, external=export.op("aten::relu", [[8, 8]]))
    export.copy("Memcpy HtoD (Pinned -> Device)", 1000)
    export.copy("Memcpy DtoD (Device -> Device)", 1000)
    export.mark("ProfilerStep#0", begin)
    by_name = {op.name: op for op in read_kineto(export.write(tmp_path)).ops}
    assert by_name["advisor::h2d_copy"].bytes == 1000
    assert by_name["advisor::memcpy"].bytes == 2000


def test_communication_is_told_and_left_out(tmp_path):
    export = Export()
    begin = export.now
    export.kernel("relu", 30, external=export.op("aten::relu", [[8, 8]]))
    export.kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 400, external=export.op("c10d::allreduce_", []))
    export.mark("ProfilerStep#0", begin)
    trace = read_kineto(export.write(tmp_path))
    assert [op.name for op in trace.ops] == ["aten::relu"]
    (collective,) = trace.collectives
    assert (collective.count, collective.num_bytes) == (1, None)
    assert any("1 NCCL kernels" in warning for warning in sentences(trace.warnings))


def test_without_shapes_sizes_stay_unknown(tmp_path):
    export = three_steps()
    for event in export.events:
        event["args"].pop("Input Dims", None)
    trace = read_kineto(export.write(tmp_path))
    assert trace.memory.gradient_bytes is None
    assert all(op.flops == 0 for op in trace.ops)
    assert any("record_shapes=True" in warning for warning in sentences(trace.warnings))
    eight = predict(trace, resolve_gpu("A100-SXM-80GB"), 8)
    assert "size of the gradients is unknown" in said(eight.assumptions)


def test_launches_of_cuda_graphs_have_no_grid(tmp_path):
    export = Export()
    begin = export.now
    export.kernel("relu", 30, external=export.op("aten::relu", [[8, 8]]), grid=None)
    export.mark("ProfilerStep#0", begin)
    (op,) = read_kineto(export.write(tmp_path)).ops
    assert op.kernels == ()
    assert op.measured_s == pytest.approx(30e-6)


def test_without_step_marks_optimizer_steps_bound_an_iteration(tmp_path):
    export = three_steps()
    export.events[:] = [e for e in export.events if not e["name"].startswith("ProfilerStep")]
    trace = read_kineto(export.write(tmp_path))
    assert "of 2 recorded steps" in sentences(trace.warnings)[0]
    assert sum(op.count for op in trace.ops) == 4


def test_the_gpu_can_be_named(tmp_path):
    path = three_steps(device=None).write(tmp_path)
    with pytest.raises(InputError, match="`origin_gpu`"):
        read_kineto(path)
    assert read_kineto(path, origin_gpu="A100-SXM4-40GB").origin_gpu == "A100-SXM-40GB"
    with pytest.raises(UnknownGpuError):
        read_kineto(path, origin_gpu="Z9")


def test_no_dtypes_means_float32_and_is_told(tmp_path):
    export = three_steps()
    for event in export.events:
        if "Input type" in event["args"]:
            event["args"]["Input type"] = []
    trace = read_kineto(export.write(tmp_path))
    assert {tensor.dtype for op in trace.ops for tensor in op.inputs} == {"float32"}
    assert any("no dtypes" in warning for warning in sentences(trace.warnings))


def test_half_precision_is_read(tmp_path):
    export = Export()
    begin = export.now
    types = {"Input type": ["c10::BFloat16", "c10::Half", "long int", "Scalar"]}
    external = export.op("aten::foo", [[2], [2], [2], []], **types)
    export.kernel("k", 1, external=external)
    export.mark("ProfilerStep#0", begin)
    (op,) = read_kineto(export.write(tmp_path)).ops
    assert [tensor.dtype for tensor in op.inputs] == ["bfloat16", "float16", "int64"]


def test_missing(tmp_path):
    with pytest.raises(TraceError, match="cannot read"):
        read_kineto(tmp_path / "no.json")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{}", "traceEvents"),
        ('{"traceEvents": 3}', "traceEvents"),
        ('"text"', "traceEvents"),
        ('{"schemaVersion": 7, "traceEvents": []}', "schema 7"),
        ('{"traceEvents": []}', "ProfilerActivity.CUDA"),
        ('{"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "a", "ts": "x"}]}', "cannot read"),
        ('{"traceEvents": [', "truncated"),
        ("\x00\x01", "truncated"),
    ],
)
def test_foreign_files(tmp_path, text, message):
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(TraceError, match=message):
        read_kineto(path)


def test_truncated_gzip(tmp_path):
    path = three_steps().write(tmp_path, "x.json.gz")
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(TraceError, match="truncated"):
        read_kineto(path)


def gone(*_):
    raise FileNotFoundError


@pytest.mark.parametrize("read", [read_kineto, read_trace])
def test_a_damaged_file_may_be_gone_when_it_is_named(read, tmp_path, monkeypatch):
    path = tmp_path / "x.json"
    path.write_text('{"a": [')
    monkeypatch.setattr(Path, "stat", gone)
    with pytest.raises(TraceError, match="truncated"):
        read(path)


def test_a_profile_without_kernels_names_what_it_has(tmp_path):
    export = three_steps()
    export.events[:] = [e for e in export.events if e["cat"] != "kernel"]
    with pytest.raises(TraceError, match=r"0 GPU kernels \(categories: cpu_op, cuda_runtime"):
        read_kineto(export.write(tmp_path))


def test_a_profile_without_steps(tmp_path):
    export = Export()
    export.kernel("relu", 30, external=export.op("aten::relu", [[8, 8]]))
    with pytest.raises(TraceError, match=r"prof\.step"):
        read_kineto(export.write(tmp_path))


@pytest.fixture(scope="module")
def v100():
    return read_kineto(SHARED / "kineto" / "resnet50_v100_2021-06.pt.trace.json.gz")


@needs_shared
@pytest.mark.shared
class TestResNet50OnV100:
    def test_origin_steps_and_join(self, v100):
        assert v100.origin_gpu == "V100-DGXS-32GB"
        assert "of 6 recorded steps" in sentences(v100.warnings)[0]
        assert not any("could not be joined" in warning for warning in sentences(v100.warnings))
        assert sum(op.count * len(op.kernels) for op in v100.ops) == 8772 // 6

    def test_time_and_work_of_a_step(self, v100):
        seconds = sum(op.count * (op.measured_s or 0) for op in v100.ops)
        assert seconds == pytest.approx(0.1003, rel=0.01)
        # 4.09 GFLOP multiply-adds an image forward, twice that backward, 32 images.
        flops = sum(op.count * op.flops for op in v100.ops if "convolution" in op.name)
        assert flops == pytest.approx(32 * 3 * 2 * 4.09e9, rel=0.02)
        assert v100.memory.gradient_bytes == pytest.approx(25_557_032 * 4, rel=1e-3)

    def test_phases(self, v100):
        calls = {phase: sum(op.count for op in v100.ops if op.phase is phase) for phase in Phase}
        convolutions = [op.phase for op in v100.ops if op.name == "aten::cudnn_convolution"]
        assert set(convolutions) == {Phase.FORWARD}
        assert calls[Phase.OPTIMIZER] == 161 * 4

    def test_the_roofline_agrees_with_the_measured_step(self, v100):
        """Without the measurements, from shapes alone: within 25 %."""
        gpu = resolve_gpu("V100-DGXS-32GB")
        measured_s = predict(v100, gpu).iteration_s.p50
        from_shapes = predict(replace(v100, origin_gpu=None), gpu).iteration_s
        assert from_shapes.p50 == pytest.approx(measured_s, rel=0.25)
        assert from_shapes.p10 < measured_s < from_shapes.p90


@needs_shared
@pytest.mark.shared
def test_the_older_schema_tells_its_unjoined_share():
    path = SHARED / "kineto" / "resnet50_2021-01.pt.trace.json.gz"
    trace = read_kineto(path, origin_gpu="V100-SXM2-32GB")
    text = " ".join(sentences(trace.warnings))
    assert "8.9% of the kernels" in text
    assert "no dtypes" in text
    assert sum(op.count * (op.measured_s or 0) for op in trace.ops) == pytest.approx(0.1044, rel=0.01)
