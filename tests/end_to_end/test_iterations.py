"""One iteration of loops of every shape: how often each phase multiplies matrices, and what is said."""

import math
from concurrent.futures import ThreadPoolExecutor

import pytest

from advisor.core.values import Phase
from advisor.profile import profile
from advisor.report.words import sentences
from tests.end_to_end.iteration_scripts import SCRIPTS

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm_children")]

# Forward and backward passes of the model in one iteration, and the samples' accumulation.
PASSES = {
    "plain": (1, 1),
    "by hand, through data": (1, 1),
    "by hand, accumulating": (4, 4),
    "by hand, setting data": (1, 1),
    "a class of its own": (1, 1),
    "a subclass": (1, 1),
    "accumulates 64": (64, 64),
    "warms up without an optimizer": (1, 1),
    "winds a scheduler forward": (1, 1),
    "LBFGS": (2, 1),
    "Adam with a closure": (1, 1),
    "steps in the backward pass": (1, 1),
    "five critic steps first": (6, 1),
    "every fifth, from the first on": (6, 1),
    "one optimizer idles": (1, 1),
    "SAM in two calls": (2, 2),
    "SAM with a closure": (2, 2),
    "only backward passes": (1, 1),
    "rolls out before its updates": (1, 1),
    "evaluates 300 times": (1, 1),
}
SAID = {
    "five critic steps first": "5 steps of another",
    "every fifth, from the first on": "5 steps of another",
    "by hand, through data": "an update of the weights between them",
    "by hand, without modules": "an update of the weights between them",
    "by hand, accumulating": "an update of the weights between them",
    "by hand, setting data": "no update of weights was seen",
    "a class of its own": "an update of the weights between them",
    "LBFGS": "evaluated the model 2 times",
    "one optimizer idles": "an optimizer (Adam) made no step while another made 32",
    "rolls out before its updates": "40 forward passes without gradients ran before the optimizer's first",
    "only backward passes": "no update of weights was seen",
}


@pytest.fixture(scope="module")
def traces(tmp_path_factory):
    pytest.importorskip("torch")
    folder = tmp_path_factory.mktemp("iterations")

    def run(name):
        path = folder / (name.replace(" ", "_") + ".py")
        path.write_text(SCRIPTS[name])
        return name, profile(path, timeout_s=120)

    with ThreadPoolExecutor(2) as pool:
        return dict(pool.map(run, SCRIPTS))


def count(trace, phase, *names):
    return sum(op.count for op in trace.ops if op.phase is phase and (not names or op.name in names))


@pytest.mark.parametrize("name", PASSES)
def test_every_pass_of_the_period_and_no_other(traces, name):
    trace, (passes, accumulation) = traces[name], PASSES[name]
    # Two layers forward; backward the first one's input needs no gradient.
    assert count(trace, Phase.FORWARD, "aten::addmm") == 2 * passes
    assert count(trace, Phase.BACKWARD, "aten::mm") == 3 * passes
    assert count(trace, Phase.OPTIMIZER, "aten::addmm", "aten::mm") == 0
    assert trace.accumulation == accumulation


@pytest.mark.parametrize("name", SCRIPTS)
def test_what_is_unusual_is_said(traces, name):
    unusual = [line for line in sentences(traces[name].warnings) if "optimizer" in line]
    if name in SAID:
        assert any(SAID[name] in line for line in unusual)
    else:
        assert unusual == []


@pytest.mark.parametrize(
    ("name", "updates"),
    [
        ("by hand, through data", {"aten::add_": 4}),
        ("by hand, without modules", {"aten::mul": 1, "aten::sub_": 1, "aten::zero_": 1}),
        ("by hand, accumulating", {"aten::mul": 4, "aten::sub_": 4}),
        ("a subclass", {"aten::add_": 4}),
    ],
)
def test_updates_are_of_the_optimizers_phase(traces, name, updates):
    for operator, expected in updates.items():
        assert count(traces[name], Phase.OPTIMIZER, operator) == expected
        assert count(traces[name], Phase.FORWARD, operator) == 0


def test_a_period_holds_the_steps_of_both_networks(traces):
    plain = count(traces["five critic steps first"], Phase.OPTIMIZER, "aten::_foreach_addcdiv_")
    late = count(traces["every fifth, from the first on"], Phase.OPTIMIZER, "aten::_foreach_addcdiv_")
    assert plain == late == 6


def test_steps_inside_the_backward_pass_are_no_backward(traces):
    trace, plain = traces["steps in the backward pass"], traces["plain"]
    assert count(trace, Phase.BACKWARD) == count(plain, Phase.BACKWARD)
    assert count(trace, Phase.OPTIMIZER) > count(plain, Phase.OPTIMIZER)
    # Every gradient is gone before the next one comes: the largest counts.
    shapes = [spec.shape for op in trace.ops if op.phase is Phase.OPTIMIZER for spec in op.inputs[:1]]
    largest = 4 * max(map(math.prod, shapes))
    assert trace.memory.gradient_bytes == largest < plain.memory.gradient_bytes


def test_weights_without_a_module_are_parameters(traces):
    memory = traces["by hand, without modules"].memory
    assert memory.parameter_bytes == memory.gradient_bytes == 64 * 10 * 4
    assert memory.optimizer_bytes == 0
