"""``profile`` on the examples and on scripts that do not want to end."""

import sys
import venv
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from advisor.core.errors import AdvisorError, InputError, ProfileError
from advisor.core.units import GIB
from advisor.core.values import Phase, Trace
from advisor.profile import ScriptGpu, profile
from advisor.report.words import sentences
from tests.end_to_end.profile_scripts import ARGUMENTS, LIMITS, SCRIPTS, USERS_MODULES

ROOT = Path(__file__).parents[2]
EXAMPLES = {
    "resnet50": ("train_resnet50.py", []),
    "resnet50 amp": ("train_resnet50.py", ["--amp"]),
    "gpt": ("train_gpt.py", []),
    "dcgan": ("train_dcgan.py", []),
}
pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm_children")]


class World:
    """A folder where the scripts run, the outcomes of all, and the processes' temporary files."""

    def __init__(self, folder):
        self.folder = folder
        self.temporary = folder / "tmp"
        self.outcomes = {}

    def script(self, name):
        return self.folder / (name.replace(" ", "_") + ".py")

    def run(self, name):
        arguments = ARGUMENTS.get(name, [])
        limits = {"timeout_s": 120.0, **LIMITS.get(name, {})}
        try:
            self.outcomes[name] = profile(self.script(name), arguments, **limits)
        except AdvisorError as error:
            self.outcomes[name] = error

    def run_example(self, name):
        file, arguments = EXAMPLES[name]
        self.outcomes[name] = profile(ROOT / "examples" / file, arguments)


@pytest.fixture(scope="module")
def world(tmp_path_factory, warm_children):
    world = World(tmp_path_factory.mktemp("scripts"))
    world.temporary.mkdir()
    for name, code in SCRIPTS.items():
        world.script(name).write_text(code)
    for name, code in USERS_MODULES.items():
        path = world.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(code)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(world.folder)
        patch.setenv("SOME_API_TOKEN", "0123456789")
        patch.setenv("PL_KEPT", "yes")
        patch.setenv("PL_EXPECTED_CWD", str(world.folder))
        patch.setattr("tempfile.tempdir", str(world.temporary))
        with ThreadPoolExecutor(2) as pool:
            jobs = [pool.submit(world.run_example, name) for name in EXAMPLES]
            jobs += [pool.submit(world.run, name) for name in SCRIPTS]
            for job in jobs:
                job.result()
    return world


@pytest.fixture(scope="module")
def example(world):
    return lambda name: world.outcomes[name]


@pytest.fixture(scope="module")
def trace(world):
    def get(name):
        outcome = world.outcomes[name]
        assert isinstance(outcome, Trace), outcome
        return outcome

    return get


@pytest.fixture(scope="module")
def error(world):
    def get(name):
        outcome = world.outcomes[name]
        assert isinstance(outcome, AdvisorError), outcome
        return outcome

    return get


def count(trace, name, phase=None):
    return sum(op.count for op in trace.ops if op.name == name and (phase is None or op.phase is phase))


def flops(trace, *names):
    return sum(op.flops * op.count for op in trace.ops if not names or op.name in names)


# --- Examples --------------------------------------------------------------------------------------


def test_resnet50(example):
    profiled = example("resnet50")
    assert (profiled.batch_size, profiled.samples_per_epoch) == (64, 1_281_167)
    assert (profiled.iterations_per_epoch, profiled.accumulation, profiled.num_workers) == (20_019, 1, 8)
    assert profiled.precision.amp_dtype is None
    assert not profiled.precision.tf32_matmul
    assert profiled.precision.tf32_cudnn
    assert count(profiled, "aten::convolution") == count(profiled, "aten::convolution_backward") == 53
    assert count(profiled, "aten::cudnn_batch_norm_backward", Phase.BACKWARD) == 53
    assert count(profiled, "advisor::h2d_copy") == 2
    assert profiled.warnings == ()
    assert 0 < profiled.data_loading_s < 10


def test_resnet50_flops(example):
    # 4.09 G multiply-adds an image (He et al.) forward; backward twice, without the first input's.
    forward = flops(example("resnet50"), "aten::convolution", "aten::addmm")
    assert forward / 64 / 2 == pytest.approx(4.09e9, rel=0.01)
    total = flops(example("resnet50"), "aten::convolution", "aten::convolution_backward",
                  "aten::addmm", "aten::mm")  # fmt: skip
    first = 2 * 64 * 112 * 112 * 64 * 3 * 49
    assert total == 3 * forward - first


def test_resnet50_memory(example):
    memory = example("resnet50").memory
    # The figure of the same tracker on real CPU tensors.
    assert memory.peak_bytes / GIB == pytest.approx(5.407, abs=0.001)
    # 25,557,032 parameters in blocks of 512 bytes.
    assert 25_557_032 * 4 <= memory.parameter_bytes < 25_557_032 * 4 + 161 * 512
    assert memory.gradient_bytes == memory.optimizer_bytes == memory.parameter_bytes
    assert example("resnet50 amp").memory.peak_bytes / GIB == pytest.approx(2.978, abs=0.001)


def test_mixed_precision_casts(example):
    plain, mixed = example("resnet50"), example("resnet50 amp")
    assert mixed.precision.amp_dtype == "float16"
    products = ("aten::convolution", "aten::convolution_backward", "aten::addmm", "aten::mm")
    assert flops(plain, *products) == flops(mixed, *products)
    dtypes = {op.inputs[0].dtype for op in mixed.ops if op.name in products}
    assert dtypes == {"float16"}
    assert count(mixed, "aten::_amp_foreach_non_finite_check_and_unscale_") == 1


def test_gpt(example):
    profiled = example("gpt")
    assert (profiled.batch_size, profiled.precision.amp_dtype) == (8, "bfloat16")
    assert profiled.precision.tf32_matmul
    for name in ("", "_backward"):
        assert count(profiled, "aten::_scaled_dot_product_flash_attention" + name) == 12
    assert count(profiled, "aten::native_dropout") == 13
    assert count(profiled, "aten::_foreach_norm") == count(profiled, "aten::_foreach_addcdiv_") == 1
    # Tied weights are one parameter: 124.4 million.
    parameters = 124_439_808
    assert profiled.memory.parameter_bytes == pytest.approx(parameters * 4, rel=1e-3)
    assert profiled.memory.optimizer_bytes == pytest.approx(parameters * 8, rel=1e-3)
    # 6 N per token for the products with weights (the position table takes part in none).
    tokens = 8 * 1024
    products = flops(profiled, "aten::addmm", "aten::mm")
    assert products == pytest.approx(6 * (parameters - 1024 * 768) * tokens, rel=2e-3)
    attention = flops(profiled, *(op.name for op in profiled.ops if "attention" in op.name))
    assert attention == 12 * 7 * 2 * 8 * 1024 * 1024 * 768


def test_dcgan_is_one_step_of_both_networks(example):
    profiled = example("dcgan")
    assert (profiled.batch_size, profiled.accumulation, profiled.iterations_per_epoch) == (128, 1, 1_583)
    assert count(profiled, "aten::_foreach_addcdiv_", Phase.OPTIMIZER) == 2
    # 5 layers: the generator once, the discriminator for real, fake, and the generator's loss.
    assert count(profiled, "aten::convolution") == count(profiled, "aten::convolution_backward") == 20
    assert profiled.memory.peak_bytes / GIB == pytest.approx(0.321, abs=0.001)


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_operator_has_a_cost(name, example):
    for op in example(name).ops:
        assert op.bytes > 0, op
        assert op.count > 0


# --- Scripts that yield a trace ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    ["catches Exception", "swallows everything", "finally", "hangs in finally", "atexit", "sees itself"],
)
def test_habits_do_not_change_the_trace(name, trace):
    assert trace(name).ops == trace("plain").ops
    assert trace(name).memory == trace("plain").memory
    assert trace(name).iterations_per_epoch == 125


def test_nothing_is_saved(trace, world):
    assert not (world.folder / "checkpoint.pt").exists()
    assert not (world.folder / "after.txt").exists()
    assert not (world.folder / "atexit.txt").exists()


def test_accumulation(trace):
    profiled = trace("accumulates")
    assert (profiled.accumulation, profiled.batch_size, profiled.iterations_per_epoch) == (4, 32, 32)
    assert count(profiled, "aten::addmm") == 4


def test_a_short_run_is_marked(trace):
    assert "after 2 iteration(s)" in sentences(trace("two steps").warnings)[0]
    assert trace("two steps").ops == trace("plain").ops


def test_tied_weights_and_an_early_optimizer(trace):
    memory = trace("optimizer before to").memory
    assert memory.parameter_bytes == 100 * 32 * 4
    assert memory.optimizer_bytes == 2 * memory.parameter_bytes
    assert count(trace("optimizer before to"), "aten::_foreach_addcdiv_") == 1


def test_old_amp_and_compile(trace):
    profiled = trace("compiled fp16")
    assert profiled.precision.amp_dtype == "float16"
    assert profiled.precision.tf32_matmul
    assert profiled.compile_mode == "default"
    assert not any("torch.compile" in warning for warning in sentences(profiled.warnings))


# --- Scripts that do not ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "kind", "parts"),
    [
        ("raises", ProfileError, ["ValueError: the learning rate is wrong", "in prepare"]),
        ("never steps", ProfileError, ["no step", "optimizer.step()", "only evaluating"]),
        ("exits", ProfileError, ["sys.exit('--data is missing')", "after `--`"]),
        ("leaves", ProfileError, ["exit code 5", "os._exit"]),
        ("missing argument", ProfileError, ["sys.exit(2)", "--data", "after `--`"]),
        ("null bytes", InputError, ["not a Python script"]),
        ("hungry", ProfileError, ["line 5 of", "kept.append(", "of the 1.5 GiB", "setting profile.memory"]),
        ("two gpus", ProfileError, ["counted the GPUs and found one", "`world_size` N"]),
        ("of keras", InputError, ["trains with Keras", "PyTorch only"]),
    ],
)
def test_failures_say_what_to_do(name, kind, parts, error, warm_folder):
    assert type(error(name)) is kind
    message = str(error(name)).replace(str(warm_folder / "bin" / "python"), sys.executable)
    for part in parts:
        assert part in message


def test_the_traceback_is_the_users(error):
    text = str(error("raises"))
    assert "raises.py" in text
    assert "_gpu_advisor_payload" not in text
    assert str(ROOT / "advisor") not in text
    assert "runpy" not in text


def test_secrets_are_not_shown(error):
    assert "abcdefgh1234" not in str(error("raises"))
    assert "token=***" in str(error("raises"))


def test_no_file_is_left_behind(world):
    assert list(world.temporary.iterdir()) == []


def test_wrong_input(tmp_path):
    (tmp_path / "notebook.ipynb").write_text("{}")
    (tmp_path / "t.py").write_text("")
    with pytest.raises(InputError, match="nbconvert"):
        profile(tmp_path / "notebook.ipynb")
    with pytest.raises(InputError, match="not an interpreter"):
        profile(tmp_path / "t.py", python=tmp_path / "no-python")
    with pytest.raises(InputError, match="unknown profiling backend 'gpu'"):
        profile(tmp_path / "t.py", backend="gpu")


# --- Interpreters ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def bare_environment(tmp_path_factory):
    """A virtual environment without torch."""
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder, with_pip=False)
    return folder


def test_an_interpreter_without_torch(bare_environment, world):
    with pytest.raises(InputError, match="has no torch"):
        profile(world.script("plain"), python=bare_environment / "bin" / "python")


def test_an_active_environment_without_torch_falls_back_to_ours(bare_environment, world, monkeypatch):
    monkeypatch.setenv("VIRTUAL_ENV", str(bare_environment))
    messages = []
    profiled = profile(world.script("plain"), progress=messages.append)
    assert profiled.ops == world.outcomes["plain"].ops
    assert str(bare_environment) in messages[0]
    assert any(sys.executable in line for line in messages[1:])


def test_the_script_sees_the_pretended_gpu(tmp_path):
    script = tmp_path / "look.py"
    script.write_text(
        "import torch; raise SystemExit(torch.cuda.get_device_name()"
        " + str(torch.cuda.get_device_capability()))"
    )
    gpu = ScriptGpu(name="NVIDIA L4", compute_capability="8.9", num_sms=58)
    with pytest.raises(ProfileError, match=r"NVIDIA L4\(8, 9\)"):
        profile(script, gpu=gpu)
