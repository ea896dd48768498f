"""The face of the values: whole, and the one place to import them from."""

import dataclasses
import importlib
import inspect
import pkgutil
import re
from dataclasses import replace
from enum import Enum
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core import values
from advisor.core.changes import parse_split
from advisor.core.errors import InputError
from advisor.core.findings import Removal, Severity, Text, quoted, removals
from advisor.core.findings.about_options import PriceDerived, RemovedByBudget, Tie, Unknown
from advisor.core.values import WHOLE, Layout, Sharding, Split
from tests.findings import sample
from tests.recommendations import many_options
from tools.build_docs import finding_kinds

ROOT = Path(__file__).resolve().parents[3]
MODULES = [
    importlib.import_module(f"{values.__name__}.{one.name}") for one in pkgutil.iter_modules(values.__path__)
]


def made_in(module: ModuleType) -> list[type]:
    return [
        one for _, one in inspect.getmembers(module, inspect.isclass) if one.__module__ == module.__name__
    ]


def test_the_face_shows_every_value():
    shown = {name for name, value in vars(values).items() if inspect.isclass(value)}
    assert shown >= {one.__name__ for module in MODULES for one in made_in(module)}


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_values_are_frozen_slotted_and_keyword_only(module):
    for one in made_in(module):
        if issubclass(one, Enum | tuple):
            continue
        assert dataclasses.is_dataclass(one), one
        options = vars(one)["__dataclass_params__"]
        assert options.frozen, one
        assert "__slots__" in vars(one), one
        assert all(field.kw_only for field in dataclasses.fields(one)), one


def test_everybody_imports_from_the_face():
    paths = [
        path for folder in ("advisor", "recommender", "benchmarks") for path in (ROOT / folder).rglob("*.py")
    ]
    inner = [path for path in paths if re.search(r"\bcore\.values\.\w", path.read_text())]
    assert {path.relative_to(ROOT).parent.as_posix() for path in inner} == {"advisor/core/values"}


def test_an_option_is_found_by_its_plan_and_the_chosen_one_by_the_answer():
    answer = many_options(12)
    for option in answer.options:
        assert answer.option(option.plan.id) is option
        assert replace(answer, recommended=option.plan.id).chosen is option
    assert answer.option("of no plan") is None
    assert replace(answer, recommended=None).chosen is None


NUMBERS = st.sampled_from([1, 2, 3, 4, 8])


def test_names_of_several_kinds_make_one_split():
    assert parse_split(["tensor-8", "zero-1", "pipeline-4"]) == Split(
        sharding=Sharding.ZERO_1, tensor=8, pipeline=4
    )
    assert parse_split(["fsdp"]) == parse_split(["zero-3"])
    assert parse_split([]) == WHOLE


@pytest.mark.parametrize(
    "name", ["zero-4", "tensor", "tensor-1", "tensor-0", "pipeline-x", "none", "tensor-99999999999"]
)
def test_what_is_no_split_is_refused(name):
    with pytest.raises(InputError, match=f"--suppose must be some of .*got '{name}'"):
        parse_split([name], "--suppose")


@pytest.mark.parametrize("names", [("zero-1", "zero-3"), ("tensor-2", "tensor-4")])
def test_a_model_is_divided_one_way_of_each_kind(names):
    with pytest.raises(InputError, match="two of one kind"):
        parse_split(names)


@given(st.sampled_from(Sharding), NUMBERS, NUMBERS)
def test_a_name_means_its_split(sharding, tensor, pipeline):
    split = Split(sharding=sharding, tensor=tensor, pipeline=pipeline)
    assert parse_split(filter(None, split.name.split("+"))) == split


@given(NUMBERS, NUMBERS, st.integers(1, 16), st.integers(1, 16))
def test_copies_are_of_all_gpus(tensor, pipeline, per_node, num_nodes):
    split, layout = (
        Split(tensor=tensor, pipeline=pipeline),
        Layout(gpus_per_node=per_node, num_nodes=num_nodes),
    )
    if split.suits(layout):
        copies = split.copies(layout)
        assert copies.num_gpus * split.gpus_per_copy == layout.num_gpus
        # The parts of a layer stay in a node.
        assert copies.gpus_per_node * tensor <= per_node


def test_a_part_of_a_layer_never_leaves_its_node():
    assert not Split(tensor=16).suits(Layout(gpus_per_node=8, num_nodes=2))
    assert Split(tensor=8, pipeline=2).suits(Layout(gpus_per_node=8, num_nodes=2))
    assert WHOLE.copies(Layout(gpus_per_node=8)) == Layout(gpus_per_node=8)


KINDS = tuple(finding_kinds())
SOME = st.lists(st.sampled_from(KINDS))


def test_programs_tell_all_of_them_apart():
    assert len({kind.code for kind in KINDS}) == len(KINDS)
    assert PriceDerived.code == "price-derived"


def test_the_severity_follows_from_the_code():
    assert RemovedByBudget.severity is Severity.REMOVAL
    assert Unknown.severity is Severity.WARNING
    assert Tie.severity is Severity.NOTE


def test_what_removes_is_named_as_ever():
    """Programs know these names since the first schema, and in this order."""
    assert [kind.code for kind in Removal.__subclasses__()] == [
        "memory", "host-memory", "sharding", "software", "attention", "quota", "spot", "budget", "deadline",
        "policy", "queue",
    ]  # fmt: skip


@given(SOME)
def test_removals_are_those_of_the_findings_each_once_and_in_order(kinds):
    kept = removals(map(sample, kinds))
    assert set(kept) == {kind.code for kind in kinds if kind.severity is Severity.REMOVAL}
    assert list(kept) == [kind.code for kind in Removal.__subclasses__() if kind.code in kept]
    assert kept == removals(map(sample, reversed(kinds)))


@given(SOME)
def test_equal_findings_are_one_in_a_set_though_facts_hold_lists(kinds):
    same = [sample(kind) for kind in kinds]
    assert len({*same, *map(sample, kinds)}) == len(set(kinds))


def test_facts_tell_findings_apart():
    assert quoted("one") != quoted("other")
    assert quoted("one") == Text(text="one")


def test_a_finding_has_its_facts_and_keeps_them():
    with pytest.raises(TypeError, match="lacks within_share"):
        Tie(plan_id="A")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="has no usd"):
        Tie(plan_id="A", within_share=0.05, usd=1)  # type: ignore[call-arg]
    with pytest.raises(AttributeError, match="cannot be changed"):
        sample(Tie).plan_id = "B"
