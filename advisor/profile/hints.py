"""Why a script fails under the profiler and nowhere else, told from a word of its error."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from advisor.profile.fake_data import EXAMPLE
from advisor.profile.missing_data import fed_hint, missing_data_hint

if TYPE_CHECKING:
    from advisor.profile.recording import Recording

_EXTENSION = (
    " It builds a CUDA extension, which cannot run without a GPU: switch it off while it is profiled, or let"
    " it use torch's own operators."
)
_DOWNLOADS = (
    " Nothing is downloaded while it is profiled, only caches are read: run it once by itself so that they"
    " are filled, then profile it again."
)
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
_NO_INPUT = " Its standard input is empty while it is profiled: give its answers as arguments."
# What a script meets under the profiler and nowhere else: a word of its error -> why.
_HINTS = {
    **dict.fromkeys(
        ("torch.distributed", "process group", "world size", "WORLD_SIZE", "RANK", "LOCAL_RANK"),
        " Where several processes train together, say how many: `world_size` N.",
    ),
    "Cannot access accelerator device": " An integer is no device here: write torch.device('cuda', 0).",
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
    "Read-only file system": " The sandbox lets it write nowhere but in its temporary folder: profile it"
    " without `profile.sandbox`, or have it write below tempfile.gettempdir().",
    "No space left on device": FULL,
    "PytorchStreamWriter failed": FULL,
    "OfflineModeIsEnabled": _DOWNLOADS,
    "couldn't connect to": _DOWNLOADS,
    "Couldn't reach": _DOWNLOADS,
    **dict.fromkeys(
        (
            "URLError",
            "gaierror",
            "NameResolutionError",
            "Name or service not known",
            "Temporary failure in name resolution",
            "Max retries exceeded",
            "Network is unreachable",
        ),
        _NETWORK,
    ),
    "FileNotFoundError": " If this is a file from before, pass its path after `--`. Of what the script saves"
    " while it is profiled, only files of torch.save, safetensors and the common libraries can be read back.",
    "attempted relative import": " It is part of a package: give its path inside the package's folder, which"
    " needs an __init__.py, or call advisor from that folder's parent.",
    "device_count": " It sees one GPU while it is profiled: let it accept that, or say `world_size` N.",
}


def hint_of(recording: Recording) -> str:
    """What the profiler has to do with the script's error, a sentence after a space; or nothing."""
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
        return _refused_hint(message, refused, is_fed=bool(recording.get("fed_fake_data")))
    if recording.get("fed_fake_data"):
        return fed_hint(message)
    # The script's own line tells what it asked; its error need not.
    lines = str(recording.get("traceback", "")).splitlines()
    asserted = [line for line in lines if line.lstrip().startswith(("assert ", "if "))]
    text = "\n".join([message, *asserted[-1:]])
    known = next((hint for word, hint in _HINTS.items() if _says(text, word)), "")
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


def withheld_hint(recording: Recording) -> str:
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


def _refused_hint(message: str, refused: Iterable[str], *, is_fed: bool) -> str:
    # The error itself may name them, and once is enough.
    unsaid = [name for name in refused if name not in message]
    named = f" What it could not download before that: {', '.join(map(repr, unsaid))}." if unsaid else ""
    fed = f" For a torch data set, samples of its form can stand in: `profile.fake_data` {EXAMPLE}."
    return named + _DOWNLOADS + ("" if is_fed else fed)
