"""A script as it is read: its text, its syntax tree, and where in the text things stand."""

import ast
import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate

from advisor.core.errors import InputError

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
