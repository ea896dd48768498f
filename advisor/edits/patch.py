"""Changes of a script as one unified diff."""

import ast
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import unified_diff
from itertools import pairwise

from advisor.core.findings import Finding
from advisor.core.findings.about_estimates import NotPatched
from advisor.edits import parsed_script

# Where each change is written into a script, or why there is no safe place for it.

Placed = tuple[parsed_script.Edit, ...] | Finding

_SIMPLE = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr)
_STEP = "    "
# Arguments that exclude `fused=True`.
_EXCLUDE_FUSED = ("foreach", "capturable", "differentiable", None)


def tf32(script: parsed_script.ParsedScript) -> Placed:
    """``set_float32_matmul_precision("high")`` behind the imports, or in place of ``"highest"``."""
    torch, calls = script.torch, list(script.calls("set_float32_matmul_precision"))
    if torch is None:
        return NotPatched(why="no-torch")
    if calls:
        argument = calls[0].args[0] if len(calls) == 1 and calls[0].args else None
        if isinstance(argument, ast.Constant) and argument.value == "highest":
            start, end = script.span(argument)
            return (parsed_script.Edit(start=start, end=end, text='"high"'),)
        return NotPatched(why="set-already", name="set_float32_matmul_precision")
    if script.mentions("allow_tf32"):
        return NotPatched(why="set-already", name="allow_tf32")
    imports = [node for node in script.tree.body if isinstance(node, (ast.Import, ast.ImportFrom))]
    end = script.span(imports[-1])[1]
    if script.text[end : end + 2].strip(" \r\n"):
        return NotPatched(why="shared-line")
    line = f'{torch}.set_float32_matmul_precision("high")'
    return (parsed_script.Edit(start=end, end=end, text=2 * script.newline + line),)


def fused(script: parsed_script.ParsedScript) -> Placed:
    """``fused=True`` behind the arguments of every Adam, AdamW and SGD."""
    made = parsed_script.optimizer_calls(script)
    calls = [call for call in made if parsed_script.last_name(call.func) in parsed_script.FUSED]
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
    return tuple(parsed_script.Edit(start=end, end=end, text=", fused=True") for end in ends)


def channels_last(script: parsed_script.ParsedScript) -> Placed:
    """The model's weights in the other layout, before its optimizer is made; images follow the weights."""
    if script.mentions("channels_last"):
        return NotPatched(why="set-already", name="channels_last")
    return _before_optimizer(script, "{model}.to(memory_format={torch}.channels_last)")


def compiled(script: parsed_script.ParsedScript) -> Placed:
    """The model compiled in place, right before its optimizer is made."""
    if script.mentions("compile"):
        return NotPatched(why="set-already", name="compile")
    return _before_optimizer(script, "{model}.compile()")


def _before_optimizer(script: parsed_script.ParsedScript, line: str) -> Placed:
    torch, trained = script.torch, parsed_script.trained_model(script)
    if torch is None:
        return NotPatched(why="no-torch")
    if trained is None:
        return NotPatched(why="no-model")
    edit = script.line_before(trained.statement, line.format(model=trained.model, torch=torch))
    return NotPatched(why="shared-line") if edit is None else (edit,)


def bf16(script: parsed_script.ParsedScript) -> Placed:
    """Autocast around the statements from the model's call to the loss, where one loop has them in a row."""
    torch, trained = script.torch, parsed_script.trained_model(script)
    if torch is None:
        return NotPatched(why="no-torch")
    if script.mentions("autocast"):
        return NotPatched(why="set-already", name="autocast")
    if trained is None:
        return NotPatched(why="no-model")
    passes = [found for body in parsed_script.bodies(script) if (found := _forward(body, trained.model))]
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


def _can_be_indented(script: parsed_script.ParsedScript, statements: list[ast.stmt]) -> bool:
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


def _indented(script: parsed_script.ParsedScript, statements: list[ast.stmt], head: str) -> Placed:
    first, last = statements[0].lineno, statements[-1].end_lineno or statements[-1].lineno
    starts = [script.starts[line - 1] for line in range(first, last + 1)]
    filled = [start for start in starts if script.text[start : start + 1].strip("\r\n")]
    top = f"{script.indent(statements[0])}{head}{script.newline}"
    return tuple(
        parsed_script.Edit(start=start, end=start, text=(top if start == starts[0] else "") + _STEP)
        for start in filled
    )


PLACES: Mapping[str, Callable[[parsed_script.ParsedScript], Placed] | None] = {
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
        script, place = parsed_script.read_script(new, path), PLACES[name]
        placed = NotPatched(why="by-hand", name=name) if place is None else place(script)
        if isinstance(placed, Finding):
            refused[name] = placed
            continue
        new = parsed_script.edited(script, placed)
        parsed_script.read_script(new, path)
        changes.append(name)
    name, (old_lines, new_lines) = path.lstrip("/"), map(parsed_script.lines_of, (text, new))
    lines = unified_diff(old_lines, new_lines, f"a/{name}", f"b/{name}")
    diff = "".join(line if line.endswith("\n") else line + _NO_NEWLINE for line in lines)
    return Patch(changes=tuple(changes), diff=diff, refused=refused)
