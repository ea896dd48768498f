"""Requests of use cases are frozen values, the same for the command line, Python and whatever comes."""

import dataclasses
import importlib
import pkgutil

import pytest

import advisor.service


def requests() -> list[type]:
    modules = [
        importlib.import_module(info.name)
        for info in pkgutil.walk_packages(advisor.service.__path__, "advisor.service.")
    ]
    named = {one for module in modules for name, one in vars(module).items() if name.endswith("Request")}
    return sorted(named, key=lambda one: one.__name__)


@pytest.mark.parametrize("request_type", requests(), ids=lambda one: one.__name__)
def test_a_request_is_a_frozen_value(request_type):
    fields = dataclasses.fields(request_type)
    assert request_type.__dataclass_params__.frozen  # type: ignore[attr-defined]
    assert {*request_type.__slots__} == {field.name for field in fields}  # type: ignore[attr-defined]
    assert all(field.kw_only for field in fields)
    assert not [field.name for field in fields if str(field.type).startswith(("list", "dict", "set"))]
