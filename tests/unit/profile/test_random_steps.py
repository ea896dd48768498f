"""Scripts whose steps differ: several are recorded, and the step is their mean."""

import statistics
from dataclasses import replace

import pytest

from advisor.core.findings.about_traces import StepsDiffer
from advisor.core.gpus import resolve_gpu
from advisor.formats.trace_files import read_trace, write_trace
from advisor.predict import predict
from advisor.profile import profile
from advisor.profile.recording import trace_of
from tests.unit.profile.test_recording import recording

pytestmark = pytest.mark.torch

_LOOP = """
import random, torch
from torch import nn
{make}
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(100):
    optimizer.zero_grad()
    model(torch.randn({shape}, device="cuda")).sum().backward()
    optimizer.step()
"""
_LAYERDROP = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(512, 512) for _ in range(12))
    def forward(self, x):
        for layer in self.layers:
            if {draw} > {rate}:
                x = torch.relu(layer(x))
        return x + self.layers[0].bias
model = Net().cuda()
"""
_PLAIN = "model = nn.Sequential(*[nn.Linear(512, 512) for _ in range(4)]).cuda()"
_SCRIPTS = {
    "layerdrop": _LOOP.format(make=_LAYERDROP.format(draw="random.random()", rate=0.2), shape="64, 512"),
    "torch layerdrop": _LOOP.format(make=_LAYERDROP.format(draw="torch.rand(())", rate=0.2), shape="64, 512"),
    "lengths": _LOOP.format(make=_PLAIN, shape="64 * random.randint(1, 16), 512"),
    "plain": _LOOP.format(make=_PLAIN, shape="64, 512"),
    "draws for nothing": _LOOP.format(
        make=_LAYERDROP.format(draw="random.random()", rate=-1), shape="64, 512"
    ),
}


@pytest.fixture(scope="module")
def traces(tmp_path_factory, warm_children):
    folder = tmp_path_factory.mktemp("random")
    found = {}
    for name, code in _SCRIPTS.items():
        script = folder / (name.replace(" ", "_") + ".py")
        script.write_text(code)
        found[name] = profile(script)
    found["again"] = profile(folder / "layerdrop.py")
    return found


@pytest.mark.parametrize("name", ["layerdrop", "torch layerdrop", "lengths"])
def test_the_step_of_a_random_script_is_the_mean_of_sixteen(traces, name):
    trace = traces[name]
    work = [step.work for step in trace.steps]
    assert len(work) == 16
    assert 1.0 in work
    found = next(note for note in trace.warnings if isinstance(note, StepsDiffer))
    assert found.facts == {
        "num_steps": 16,
        "lightest": pytest.approx(min(work) / statistics.fmean(work)),
        "heaviest": pytest.approx(max(work) / statistics.fmean(work)),
    }
    assert min(work) < 1 < max(work)


def test_layers_that_are_dropped_one_time_in_five_are_a_fifth_less_work(traces):
    whole = traces["draws for nothing"]
    share = traces["layerdrop"].flops / whole.flops
    assert share == pytest.approx(0.8, abs=0.06)
    # One step of twelve layers is anything between a half and all of it.
    assert max(step.work for step in traces["layerdrop"].steps) > 1.1


def test_two_profiles_of_one_random_script_are_one(traces):
    one, again = (replace(traces[name], data_loading_s=None) for name in ("layerdrop", "again"))
    assert one == again


@pytest.mark.parametrize("name", ["plain", "draws for nothing"])
def test_steps_that_are_alike_are_recorded_once(traces, name):
    assert traces[name].steps == ()


def test_time_and_waits_follow_the_mean_and_its_spread(traces):
    trace, gpu = traces["lengths"], resolve_gpu("A100-SXM-40GB")
    # Large enough that kernels bind, not launching.
    heavier = replace(trace, steps=tuple(replace(step, work=step.work * 1000) for step in trace.steps))
    alike = replace(heavier, steps=(replace(heavier.steps[0], work=heavier.mean_step.work),))
    mean, one = predict(heavier, gpu), predict(alike, gpu)
    assert mean.device_s.p50 == pytest.approx(one.device_s.p50)
    assert mean.device_s.p90 > one.device_s.p90
    # GPUs that draw apart wait for the longest.
    assert predict(heavier, gpu, 8).device_s.p50 > predict(alike, gpu, 8).device_s.p50


def test_a_file_keeps_the_steps(traces, tmp_path):
    path = tmp_path / "trace.json.gz"
    write_trace(traces["lengths"], path)
    assert read_trace(path).steps == traces["lengths"].steps


def test_work_counts_flops_and_bytes_of_all_operators():
    of_trace = recording()["operators"]
    twice = trace_of(
        recording() | {"step_operators": of_trace, "step_counts": [[3], [6]], "typical_step": 0}, "t.py", []
    )
    assert [(step.work, step.calls) for step in twice.steps] == [(1, 1), (2, 2)]
    assert twice.flops == 1.5 * sum(op.flops * op.count for op in twice.ops)


def span_of(*calls):
    """A span of calls: phase, name, how often, and an attribute."""
    keys, tensors = ("phase", "name", "count", "attributes"), {"inputs": [], "outputs": []}
    return {"operators": [{**dict(zip(keys, call, strict=True)), **tensors} for call in calls]}


LAYERS = (("forward", "mm", 9000, {}), ("backward", "mm", 9000, {}), ("optimizer", "div", 1, {"by": 0.1}))


@pytest.mark.parametrize(
    ("span", "is_enough"),
    [
        ((*LAYERS[:2], ("optimizer", "div", 1, {"by": 0.19})), True),  # a bias correction
        ((("forward", "mm", 8999, {}), *LAYERS[1:]), True),  # the first one's set-up
        ((*LAYERS, ("forward", "log", 1, {})), False),
        ((LAYERS[0], ("backward", "mm", 8999, {}), LAYERS[2]), False),
        ((LAYERS[0], LAYERS[2]), False),
    ],
)
def test_a_long_step_that_only_repeats_the_first_is_enough(span, is_enough):
    from advisor.payload.recording.random_steps import repeats

    assert repeats(span_of(*span), span_of(*LAYERS)) == is_enough
    short = span_of(*((phase, name, count // 2, facts) for phase, name, count, facts in span))
    assert not repeats(short, short)


@pytest.mark.parametrize(("counts", "is_said"), [([[300], [301]], False), ([[300], [320]], True)])
def test_a_difference_that_rounds_to_nothing_is_no_warning(counts, is_said):
    facts = {"step_operators": recording()["operators"], "step_counts": counts, "typical_step": 0}
    trace = trace_of(recording() | facts, "t.py", [])
    assert any(isinstance(note, StepsDiffer) for note in trace.warnings) == is_said
