"""Which of several optimizers bounds the iteration."""

from types import SimpleNamespace
from typing import Any

import pytest

from advisor.payload.recording.iteration import StepPeriod, parameters


class Optimizer(SimpleNamespace):
    """Unlike its base it can be weakly referenced."""


def optimizer(*tensors: Any) -> Any:
    return Optimizer(param_groups=[{"params": [tensor]} for tensor in tensors])


def weight(*, requires_grad: bool = True) -> Any:
    return SimpleNamespace(requires_grad=requires_grad)


def ends(steps: str) -> str:
    """A letter a step, one optimizer a letter; capital where an iteration ends."""
    period = StepPeriod()
    optimizers = {letter: optimizer(weight()) for letter in set(steps)}
    shown = ""
    for letter in steps:
        period.begin_step(optimizers[letter])
        end, _ = period.end_step(optimizers[letter])
        shown += letter.upper() if end else letter
        if end:
            period.start_span()
    return shown


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ("aaaa", "AAAA"),
        ("abab", "AbAb"),
        ("abcabc", "AbcAbc"),
        # The second steps more often: the first stays.
        ("abbabb", "AbbAbb"),
        # A critic's five steps, then one of the generator, in either order.
        ("cccccgcccccgcccccg", "CCCCCGcccccGcccccG"),
        ("cgcccccgcccccg", "CgCCCCCGcccccG"),
        # Two, four and eight: the rarest.
        ("aabaabcaabaabc", "AABaaBCaabaabC"),
    ],
)
def test_the_rarest_of_them(steps, expected):
    assert ends(steps) == expected


def test_the_change_is_told_once():
    period, critic, generator = StepPeriod(), optimizer(), optimizer()
    changes = []
    for one in (critic, critic, generator, critic, critic, generator):
        period.begin_step(one)
        changes.append(period.end_step(one)[1])
    assert changes == [False, False, True, False, False, False]
    assert period.num_steps == 2


def test_of_nested_steps_the_outer_one_counts():
    period, outer, inner = StepPeriod(), optimizer(), optimizer()
    assert not period.has_begun
    period.begin_step(outer)
    period.begin_step(inner)
    assert period.end_step(inner) == (False, False)
    assert period.end_step(outer) == (True, False)
    assert (period.is_bound_by(outer), period.is_bound_by(inner)) == (True, False)


@pytest.mark.parametrize(
    ("acts", "are_parts"),
    [
        # A step within another is a part of it, and one after it is none.
        ("(outer (inner inner) outer) (inner inner)", [True, False, False]),
        # Steps in no order end all the same.
        ("(outer (inner (outer outer) inner) outer)", [False, False, False]),
        # A step that ended in an error is no longer open.
        ("(outer (inner (outer (inner (outer (inner inner) outer)", [True, False]),
    ],
)
def test_whether_a_step_is_a_part_of_another(acts, are_parts):
    period, optimizers, left = StepPeriod(), {"outer": optimizer(), "inner": optimizer()}, []
    for act in acts.split():
        one = optimizers[act.strip("()")]
        if act.startswith("("):
            period.begin_step(one)
        else:
            left.append(period.leave_step(one))
    assert left == are_parts


def test_missing_are_those_with_weights_of_their_own():
    period, shared, own = StepPeriod(), weight(), weight()
    stepping, same, other = optimizer(shared), optimizer(shared), optimizer(shared, own)
    for one in (stepping, same, other):
        period.optimizers[id(one)] = one
    period.begin_step(stepping)
    period.end_step(stepping)
    assert period.missing() == [other]
    period.end_step(other)
    assert period.missing() == []
    assert period.num_in_span == 2
    period.start_span()
    assert period.num_in_span == 0


def test_the_steps_of_the_busiest():
    period, critic, generator = StepPeriod(), optimizer(), optimizer()
    assert period.most_steps == 0
    for one in (critic, generator, critic, critic):
        period.begin_step(one)
        period.end_step(one)
    assert period.most_steps == 3
    period.start_span()
    assert period.most_steps == 0


def test_frozen_weights_need_no_step_and_optimizers_that_are_gone_are_not_waited_for():
    period, frozen, gone = StepPeriod(), optimizer(weight(requires_grad=False)), optimizer(weight())
    period.optimizers.update({id(one): one for one in (frozen, gone)})
    assert period.missing() == [gone]
    del gone
    assert list(period.optimizers.values()) == [frozen]


def test_parameters_are_those_of_all_groups():
    first, second = weight(), weight()
    assert parameters(optimizer(first, second)) == [first, second]
