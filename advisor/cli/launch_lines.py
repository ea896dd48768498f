"""The command that starts a training, as people type it -> its script, the arguments, and how many GPUs.

``torchrun --nproc-per-node 8 train.py``, ``python -m pkg.train``, ``uv run train.py``, ``bash run.sh``:
launchers and wrappers stand before the script, whatever options they have, and the script is the first word
that names a Python file or follows ``-m``. Nothing is started.
"""

import json
import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from advisor.core.errors import InputError
from advisor.core.files import temporary_folder
from advisor.core.units import whole_number
from advisor.formats.foreign_files import open_regular, read_plain

# With Python and shell scripts, what a command begins with: launchers, shells, and what is put before those.
_PROGRAMS = (
    "accelerate", "bash", "conda", "dash", "deepspeed", "env", "hatch", "ipython", "mpiexec", "mpirun",
    "nice", "nohup", "nsys", "numactl", "pdm", "pipenv", "pixi", "poetry", "rye", "sh", "srun", "stdbuf",
    "time", "timeout", "torchrun", "uv", "uvx", "zsh",
)  # fmt: skip
_SHELLS = ("bash", "dash", "sh", "zsh")
_PYTHON = re.compile(r"python(3(\.\d+)?)?$")
# Modules that are launchers themselves: ``python -m torch.distributed.run train.py``.
_LAUNCHING_MODULES = {
    "torch.distributed.run": "torchrun",
    "torch.distributed.launch": "torchrun",
    "accelerate.commands.launch": "accelerate",
    "deepspeed.launcher.runner": "deepspeed",
}
_ASSIGNMENT = re.compile(r"(?:export\s+)?([A-Za-z_]\w*)=(.*)$", re.DOTALL)
_VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)(?::?-([^}]*))?\})")

_PER_NODE = ("--nproc-per-node", "--num-gpus", "-np")
_NODES = ("--nnodes", "--num-nodes")
_IN_ALL = ("--num-processes",)
# They divide the model or bring settings of their own, which only the launcher hands to the script.
_OWN_SETTINGS = ("--config-file", "--use-deepspeed", "--use-fsdp", "--use-megatron-lm")
# What `accelerate launch` tells the script through the environment.
_ACCELERATE = {
    "--mixed-precision": "ACCELERATE_MIXED_PRECISION",
    "--gradient-accumulation-steps": "ACCELERATE_GRADIENT_ACCUMULATION_STEPS",
}
_MAX_SHELL_BYTES = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchLine:
    """A script as a command starts it."""

    script: Path
    """The file, relative to the folder that the command was typed in."""
    arguments: tuple[str, ...] = ()
    """Its own."""
    world_size: int | None = None
    """Processes that the launcher starts, on all nodes; None if it does not say."""
    python: str | None = None
    """The interpreter, where the command names one by its path."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Of the environment, that the command sets for the script."""


def is_launch_line(first: str) -> bool:
    """Whether a command begins with this word, rather than a script or a trace being named by it.

    >>> [is_launch_line(word) for word in ("torchrun", "python3.11", "run.sh", "A=1", "train.py")]
    [True, True, True, True, False]
    """
    name = Path(first).name
    return name in _PROGRAMS or name.endswith(".sh") or bool(_PYTHON.match(name) or _ASSIGNMENT.match(first))


def read_launch_line(words: Sequence[str]) -> LaunchLine:
    """Find the script in a command.

    Args:
        words: of the command; the script's arguments follow the script.

    Raises InputError: no Python script is in it, or a launcher sets up what cannot be repeated without it.

    >>> line = read_launch_line(["torchrun", "--nnodes=2", "--nproc-per-node", "8", "train.py", "--lr", "1"])
    >>> line.script.name, line.arguments, line.world_size
    ('train.py', ('--lr', '1'), 16)
    """
    shell = _shell_script(words)
    if shell is not None:
        return _of_shell_script(*shell)
    before, script, arguments = _around_script(words)
    launchers = [_LAUNCHING_MODULES.get(word, Path(word).name) for word in before]
    variables = {found[1]: found[2] for word in before if (found := _ASSIGNMENT.match(word))}
    if "accelerate" in launchers:
        _check_accelerate(before)
        options = {name: _value(before, (option,)) for option, name in _ACCELERATE.items()}
        variables |= {name: value for name, value in options.items() if value is not None}
    if "deepspeed" in launchers and "--no_local_rank" not in before:
        arguments = ("--local_rank=0", *arguments)
    pythons = [word for word in before if "/" in word and _PYTHON.match(Path(word).name)]
    in_all, per_node, nodes = (_count(_value(before, names)) for names in (_IN_ALL, _PER_NODE, _NODES))
    return LaunchLine(
        script=script,
        arguments=arguments,
        world_size=in_all or (per_node * (nodes or 1) if per_node else None),
        python=pythons[-1] if pythons else None,
        variables=variables,
    )


def _around_script(words: Sequence[str]) -> tuple[list[str], Path, tuple[str, ...]]:
    for i, word in enumerate(words):
        after = tuple(words[i + 1 :])
        if word in ("-m", "--module") and after and after[0] not in _LAUNCHING_MODULES:
            parts = Path(*after[0].split("."))
            places = [root / parts for root in (Path(), Path("src"))]
            files = [file for place in places for file in (place.with_suffix(".py"), place / "__main__.py")]
            found = next((file for file in files if file.is_file()), None)
            if found is None:
                raise InputError(
                    f"there is no module {after[0]!r} here: neither {files[0]} nor {files[1]} exists. Stand"
                    " in the folder that `python -m` is called from."
                )
            return list(words[:i]), found, after[1:]
        if word == "-c" and i and _PYTHON.match(Path(words[i - 1]).name):
            raise InputError("`python -c` has no script to profile: write its code to a .py file.")
        if re.fullmatch("-[a-z]*c", word) and i and Path(words[i - 1]).name in _SHELLS:
            raise InputError(f"`{words[i - 1]} {word}` hides its command: give that alone after --.")
        if Path(word).suffix in (".py", ".ipynb") and not word.startswith("-"):
            return list(words[:i]), Path(word), after
    raise InputError(
        f"no Python script is in the command {shlex.join(words)!r}: give one that ends in .py, or -m MODULE."
    )


def _value(words: Sequence[str], names: Sequence[str]) -> str | None:
    for word, following in zip(words, [*words[1:], ""], strict=True):
        name, equals, value = word.partition("=")
        if word.startswith("-") and name.replace("_", "-") in names:
            return value if equals else following
    return None


def _count(text: str | None) -> int | None:
    """A number, the largest of an elastic range (1:4), None for words such as ``gpu`` and ``auto``."""
    count = whole_number((text or "").rpartition(":")[2])
    return count if count and count < 10**6 else None


def _check_accelerate(words: Sequence[str]) -> None:
    for word in words:
        option = word.partition("=")[0].replace("_", "-")
        if option in _OWN_SETTINGS:
            raise InputError(
                f"{word} of accelerate changes the training in a way that the script does not show. Of its"
                " options --num_processes, --mixed_precision and --gradient_accumulation_steps are followed:"
                " give the rest in the script, such as Accelerator(fsdp_plugin=...)."
            )


def _shell_script(words: Sequence[str]) -> tuple[Path, tuple[str, ...]] | None:
    for i, word in enumerate(words):
        if word.endswith(".sh") and not word.startswith("-"):
            return Path(word), tuple(words[i + 1 :])
        if Path(word).suffix in (".py", ".ipynb") or word in ("-m", "--module"):
            return None
    return None


def _of_shell_script(path: Path, arguments: tuple[str, ...]) -> LaunchLine:
    """The one command of a shell script that starts a Python script.

    Raises InputError: it cannot be read, has none or several, or an expression that only the shell can tell.
    """
    try:
        with open_regular(path) as file:
            text = file.read(_MAX_SHELL_BYTES).decode(errors="replace")
    except OSError as error:
        raise InputError(f"cannot read {str(path)!r}: {error.strerror}.") from error
    commands = list(_commands(text, arguments, str(path)))
    if len(commands) != 1:
        found = "".join(f"\n  {shlex.join(words)}" for words in commands)
        raise InputError(
            f"{str(path)!r} starts {len(commands) or 'no'} Python scripts. Give one command after --, such"
            f" as: -- torchrun train.py ...{found}"
        )
    return read_launch_line(commands[0])


def _commands(text: str, arguments: tuple[str, ...], name: str) -> Iterator[list[str]]:
    """Words of each command that starts a Python script, with the variables that are known filled in."""
    variables = {**os.environ, **{str(i): word for i, word in enumerate(arguments, 1)}}
    for line in re.sub(r"\\\r?\n", " ", text).splitlines():
        try:
            words = shlex.split(line, comments=True)
        except ValueError:  # half of a text of several lines
            continue
        assigned = _ASSIGNMENT.match(" ".join(words))
        if assigned and len(words) - (words[0] == "export") == 1:
            variables[assigned[1]] = _VARIABLE.sub(partial(_filled, variables), assigned[2])
            continue
        words = words[1:] if words[:1] == ["exec"] else words
        has_script = any(Path(word).suffix == ".py" or word in ("-m", "--module") for word in words)
        if has_script and is_launch_line(words[0]):
            yield [part for word in words for part in _expanded(word, variables, arguments, name)]


def _expanded(
    word: str, variables: Mapping[str, str], arguments: tuple[str, ...], name: str
) -> tuple[str, ...]:
    if word in ("$@", "${@}", "$*"):
        return arguments
    if "$" not in word and "`" not in word:
        return (word,)
    filled = _VARIABLE.sub(partial(_filled, variables), word)
    if "$" in filled or "`" in filled:
        raise InputError(
            f"{word!r} in {name!r} is not known before it runs: give the whole command after --."
        )
    return tuple(filled.split())


def _filled(variables: Mapping[str, str], found: re.Match[str]) -> str:
    """The value of a variable; as it is written where there is none."""
    value = variables.get(found[1] or found[2])
    return (found[0] if found[3] is None else found[3]) if value is None else value


# A Jupyter notebook as the script that its code cells are.


_MAX_BYTES = 64 * 2**20
# Cells of another language or with a command of the shell; %%time and its like only look at Python.
_OF_PYTHON = re.compile(r"%%(time|timeit|capture|prun)\b.*\n")
_MAGIC = re.compile(r"^(\s*)(?:[%!?].*|[\w.]+\?)$", re.MULTILINE)
# What a notebook has without an import.
_PRELUDE = "display = print\n"


@contextmanager
def notebook_script(path: Path) -> Iterator[Path]:
    """The notebook's code in a file, as long as it is needed.

    Raises InputError: it cannot be read, or is no notebook with code in Python.
    """
    text = _PRELUDE + "\n".join(code_cells(path))
    with temporary_folder("notebook") as folder:
        script = folder / f"{path.stem}.py"
        script.write_text(text, encoding="utf-8")
        yield script


def code_cells(path: Path) -> list[str]:
    """The code of each cell, without magics and commands of the shell.

    Raises InputError: it cannot be read, or is no notebook with code in Python.
    """
    try:
        content = read_plain(path, most_bytes=_MAX_BYTES)
    except OSError as error:
        raise InputError(f"cannot read {str(path)!r}: {error.strerror}.") from error
    except ValueError as error:
        raise InputError(
            f"{str(path)!r} is larger than {_MAX_BYTES >> 20} MiB: clear its outputs first."
        ) from error
    try:
        cells = json.loads(content)["cells"]
        sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(
            f"{str(path)!r} is no Jupyter notebook (version 4): give a .py or .ipynb file."
        ) from error
    python = [_OF_PYTHON.sub("", source, count=1) for source in sources]
    found = [_MAGIC.sub(r"\1pass", source) for source in python if not source.startswith("%%")]
    if not found:
        raise InputError(f"{str(path)!r} has no cells with Python code.")
    return found
