"""The parts of an iteration: updates by hand, evaluations, rollouts, and whose steps bound it."""

from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from advisor.payload.recording import iteration as parts  # noqa: E402 - needs torch
from tests.findings import of_child  # noqa: E402

pytestmark = pytest.mark.torch


def ends(by_hand: parts.ByHand, updates: str) -> str:
    """One letter a backward pass: ``u`` where weights changed before it; capital where one ends."""
    are_ends = [by_hand.end_backward(updated=letter == "u") for letter in updates]
    return "".join(letter.upper() if end else letter for letter, end in zip(updates, are_ends, strict=True))


@pytest.mark.parametrize(("updates", "expected"), [("-uuu", "-UUU"), ("----u---u---u", "----U---U---U")])
def test_an_update_ends_an_iteration(updates, expected):
    by_hand = parts.ByHand()
    by_hand.optimizer_exists = True  # so that passes without updates do not
    assert ends(by_hand, updates) == expected


def test_without_updates_every_backward_pass_ends_one():
    by_hand = parts.ByHand()
    assert [by_hand.end_backward(updated=False) for _ in range(4)] == [True] * 4
    assert "no update of weights was seen" in of_child([by_hand.warning])[0]


def test_the_first_update_shows_that_the_passes_before_accumulated():
    by_hand = parts.ByHand()
    for _ in range(4):
        by_hand.end_backward(updated=False)
    assert by_hand.end_backward(updated=True)
    assert by_hand.num_spans == 1
    assert not by_hand.end_backward(updated=False)
    assert "an update of the weights between them" in of_child([by_hand.warning])[0]


def test_an_optimizer_that_may_yet_step_is_waited_for():
    by_hand = parts.ByHand()
    by_hand.optimizer_exists = True
    assert not any(by_hand.end_backward(updated=False) for _ in range(1000))


@pytest.mark.parametrize(
    ("optimizer_exists", "updated", "expected"),
    [(False, True, 3), (True, True, parts.MOST_SPANS_BY_HAND), (False, False, parts.MOST_SPANS_BY_HAND)],
)
def test_certainty(optimizer_exists, updated, expected):
    by_hand = parts.ByHand()
    by_hand.optimizer_exists = optimizer_exists
    certain = []
    for _ in range(parts.MOST_SPANS_BY_HAND + 1):
        by_hand.end_backward(updated=updated)
        certain.append(by_hand.is_certain(3))
    assert certain.index(True) + 1 == expected
    assert all(certain[expected:])


@pytest.fixture
def events(monkeypatch):
    for name in ("backward", "grad"):
        monkeypatch.setattr(torch.autograd, name, getattr(torch.autograd, name))
    seen: list[str] = []
    parts.watch_backward(lambda: seen.append("begin"), lambda: seen.append("end"))
    return seen


def test_both_doors_of_the_engine_are_watched(events):
    x = torch.ones(2, requires_grad=True)
    (x * x).sum().backward()
    assert events == ["begin", "end"]
    (gradient,) = torch.autograd.grad((x * x).sum(), x)
    assert events == ["begin", "end"] * 2
    assert gradient.tolist() == x.grad.tolist() == [2.0, 2.0]


def test_only_the_outermost_pass_counts(events):
    x = torch.ones(2, requires_grad=True)

    def block(value):
        return (value * value).sum()

    torch.utils.checkpoint.checkpoint(block, x, use_reentrant=True).backward()
    assert events == ["begin", "end"]


def test_a_pass_that_raises_does_not_end(events):
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError):
        (x * x).backward()
    assert events == ["begin"]
    (x * x).sum().backward()
    assert events == ["begin", "begin", "end"]


@pytest.mark.parametrize(
    ("training", "learns", "expected"), [(False, True, 1), (True, True, 0), (False, False, 0)]
)
def test_a_model_that_learns_is_evaluated_in_evaluation_mode(training, learns, expected):
    model = torch.nn.Linear(2, 2).train(training).requires_grad_(learns)
    evaluations = parts.Evaluations()
    evaluations.add(model, 5)
    assert evaluations.num_passes == expected


def test_passes_that_stay_are_told_with_figures():
    evaluations, model = parts.Evaluations(), torch.nn.Linear(2, 2).eval()
    evaluations.add(model, 5)
    evaluations.add(model, 7)
    (warning,) = of_child(evaluations.end_span(num_left_out=0, num_calls=1500))
    assert "holds 2 forward passes" in warning
    assert "12 of its 1,500 operator calls" in warning
    evaluations.start_span()
    assert evaluations.end_span(num_left_out=0, num_calls=1500) == []


def test_what_was_left_out_is_told_with_figures():
    (warning,) = of_child(parts.Evaluations().end_span(num_left_out=1000, num_calls=10))
    assert "an evaluation of 1,000 batches without gradients" in warning
    assert "the trace is without it" in warning


def spans(*passes: tuple[int, int]) -> list[list[str]]:
    """What is said of each span, of so many passes that stay in it and batches that were left out."""
    evaluations, model, said = parts.Evaluations(), torch.nn.Linear(2, 2).eval(), []
    for num_passes, num_left_out in passes:
        for _ in range(num_passes):
            evaluations.add(model, 1)
        said.append(of_child(evaluations.end_span(num_left_out=num_left_out, num_calls=10)))
        evaluations.start_span()
    return said


@pytest.mark.parametrize("between", [(3, 0), (0, 3), (1, 2)])
def test_a_validation_between_earlier_steps_is_told(between):
    (warning,) = spans((0, 0), between, (0, 0))[-1]
    assert "(forward passes: 3): the trace is without them" in warning
    assert "comes on top" in warning


def test_what_ran_before_the_first_step_may_have_run_once():
    assert spans((3, 4), (0, 0), (0, 0)) == [spans((3, 4))[0], [], []]


def test_a_validation_of_the_iteration_itself_is_told_alone():
    assert [len(warnings) for warnings in spans((0, 0), (2, 0), (2, 0))] == [0, 1, 1]
    assert "holds 2 forward passes" in spans((0, 0), (2, 0), (2, 0))[-1][0]


def are_rollouts(*passes: int) -> list[bool]:
    """For spans with so many passes without gradients, whether each is told to lack some."""
    rollouts, ends = parts.Rollouts(), []
    for count in passes:
        rollouts.start_span()
        for _ in range(count):
            rollouts.add()
        ends.append(rollouts.end_span() is not None)
    return ends


@pytest.mark.parametrize(
    ("passes", "expected"),
    [
        ((1025, 0, 0), [False, True, True]),
        # One update a rollout: every iteration holds its own.
        ((128, 128, 128), [False, False, False]),
        # A teacher is asked in every iteration, a dry run comes before the first.
        ((2, 1, 1), [False, False, False]),
        ((parts.MOST_IGNORED, 0, 0), [False, False, False]),
        ((0, 40, 0), [False, False, False]),
    ],
)
def test_what_the_iteration_lacks_is_told(passes, expected):
    assert are_rollouts(*passes) == expected


def test_the_warning_says_how_many_and_what_to_do():
    rollouts = parts.Rollouts()
    for _ in range(1025):
        rollouts.add()
    rollouts.end_span()
    rollouts.start_span()
    (warning,) = of_child([rollouts.end_span()])
    for words in (
        "1,025 forward passes",
        "rollouts, generation, evaluation",
        "`iterations` counts optimizer steps",
    ):
        assert words in warning


class Optimizer(SimpleNamespace):
    """Unlike its base it can be weakly referenced."""


def optimizer(*tensors: Any) -> Any:
    return Optimizer(param_groups=[{"params": [tensor]} for tensor in tensors])


def weight(*, requires_grad: bool = True) -> Any:
    return SimpleNamespace(requires_grad=requires_grad)


def bounds(steps: str) -> str:
    """A letter a step, one optimizer a letter; capital where an iteration ends."""
    period = parts.StepPeriod()
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
    assert bounds(steps) == expected


def test_the_change_is_told_once():
    period, critic, generator = parts.StepPeriod(), optimizer(), optimizer()
    changes = []
    for one in (critic, critic, generator, critic, critic, generator):
        period.begin_step(one)
        changes.append(period.end_step(one)[1])
    assert changes == [False, False, True, False, False, False]
    assert period.num_steps == 2


def test_of_nested_steps_the_outer_one_counts():
    period, outer, inner = parts.StepPeriod(), optimizer(), optimizer()
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
    period, optimizers, left = parts.StepPeriod(), {"outer": optimizer(), "inner": optimizer()}, []
    for act in acts.split():
        one = optimizers[act.strip("()")]
        if act.startswith("("):
            period.begin_step(one)
        else:
            left.append(period.leave_step(one))
    assert left == are_parts


def test_missing_are_those_with_weights_of_their_own():
    period, shared, own = parts.StepPeriod(), weight(), weight()
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
    period, critic, generator = parts.StepPeriod(), optimizer(), optimizer()
    assert period.most_steps == 0
    for one in (critic, generator, critic, critic):
        period.begin_step(one)
        period.end_step(one)
    assert period.most_steps == 3
    period.start_span()
    assert period.most_steps == 0


def test_frozen_weights_need_no_step_and_optimizers_that_are_gone_are_not_waited_for():
    period, frozen, gone = parts.StepPeriod(), optimizer(weight(requires_grad=False)), optimizer(weight())
    period.optimizers.update({id(one): one for one in (frozen, gone)})
    assert period.missing() == [gone]
    del gone
    assert list(period.optimizers.values()) == [frozen]


def test_parameters_are_those_of_all_groups():
    first, second = weight(), weight()
    assert parts.parameters(optimizer(first, second)) == [first, second]
