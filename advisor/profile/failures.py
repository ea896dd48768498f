"""A child that yielded no iteration -> an error that says what to do."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.core.errors import AdvisorError, GpuUnusableError, InputError, ProfileError
from advisor.payload.protocol import Result, Status
from advisor.profile.epoch import EXAMPLE

if TYPE_CHECKING:
    from advisor.profile.recording import ChildRecording


# A script's error that means its data is not here -> what is missing and what to do.

# What a script saves and reads back is no data set; but train.bin holds tokens, pytorch_model.bin weights.
_CHECKPOINT = re.compile(
    r"\.(pt|pth|ckpt|safetensors)\b|(model|weights|optimizer|scheduler|args)[\w-]*\.bin\b|checkpoint",
    re.IGNORECASE,
)
# Not the apostrophe of "couldn't".
_QUOTED = re.compile(r"""(?<!\w)['"]([^'"]+)['"]""")
# The error of a missing data set: the system's, torchvision's, Hugging Face's, a download's.
_SIGNS = (
    "FileNotFoundError", "NotADirectoryError", "Dataset not found", "DatasetNotFoundError",
    "DataFilesNotFoundError", "Couldn't reach",
)  # fmt: skip


def missing_data_hint(message: str) -> str:
    """What is missing and how to do without, or nothing where the error is another one.

    >>> missing_data_hint("ValueError: too few values")
    ''
    """
    if not _is_missing(message):
        return ""
    name = _QUOTED.search(message)
    what = "Its data set is" if name is None else f"The data set {name[1]!r} is"
    return (
        f" {what} not here: profile where it is, pass the path that the script needs after `--`, or let"
        f" samples of its form stand in for torch data sets, such as `profile.fake_data` {EXAMPLE}."
    )


def fed_hint(message: str) -> str:
    """Why a script can fail that was fed fake samples."""
    if _is_missing(message):
        return (
            " `profile.fake_data` takes the place of torch Dataset classes and of what DataLoaders give; this"
            " is read elsewhere: pass the path that the script needs after `--`."
        )
    return (
        " It ran on the samples of `profile.fake_data`: they must have the form that its data set gives, in"
        " the same order or with the same names."
    )


def _is_missing(message: str) -> bool:
    return not _CHECKPOINT.search(message) and any(sign in message for sign in _SIGNS)


# Why a script fails under the profiler and nowhere else, by a word of its error.

_EXTENSION = (
    " It builds a CUDA extension, which cannot run without a GPU: switch it off while it is profiled, or let"
    " it use torch's own operators."
)
_TRITON = (
    " It starts a Triton kernel, which cannot run without a GPU: let it use torch's own operators while it is"
    " profiled, or profile it where a GPU is."
)
_PIPELINE = (
    " One process is profiled, so that of the other stages nothing would be known: profile the model without"
    " the pipeline, and let `advisor recommend --suppose pipeline-N` divide it."
)
_DOWNLOADS = (
    " Nothing is downloaded while it is profiled, only caches are read: run it once by itself so that they"
    " are filled, then profile it again."
)
_MODEL = (
    " Of a model of Hugging Face all but the weights is enough: hf download ID --exclude '*.safetensors'"
    " --exclude '*.bin'."
)
# Weights are made up for models of transformers alone.
_FROM_PRETRAINED = re.compile(r'/transformers/\S*", line \d+, in from_pretrained\b')
_NETWORK = (
    " It wants something from the network that cannot be reached from here: download it once before, and pass"
    f" its path after `--`. For a torch data set, samples of its form can stand in:"
    f" `profile.fake_data` {EXAMPLE}."
)
FULL = (
    " What it saves, and what is recorded of it, goes to the temporary folder while it is profiled: make room"
    " there, or name another one with the variable TMPDIR."
)
_NOBODY = (
    " Root's scripts run as nobody in the sandbox: let others read what it needs, or profile it as the owner"
    " of its files."
)
SANDBOX = (
    " The sandbox shows a script only what it needs (docs/sandbox.md): add files and folders with"
    " `profile.sandbox_read`."
)
ONE_GPU = (
    " It counted the GPUs and found one: where it wants several, say how many processes of one GPU each train"
    " together: `world_size` N."
)
_NO_INPUT = " Its standard input is empty while it is profiled: give its answers as arguments."
_NO_NETWORK = (
    "URLError", "gaierror", "NameResolutionError", "Name or service not known",
    "Temporary failure in name resolution", "Max retries exceeded", "Network is unreachable",
)  # fmt: skip
# What a script meets under the profiler and nowhere else: a word of its error -> why.
_HINTS = {
    **dict.fromkeys(
        ("torch.distributed", "process group", "world size", "WORLD_SIZE", "RANK", "LOCAL_RANK"),
        " Where several processes train together, say how many: `world_size` N.",
    ),
    "PipelineStage": _PIPELINE,
    "SecondGpuError": " A plan counts one GPU for each process: let it put everything on cuda:0, or train"
    " with one process for each GPU (torchrun with DDP or FSDP, and `world_size` N).",
    # A file that ends too early is an EOFError, too.
    "EOF when reading a line": _NO_INPUT,
    "DefaultCPUAllocator": " CPU tensors are real while it is profiled, CUDA tensors are not: let it hold"
    " less data in main memory, or make the data on the GPU.",
    "MemoryError": " What it holds outside of CUDA tensors is real while it is profiled: let it load less.",
    "CompressedLayoutError": " COO tensors are: make the matrix with torch.sparse_coo_tensor or to_sparse()"
    " while it is profiled.",
    "CUDAGraph": " CUDA graphs cannot be captured without a GPU: switch them off while it is profiled; the"
    " operators stay the same.",
    "CUDA_HOME": _EXTENSION,
    "Error building extension": _EXTENSION,
    **dict.fromkeys(("libcuda", "active drivers"), _TRITON),
    "Read-only file system": " The sandbox lets it write nowhere but in its temporary folder: profile it"
    " without `profile.sandbox`, or have it write below tempfile.gettempdir().",
    "No space left on device": FULL,
    "PytorchStreamWriter failed": FULL,
    "OfflineModeIsEnabled": _DOWNLOADS,
    "couldn't connect to": _DOWNLOADS,
    "Couldn't reach": _DOWNLOADS,
    **dict.fromkeys(_NO_NETWORK, _NETWORK),
    "FileNotFoundError": " If this is a file from before, pass its path after `--`. Of what the script saves"
    " while it is profiled, only files of torch.save, safetensors and the common libraries can be read back.",
    "attempted relative import": " It is part of a package: give its path inside the package's folder, which"
    " needs an __init__.py, or call advisor from that folder's parent.",
    "device_count": ONE_GPU,
}


# Words of an error or its traceback -> a sample of the data set that is missing.
_SAMPLES = {
    "mnist": "1x28x28:float32,10:class", "cifar100": "3x32x32:float32,100:class",
    "cifar": "3x32x32:float32,10:class", "svhn": "3x32x32:float32,10:class",
}  # fmt: skip


def hint_of(recording: ChildRecording) -> str:
    """What the profiler has to do with the script's error, a sentence after a space; or nothing."""
    told = " ".join((*map(str, map(recording.get, ("message", "traceback"))), *recording.get("refused", ())))
    sample = next((shape for word, shape in _SAMPLES.items() if word in told.lower()), EXAMPLE)
    return _hint_of(recording).replace(EXAMPLE, sample)


def _hint_of(recording: ChildRecording) -> str:
    message = recording.get("message", "")
    if recording.get("is_nobody") and "Permission denied" in message:
        return _NOBODY
    hidden = _out_of_sight(message) if recording.get("in_sandbox") else ""
    if hidden:
        return hidden
    # On a terminal, input() says no more.
    if message == "EOFError":
        return _NO_INPUT
    refused = recording.get("refused", ())
    if refused:
        return _refused_hint(recording, refused)
    if recording.get("fed_fake_data"):
        return fed_hint(message)
    # The script's own line tells what it asked; its error need not.
    lines = str(recording.get("traceback", "")).splitlines()
    asserted = [line for line in lines if line.lstrip().startswith(("assert ", "if "))]
    text = "\n".join([message, *asserted[-1:]])
    known = next((hint for word, hint in _HINTS.items() if _says(text, word)), "")
    if not known and recording.get("counted_gpus") and "gpu" in message.lower():
        known = ONE_GPU
    # What is missing may be data, or what the script saved, or what a hub has.
    if known == _DOWNLOADS:
        return known
    missing = missing_data_hint(message)
    return missing + SANDBOX if missing and recording.get("in_sandbox") else missing or known


def _out_of_sight(message: str) -> str:
    """What is missing in the sandbox and there outside of it."""
    if not any(
        sign in message for sign in ("No such file", "FileNotFoundError", "cannot open shared object")
    ):
        return ""
    for path in re.findall(r"""['"]([^'"\n\0]+)['"]|(?:^|\s)(/[^:\s]+): cannot open""", message):
        name = path[0] or path[1]
        if os.path.exists(name):  # noqa: PTH110
            folder = os.path.dirname(os.path.abspath(name))  # noqa: PTH100, PTH120
            return (
                f" {name!r} is there, but out of the sandbox's sight (docs/sandbox.md): add it or its folder"
                f" {folder!r} with `profile.sandbox_read`."
            )
    return ""


def withheld_hint(recording: ChildRecording) -> str:
    """Which variables the script asked for and did not get, and how it does; a sentence after a space."""
    names = recording.get("withheld", ())
    if not names:
        return ""
    return (
        f" It asked for variables of yours that scripts do not get: {', '.join(names)}. Hand on what it"
        f" needs: `profile.env` {names[0]}."
    )


def _says(text: str, word: str) -> bool:
    # LOW_RANK is a script's own word. Plurals and longer names of torch's are meant, too.
    return re.search(rf"(?<!\w){re.escape(word)}" + (r"(?!\w)" if word.isupper() else ""), text) is not None


def _refused_hint(recording: ChildRecording, refused: Sequence[str]) -> str:
    # The error itself may name them, and once is enough.
    unsaid = [name for name in refused if name not in recording.get("message", "")]
    named = f" What it could not download before that: {', '.join(map(repr, unsaid))}." if unsaid else ""
    if _FROM_PRETRAINED.search(str(recording.get("traceback", ""))):
        return named + _DOWNLOADS + _MODEL
    fed = f" For a torch data set, samples of its form can stand in: `profile.fake_data` {EXAMPLE}."
    return named + _DOWNLOADS + ("" if recording.get("fed_fake_data") else fed)


# What to say of a script that an error ended: whose fault it is only where the traceback shows it.

_MADE_UP = (
    " Values that it reads from the GPU are made up while it is profiled: if it raised because of one, pass"
    " arguments that leave the check out."
)


def _at_own_line(recording: ChildRecording) -> str:
    file, line, text = map(recording.get, ("file", "line", "text"))
    return f" at line {line} of {file!r}, {text!r}" if file and line else ""


def crash(recording: ChildRecording, script: str) -> str:
    """The message for an error that was not caught, without its traceback."""
    message = recording.get("message", "").rstrip(".")
    hint, asked, where = hint_of(recording), withheld_hint(recording), _at_own_line(recording)
    # A full folder may have stopped our own writing, in the midst of the script.
    if recording.get("origin") != "pretended" and hint not in (FULL, _TRITON, _EXTENSION, _PIPELINE):
        made_up = _MADE_UP if recording.get("checks_made_up") and not hint else ""
        return (
            f"{script!r} raised {message}{where}. It must run up to its third optimizer step: fix it,"
            f" or pass the arguments it needs after `--`.{made_up}{hint}{asked}"
        )
    ended = f"{script!r} was ended before its third optimizer step by {message}{where}."
    if hint:
        return ended + hint + asked
    return (
        f"{ended} It comes from torch, whose GPU is only pretended, so the fault may be the script's or"
        " advisor's: run the script by itself, or with `profile.backend` cpu if it can do without a GPU. If"
        " it trains there, please report this."
    )


def syntax_error(recording: ChildRecording, script: str, python: str) -> str:
    """The message for a file that Python cannot read: the script, or one that it imports."""
    # A forged recording may lack any of it.
    file, line, text, message = map(recording.get, ("file", "line", "text", "message"))
    what = repr(script) if recording.get("is_script") else f"{script!r} imports {file!r}, which"
    return (
        f"{what} has a syntax error in line {line}, {text!r}: {message}. Correct it; if it is"
        f" written for a newer Python than that of {python!r}, name that one with `profile.python` PATH."
    )


_LOG_LINES = 15
_LOG_CHARACTERS = 4000


def failure(
    recording: ChildRecording | None, *, script: str, python: str, returncode: int | None, log: str,
    timeout_s: float,
) -> AdvisorError:  # fmt: skip
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
    foreign = _foreign_framework(script) if status in _WITHOUT_TORCH else None
    problem = torch_problem(recording, python) if foreign is None else foreign
    shown = SANDBOX if recording.get("in_sandbox") else ""
    if problem is not None:
        return InputError(problem + (shown if foreign is None else ""))
    if status == Status.MISSING_MODULE:
        return ProfileError(_missing_module(script, message, python) + shown + _traceback(recording))
    if status == Status.NO_ITERATION:
        num_processes = recording.get("num_processes", 0)
        return ProfileError(
            _no_iteration(script, message, num_processes)
            + (ONE_GPU if recording.get("counted_gpus") else "")
            + withheld_hint(recording)
            + log_tail(log)
        )
    if status in (Status.NO_GPU_WORK, Status.FULL_MEMORY):
        words = _no_gpu_work if status == Status.NO_GPU_WORK else _full_memory
        return ProfileError(words(recording, script))
    if recording.get("internal"):
        return ProfileError(
            f"profiling {script!r} failed inside advisor: {message}. Please report this with the"
            " following." + _traceback(recording)
        )
    # On the GPU of this machine more can go wrong than without it.
    kind = GpuUnusableError if recording.get("backend") == "cuda" else ProfileError
    return kind(crash(recording, script) + _traceback(recording))


def _full_memory(recording: ChildRecording, script: str) -> str:
    return (
        f"{script!r} was ended{_at_own_line(recording)}: it holds {recording.get('message', '')} of main"
        " memory that it may. CPU tensors and what else it loads are real while it is profiled, CUDA tensors"
        " and weights are not: let it load less, or allow more with the setting profile.memory (GB)."
    )


WITHOUT_IT = "Profile without it: `profile.backend` fake."
# Packages that consist of GPU kernels, most often behind a switch of the script.
_KERNEL_PACKAGES = (
    "apex", "causal_conv1d", "cupy", "flash_attn", "flash_attn_interface", "fused_dense_lib",
    "mamba_ssm", "transformer_engine", "triton", "xformers",
)  # fmt: skip


# What ends scripts of other frameworks.
_WITHOUT_TORCH = (Status.NO_TORCH, Status.MISSING_MODULE, Status.NO_ITERATION, Status.NO_GPU_WORK)
_FRAMEWORKS = {
    "flax": "JAX", "jax": "JAX", "keras": "Keras", "mxnet": "MXNet", "paddle": "PaddlePaddle",
    "tensorflow": "TensorFlow",
}  # fmt: skip


def _foreign_framework(script: str) -> str | None:
    try:
        text = Path(script).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    imported = set(re.findall(r"^[ \t]*(?:import|from)[ \t]+(\w+)", text, re.MULTILINE))
    known = [name for module, name in _FRAMEWORKS.items() if module in imported]
    if not known or "torch" in imported:
        return None
    return f"{script!r} trains with {known[0]}; advisor profiles scripts of PyTorch only."


def _gpu_problem(recording: ChildRecording, script: str) -> tuple[str, str] | None:
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


_TORCH_PROBLEMS = {
    Status.STRANGE_TORCH: "torch {torch} of the interpreter {python!r} lacks {message}. advisor is tested"
    " with torch 2.13 and expected to work from 2.11 on (docs/torch-versions.md): name an interpreter with"
    " such a torch (`profile.python` PATH).",
    Status.OLD_PYTHON: "the interpreter {python!r} is Python {message}, and 3.10 or newer is needed."
    " Name another one with `profile.python` PATH.",
    Status.NO_TORCH: "the interpreter {python!r} has no torch. Name the one that you train with"
    " (`profile.python` PATH), activate its environment, or install torch: pip install torch.",
    Status.BROKEN_TORCH: "the torch of the interpreter {python!r} cannot be imported: {message}. Repair it,"
    " or name another interpreter with `profile.python` PATH.",
    Status.OLD_TORCH: "the interpreter {python!r} has torch {message}, which is too old: 2.6 or newer is"
    " needed. Name another one with `profile.python` PATH, or upgrade: pip install -U torch.",
}


def torch_problem(recording: Result, python: str) -> str | None:
    """What is wrong with the interpreter's torch, in words; None if nothing is."""
    text = _TORCH_PROBLEMS.get(recording["status"])
    facts = {"torch": recording.get("torch", ""), "message": recording.get("message", "")}
    return None if text is None else text.format(python=python, **facts)


def _no_gpu_work(_: ChildRecording, script: str) -> str:
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


def _traceback(recording: ChildRecording) -> str:
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
