"""A child that yielded no iteration -> an error that says what to do."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

from advisor.core.errors import AdvisorError, GpuUnusableError, InputError, ProfileError
from advisor.payload.protocol import Result, Status
from advisor.profile.crashes import crash, syntax_error
from advisor.profile.hints import SANDBOX, withheld_hint

if TYPE_CHECKING:
    from advisor.profile.recording import Recording

_LOG_LINES = 15
_LOG_CHARACTERS = 4000


def failure(
    recording: Recording | None,
    *,
    script: str,
    python: str,
    returncode: int | None,
    log: str,
    timeout_s: float,
) -> AdvisorError:
    """The error for a run without a trace; ``log`` is already free of secrets."""
    if recording is None:
        return ProfileError(_vanished(script, returncode, timeout_s) + log_tail(log))
    status, message = recording["status"], recording.get("message", "")
    unusable = _gpu_problem(recording, script)
    if unusable is not None:
        return GpuUnusableError(*unusable)
    if status == Status.NOT_PYTHON:
        return InputError(
            f"{script!r} is not a Python script: {message}. Give the .py file that starts the training."
        )
    if status == Status.SYNTAX_ERROR:
        text = syntax_error(recording, script, python)
        return InputError(text) if recording.get("is_script") else ProfileError(text + _traceback(recording))
    problem = torch_problem(recording, python)
    shown = SANDBOX if recording.get("in_sandbox") else ""
    if problem is not None:
        return InputError(problem + shown)
    if status == Status.MISSING_MODULE:
        return ProfileError(_missing_module(script, message, python) + shown + _traceback(recording))
    if status == Status.NO_ITERATION:
        num_processes = recording.get("num_processes", 0)
        return ProfileError(
            _no_iteration(script, message, num_processes) + withheld_hint(recording) + log_tail(log)
        )
    if status == Status.NO_GPU_WORK:
        return ProfileError(_no_gpu_work(script))
    if recording.get("internal"):
        return ProfileError(
            f"profiling {script!r} failed inside advisor: {message}. Please report this with the"
            " following." + _traceback(recording)
        )
    # On the GPU of this machine more can go wrong than without it.
    kind = GpuUnusableError if recording.get("backend") == "cuda" else ProfileError
    return kind(crash(recording, script) + _traceback(recording))


WITHOUT_IT = "Profile without it: `profile.backend` fake."
# Packages that consist of GPU kernels, most often behind a switch of the script.
_KERNEL_PACKAGES = (
    "apex", "causal_conv1d", "cupy", "flash_attn", "flash_attn_interface", "fused_dense_lib",
    "mamba_ssm", "transformer_engine", "triton", "xformers",
)  # fmt: skip


def _gpu_problem(recording: Recording, script: str) -> tuple[str, str] | None:
    """What keeps the script from being measured on this machine's GPU, and what to do."""
    message = recording.get("message", "")
    if recording["status"] == Status.NO_CUDA:
        return f"{message}.", "Profile without a GPU: `profile.backend` fake."
    if recording.get("backend") != "cuda":
        return None
    if "CUDA out of memory" in message:
        return f"{script!r} does not fit on this GPU ({message}).", WITHOUT_IT
    if recording["status"] == Status.NO_ITERATION:
        made = f"{recording['num_spans']} step(s) of a torch optimizer, too few to measure ({message})"
        instead = "Let it train longer, or profile without the GPU: `profile.backend` fake."
        return f"{script!r} made {made}.", instead
    return None


def _vanished(script: str, returncode: int | None, timeout_s: float) -> str:
    if returncode is None:
        return (
            f"{script!r} made no three optimizer steps within {timeout_s:g} s and was stopped. Allow"
            " more with `profile.timeout`, or pass arguments that shorten what comes before training."
        )
    if returncode == -signal.SIGKILL:
        return (
            f"{script!r} was killed before its third optimizer step, most likely because this"
            " machine ran out of memory. CPU tensors are real: load less data before training."
        )
    if returncode < 0:
        return (
            f"{script!r} ended by {signal.Signals(-returncode).name} before its third optimizer"
            " step. Run it by itself to see whether it works without advisor."
        )
    return (
        f"{script!r} left its process with exit code {returncode} before its third optimizer step."
        " Take out the call of os._exit, or pass arguments that let it train."
    )


def torch_problem(recording: Result, python: str) -> str | None:
    """What is wrong with the interpreter's torch, in words; None if nothing is."""
    status, message = recording["status"], recording.get("message", "")
    if status == Status.STRANGE_TORCH:
        return _strange_torch(recording["torch"], message, python)
    if status == Status.NO_TORCH:
        return (
            f"the interpreter {python!r} has no torch. Name the one that you train with (`profile.python`"
            " PATH), activate its environment, or install torch: pip install torch."
        )
    if status == Status.BROKEN_TORCH:
        return (
            f"the torch of the interpreter {python!r} cannot be imported: {message}. Repair it, or"
            " name another interpreter with `profile.python` PATH."
        )
    if status != Status.OLD_TORCH:
        return None
    return (
        f"the interpreter {python!r} has torch {message}, which is too old: 2.6 or newer is needed."
        " Name another one with `profile.python` PATH, or upgrade: pip install -U torch."
    )


def _strange_torch(version: str, lacks: str, python: str) -> str:
    return (
        f"torch {version} of the interpreter {python!r} lacks {lacks}. advisor is tested with torch 2.13 and"
        " expected to work from 2.11 on (docs/torch-versions.md): name an interpreter with such a torch"
        " (`profile.python` PATH)."
    )


def _no_gpu_work(script: str) -> str:
    return (
        f"{script!r} trained without a GPU: none of its tensors were on a CUDA device. Pass the arguments"
        " that make it train on the GPU after `--`, for example --device cuda."
    )


def _missing_module(script: str, name: str, python: str) -> str:
    text = (
        f"{script!r} imports {name!r}, which the interpreter {python!r} does not have. Install it"
        " there, or name the interpreter that you train with (`profile.python` PATH)."
    )
    if name.partition(".")[0] in _KERNEL_PACKAGES:
        text += (
            f" {name!r} holds GPU kernels, which cannot be profiled without a GPU: better switch it off,"
            " for example by letting the script use torch's scaled_dot_product_attention."
        )
    return text


def _no_iteration(script: str, message: str, num_processes: int) -> str:
    if num_processes:
        return (
            f"{script!r} made no step of a torch optimizer in its own process, but started {num_processes} of"
            " multiprocessing.Process, which are not profiled. Let it train in the main process: call the"
            " training function there, or use torch.multiprocessing.spawn, which runs rank 0 in place"
            " (`world_size` N says how many ranks there are)."
        )
    return (
        f"{script!r} made no step of a torch optimizer: {message}. A training script is needed whose"
        " loop calls optimizer.step(); pass the arguments that make it train after `--`."
    )


def _traceback(recording: Recording) -> str:
    text = recording.get("traceback")
    error = recording.get("message", "").partition(": ")[2].strip()
    # Its last lines repeat an error that names one address for each attempt.
    if text and recording.get("refused") and error and text.rstrip().endswith(error):
        text = text.rstrip().removesuffix(error).rpartition("\n")[0]
    return f"\n\n{text.rstrip()}" if text else ""


def log_tail(log: str) -> str:
    """The last lines that a process printed, as the end of a message."""
    text = "\n".join(log.strip().splitlines()[-_LOG_LINES:])
    if len(text) > _LOG_CHARACTERS:
        text = f"[...] {text[-_LOG_CHARACTERS:]}"
    return f"\n\nThe script's last output:\n{text}" if text else ""
