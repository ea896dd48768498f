"""Where a script saves what it trains and loads it again, as its text says: parsed, never run.

A profile ends after a few steps, long before the end of an epoch at which most scripts save. So the text is
read, that of the script and of the modules beside it that it imported.

A checkpoint is saved while the script trains: in a loop, in a function that a loop calls, or by a callback. A
file that is written when all is done helps no run that was preempted. A script resumes if it restores the
optimizer as well, by itself or through a library that restores everything.
"""

from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from .protocol import Checkpointing, CheckpointUse

_MOST_FILES, _MOST_BYTES, _MOST_PLACES = 200, 2 * 2**20, 8
_INSTALLED = frozenset(("site-packages", "dist-packages"))
# Of the standard library, and of the payload itself.
_NOT_THEIRS = tuple(os.path.dirname(file) + os.sep for file in (os.__file__, __file__))

# By what an import calls them.
_SAVING = (
    "torch.save", "torch.serialization.save", "torch.distributed.checkpoint.save",
    "torch.distributed.checkpoint.async_save", "torch.distributed.checkpoint.save_state_dict",
    "safetensors.torch.save_file", "safetensors.torch.save_model",
)  # fmt: skip
_READING = (
    "torch.load", "torch.serialization.load", "torch.distributed.checkpoint.load",
    "torch.distributed.checkpoint.load_state_dict", "safetensors.torch.load_file",
    "safetensors.torch.load_model",
)  # fmt: skip
# Methods of libraries, whatever their object is called.
_SAVING_METHODS = frozenset({"save_checkpoint", "save_pretrained", "save_state"})
_RESTORING_METHODS = frozenset({"load_checkpoint", "load_state"})
# Objects of Accelerate and Lightning Fabric, whose ``save`` and ``load`` are not known by their names alone.
_OWNERS = frozenset({"accelerator", "checkpointer", "fabric"})
_RESTORING_KEYWORDS = frozenset({"ckpt_path", "resume_from_checkpoint"})
_LIGHTNING, _HUGGING_FACE = ("lightning.", "pytorch_lightning."), ("transformers.", "trl.")
# What restores more than weights.
_OPTIMIZER = re.compile(r"opt|sched|adam|sgd", re.IGNORECASE)
_NOTHING = (None, False)


def checkpointing_of(script: Path) -> Checkpointing | None:
    """What a script and the modules that it imported do; None where another library has the loop."""
    try:
        return _checkpointing_of(script.resolve())
    except (OSError, RecursionError):
        # The folder is gone; or a text as deep as this is no training script that a person wrote.
        return None


def _checkpointing_of(script: Path) -> Checkpointing | None:
    # The folder of the script, or the one that holds its outermost package.
    root = script.parent
    while (root / "__init__.py").exists() and root != root.parent:
        root = root.parent
    texts = [_Text(path, root) for path in _files(script, root)]
    defined = {name for text in texts for name in text.functions}
    # Functions that run in a loop, whichever function calls them there.
    looped: set[str] = set()
    to_come = {name for text in texts for name in text.called_in_loops}
    while to_come:
        looped |= to_come
        called = (text.called_by.get(name, set()) for text in texts for name in to_come)
        to_come = set().union(*called) - looped
    saves = [place for text in texts for place in text.saves(defined, looped)]
    restores = [place for text in texts for place in text.restores(defined)]
    parts = [place for text in texts for place in text.optimizers_loaded()]
    reads = [place for text in texts for place in text.reads()]
    loads = restores + (reads + parts if reads and parts else [])
    if not saves and not any(text.trains for text in texts):
        return None
    use: CheckpointUse = "none" if not saves else "resumes" if loads else "saves"
    return {"use": use, "saves": saves[:_MOST_PLACES], "loads": (loads or reads)[:_MOST_PLACES]}


def _files(script: Path, root: Path) -> list[Path]:
    named = (getattr(module, "__dict__", {}).get("__file__") for module in list(sys.modules.values()))
    files = (name for name in named if isinstance(name, str) and name.endswith(".py"))
    # Of the name first: thousands of modules are not the user's, and to resolve their paths takes long.
    written = (name for name in files if not name.startswith(_NOT_THEIRS))
    paths = (Path(name).resolve() for name in written if _INSTALLED.isdisjoint(name.split(os.sep)))
    beside = (path for path in paths if root in path.parents and _INSTALLED.isdisjoint(path.parts))
    return list(dict.fromkeys((script, *beside)))[:_MOST_FILES]


class _Text:
    """One file: its calls, each with the functions and loops around it."""

    def __init__(self, path: Path, root: Path) -> None:
        self.name = str(path.relative_to(root))
        self.functions: set[str] = set()
        self.called_in_loops: set[str] = set()
        self.called_by: dict[str, set[str]] = {}
        """Names that each of its functions calls."""
        self._calls: list[tuple[ast.Call, tuple[str, ...], bool]] = []
        self._imports: dict[str, str] = {}
        self._trainers: set[str] = set()
        try:
            text = path.read_bytes()
            tree = ast.parse(text) if len(text) <= _MOST_BYTES else ast.Module([], [])
            self._walk(tree, (), in_loop=False)
        except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
            pass  # an unreadable file shows nothing

    def _walk(self, node: ast.AST, around: tuple[str, ...], *, in_loop: bool) -> None:
        for child in ast.iter_child_nodes(node):
            inner, loop = around, in_loop
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
                self.functions.add(child.name)
                inner, loop = (*around, child.name), False
            elif isinstance(child, (ast.For, ast.AsyncFor, ast.While)):
                loop = True
            elif isinstance(child, ast.ClassDef) and any(self._is_trainer(base) for base in child.bases):
                self._trainers.add(child.name)
            elif isinstance(child, ast.ImportFrom):
                source = child.module or "?"
                self._imports |= {one.asname or one.name: f"{source}.{one.name}" for one in child.names}
            elif isinstance(child, ast.Import):
                self._imports |= {one.asname: one.name for one in child.names if one.asname}
            elif isinstance(child, ast.Call):
                self._note(child, around, in_loop=in_loop)
            self._walk(child, inner, in_loop=loop)

    def _note(self, call: ast.Call, around: tuple[str, ...], *, in_loop: bool) -> None:
        self._calls.append((call, around, in_loop))
        name = _last(call.func)
        # model.train() calls no function of the script, unlike train(model).
        if name is None or (
            isinstance(call.func, ast.Attribute) and name in ("train", "eval") and len(call.args) < 2
        ):
            return
        if in_loop:
            self.called_in_loops.add(name)
        for function in around:
            self.called_by.setdefault(function, set()).add(name)

    def _dotted(self, node: ast.expr) -> str:
        """``torch.save`` of ``th.save``, where th is what torch was imported as."""
        if isinstance(node, ast.Attribute):
            return f"{self._dotted(node.value)}.{node.attr}"
        return self._imports.get(node.id, node.id) if isinstance(node, ast.Name) else "?"

    def _is_trainer(self, node: ast.expr) -> bool:
        dotted = self._dotted(node)
        is_of_library = dotted.startswith(_HUGGING_FACE) and dotted.endswith("Trainer")
        return is_of_library or dotted in self._trainers

    def _is_lightnings(self, node: ast.expr, *names: str) -> bool:
        dotted = self._dotted(node)
        return dotted.startswith(_LIGHTNING) and dotted.rpartition(".")[2] in names

    @property
    def trains(self) -> bool:
        """Whether its text has the loop, or names a library that we know the loop of."""
        return any(
            _last(call.func) == "backward"
            or self._is_trainer(call.func)
            or self._is_lightnings(call.func, "Trainer", "LightningCLI")
            for call, _, _ in self._calls
        )

    def saves(self, defined: set[str], looped: set[str]) -> Iterator[str]:
        """Places that save while the script trains."""
        gives_up = any(_given(call, "save_strategy") == "no" for call, _, _ in self._calls)
        for call, around, in_loop in self._calls:
            if self._is_trainer(call.func):
                is_saving = not gives_up
            elif self._is_lightnings(call.func, "Trainer"):
                is_saving = _given(call, "enable_checkpointing") is not False
            elif self._is_lightnings(call.func, "ModelCheckpoint", "LightningCLI"):
                is_saving = True
            else:
                is_during = in_loop or any(name in looped or name.startswith("on_") for name in around)
                is_saving = is_during and self._writes(call.func, defined)
            if is_saving:
                yield self._place(call)

    def _writes(self, function: ast.expr, defined: set[str]) -> bool:
        name = _last(function)
        is_method = name in _SAVING_METHODS and name not in defined
        return self._dotted(function) in _SAVING or is_method or _is_of_owner(function, "save")

    def restores(self, defined: set[str]) -> Iterator[str]:
        """Places that restore all that a training is."""
        for call, _, _ in self._calls:
            name = _last(call.func)
            is_method = name in _RESTORING_METHODS and name not in defined
            is_asked = any(
                keyword.arg in _RESTORING_KEYWORDS
                and not (isinstance(keyword.value, ast.Constant) and keyword.value.value in _NOTHING)
                for keyword in call.keywords
            )
            is_cli = self._is_lightnings(call.func, "LightningCLI")
            if is_method or is_asked or is_cli or _is_of_owner(call.func, "load"):
                yield self._place(call)

    def reads(self) -> Iterator[str]:
        """Places that read a file of tensors."""
        return (self._place(call) for call, _, _ in self._calls if self._dotted(call.func) in _READING)

    def optimizers_loaded(self) -> Iterator[str]:
        """Places that restore an optimizer or a schedule of its rate."""
        for call, _, _ in self._calls:
            function = call.func
            if isinstance(function, ast.Attribute) and function.attr == "load_state_dict":
                owner = _last(function.value)
                if owner is not None and _OPTIMIZER.search(owner):
                    yield self._place(call)

    def _place(self, call: ast.Call) -> str:
        return f"{self.name}:{call.lineno} {self._dotted(call.func)}"[:200]


def _last(node: ast.expr) -> str | None:
    """``save`` of ``torch.save``; of a call and an item the name of what is called or looked into."""
    while isinstance(node, (ast.Subscript, ast.Call)):
        node = node.value if isinstance(node, ast.Subscript) else node.func
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else None


def _is_of_owner(function: ast.expr, name: str) -> bool:
    return isinstance(function, ast.Attribute) and function.attr == name and _last(function.value) in _OWNERS


def _given(call: ast.Call, keyword: str) -> object:
    """The constant that is given by this name; None without one."""
    values = (one.value for one in call.keywords if one.arg == keyword)
    return next((value.value for value in values if isinstance(value, ast.Constant)), None)


# Folds, stages and settings that are tried: each turn of a loop trains on a loader of its own.

_LOOPS = (ast.For, ast.While)


def line_of_turns(script: Path) -> int | None:
    """The line of a loop that makes a DataLoader and trains epochs on it, turn by turn; None without one."""
    try:
        nodes = ast.walk(ast.parse(script.read_bytes()))
        return next((one.lineno for one in nodes if isinstance(one, _LOOPS) and _trains_in_turns(one)), None)
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _trains_in_turns(loop: ast.AST) -> bool:
    """Whether a loop in a loop in this one goes backward for what a loader of this one gives."""
    return any(
        (_loaders(loop) - _loaders(epochs)) & _names(step.iter) and "backward" in _names(step)
        for epochs in ast.walk(loop)
        if isinstance(epochs, _LOOPS) and epochs is not loop
        for step in ast.walk(epochs)
        if isinstance(step, ast.For) and step is not epochs
    )


def _loaders(tree: ast.AST) -> set[str | None]:
    """What the DataLoaders that are made are called."""
    given = (node for node in ast.walk(tree) if isinstance(node, ast.Assign))
    return {_last(target) for node in given if _last(node.value) == "DataLoader" for target in node.targets}


def _names(tree: ast.AST) -> set[str | None]:
    return {getattr(node, "attr", None) or getattr(node, "id", None) for node in ast.walk(tree)} - {None}
