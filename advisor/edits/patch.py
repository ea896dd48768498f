"""Changes of a script as one unified diff: the script as it is read, and where each change is written."""

import ast
import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import unified_diff
from itertools import accumulate, pairwise

from advisor.core.errors import InputError
from advisor.core.findings import Finding
from advisor.core.findings.about_estimates import NotPatched

_TORCH = "torch"


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """A text that takes the place of the characters from ``start`` to ``end``; both are offsets."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedScript:
    """A Python script."""

    text: str
    tree: ast.Module
    starts: tuple[int, ...]
    """Where each line begins."""

    def offset(self, line: int, column: int) -> int:
        """Where a place of the tree is: its columns count UTF-8 bytes."""
        start = self.starts[line - 1]
        row = self.text[start : self.starts[line]] if line < len(self.starts) else self.text[start:]
        return start + len(row.encode()[:column].decode())

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        """From where to where a node stands."""
        end_line, end_column = node.end_lineno or node.lineno, node.end_col_offset or node.col_offset
        return self.offset(node.lineno, node.col_offset), self.offset(end_line, end_column)

    def indent(self, statement: ast.stmt) -> str | None:
        """The blanks before a statement; None where something else stands before it."""
        start = self.starts[statement.lineno - 1]
        before = self.text[start : self.span(statement)[0]]
        return before if not before.strip() else None

    def line_before(self, statement: ast.stmt, line: str) -> Edit | None:
        """A line of its own above a statement; None where the statement shares its line with another."""
        indent = self.indent(statement)
        if indent is None:
            return None
        start = self.starts[statement.lineno - 1]
        return Edit(start=start, end=start, text=f"{indent}{line}{self.newline}")

    @property
    def newline(self) -> str:
        """As the script ends its lines."""
        return "\r\n" if "\r\n" in self.text else "\n"

    @property
    def torch(self) -> str | None:
        """The name under which the script's top level imports torch; None without one."""
        names = (
            alias.asname or alias.name
            for node in self.tree.body
            if isinstance(node, ast.Import)
            for alias in node.names
            if alias.name == _TORCH
        )
        return next(names, None)

    def calls(self, *names: str) -> Iterator[ast.Call]:
        """Calls of functions or methods whose last name is one of these."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call) and last_name(node.func) in names:
                yield node

    def mentions(self, name: str) -> bool:
        """Whether any name, attribute or import is called so."""
        return any(
            name in (getattr(node, field, None) for field in ("id", "attr", "name"))
            for node in ast.walk(self.tree)
        )


def read_script(text: str, name: str) -> ParsedScript:
    """The script of a text. Raises InputError: it is no Python that this version can parse."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError) as error:
        raise InputError(f"{name} cannot be parsed, so it cannot be patched: {error}.") from error
    starts = (0, *accumulate(map(len, lines_of(text))))
    return ParsedScript(text=text, tree=tree, starts=starts)


def lines_of(text: str) -> list[str]:
    """The lines as Python counts them, with their ends; a form feed ends none."""
    return list(io.StringIO(text, newline=""))


def edited(script: ParsedScript, edits: Iterable[Edit]) -> str:
    """The text with all edits made; none may overlap another."""
    text = script.text
    for edit in sorted(edits, key=lambda edit: edit.start, reverse=True):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text


def last_name(node: ast.expr) -> str | None:
    """``AdamW`` of ``torch.optim.AdamW``."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else None


def batch_options(script: ParsedScript) -> dict[str, int]:
    """Options of argparse or click with ``batch`` in their names, and their defaults where these are numbers.

    >>> batch_options(read_script("p.add_argument('-b', '--batch-size', type=int, default=8)", "train.py"))
    {'--batch-size': 8}
    """
    found = {}
    for call in script.calls("add_argument", "option", "Option"):
        names = [
            one.value for one in call.args if isinstance(one, ast.Constant) and isinstance(one.value, str)
        ]
        option = next((name for name in names if name.startswith("--") and "batch" in name), None)
        default = next((word.value for word in call.keywords if word.arg == "default"), None)
        if option is not None and isinstance(default, ast.Constant) and isinstance(default.value, int):
            found[option] = default.value
    return found


# What a script trains, as far as its text says so plainly: the optimizer's call and the model it steps.

FUSED = ("Adam", "AdamW", "SGD")
_OTHERS = ("Adadelta", "Adagrad", "Adamax", "LBFGS", "NAdam", "RAdam", "RMSprop", "Rprop")


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """One model, and the statement that makes its optimizer."""

    model: str
    statement: ast.stmt
    call: ast.Call


def optimizer_calls(script: ParsedScript) -> list[ast.Call]:
    """The calls that make PyTorch's optimizers."""
    return [call for call in script.calls(*FUSED, *_OTHERS) if call.args or call.keywords]


def trained_model(script: ParsedScript) -> Trained | None:
    """The model, if one optimizer takes the parameters of one variable; None where it is less plain."""
    calls = optimizer_calls(script)
    if len(calls) != 1:
        return None
    (call,), nodes = calls, ast.walk(script.tree)
    made = next((one for one in nodes if isinstance(one, ast.Assign) and one.value is call), None)
    # ``net`` of ``SGD(net.parameters(), 0.1)``.
    given = call.args[0] if call.args else next((k.value for k in call.keywords if k.arg == "params"), None)
    method = given.func if isinstance(given, ast.Call) else None
    if made is None or not isinstance(method, ast.Attribute) or method.attr != "parameters":
        return None
    owner = method.value
    return Trained(model=owner.id, statement=made, call=call) if isinstance(owner, ast.Name) else None


def bodies(script: ParsedScript) -> Iterator[list[ast.stmt]]:
    """Every list of statements that run one after the other."""
    for node in ast.walk(script.tree):
        for field in ("body", "orelse", "finalbody"):
            body = getattr(node, field, None)
            if isinstance(body, list) and body and isinstance(body[0], ast.stmt):
                yield body


# Where each change is written into a script, or why there is no safe place for it.

Placed = tuple[Edit, ...] | Finding

_SIMPLE = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr)
_STEP = "    "
# Arguments that exclude `fused=True`.
_EXCLUDE_FUSED = ("foreach", "capturable", "differentiable", None)


def tf32(script: ParsedScript) -> Placed:
    """``set_float32_matmul_precision("high")`` behind the imports, or in place of ``"highest"``."""
    torch, calls = script.torch, list(script.calls("set_float32_matmul_precision"))
    if torch is None:
        return NotPatched(why="no-torch")
    if calls:
        argument = calls[0].args[0] if len(calls) == 1 and calls[0].args else None
        if isinstance(argument, ast.Constant) and argument.value == "highest":
            start, end = script.span(argument)
            return (Edit(start=start, end=end, text='"high"'),)
        return NotPatched(why="set-already", name="set_float32_matmul_precision")
    if script.mentions("allow_tf32"):
        return NotPatched(why="set-already", name="allow_tf32")
    imports = [node for node in script.tree.body if isinstance(node, (ast.Import, ast.ImportFrom))]
    end = script.span(imports[-1])[1]
    if script.text[end : end + 2].strip(" \r\n"):
        return NotPatched(why="shared-line")
    line = f'{torch}.set_float32_matmul_precision("high")'
    return (Edit(start=end, end=end, text=2 * script.newline + line),)


def fused(script: ParsedScript) -> Placed:
    """``fused=True`` behind the arguments of every Adam, AdamW and SGD."""
    made = optimizer_calls(script)
    calls = [call for call in made if last_name(call.func) in FUSED]
    if not calls:
        return NotPatched(why="no-optimizer")
    if any(keyword.arg == "fused" for call in calls for keyword in call.keywords):
        return NotPatched(why="set-already", name="fused")
    excluding = (k.arg for call in calls for k in call.keywords if k.arg in _EXCLUDE_FUSED)
    if (name := next(excluding, "")) != "":
        return NotPatched(why="set-already", name=name or "**")
    given = (keyword for call in script.calls("Trainer") for keyword in call.keywords)
    by_trainer = any(keyword.arg == "gradient_clip_val" for keyword in given)
    if by_trainer or any(True for _ in script.calls("clip_gradients")):
        return NotPatched(why="fused-not-clipped")
    arguments = [[*call.args, *(keyword.value for keyword in call.keywords)] for call in calls]
    ends = [max(script.span(one)[1] for one in given) for given in arguments]
    return tuple(Edit(start=end, end=end, text=", fused=True") for end in ends)


def channels_last(script: ParsedScript) -> Placed:
    """The model's weights in the other layout, before its optimizer is made; images follow the weights."""
    if script.mentions("channels_last"):
        return NotPatched(why="set-already", name="channels_last")
    return _before_optimizer(script, "{model}.to(memory_format={torch}.channels_last)")


def compiled(script: ParsedScript) -> Placed:
    """The model compiled in place, right before its optimizer is made."""
    if script.mentions("compile"):
        return NotPatched(why="set-already", name="compile")
    return _before_optimizer(script, "{model}.compile()")


def _before_optimizer(script: ParsedScript, line: str) -> Placed:
    torch, trained = script.torch, trained_model(script)
    if torch is None:
        return NotPatched(why="no-torch")
    if trained is None:
        return NotPatched(why="no-model")
    edit = script.line_before(trained.statement, line.format(model=trained.model, torch=torch))
    return NotPatched(why="shared-line") if edit is None else (edit,)


def bf16(script: ParsedScript) -> Placed:
    """Autocast around the statements from the model's call to the loss, where one loop has them in a row."""
    torch, trained = script.torch, trained_model(script)
    if torch is None:
        return NotPatched(why="no-torch")
    if script.mentions("autocast"):
        return NotPatched(why="set-already", name="autocast")
    if trained is None:
        return NotPatched(why="no-model")
    passes = [found for body in bodies(script) if (found := _forward(body, trained.model))]
    if len(passes) != 1 or not _can_be_indented(script, passes[0]):
        return NotPatched(why="loop-unclear")
    return _indented(script, passes[0], f'with {torch}.autocast("cuda", dtype={torch}.bfloat16):')


def _forward(body: list[ast.stmt], model: str) -> list[ast.stmt]:
    """The statements from the first that calls the model to the last before ``loss.backward()``."""
    ends = [i for i, statement in enumerate(body) if _loss_of(statement)]
    simple = [(i, one) for i, one in enumerate(body) if isinstance(one, _SIMPLE)]
    called = ((i, node.func) for i, one in simple for node in ast.walk(one) if isinstance(node, ast.Call))
    begins = [i for i, function in called if isinstance(function, ast.Name) and function.id == model]
    if len(ends) != 1 or not begins or begins[0] >= ends[0]:
        return []
    loss, passed = _loss_of(body[ends[0]]), body[begins[0] : ends[0]]
    made = [
        i
        for i, statement in enumerate(passed)
        if any(
            isinstance(node, ast.Name) and node.id == loss and isinstance(node.ctx, ast.Store)
            for node in ast.walk(statement)
        )
    ]
    return passed[: made[-1] + 1] if made else []


def _loss_of(statement: ast.stmt) -> str | None:
    """``loss`` of ``loss.backward()``."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)):
        return None
    owner = call.func.value
    return owner.id if call.func.attr == "backward" and isinstance(owner, ast.Name) else None


def _can_be_indented(script: ParsedScript, statements: list[ast.stmt]) -> bool:
    """Each on lines of its own, none with a text over several lines, whose blanks are part of it."""
    lines = [(one.lineno, one.end_lineno or one.lineno) for one in statements]
    apart = all(end < begin for (_, end), (begin, _) in pairwise(lines))
    texts = (
        node.lineno != node.end_lineno
        for one in statements
        for node in ast.walk(one)
        if isinstance(node, (ast.Constant, ast.JoinedStr))
    )
    simple = all(isinstance(one, _SIMPLE) and script.indent(one) is not None for one in statements)
    return apart and simple and not any(texts)


def _indented(script: ParsedScript, statements: list[ast.stmt], head: str) -> Placed:
    first, last = statements[0].lineno, statements[-1].end_lineno or statements[-1].lineno
    starts = [script.starts[line - 1] for line in range(first, last + 1)]
    filled = [start for start in starts if script.text[start : start + 1].strip("\r\n")]
    top = f"{script.indent(statements[0])}{head}{script.newline}"
    return tuple(
        Edit(start=start, end=start, text=(top if start == starts[0] else "") + _STEP) for start in filled
    )


PLACES: Mapping[str, Callable[[ParsedScript], Placed] | None] = {
    "tf32": tf32,
    "bf16": bf16,
    "channels_last": channels_last,
    "compile": compiled,
    "fused": fused,
    # By hand.
    **dict.fromkeys(("fp16", "flash", "batch", "accumulate", "workers", "packed", "nvme")),
}


_NO_NEWLINE = "\n\\ No newline at end of file\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Patch:
    """What is changed."""

    changes: tuple[str, ...]
    """Those that are in the diff."""
    diff: str
    """For ``patch`` and ``git apply``; empty where nothing is changed."""
    refused: Mapping[str, Finding]
    """By change, why it has no safe place."""


def patch_of(text: str, path: str, names: Iterable[str]) -> Patch:
    """The changes of these names written into a script, one after the other.

    Raises InputError: the script is no Python that this version can parse.
    """
    new, changes, refused = text, [], {}
    for name in names:
        script, place = read_script(new, path), PLACES[name]
        placed = NotPatched(why="by-hand", name=name) if place is None else place(script)
        if isinstance(placed, Finding):
            refused[name] = placed
            continue
        new = edited(script, placed)
        read_script(new, path)
        changes.append(name)
    name, (old_lines, new_lines) = path.lstrip("/"), map(lines_of, (text, new))
    lines = unified_diff(old_lines, new_lines, f"a/{name}", f"b/{name}")
    diff = "".join(line if line.endswith("\n") else line + _NO_NEWLINE for line in lines)
    return Patch(changes=tuple(changes), diff=diff, refused=refused)
