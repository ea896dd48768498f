"""Where spans end, which is kept, and what its tensors are; hooks are called by hand."""

from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from advisor.payload.recording import iteration  # noqa: E402 - needs torch
from advisor.payload.recording.compiled_calls import Compiled  # noqa: E402
from advisor.payload.recording.iteration import MOST_SPANS, MOST_STEPS_OF_A_PERIOD, SPANS_WANTED, Iterations  # noqa: E402
from tests.findings import of_child  # noqa: E402

pytestmark = pytest.mark.torch


class OnGpu(torch.Tensor):
    """A CPU tensor that claims to be on the GPU."""

    is_cuda = property(lambda _: True)
    device = property(lambda _: torch.device("cuda", 0))


def operator(span: int) -> dict[str, Any]:
    return {"name": f"span {span}", "count": 1, "inputs": [], "outputs": []}


class Part:
    """A recorder, tracker or loading that counts the starts of spans and tells what was tagged."""

    def __init__(self) -> None:
        self.starts = self.depth = 0
        self.phase = "forward"
        self.num_backward_passes = 1
        self.tags: dict[int, str] = {}
        self.shapes_of_models: set[Any] = set()
        self.loading: dict[str, Any] | None = None
        self.wrote_weights = self.follows_leaves = False
        self.written_leaves: dict[int, Any] = {}
        self.value_calls: dict[str, list[int]] = {}
        self.works = True
        self.next_call = 0
        self.awaits_reductions = False
        self.is_evaluating = False
        self.num_evaluated = 0
        self.making = SimpleNamespace(resume=lambda: None)

    def begin_step(self) -> None:
        self.depth += 1
        self.resume_step()

    def resume_step(self) -> None:
        self.phase = "optimizer"

    def end_step(self) -> None:
        self.depth -= 1
        if self.depth == 0:
            self.phase = "forward"

    def enter_model(self) -> None:
        pass

    def has_forward_work(self) -> bool:
        return self.works

    def start_span(self) -> None:
        self.starts += 1

    def operators(self) -> list[dict[str, Any]]:
        return [operator(self.starts)]

    def forward_calls(self) -> list[int]:
        return list(range(self.next_call))

    def calls(self) -> list[list[int]]:
        return [[self.starts]]

    def flows(self) -> list[list[int]]:
        return [[self.starts]]

    def entries(self) -> list[str]:
        return [f"collective {self.starts}"]

    def keep_evaluation(self) -> None:
        pass

    def usage(self) -> Any:
        return self.loading

    def tag(self, tensor: Any, kind: str) -> None:
        self.tags[id(tensor)] = kind


class Run:
    """A session without torch's patches, and its iterations."""

    def __init__(self) -> None:
        self.recorder, self.memory, self.loading, self.collectives = Part(), Part(), Part(), Part()
        self.compiled = Compiled(self.recorder)  # type: ignore[arg-type]
        self.checks = 0
        self.stopper = SimpleNamespace(check=self._check)
        self.amp_dtype: str | None = None
        self.making_s = 0.25
        self.device_type = "cuda"
        self.backend = "fake"
        self.is_watched = True
        self.autocast_dtype: str | None = None
        self.told: list[int] = []
        self.iterations = Iterations(self, self.told.append)  # type: ignore[arg-type]
        self.iterations.start_span()

    def _check(self) -> None:
        self.checks += 1

    def step(self, optimizer: Any, samples: int | None = None) -> None:
        self.loading.loading = None if samples is None else {"samples": samples, "is_dynamic": False}
        self.iterations._optimizer_made(optimizer)
        self.iterations._before_step(optimizer, (), {})
        self.iterations._after_step(optimizer, (), {})

    def backward(self, *, updated: bool = False) -> None:
        self.recorder.wrote_weights = updated
        self.iterations._after_backward()

    def kind(self, tensor: Any) -> str | None:
        return self.memory.tags.get(id(tensor))


def on_gpu(*shape: int) -> Any:
    return torch.zeros(shape).as_subclass(OnGpu)


class Thing(SimpleNamespace):
    """Unlike its base it can be weakly referenced."""


def make_optimizer(*groups: list[Any], state: Any = None) -> Any:
    return Thing(param_groups=[{"params": group} for group in groups], state=state or {})


@pytest.fixture
def run():
    return Run()


def test_a_step_of_the_first_optimizer_ends_a_span(run):
    first, second = make_optimizer(), make_optimizer()
    run.iterations._before_step(first, (), {})
    assert (run.iterations.last, run.iterations.is_steady, run.recorder.phase) == (None, False, "optimizer")
    run.iterations._after_step(first, (), {})
    assert run.recorder.phase == "forward"
    for optimizer in (second, second, first, second):
        run.step(optimizer)
    assert run.told == [1, 2]
    assert run.iterations.num_spans == 2
    assert run.iterations.last["num_optimizers"] == 2
    assert run.checks == 5  # each step asks whether to stop


def test_the_newest_span_is_kept_and_a_new_one_begun(run):
    optimizer = make_optimizer()
    run.amp_dtype = "float16"
    run.step(optimizer, 8)
    assert run.iterations.last == {
        "operators": [operator(1)],
        "calls": [[1]],
        "flows": [[1]],
        "num_backward_passes": 1,
        "memory": None,
        "collectives": ["collective 1"],
        "awaits_reductions": False,
        "loading": {"samples": 8, "is_dynamic": False},
        "making_s": 0.25,
        "amp_dtype": "float16",
        "compile_mode": None,
        "parallel_by": None,
        "num_optimizers": 1,
        "most_steps": 1,
    }
    assert run.amp_dtype is None
    run.step(optimizer, 8)
    assert run.iterations.last["operators"] == [operator(2)]
    assert run.iterations.last["amp_dtype"] is None
    assert (run.recorder.starts, run.memory.starts, run.loading.starts) == (3, 3, 3)


@pytest.mark.parametrize(
    ("samples", "steady_at"),
    [
        ([8] * 4, 3),
        ([None] * 4, 3),
        # The third ends an epoch with fewer samples; the fourth is whole.
        ([8, 8, 4, 8], 4),
        ([4, 8, 8, 8], 3),
        ([4, 8, 4, 4, 8], 5),
        # Sizes that never come back: the search ends with the sixth.
        ([9, 8, 7, 6, 5, 4], 6),
        # The first also took a batch that is fetched ahead.
        ([12, 8, 8], 3),
        ([8, None, None], 3),
        # What is fewer in each step than before never is whole.
        ([12, 8, None, None, None, None], 6),
    ],
)
def test_a_span_is_steady_when_it_is_the_third_and_full(run, samples, steady_at):
    optimizer = make_optimizer()
    steady = []
    for count in samples:
        run.step(optimizer, count)
        steady.append(run.iterations.is_steady)
    assert steady.index(True) + 1 == steady_at
    assert (SPANS_WANTED, MOST_SPANS) == (3, 6)


def test_the_training_is_what_comes_after_the_trials_of_a_learning_rate(run):
    def lr_find(num_steps):
        optimizer = make_optimizer([on_gpu(2)])
        for _ in range(num_steps):
            run.step(optimizer, 8)
        return optimizer

    optimizer = lr_find(10)
    steady = [run.iterations.is_steady]
    for _ in range(SPANS_WANTED):
        run.step(optimizer, 64)
        steady.append(run.iterations.is_steady)
    assert steady == [False, False, False, True]
    # Trials without end are the training.
    lr_find(iteration.MOST_TRIALS)
    assert run.iterations.is_steady


def test_steadiness_is_known_when_the_span_is_told():
    run = Run()
    seen: list[bool] = []
    run.iterations = Iterations(run, lambda _: seen.append(run.iterations.is_steady))  # type: ignore[arg-type]
    optimizer = make_optimizer()
    for _ in range(3):
        run.step(optimizer)
    assert seen == [False, False, True]


def test_parameters_gradients_and_state_are_told_apart(run):
    weight, bias, momentum = on_gpu(4), on_gpu(2), on_gpu(4)
    weight.grad = on_gpu(4)
    state = {weight: {"momentum": momentum, "step": 3}, bias: "no dict"}
    run.step(make_optimizer([weight], [bias], state=state))
    kinds = [run.kind(tensor) for tensor in (weight, bias, weight.grad, momentum)]
    assert kinds == ["parameter", "parameter", "gradient", "optimizer"]


def test_tensors_of_the_cpu_are_no_device_memory_and_every_optimizer_is_asked(run):
    run.step(make_optimizer([torch.zeros(3), torch.zeros(3).to_sparse()]))
    assert run.memory.tags == {}
    first, second = on_gpu(1), on_gpu(1)
    optimizers = make_optimizer([first]), make_optimizer([second])
    for optimizer in optimizers:
        run.iterations._optimizer_made(optimizer)
    run.backward()
    assert (run.kind(first), run.kind(second)) == ("parameter", "parameter")


def test_frozen_parameters_are_those_of_outermost_modules(run):
    tensors = [on_gpu(1) for _ in range(3)]
    outer, inner, later = (a_model(tensor) for tensor in tensors)
    run.iterations._leave_module(a_model(), (), None)  # more ends than beginnings do no harm
    for act in ("in outer", "in inner", "out inner", "out outer", "in later", "out later"):
        way, name = act.split()
        model = {"outer": outer, "inner": inner, "later": later}[name]
        if way == "in":
            run.iterations._enter_module(model, ())
        else:
            run.iterations._leave_module(model, (), None)
    run.step(make_optimizer())
    assert [run.kind(tensor) for tensor in tensors] == ["parameter", None, "parameter"]


def a_model(*parameters: Any) -> Any:
    return Thing(parameters=lambda: iter(parameters), buffers=lambda: ())


def test_hooks_are_installed_and_also_see_modules_that_raise(run, monkeypatch):
    installed: dict[str, tuple[Any, dict[str, Any]]] = {}

    def keep(name: str) -> Any:
        return lambda hook, **options: installed.update({name: (hook, options)})

    for name in ("register_optimizer_step_pre_hook", "register_optimizer_step_post_hook"):
        monkeypatch.setattr(iteration, name, keep(name))
    for name in ("register_module_forward_pre_hook", "register_module_forward_hook"):
        monkeypatch.setattr(torch.nn.modules.module, name, keep(name))
    monkeypatch.setattr(torch.optim.Optimizer, "__init__", torch.optim.Optimizer.__init__)
    for name in ("backward", "grad"):
        monkeypatch.setattr(torch.autograd, name, getattr(torch.autograd, name))
    run.iterations.install()
    hooks = run.iterations
    assert installed == {
        "register_optimizer_step_pre_hook": (hooks._before_step, {}),
        "register_optimizer_step_post_hook": (hooks._after_step, {}),
        "register_module_forward_pre_hook": (hooks._enter_module, {}),
        "register_module_forward_hook": (hooks._leave_module, {"always_call": True}),
    }


def test_the_rarest_step_bounds_the_iteration():
    def warnings(period: int, num_steps: int) -> tuple[list[int], list[Any]]:
        run, critic, generator = Run(), make_optimizer([on_gpu(1)]), make_optimizer([on_gpu(1)])
        run.iterations._optimizer_made(generator)
        for tensor in (*critic.param_groups[0]["params"], *generator.param_groups[0]["params"]):
            tensor.requires_grad_()
        steady_at = []
        for number in range(1, num_steps):
            run.step(generator if number % period == 0 else critic)
            if run.iterations.is_steady:
                steady_at.append(number)
        assert run.iterations.last["num_optimizers"] == 2
        return steady_at, run.iterations.warnings

    steady_at, told = warnings(6, 25)
    assert steady_at[0] == 18
    assert told == [{"code": "iteration-seen", "facts": {"of": "steps-unequal", "num": 5}}]
    # Optimizers that take turns are nothing to tell.
    assert warnings(2, 7)[1] == []


def test_an_optimizer_that_never_steps_is_waited_for_and_told(run):
    used, unused = make_optimizer([on_gpu(1)]), make_optimizer([on_gpu(1).requires_grad_()])
    run.iterations._optimizer_made(unused)
    steady = []
    for _ in range(MOST_STEPS_OF_A_PERIOD):
        run.step(used)
        steady.append(run.iterations.is_steady)
    assert steady.index(True) + 1 == MOST_STEPS_OF_A_PERIOD
    assert "(Thing)" in of_child(run.iterations.warnings)[0]
    assert f"made {MOST_STEPS_OF_A_PERIOD}" in of_child(run.iterations.warnings)[0]


def test_steps_without_training_between_them_are_no_iterations(run):
    optimizer = make_optimizer()
    run.recorder.works = False
    for _ in range(5):
        run.step(optimizer)
    assert run.told == []
    run.backward()
    run.step(optimizer)
    assert run.told == [1]


def step_with_closure(run: Run, optimizer: Any, evaluations: int, *, keyword: bool) -> list[str]:
    phases: list[str] = []

    def closure() -> float:
        phases.append(run.recorder.phase)
        return 0.5

    options = {"closure": closure} if keyword else {}
    arguments = (optimizer,) if keyword else (optimizer, closure)
    args, kwargs = run.iterations._before_step(optimizer, arguments, options)
    assert args[0] is optimizer
    evaluate = kwargs["closure"] if keyword else args[1]
    for _ in range(evaluations):
        assert evaluate() == 0.5
        phases.append(run.recorder.phase)
    run.iterations._after_step(optimizer, (), {})
    return phases


@pytest.mark.parametrize("keyword", [True, False])
def test_a_closure_is_forward_and_what_follows_is_the_optimizer(run, keyword):
    phases = step_with_closure(run, make_optimizer(), 2, keyword=keyword)
    assert phases == ["forward", "optimizer"] * 2
    assert run.recorder.phase == "forward"


def test_the_number_of_evaluations_is_told_and_is_no_accumulation(run):
    step_with_closure(run, make_optimizer(), 1, keyword=False)
    assert run.iterations.warnings == []
    run.recorder.num_backward_passes = 6
    step_with_closure(run, make_optimizer(), 3, keyword=False)
    assert run.iterations.last["num_backward_passes"] == 2
    assert "evaluated the model 3 times" in of_child(run.iterations.warnings)[0]


def test_after_a_closure_that_raises_the_phase_is_the_optimizers(run):
    def closure() -> None:
        raise ValueError

    args, _ = run.iterations._before_step(make_optimizer(), (None, closure), {})
    with pytest.raises(ValueError):
        args[1]()
    assert run.recorder.phase == "optimizer"


@pytest.mark.parametrize("value", [None, 3, torch.nn.ReLU(), torch.nn.ReLU, torch.zeros(2)])
def test_what_is_no_closure_reaches_the_optimizer_as_it_is(run, value):
    optimizer = make_optimizer()
    args, kwargs = run.iterations._before_step(optimizer, (optimizer, value), {"model": value})
    assert args[0] is optimizer
    assert args[1] is value
    assert kwargs["model"] is value


def test_inside_another_optimizers_step_the_phase_stays(run):
    outer, inner = make_optimizer(), make_optimizer()
    run.iterations._before_step(outer, (), {})
    run.step(inner)
    assert run.recorder.phase == "optimizer"
    run.iterations._after_step(outer, (), {})
    assert run.recorder.phase == "forward"
    assert run.told == [1]


def test_updates_by_hand_end_iterations(run):
    run.backward(updated=True)  # what was written before is initialisation
    for _ in range(3):
        run.backward()
        run.backward(updated=True)
    assert run.iterations.is_steady
    assert "no torch optimizer stepped" in of_child(run.iterations.warnings)[0]
    assert run.iterations.num_spans == 3


def test_the_first_real_step_ends_the_search_for_updates_by_hand(run):
    for _ in range(10):
        run.backward()
    assert not run.iterations.is_steady
    optimizer = make_optimizer()
    run.iterations._optimizer_made(optimizer)
    for _ in range(64):
        run.backward()
    count = len(run.told)
    run.step(optimizer)
    assert run.told[count:] == [1]
    run.backward(updated=True)
    assert run.iterations.num_spans == 1
    assert run.iterations.warnings == []


def test_leaves_are_followed_while_there_is_no_optimizer(run):
    run.backward()
    assert run.recorder.follows_leaves
    leaf = on_gpu(2)
    run.recorder.written_leaves[id(leaf)] = leaf
    run.backward()
    assert run.kind(leaf) == "parameter"
    run.iterations._optimizer_made(make_optimizer())
    assert not run.recorder.follows_leaves
    assert run.recorder.written_leaves == {}
    run.backward()
    assert not run.recorder.follows_leaves


@pytest.mark.parametrize(("others", "mode"), [(2, "reduce-overhead"), (20, None)])
def test_a_compiled_model_makes_the_iteration_compiled_if_most_runs_in_it(others, mode):
    run = Run()
    model, layer = torch.nn.Linear(2, 2), torch.nn.ReLU()
    run.compiled.add(model, "reduce-overhead")
    run.compiled.is_asked = True
    for module, calls in ((model, 8), (layer, others)):
        run.iterations._enter_module(module, ())
        run.recorder.next_call += calls
        run.iterations._leave_module(module, (), None)
    run.iterations._close_span()
    assert run.iterations.last["compile_mode"] == mode
    told = [warning["facts"].get("how") for warning in run.iterations.warnings]
    assert ("ignored" in told) == (mode is None)


@pytest.mark.parametrize("everywhere", [None, "default"])
def test_a_graph_that_breaks_is_told_of_where_nothing_was_measured(everywhere):
    run = Run()
    run.compiled.everywhere = everywhere
    with run.compiled.region("default"):
        run.recorder.value_calls["aten::item"] = [run.recorder.next_call]
        run.recorder.next_call += 8
    run.iterations._close_span()
    told = [
        warning["facts"] for warning in run.iterations.warnings if warning["facts"].get("how") == "breaks"
    ]
    assert told == (
        [{"how": "breaks", "num_breaks": 1, "operators": ["aten::item"]}] if everywhere is None else []
    )
