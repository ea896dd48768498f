"""A child that yielded no iteration -> an error that says what to do."""

from __future__ import annotations

import signal
from collections.abc import Mapping, Sequence
from typing import Any

from advisor.errors import AdvisorError, InputError, ProfileError

_LOG_LINES = 15


def failure(
    recording: Mapping[str, Any] | None,
    *,
    script: str,
    python: str,
    returncode: int | None,
    log: str,
    timeout_s: float,
) -> AdvisorError:
    """The error for a run without a trace; ``log`` is already free of secrets."""
    if recording is None:
        return ProfileError(_vanished(script, returncode, timeout_s) + _log_tail(log))
    status, message = recording["status"], recording.get("message", "")
    if status == "not_python":
        return InputError(
            f"{script!r} is not a Python script: {message}. Give the .py file that starts the training."
        )
    if status in ("no_torch", "old_torch", "broken_torch"):
        return InputError(_torch_problem(status, message, python))
    if status == "missing_module":
        return ProfileError(_missing_module(script, message, python) + _traceback(recording))
    if status == "no_iteration":
        return ProfileError(_no_iteration(script, message) + _log_tail(log))
    if recording.get("internal"):
        return ProfileError(
            f"profiling {script!r} failed inside advisor: {message}. Please report this with the"
            " following." + _traceback(recording)
        )
    hint = _hint(message, recording.get("refused", ()))
    return ProfileError(
        f"{script!r} raised {message.rstrip('.')}. It must run up to its third optimizer step: fix it,"
        f" or pass the arguments it needs after `--`.{hint}{_traceback(recording)}"
    )


_DOWNLOADS = (
    " Nothing is downloaded while it is profiled, only caches are read: run it once by itself so that they"
    " are filled, then profile it again."
)
_FULL = (
    " What it saves goes to the temporary folder while it is profiled: make room there, or name another one"
    " with the variable TMPDIR."
)
# What a script meets under the profiler and nowhere else: a word of its error -> why.
_HINTS = {
    "torch.distributed": " Scripts that torchrun starts cannot be profiled yet: let it run on one GPU.",
    "EOFError": " Its standard input is empty while it is profiled.",
    "Read-only file system": " The sandbox lets it write nowhere but in its temporary folder: profile it"
    " without --sandbox, or have it write below tempfile.gettempdir().",
    "No space left on device": _FULL,
    "PytorchStreamWriter failed": _FULL,
    "OfflineModeIsEnabled": _DOWNLOADS,
    "couldn't connect to": _DOWNLOADS,
    "FileNotFoundError": " Of what it saves while it is profiled, only files of torch.save, safetensors"
    " and the common libraries can be read back.",
}


def _hint(message: str, refused: Sequence[str]) -> str:
    if refused:
        return f" What it could not download before that: {', '.join(map(repr, refused))}.{_DOWNLOADS}"
    return next((hint for word, hint in _HINTS.items() if word in message), "")


def _vanished(script: str, returncode: int | None, timeout_s: float) -> str:
    if returncode is None:
        return (
            f"{script!r} made no three optimizer steps within {timeout_s:g} s and was stopped. Allow"
            " more with --timeout, or pass arguments that shorten what comes before training."
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


def _torch_problem(status: str, message: str, python: str) -> str:
    if status == "no_torch":
        return (
            f"the interpreter {python!r} has no torch. Name the one that you train with (--python"
            " PATH), activate its environment, or install torch: pip install torch."
        )
    if status == "broken_torch":
        return (
            f"the torch of the interpreter {python!r} cannot be imported: {message}. Repair it, or"
            " name another interpreter with --python PATH."
        )
    return (
        f"the interpreter {python!r} has torch {message}, which is too old: 2.6 or newer is needed."
        " Name another one with --python PATH, or upgrade: pip install -U torch."
    )


def _missing_module(script: str, name: str, python: str) -> str:
    return (
        f"{script!r} imports {name!r}, which the interpreter {python!r} does not have. Install it"
        " there, or name the interpreter that you train with (--python PATH)."
    )


def _no_iteration(script: str, message: str) -> str:
    return (
        f"{script!r} made no step of a torch optimizer: {message}. A training script is needed whose"
        " loop calls optimizer.step(); pass the arguments that make it train after `--`."
    )


def _traceback(recording: Mapping[str, Any]) -> str:
    text = recording.get("traceback")
    return f"\n\n{text.rstrip()}" if text else ""


def _log_tail(log: str) -> str:
    lines = log.strip().splitlines()[-_LOG_LINES:]
    return "\n\nThe script's last output:\n" + "\n".join(lines) if lines else ""
