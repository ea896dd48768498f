"""Whether a step counts as compiled: by how much of its forward pass runs in what torch.compile was given."""

import sys
import types

import pytest

torch = pytest.importorskip("torch")
from advisor.payload.recording.compiled_calls import Compiled, mode_of  # noqa: E402 - needs torch

pytestmark = pytest.mark.torch


class _Recorder:
    """Counts calls, and knows those of the forward pass."""

    def __init__(self) -> None:
        self.next_call = 0
        self._forward: list[int] = []
        self.value_calls: dict[str, list[int]] = {}

    def run(self, forward: int, others: int = 0) -> None:
        self._forward += range(self.next_call, self.next_call + forward)
        self.next_call += forward + others

    def ask(self, name: str) -> None:
        """A call whose result follows from values."""
        self.value_calls.setdefault(name, []).append(self.next_call)
        self.run(forward=1)

    def forward_calls(self) -> list[int]:
        return self._forward


@pytest.fixture
def recorder():
    return _Recorder()


@pytest.fixture
def compiled(recorder):
    return Compiled(recorder)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("settings", "mode"),
    [
        ({}, "default"),
        ({"mode": None}, "default"),
        ({"mode": "reduce-overhead"}, "reduce-overhead"),
        ({"options": {"triton.cudagraphs": True}}, "reduce-overhead"),
        ({"options": {"max_autotune": True}}, "max-autotune-no-cudagraphs"),
        ({"options": {"max_autotune": True, "triton.cudagraphs": True}}, "max-autotune"),
        ({"backend": "aot_eager"}, None),
        ({"backend": print}, None),
    ],
)
def test_the_mode_is_that_of_the_arguments(settings, mode):
    assert mode_of(**settings) == mode


def test_a_model_that_runs_most_of_the_forward_pass_makes_the_step_compiled(compiled, recorder):
    with compiled.region("default"):
        recorder.run(forward=10)
    with compiled.region(None):
        recorder.run(forward=3, others=30)
    assert compiled.mode() == "default"


def test_what_runs_between_modules_does_not_count(compiled, recorder):
    with compiled.region("default"):
        recorder.run(forward=4)
    recorder.run(forward=20)  # copies and a loss
    assert compiled.mode() == "default"


def test_a_helper_does_not(compiled, recorder):
    with compiled.region(None):
        recorder.run(forward=10, others=20)
        with compiled.region("max-autotune"):
            recorder.run(forward=5)
    with compiled.region("max-autotune"):
        recorder.run(forward=0, others=100)  # such as a compiled step of the optimizer
    assert compiled.mode() is None


def test_blocks_count_together_and_of_nested_ones_the_outermost(compiled, recorder):
    for _ in range(3):
        with compiled.region("default"):
            recorder.run(forward=4)
    with compiled.region("reduce-overhead"), compiled.region("default"):
        recorder.run(forward=5)
    assert compiled.mode() == "default"
    with compiled.region(None):
        recorder.run(forward=20)
    assert compiled.mode() is None


def test_a_whole_step_may_still_run_when_its_optimizer_steps(compiled, recorder):
    with compiled.region("reduce-overhead"):
        recorder.run(forward=4, others=8)
        assert compiled.mode() == "reduce-overhead"


def test_a_call_that_fails_ends_its_region(compiled, recorder):
    with pytest.raises(ZeroDivisionError), compiled.region("default"):
        recorder.run(forward=1 // 0)
    recorder.run(forward=5)
    assert compiled.mode() is None


def test_spans_are_apart_and_what_is_not_compiled_leaves_no_region(compiled, recorder):
    with compiled.region(None):
        recorder.run(forward=4)
    assert compiled.mode() is None
    with compiled.region("default"):
        recorder.run(forward=40)
    compiled.start_span()
    assert compiled.mode() is None


def test_what_needs_values_breaks_a_graph_inside_of_what_is_compiled(compiled, recorder):
    recorder.ask("aten::nonzero")
    with compiled.region("default"):
        recorder.ask("aten::item")
        recorder.ask("aten::nonzero")
        recorder.ask("aten::item")
    with compiled.region(None):
        recorder.ask("aten::item")
    assert compiled.breaks() == {"aten::item": 2, "aten::nonzero": 1}
    compiled.start_span()
    assert compiled.breaks() == {}


def test_what_dynamo_was_told_to_capture_breaks_nothing(compiled, recorder, monkeypatch):
    with compiled.region("default"):
        recorder.ask("aten::item")
        recorder.ask("aten::nonzero")
        config = types.SimpleNamespace(capture_scalar_outputs=True, capture_dynamic_output_shape_ops=False)
        monkeypatch.setitem(sys.modules, "torch._dynamo.config", config)
        assert compiled.breaks() == {"aten::nonzero": 1}  # in a step that is compiled whole, too


class _Unhashable(torch.nn.Module):
    """Compares by value, as a script's module may."""

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


def test_modules_are_told_apart_by_identity(compiled):
    model, other = _Unhashable(), _Unhashable()
    compiled.add(model, "default")
    assert (compiled.mode_of(model), compiled.mode_of(other)) == ("default", None)


def test_a_model_in_the_place_of_one_that_is_gone_is_not_compiled(compiled):
    compiled.add(torch.nn.Linear(2, 2), "default")
    later = torch.nn.Linear(2, 2)
    compiled._modules = dict.fromkeys([id(later)], *compiled._modules.values())
    assert compiled.mode_of(later) is None


def test_on_a_real_gpu_what_was_compiled_is_everywhere(compiled, recorder):
    recorder.run(forward=4)
    compiled.everywhere = "default"
    assert compiled.mode() == "default"
