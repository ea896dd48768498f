"""What a script trains, as far as its text says so plainly: the optimizer's call and the model it steps."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from advisor.edits.script import Script

FUSED = ("Adam", "AdamW", "SGD")
_OTHERS = ("Adadelta", "Adagrad", "Adamax", "LBFGS", "NAdam", "RAdam", "RMSprop", "Rprop")


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """One model, and the statement that makes its optimizer."""

    model: str
    statement: ast.stmt
    call: ast.Call


def optimizer_calls(script: Script) -> list[ast.Call]:
    """The calls that make PyTorch's optimizers."""
    return [call for call in script.calls(*FUSED, *_OTHERS) if call.args or call.keywords]


def trained_model(script: Script) -> Trained | None:
    """The model, if one optimizer takes the parameters of one variable; None where it is less plain."""
    calls = optimizer_calls(script)
    if len(calls) != 1:
        return None
    (call,) = calls
    model, statements = _model_of(call), _statements(script)
    made = next((one for one in statements if isinstance(one, ast.Assign) and one.value is call), None)
    return None if model is None or made is None else Trained(model=model, statement=made, call=call)


def _model_of(call: ast.Call) -> str | None:
    """``net`` of ``SGD(net.parameters(), 0.1)``."""
    given = call.args[0] if call.args else next((k.value for k in call.keywords if k.arg == "params"), None)
    if not (isinstance(given, ast.Call) and isinstance(given.func, ast.Attribute)):
        return None
    owner = given.func.value
    return owner.id if given.func.attr == "parameters" and isinstance(owner, ast.Name) else None


def _statements(script: Script) -> Iterator[ast.stmt]:
    return (node for node in ast.walk(script.tree) if isinstance(node, ast.stmt))


def bodies(script: Script) -> Iterator[list[ast.stmt]]:
    """Every list of statements that run one after the other."""
    for node in ast.walk(script.tree):
        for field in ("body", "orelse", "finalbody"):
            body = getattr(node, field, None)
            if isinstance(body, list) and body and isinstance(body[0], ast.stmt):
                yield body
