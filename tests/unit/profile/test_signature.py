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


def is_attribute(name: str, kind: str) -> bool:
    ((_, _, _, attribute, _),) = signature("aten::x", argument(name, kind)).arguments
    return attribute


@pytest.mark.parametrize("kind", ["Tensor", "Optional[Tensor]", "List[Tensor]", "List[Optional[Tensor]]"])
def test_tensors_are_no_attributes(kind):
    ((name, takes_tensors, written, attribute, default),) = signature(
        "aten::x", argument("self", kind)
    ).arguments
    assert (name, takes_tensors, written, attribute, default) == ("self", True, False, False, None)


@pytest.mark.parametrize("kind", ["int", "number", "bool", "List[int]", "Optional[float]", "str"])
def test_plain_values_are_attributes(kind):
    assert is_attribute("alpha", kind)


@pytest.mark.parametrize(
    "kind",
    ["Device", "Optional[Device]", "Layout", "MemoryFormat", "Optional[Generator]", "Stream", "Storage"],
)
def test_what_says_where_but_not_what_is_no_attribute(kind):
    assert not is_attribute("where", kind)


@pytest.mark.parametrize(
    "name", ["device", "layout", "pin_memory", "memory_format", "generator", "non_blocking"]
)
def test_names_of_plumbing_are_no_attributes(name):
    assert not is_attribute(name, "Optional[int]")


@pytest.mark.parametrize(("default", "expected"), [(MISSING, None), (1, 1), (None, None), (False, False)])
def test_defaults_are_kept(default, expected):
    ((*_, argument_read),) = signature("aten::x", argument("alpha", "number", default=default)).arguments
    assert argument_read == expected


@pytest.mark.parametrize(("alias", "written"), [(None, False), (READ, False), (WRITTEN, True)])
def test_only_a_write_alias_is_written(alias, written):
    ((_, _, argument_read, _, _),) = signature("aten::x_", argument("self", "Tensor", alias=alias)).arguments
    assert argument_read is written


def test_operands_are_the_arguments_that_take_tensors():
    alpha, out = argument("alpha", "number"), argument("out", "Tensor", alias=WRITTEN)
    operators = signature("aten::x", argument("self", "Tensor"), alpha, out)
    assert operators.operands == [(0, "self", False), (2, "out", True)]


@pytest.mark.parametrize(
    ("returns", "runs"),
    [
        ((None,), True),
        ((READ,), False),
        ((READ, READ), False),
        ((READ, None), True),
        ((WRITTEN,), True),
        ((), True),
    ],
)
def test_an_operator_whose_results_all_alias_is_a_view(returns, runs):
    assert signature("aten::x", returns=returns).runs_kernel is runs


@pytest.mark.parametrize("name", ["aten::empty", "aten::_unsafe_view", "aten::transpose_", "aten::detach_"])
def test_allocations_and_views_in_disguise_run_no_kernel(name):
    assert not signature(name).runs_kernel


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
