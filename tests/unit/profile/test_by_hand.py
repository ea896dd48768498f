"""Iterations without an optimizer: after which backward passes they end, and when that is certain."""

import pytest

torch = pytest.importorskip("torch")
from advisor.payload.recording.iteration import MOST_SPANS_BY_HAND, ByHand, watch_backward  # noqa: E402 - needs torch
from tests.findings import of_child  # noqa: E402

pytestmark = pytest.mark.torch


def ends(by_hand: ByHand, updates: str) -> str:
    """One letter a backward pass: ``u`` where weights changed before it; capital where one ends."""
    are_ends = [by_hand.end_backward(updated=letter == "u") for letter in updates]
    return "".join(letter.upper() if end else letter for letter, end in zip(updates, are_ends, strict=True))


@pytest.mark.parametrize(("updates", "expected"), [("-uuu", "-UUU"), ("----u---u---u", "----U---U---U")])
def test_an_update_ends_an_iteration(updates, expected):
    by_hand = ByHand()
    by_hand.optimizer_exists = True  # so that passes without updates do not
    assert ends(by_hand, updates) == expected


def test_without_updates_every_backward_pass_ends_one():
    by_hand = ByHand()
    assert [by_hand.end_backward(updated=False) for _ in range(4)] == [True] * 4
    assert "no update of weights was seen" in of_child([by_hand.warning])[0]


def test_the_first_update_shows_that_the_passes_before_accumulated():
    by_hand = ByHand()
    for _ in range(4):
        by_hand.end_backward(updated=False)
    assert by_hand.end_backward(updated=True)
    assert by_hand.num_spans == 1
    assert not by_hand.end_backward(updated=False)
    assert "an update of the weights between them" in of_child([by_hand.warning])[0]


def test_an_optimizer_that_may_yet_step_is_waited_for():
    by_hand = ByHand()
    by_hand.optimizer_exists = True
    assert not any(by_hand.end_backward(updated=False) for _ in range(1000))


@pytest.mark.parametrize(
    ("optimizer_exists", "updated", "expected"),
    [(False, True, 3), (True, True, MOST_SPANS_BY_HAND), (False, False, MOST_SPANS_BY_HAND)],
)
def test_certainty(optimizer_exists, updated, expected):
    by_hand = ByHand()
    by_hand.optimizer_exists = optimizer_exists
    certain = []
    for _ in range(MOST_SPANS_BY_HAND + 1):
        by_hand.end_backward(updated=updated)
        certain.append(by_hand.is_certain(3))
    assert certain.index(True) + 1 == expected
    assert all(certain[expected:])


@pytest.fixture
def events(monkeypatch):
    for name in ("backward", "grad"):
        monkeypatch.setattr(torch.autograd, name, getattr(torch.autograd, name))
    seen: list[str] = []
    watch_backward(lambda: seen.append("begin"), lambda: seen.append("end"))
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
