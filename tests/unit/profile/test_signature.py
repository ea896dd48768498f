"""Schemas of operators: which arguments are tensors, written or attributes, and whether a kernel runs."""

import importlib.util
from types import SimpleNamespace
from typing import Any

import pytest

from advisor.payload.recording.recorder import Signature

needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs torch")
READ, WRITTEN = SimpleNamespace(is_write=False), SimpleNamespace(is_write=True)
MISSING = object()


def argument(name: str, kind: str, *, alias: Any = None, default: Any = MISSING) -> Any:
    return SimpleNamespace(
        name=name,
        type=kind,
        alias_info=alias,
        default_value=None if default is MISSING else default,
        has_default_value=lambda: default is not MISSING,
    )


def signature(
    name: str, *arguments: Any, returns: tuple[Any, ...] = (None,), tags: tuple[str, ...] = ()
) -> Signature:
    results = [SimpleNamespace(alias_info=alias) for alias in returns]
    schema = SimpleNamespace(name=name, arguments=arguments, returns=results)
    return Signature(SimpleNamespace(_schema=schema, tags=[SimpleNamespace(name=tag) for tag in tags]))


@pytest.mark.parametrize(
    ("tags", "needs"),
    [((), False), (("core", "pointwise"), False), (("dynamic_output_shape",), True),
     (("core", "data_dependent_output"), True)],
)  # fmt: skip
def test_torch_s_tags_say_what_follows_from_values(tags, needs):
    assert signature("aten::x", tags=tags).needs_values is needs


TENSORS = ("Tensor", "Optional[Tensor]", "List[Tensor]", "List[Optional[Tensor]]")
PLAIN = ("int", "number", "bool", "List[int]", "Optional[float]", "str")
# They say where, but not what.
PLACES = ("Device", "Optional[Device]", "Layout", "MemoryFormat", "Optional[Generator]", "Stream", "Storage")
PLUMBING = ("device", "layout", "pin_memory", "memory_format", "generator", "non_blocking")


@pytest.mark.parametrize(
    ("read", "expected"),
    [
        *((argument("self", kind), (True, False, False, None)) for kind in TENSORS),
        *((argument("alpha", kind), (False, False, True, None)) for kind in PLAIN),
        *((argument("where", kind), (False, False, False, None)) for kind in PLACES),
        *((argument(name, "Optional[int]"), (False, False, False, None)) for name in PLUMBING),
        *((argument("alpha", "number", default=one), (False, False, True, one)) for one in (1, None, False)),
        # Only a write alias is written.
        (argument("self", "Tensor", alias=READ), (True, False, False, None)),
        (argument("self", "Tensor", alias=WRITTEN), (True, True, False, None)),
    ],
)  # fmt: skip
def test_what_a_schema_says_of_an_argument(read, expected):
    assert signature("aten::x_", read).arguments == [(read.name, *expected)]


def test_operands_are_the_arguments_that_take_tensors():
    alpha, out = argument("alpha", "number"), argument("out", "Tensor", alias=WRITTEN)
    operators = signature("aten::x", argument("self", "Tensor"), alpha, out)
    assert operators.operands == [(0, "self", False), (2, "out", True)]


DISGUISED = ("aten::empty", "aten::_unsafe_view", "aten::transpose_", "aten::detach_")


@pytest.mark.parametrize(
    ("name", "returns", "runs"),
    [
        *(("aten::x", *case) for case in (
            ((None,), True), ((READ,), False), ((READ, READ), False), ((READ, None), True),
             ((WRITTEN,), True),
            ((), True),
        )),
        *((name, (None,), False) for name in DISGUISED),
    ],
)  # fmt: skip
def test_an_operator_whose_results_all_alias_is_a_view_and_others_are_in_disguise(name, returns, runs):
    assert signature(name, returns=returns).runs_kernel is runs


@needs_torch
@pytest.mark.torch
@pytest.mark.parametrize(
    ("name", "overload", "runs"),
    [
        ("mm", "default", True),
        ("add_", "Tensor", True),
        ("view", "default", False),
        ("transpose", "int", False),
        ("split", "Tensor", False),
        ("empty_strided", "default", False),
        ("clone", "default", True),
        ("fill_", "Scalar", True),
        ("_foreach_add_", "List", True),
    ],
)
def test_torchs_own_operators(name, overload, runs):
    import torch

    parsed = Signature(getattr(getattr(torch.ops.aten, name), overload))
    assert parsed.name == f"aten::{name}"
    assert parsed.runs_kernel is runs


@needs_torch
@pytest.mark.torch
def test_the_arguments_of_a_real_schema():
    import torch

    by_name = {name: rest for name, *rest in Signature(torch.ops.aten.add_.Tensor).arguments}
    assert by_name == {
        "self": [True, True, False, None],
        "other": [True, False, False, None],
        "alpha": [False, False, True, 1],
    }
    zeros = {name: rest[2] for name, *rest in Signature(torch.ops.aten.zeros.default).arguments}
    assert zeros == {"size": True, "dtype": True, "layout": False, "device": False, "pin_memory": False}
