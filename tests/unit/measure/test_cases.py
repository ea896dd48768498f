"""Cases in this process, on CPU tensors: measured, refused, out of memory, with a device that is lost."""

import json
from dataclasses import asdict, replace
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from advisor.operators.case import Call, Case, call, result, tensor  # noqa: E402
from advisor.payload import grid_run, operator_timing  # noqa: E402
from advisor.payload.operator_timing import (  # noqa: E402  # noqa: E402
    Build,
    NoSuchOperatorError,
    measure_all,
    missing_ability,
    num_sets,
    operator_of,
)


class Clock:
    """Every call takes a millisecond; calls are made all the same."""

    device = "cpu"
    cache_bytes = 0
    most_calls = 4

    def time_s(self, launch, num_calls: int) -> float:
        for number in range(num_calls):
            launch(number)
        return 1e-3


SQUARE = tensor((8, 8), "float32")
PRODUCT = Case(family="gemm", dtype="float32", call=call("mm", SQUARE, SQUARE))


@pytest.fixture(autouse=True)
def flags():
    """Measuring sets what torch may do with float32."""
    precision, tf32 = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    yield
    torch.set_float32_matmul_precision(precision)
    torch.backends.cudnn.allow_tf32 = tf32


def described(case: Case) -> dict:
    return json.loads(json.dumps({"key": case.key, **asdict(case)}))


def lines_of(*some: Case, clock=None) -> list[dict]:
    lines: list[dict] = []
    measure_all([described(case) for case in some], clock or Clock(), described(PRODUCT), lines.append)
    return lines


def outcome(case: Case) -> dict:
    (line,) = [line for line in lines_of(case) if "case" in line]
    return line


@pytest.mark.parametrize("phase", ["forward", "backward"])
def test_a_case_is_told_with_its_operator(phase):
    line = outcome(replace(PRODUCT, phase=phase))
    assert (line["time_s"], line["num_samples"]) == (1e-3, 7)
    assert line["case"] == replace(PRODUCT, phase=phase).key
    assert (line["operator"]["name"], line["operator"]["phase"]) == ("aten::mm", phase)
    assert [entry["shape"] for entry in line["operator"]["inputs"]] == [[8, 8], [8, 8]]
    assert line["precision"] == {"amp_dtype": None, "tf32_matmul": False, "tf32_cudnn": False}


def test_the_reference_comes_first_last_and_now_and_then():
    lines = lines_of(*[PRODUCT] * (operator_timing.REFERENCE_EVERY + 1))
    references = [number for number, line in enumerate(lines) if "reference_s" in line]
    assert references == [0, operator_timing.REFERENCE_EVERY + 1, len(lines) - 1]


def test_a_backward_operator_gets_what_its_forward_returned():
    source = tensor((4, 6), "float32", name="source")
    forward = call("native_layer_norm", source, [6], None, None, 1e-5, results=("out", "mean", "rstd"))
    backward = call(
        "native_layer_norm_backward", tensor((4, 6), "float32"), source, [6], result("mean"),
        result("rstd"), None, None, [True, False, False],
    )  # fmt: skip
    build = Build(described(Case(family="norm", dtype="float32", prepare=(forward,), call=backward)), "cpu")
    args: Any = build.args
    source_tensor, mean = args[1], args[3]
    assert torch.allclose(mean.flatten(), source_tensor.mean(1))
    assert build.run()[0].shape == (4, 6)


def test_equal_names_are_one_tensor_and_counted_once():
    one = tensor((8, 8), "float32", name="one")
    build = Build(described(replace(PRODUCT, call=call("mm", one, one))), "cpu")
    assert build.args[0] is build.args[1]
    assert build.num_bytes == 256


def test_tensors_are_as_described():
    pick = call("index_select", tensor((5, 4), "float16", stride=(1, 5)), 0, tensor((9,), "int64", below=5))
    build = Build(described(replace(PRODUCT, call=pick)), "cpu")
    args: Any = build.args
    table, _, indices = args
    assert (table.dtype, table.stride()) == (torch.float16, (1, 5))
    assert 0 <= int(indices.min()) <= int(indices.max()) < 5
    assert table.abs().sum() > 0


def test_values_are_the_same_each_time():
    operator_timing.seed()
    tensors: Any = Build(described(PRODUCT), "cpu").args
    first = tensors[0].clone()
    operator_timing.seed()
    assert torch.equal(first, Build(described(PRODUCT), "cpu").args[0])


@pytest.mark.parametrize("name", ["aten::no_such.default", "aten::mm.no_such", "none::mm.default"])
def test_operators_that_torch_lacks(name):
    with pytest.raises(NoSuchOperatorError, match=name):
        operator_of(name)


REFUSED = {
    "aten::no_such.default": "has no aten::no_such.default",
    "aten::_cudnn_init_dropout_state.default": "does not run on cpu",
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_run_is_left_out_with_a_reason(name):
    arguments = () if "no_such" in name else (0.1, True, 1)
    keywords = {} if "no_such" in name else {"dtype": {"dtype": "uint8"}, "device": "cpu"}
    line = outcome(replace(PRODUCT, call=Call(operator=name, arguments=arguments, keywords=keywords)))
    assert REFUSED[name] in line["reason"]
    assert "time_s" not in line


def test_shapes_that_do_not_fit_are_told_in_torchs_words():
    reason = outcome(replace(PRODUCT, call=call("mm", SQUARE, tensor((3, 3), "float32"))))["reason"]
    assert "mat1 and mat2" in reason
    assert "\n" not in reason


def test_out_of_memory_goes_on():
    huge = tensor((2**24, 2**24), "float64")
    lines = lines_of(replace(PRODUCT, call=call("mm", huge, huge)), PRODUCT)
    assert lines[1]["reason"] == "out of memory"
    assert "time_s" in lines[2]


NO_ROOM = [
    torch.OutOfMemoryError("CUDA out of memory"),
    MemoryError(),
    RuntimeError("CUDA error: out of memory\nCompile with ..."),
    RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
    RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes"),
]


def failing(monkeypatch, error: Exception) -> None:
    def fail(*_):
        raise error

    monkeypatch.setattr(operator_timing, "Build", fail)


@pytest.mark.parametrize("error", NO_ROOM)
def test_every_kind_of_out_of_memory(monkeypatch, error):
    failing(monkeypatch, error)
    assert operator_timing._outcome(described(PRODUCT), Clock())["reason"] == "out of memory"


@pytest.fixture
def job(tmp_path):
    threads = torch.get_num_threads()
    progress = tmp_path / "progress.jsonl"
    yield {"backend": "cpu", "cases": [described(PRODUCT)], "reference": described(PRODUCT),
           "progress": str(progress)}  # fmt: skip
    torch.set_num_threads(threads)


@pytest.mark.parametrize("error", NO_ROOM)
def test_a_device_without_room_for_the_reference_is_full(monkeypatch, job, error):
    failing(monkeypatch, error)
    status, details = grid_run._measure(job)
    assert status == "full_device"
    assert details["message"]
    assert "\n" not in details["message"]


def test_other_failures_of_the_reference_are_our_own_and_with_room_it_is_measured(monkeypatch, job):
    assert grid_run._measure(job) == ("ok", {})
    failing(monkeypatch, RuntimeError("mat1 and mat2 do not fit"))
    with pytest.raises(RuntimeError, match="mat1"):
        grid_run._measure(job)


def test_a_lost_device_ends_after_the_case_was_told(monkeypatch):
    def lost():
        raise RuntimeError("CUDA error: an illegal memory access\nCompile with ...")

    monkeypatch.setattr(torch.cuda, "synchronize", lost)
    monkeypatch.setattr(operator_timing, "_measured", lambda *_: {"time_s": 1e-3})
    clock, lines = Clock(), []
    clock.device = "cuda"
    with pytest.raises(operator_timing.LostDeviceError, match=r"illegal memory access$"):
        measure_all([described(PRODUCT)] * 2, clock, described(PRODUCT), lines.append)
    assert "case" in lines[-1]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"tf32": True}, "a CPU has no TF32"),
        ({"dtype": "bfloat16"}, None),
        ({"call": Call(operator="advisor::h2d_copy", arguments=())}, "no link to copy over"),
        ({}, None),
    ],
)
def test_what_a_cpu_lacks(changes, words):
    missing = missing_ability(described(replace(PRODUCT, **changes)), "cpu")
    assert missing is None if words is None else words in missing


@pytest.mark.parametrize(
    ("ability", "changes", "runs"),
    [
        ((7, 5), {"dtype": "bfloat16"}, False),
        ((7, 0), {"tf32": True}, False),
        ((7, 0), {"dtype": "float16"}, True),
        ((8, 0), {"dtype": "bfloat16"}, True),
        ((9, 0), {"tf32": True}, True),
    ],
)
def test_rates_are_measured_where_the_gpu_has_them(monkeypatch, ability, changes, runs):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: ability)
    missing = missing_ability(described(replace(PRODUCT, **changes)), "cuda")
    assert (missing is None) == runs
    assert runs or "compute capability 8.0" in missing


@pytest.mark.parametrize(
    ("num_bytes", "cache_bytes", "sets"),
    [(100, 0, 1), (2**30, 2**25, 1), (2**25, 2**25, 4), (1, 2**25, operator_timing.MOST_SETS), (0, 2**25, 8)],
)
def test_tensors_in_turn_fill_the_cache(num_bytes, cache_bytes, sets):
    clock = Clock()
    clock.cache_bytes = cache_bytes
    assert num_sets(num_bytes, clock) == sets


def test_the_flags_are_set_for_each_case():
    lines = lines_of(replace(PRODUCT, family="x"), PRODUCT)
    assert all(not line["precision"]["tf32_matmul"] for line in lines if "case" in line)
    operator_timing._measured(described(replace(PRODUCT, tf32=True)), Clock())
    assert torch.get_float32_matmul_precision() == "high"
