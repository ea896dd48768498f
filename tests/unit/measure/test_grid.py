"""The grid: complete, the same each time, each smaller one the beginning of a larger one."""

import json
import re
from collections import Counter
from dataclasses import asdict
from functools import cache
from typing import get_args

import pytest

from advisor.cli import config as command
from advisor.core.errors import InputError
from advisor.core.values import Phase
from advisor.measure import Extent, calibration_kernels, grid
from advisor.measure.measuring import _CAPS
from advisor.operators.case import argument_bytes, call, channels_last, tensor
from advisor.operators.registry import rows

# Made by the process that asks, and not by the one that collects all tests.
quick, default = cache(lambda: grid(Extent.QUICK)), cache(lambda: grid(Extent.DEFAULT))


RATES = (("float32", False), ("float32", True), ("float16", False), ("bfloat16", False))


def test_about_as_many_as_the_help_says_and_keys_are_distinct_and_stay():
    assert 150 <= len(quick()) <= 200
    assert 1600 <= len(default()) <= 1800
    keys = [case.key for case in default()]
    assert len(set(keys)) == len(keys)
    assert [case.key for case in grid(Extent.DEFAULT)] == keys
    assert all(re.fullmatch("[0-9a-f]{16}", key) for key in keys)
    # A smaller grid is the beginning of a larger one.
    assert [case.key for case in quick()] == keys[: len(quick())]


def test_every_family_rate_phase_and_kind_is_there():
    assert {case.family for case in quick()} == set(rows().cases)
    for family in ("gemm", "bmm", "conv"):
        assert {(case.dtype, case.tf32) for case in quick() if case.family == family} == set(RATES)
    phases = Counter(case.phase for case in default())
    assert min(phases[phase] for phase in Phase) >= 100
    calls = [case.call.arguments for case in default() if case.call.operator == "aten::convolution.default"]
    for place, holds in ((6, bool), (8, lambda groups: groups > 1)):  # transposed, groups
        assert {holds(arguments[place]) for arguments in calls} == {False, True}
    assert {tuple(arguments[1]["tensor"]["shape"][2:]) for arguments in calls} >= {(1, 1), (3, 3), (7, 7)}
    assert {"stride" in arguments[0]["tensor"] for arguments in calls} == {False, True}
    name = "aten::_scaled_dot_product_flash_attention.default"
    assert {case.call.arguments[4] for case in default() if case.call.operator == name} == {False, True}


@pytest.mark.parametrize("cases", [quick, default, calibration_kernels], ids=["quick", "default", "few"])
def test_cases_are_json(cases):
    for case in cases():
        assert json.loads(json.dumps(asdict(case)))["call"]["operator"] == case.call.operator


def test_backward_operators_prepare_what_they_need():
    for case in default():
        named = {name for prepared in case.prepare for name in prepared.results}
        wanted = set(re.findall(r'{"result": "([^"]+)"}', json.dumps(asdict(case)["call"])))
        assert wanted <= named, case.call.operator


@pytest.mark.parametrize("backend", ["cuda", "cpu"])
def test_no_call_takes_more_memory_than_allowed(backend):
    for case in grid(Extent.DEFAULT, backend=backend):
        assert argument_bytes(case.call.arguments) <= 1.5 * _CAPS[backend].num_bytes + 2**16, case


def test_the_cpu_gets_smaller_calls_of_the_same_operators():
    small = grid(Extent.QUICK, backend="cpu")
    assert Counter(case.call.operator for case in small) == Counter(case.call.operator for case in quick())
    assert sum(argument_bytes(case.call.arguments) for case in small) < 2**27


def test_families_can_be_chosen_and_the_help_names_them():
    chosen = grid(Extent.QUICK, only=["gemm", "conv"])
    assert {case.family for case in chosen} == {"gemm", "conv"}
    assert {case.key for case in chosen} <= {case.key for case in quick()}
    (option,) = get_args(command.OnlyOption)[1:]
    assert all(family in option.help for family in rows().cases)
    with pytest.raises(InputError, match=r"no family 'convs': choose from gemm.*Did you mean 'conv'"):
        grid(Extent.QUICK, only=["convs"])


def test_calibration_has_kernels_for_each_constant():
    kernels = calibration_kernels()
    assert 40 <= len(kernels) <= 60
    rates = Counter((case.family, case.dtype, case.tf32) for case in kernels)
    for rate in RATES:
        assert rates["gemm", *rate] + rates["bmm", *rate] >= 3
        assert rates["conv", *rate] >= 2
    assert sum(case.family == "elementwise" for case in kernels) >= 3
    assert sum(case.family in ("norm", "softmax") for case in kernels) >= 3


def test_calls_are_written_as_python_writes_them_and_keys_tell_cases_apart():
    first, one = quick()[0], tensor((2, 3), "float16")
    assert first.key == type(first)(**{name: getattr(first, name) for name in first.__slots__}).key
    assert len({case.key for case in calibration_kernels()}) == len(calibration_kernels())
    made = call("add.Tensor", one, 1, alpha=2)
    assert (made.operator, made.keywords) == ("aten::add.Tensor", {"alpha": 2})
    assert call("mm").operator == "aten::mm.default"
    assert argument_bytes((one, [one, one], 3, None, {"result": "x"})) == 36
    assert channels_last((2, 3, 4, 5)) == (60, 1, 15, 3)
