"""One call of a function is one iteration, in a fork that leaves nothing behind."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402 - needs torch

from advisor.core.errors import InputError, ProfileError  # noqa: E402
from advisor.core.values import Phase  # noqa: E402
from advisor.profile import ScriptGpu, profile_callable  # noqa: E402
from tests.waiting import wait_for_end  # noqa: E402

pytestmark = pytest.mark.torch
ROOT = str(Path(__file__).parents[3])
WIDTH = 512
PARAMETER_BYTES = 4 * (WIDTH * WIDTH + WIDTH)


def build():
    with torch.device("cuda"):
        return nn.Linear(WIDTH, WIDTH), torch.zeros(8, WIDTH)


def build_training():
    model, data = build()
    return model, data, torch.optim.AdamW(model.parameters())


def train(state):
    model, data, optimizer = state
    optimizer.zero_grad()
    model(data).sum().backward()
    optimizer.step()


def train_and_zero(state):
    model, data, optimizer = state
    model(data).sum().backward()
    optimizer.step()
    optimizer.zero_grad()


def calls(trace, phase):
    counts = Counter()
    for op in trace.ops:
        counts[op.name.removeprefix("aten::")] += op.count if op.phase is phase else 0
    return +counts


def test_inference():
    trace = profile_callable(lambda state: state[0](state[1]), setup=build, batch_size=8)
    assert calls(trace, Phase.FORWARD) == {"addmm": 1}
    assert not calls(trace, Phase.BACKWARD)
    assert (trace.batch_size, trace.accumulation, trace.warnings, trace.backend) == (8, 1, (), "fake")
    assert (trace.memory.parameter_bytes, trace.memory.gradient_bytes) == (PARAMETER_BYTES, 0)


def test_training():
    trace = profile_callable(train, setup=build_training)
    assert calls(trace, Phase.FORWARD)["addmm"] == 1
    assert calls(trace, Phase.BACKWARD)["mm"] == 1
    assert calls(trace, Phase.OPTIMIZER)["_foreach_addcdiv_"] == 1
    memory = trace.memory
    assert memory.gradient_bytes == memory.parameter_bytes == memory.optimizer_bytes / 2 == PARAMETER_BYTES
    assert trace.script == "train"


def test_gradients_are_there_to_exchange_though_a_step_ends_without_them():
    assert profile_callable(train_and_zero, setup=build_training).memory.gradient_bytes == PARAMETER_BYTES


def test_two_backward_passes_are_one_iteration_and_two_steps_too():
    def twice(state):
        train(state)
        train(state)

    trace = profile_callable(twice, setup=build_training)
    assert calls(trace, Phase.FORWARD)["addmm"] == 2
    assert calls(trace, Phase.OPTIMIZER)["_foreach_addcdiv_"] == 2


def test_a_model_of_this_process_is_moved_in_the_copy_only():
    model = nn.Linear(WIDTH, WIDTH)
    trace = profile_callable(lambda: model.cuda()(torch.zeros(8, WIDTH, device="cuda")))
    assert calls(trace, Phase.FORWARD)["addmm"] == 1
    assert {parameter.device.type for parameter in model.parameters()} == {"cpu"}
    assert model(torch.ones(2, WIDTH)).sum().isfinite()


def test_it_works_after_autograd_ran_here():
    nn.Linear(64, 64)(torch.ones(64, 64)).sum().backward()
    assert profile_callable(train, setup=build_training).ops


def test_a_model_that_no_machine_here_could_hold():
    def large():
        with torch.device("cuda"):
            return nn.Sequential(*[nn.Linear(50_000, 50_000) for _ in range(20)]), torch.zeros(1, 50_000)

    trace = profile_callable(lambda state: state[0](state[1]), setup=large)
    assert trace.memory.parameter_bytes == 20 * (4 * 50_000**2 + -(-4 * 50_000 // 512) * 512)


def test_the_function_sees_the_pretended_gpu():
    gpu = ScriptGpu(name="NVIDIA T4", compute_capability="7.5", num_sms=40, memory_bytes=15 * 2**30)

    def look():
        assert torch.cuda.get_device_name() == "NVIDIA T4"
        torch.zeros(torch.cuda.get_device_properties(0).multi_processor_count, device="cuda")

    (op,) = profile_callable(look, gpu=gpu).ops
    assert op.outputs[0].shape == (40,)


def children_of_this_process():
    return {pid for path in Path("/proc/self/task").glob("*/children") for pid in path.read_text().split()}


def test_nothing_of_the_copy_is_left_here():
    children = children_of_this_process()
    before = (torch.cuda.is_available(), torch.save, os.getpid(), torch.get_num_threads())
    profile_callable(train, setup=build_training)
    assert before == (torch.cuda.is_available(), torch.save, os.getpid(), torch.get_num_threads())
    assert children_of_this_process() <= children


def test_a_program_prints_once_and_what_the_function_saves_goes_with_it(tmp_path):
    """A program of its own, whose output nobody has buffered or captured."""
    (tmp_path / "tmp").mkdir()
    code = """
import tempfile, torch
from advisor.profile import profile_callable
def step():
    torch.save(torch.zeros(3, device="cuda") + 1, "model.pt")
    tempfile.NamedTemporaryFile(delete=False)
print("before")
profile_callable(step)
print("after")
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=True,
        env=os.environ | {"PYTHONUNBUFFERED": "", "TMPDIR": str(tmp_path / "tmp"), "PYTHONPATH": ROOT},
    )  # fmt: skip
    assert done.stdout.splitlines() == ["before", "after"]
    assert [path.name for path in tmp_path.rglob("*")] == ["tmp"]


def profile_without_an_end(out):
    def tell_and_wait():
        os.write(out, b"%d\n" % os.getpid())
        time.sleep(100)

    profile_callable(tell_and_wait)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a process with its parent")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_the_copy_ends_with_its_parent(number):
    reader, writer = os.pipe()
    parent = multiprocessing.get_context("fork").Process(target=profile_without_an_end, args=(writer,))
    parent.start()
    os.close(writer)
    with os.fdopen(reader) as lines:
        copy = lines.readline().strip()
    os.kill(parent.pid, number)
    parent.join(timeout=60)
    assert parent.exitcode == -number
    wait_for_end(copy)


def fails():
    return {}["missing"]


def leaves():
    os._exit(7)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (fails, r"fails raised KeyError: 'missing'"),
        (leaves, "leaves ended its process"),
        (lambda: torch.zeros(3) + 1, "ran nothing on the GPU: build the model"),
        (lambda: time.sleep(60), "took more than 1 s and was stopped"),
        (lambda: torch.cuda.CUDAGraph(), "CUDAGraph"),
    ],
)
def test_what_cannot_be_profiled(function, words):
    with pytest.raises(ProfileError, match=words):
        profile_callable(function, timeout_s=1.0 if "more than" in words else 60.0)


def test_the_fault_is_shown_by_the_users_own_lines():
    with pytest.raises(ProfileError) as caught:
        profile_callable(fails)
    assert 'return {}["missing"]' in str(caught.value)
    assert "_gpu_advisor_payload" not in str(caught.value)
    assert "advisor/profile" not in str(caught.value).replace("tests/unit/profile", "")


def test_where_nothing_can_be_forked(monkeypatch):
    monkeypatch.delattr(os, "fork")
    with pytest.raises(InputError, match="profile a script instead"):
        profile_callable(build)
