import json
from typing import Any

import pytest

from advisor.core.errors import ProfileError, UnknownGpuError
from advisor.core.values import Collective, Flow, Phase
from advisor.formats.trace_files import read_trace, write_trace
from advisor.kineto.events import DeviceEvent
from advisor.payload.protocol import VERSION
from advisor.profile.recording import Timeline, read_recording, trace_of
from tests.findings import named, texts

TENSOR = {"shape": [4, 4], "dtype": "float32", "stride": [4, 1]}
LOADING = {
    "fetches": 1, "samples": 64, "seconds": 0.5, "cpu_seconds": 0.32, "num_workers": 8, "batch_size": 64,
    "num_batches": 20019, "num_samples": 1281167, "batch_sizes": [64, 64], "is_dynamic": False,
    "batch_variation": None, "rivals": [],
}  # fmt: skip


def recording(**changes):
    whole: dict[str, Any] = {
        "format_version": VERSION,
        "status": "ok",
        "backend": "fake",
        "operators": [
            {
                "name": "aten::mm",
                "phase": "backward",
                "inputs": [TENSOR, TENSOR],
                "outputs": [TENSOR],
                "attributes": {"sizes": [1, [2]], "flag": True},
                "count": 3,
            }
        ],
        "num_backward_passes": 1,
        "num_optimizers": 1,
        "most_steps": 1,
        "memory": {
            "parameter_bytes": 1,
            "gradient_bytes": 2,
            "optimizer_bytes": 3,
            "activation_bytes": 4,
            "peak_bytes": 10,
            "pass_activation_bytes": 4,
            "pass_peak_bytes": 8,
            "most_activation_bytes": 5,
        },
        "loading": LOADING,
        "making_s": None,
        "amp_dtype": "float16",
        "precision": {"tf32_matmul": False, "tf32_cudnn": True},
        "versions": {"torch": "2.13.0"},
        "warnings": [{"code": "text", "facts": {"text": "careful"}}],
        "collectives": [],
        "world_size": None,
        "is_sharded": False,
        "has_sparse_gradients": True,
        "compile_mode": None,
        "parallel_by": "transformers",
        "awaits_reductions": True,
    }
    whole |= changes
    return {"flows": [[] for _ in whole["operators"]]} | whole


def test_a_trace_survives_its_file(tmp_path):
    whole = measured({4: (event(1.0),), 5: (event(2.0),), 9: (event(3.0),)})
    for trace in (trace_of(recording(), "train.py", ["--lr", "1"]), whole):
        write_trace(trace, tmp_path / "t.json.gz")
        assert read_trace(tmp_path / "t.json.gz") == trace


def test_what_was_recorded_is_kept_and_operators_get_their_costs():
    bucket = {"kind": "all_reduce", "num_bytes": 400, "world_size": 2, "count": 3}
    flow = {"id": 3, "count": 3, "sources": [1, 0], "new_parameters": 2, "forward": 7, "is_of_view": True}
    trace = trace_of(recording(world_size=8, collectives=[bucket], flows=[[flow]]), "train.py", [])
    assert (trace.world_size, trace.collectives) == (8, (Collective(**bucket),))
    (op,) = trace.ops
    assert (op.phase, op.count, op.flops, op.bytes) == (Phase.BACKWARD, 3, 128, 192)
    assert op.attributes == {"sizes": (1, (2,)), "flag": True}
    assert op.flows == (Flow(id=3, count=3, sources=(1, 0), new_parameters=2, forward=7, is_of_view=True),)


@pytest.mark.parametrize("flows", [[], [[], []], [[{"id": 3}]]])
def test_flows_of_other_operators_are_refused(flows):
    with pytest.raises(ProfileError, match="damaged recording"):
        trace_of(recording(flows=flows), "train.py", [])


def test_an_epoch_by_the_loader():
    trace = trace_of(recording(), "train.py", [])
    assert (trace.batch_size, trace.samples_per_epoch, trace.accumulation) == (64, 1281167, 1)
    assert (trace.iterations_per_epoch, trace.num_workers, trace.data_loading_s) == (20019, 8, 0.5)
    assert trace.loader_cpu_s_per_sample == 0.32 / 64
    assert trace.precision.amp_dtype == "float16"
    assert trace.parallel_by == "transformers"
    assert trace.has_sparse_gradients
    assert trace.awaits_reductions
    assert trace.warnings == texts("careful")


@pytest.mark.parametrize(
    ("fetches", "changes", "accumulation"),
    [
        (4, {"num_backward_passes": 4}, 4),
        # Batches of a critic's steps are not accumulated.
        *((fetches, {"num_optimizers": 2, "most_steps": most}, accumulation)
          for fetches, most, accumulation in ((5, 5, 1), (10, 5, 2), (1, 5, 1), (4, 0, 4))),
    ],
)  # fmt: skip
def test_accumulation_makes_iterations_longer_and_fewer(fetches, changes, accumulation):
    loading = LOADING | {"fetches": fetches, "samples": 64 * fetches}
    trace = trace_of(recording(loading=loading, **changes), "train.py", [])
    assert (trace.accumulation, trace.batch_size) == (accumulation, 64 * fetches)
    assert trace.iterations_per_epoch == -(-20019 // fetches)


@pytest.mark.parametrize(
    ("changes", "expected", "words"),
    [
        ({"fetches": 0, "samples": None}, {"batch_size": None}, ["no batch was loaded"]),
        (
            {"num_batches": None, "num_samples": None},
            {"samples_per_epoch": None, "iterations_per_epoch": None},
            ["no length"],
        ),
        ({"num_batches": None}, {"iterations_per_epoch": 20019}, ["`iterations_per_epoch`"]),
        (
            {"num_batches": None, "samples": None},
            {"iterations_per_epoch": None, "batch_size": None},
            ["`iterations_per_epoch`"],
        ),
        ({"is_dynamic": True, "batch_sizes": [12, 64]}, {"batch_size": 64}, ["12 to 64"]),
        (
            {"num_batches": 100, "rivals": [5, None]},
            {"iterations_per_epoch": 100},
            ["3 DataLoaders", "the one with 100 batches", "5 batches, batches without end"],
        ),
    ],
)
def test_what_a_loader_leaves_open_is_told(changes, expected, words):
    trace = trace_of(recording(loading=LOADING | changes), "train.py", [])
    assert {name: getattr(trace, name) for name in expected} == expected
    assert [word for word in words if word not in named(trace.warnings)[-1]] == []


@pytest.mark.parametrize(("num_optimizers", "accumulation"), [(1, 3), (2, 1)])
def test_without_a_loader_the_epoch_is_unknown(num_optimizers, accumulation):
    changed = recording(loading=None, num_backward_passes=3, num_optimizers=num_optimizers)
    trace = trace_of(changed, "train.py", [])
    assert trace.accumulation == accumulation
    assert trace.batch_size is trace.samples_per_epoch is trace.iterations_per_epoch is None
    assert "no torch DataLoader" in named(trace.warnings)[-1]


def test_operators_that_cannot_be_costed_are_named_once():
    entry = recording()["operators"][0]
    changed = recording(operators=[entry | {"name": "mine::conv", "count": n} for n in (1, 2)])
    warnings = trace_of(changed, "train.py", []).warnings
    assert sum("mine::conv" in warning for warning in named(warnings)) == 1


@pytest.mark.parametrize(
    ("changes", "claimed"),
    [
        ({"num_samples": 10**8, "num_batches": 10**6}, "100,000,000 samples"),
        ({"num_samples": None, "num_batches": 2**31}, "2,147,483,648 batches"),
    ],
)
def test_a_length_that_nothing_reaches_is_told(changes, claimed):
    trace = trace_of(recording(loading=LOADING | changes), "t", [])
    (warning,) = [text for text in named(trace.warnings) if "claims" in text]
    assert claimed in warning
    assert "`iterations`" in warning
    assert not any("claims" in text for text in named(trace_of(recording(), "t", []).warnings))


@pytest.mark.parametrize("key", ["message", "traceback", "warnings", "refused"])
def test_no_secret_reaches_a_person(key, tmp_path):
    text = "kept weights of https://bob:hunter22@host/w.pt?X-Amz-Signature=abc123"
    words = [text, text] if key == "refused" else text
    if key == "warnings":
        words = [
            {"code": "text", "facts": {"text": text}},
            {"code": "profile-lacks", "facts": {"what": "values", "names": ["few", text]}},
            {"code": "unheard-of", "facts": {"text": text}},
            {"code": "not-done", "facts": {"what": "download", "name": text, "more": 1}},
        ]
    document = {"format_version": VERSION, "status": "crashed", key: words}
    (tmp_path / "result.json").write_text(json.dumps(document))
    shown = str(dict(read_recording(tmp_path / "result.json"))[key])
    assert "https://***@host/w.pt?***" in shown
    assert "hunter22" not in shown
    assert "abc123" not in shown


@pytest.mark.parametrize(
    ("text", "message"), [("{", "damaged"), (json.dumps({"format_version": 99}), "different versions")]
)
def test_a_recording_that_cannot_be_read_or_is_none(text, message, tmp_path):
    assert read_recording(tmp_path / "result.json") is None
    (tmp_path / "result.json").write_text(text)
    with pytest.raises(ProfileError, match=message):
        read_recording(tmp_path / "result.json")


def event(duration_s, name="gemm", kind="kernel", **args):
    whole = {"grid": [1, 2, 3], "block": [128, 1, 1], "registers per thread": 32, "shared memory": 0, **args}
    return DeviceEvent(
        kind=kind, name=name, begin_s=0.0, duration_s=duration_s, correlation=1, external_id=None, args=whole
    )


def measured(by_call, unmarked=(), **changes):
    timeline = Timeline(by_call=by_call, unmarked=unmarked)
    whole = recording(
        backend="cuda", calls=[[4, 5, 9]], iteration_s=0.25, device_name="NVIDIA A100-SXM4-80GB", **changes
    )
    return trace_of(whole, "train.py", [], timeline)


def test_each_call_takes_its_own_kernels():
    trace = measured({4: (event(1.0),), 5: (event(2.0),), 9: (event(3.0), event(4.0, "reduce"))})
    twice, once = trace.ops
    assert (twice.count, twice.measured_s, [k.name for k in twice.kernels]) == (2, 1.5, ["gemm"])
    assert (once.count, once.measured_s, [k.name for k in once.kernels]) == (1, 7.0, ["gemm", "reduce"])
    assert twice.attributes == once.attributes == {"sizes": (1, (2,)), "flag": True}
    assert (trace.backend, trace.origin_gpu, trace.iteration_s) == ("cuda", "A100-SXM-80GB", 0.25)


@pytest.mark.parametrize(("copy_s", "expected_s"), [(None, 0.0), (2.0, 2.0)])
def test_a_call_that_launched_nothing_took_no_time_and_copies_are_no_kernels(copy_s, expected_s):
    by_call = {call: (event(copy_s, kind="memcpy"),) for call in (4, 5, 9) if copy_s}
    (op,) = measured(by_call).ops
    assert (op.count, op.measured_s, op.kernels) == (3, expected_s, ())


def test_kernels_of_no_call_are_told():
    trace = measured({call: (event(1.0),) for call in (4, 5, 9)}, unmarked=(event(1.0),))
    assert "1 kernels (25.0% of the GPU's time) were launched by no operator" in named(trace.warnings)[-1]


def test_a_gpu_that_is_in_no_catalog_cannot_be_scaled_from():
    with pytest.raises(UnknownGpuError, match="Voodoo"):
        trace_of(recording(backend="cuda", device_name="Voodoo 2", iteration_s=1.0), "train.py", [])


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"loading": None, "making_s": 0.25}, (0.25, 0)),
        ({"loading": None}, (None, None)),
        ({"loading": None, "backend": "cuda"}, (None, 0)),
        # Beside a loader only the loader counts.
        ({"making_s": 9.0}, (0.5, 8)),
    ],
)
def test_without_a_loader_the_scripts_own_process_makes_what_was_measured(changes, expected):
    trace = trace_of(recording(**changes), "train.py", [])
    assert (trace.data_loading_s, trace.num_workers) == expected
