"""Where an iteration begins and ends, by the optimizers' steps.

One iteration is the span between two steps of an optimizer: with gradient accumulation it holds several
forward and backward passes, with a GAN the other network's steps too. `period` says which optimizer it
is, `by_hand` what ends an iteration where there is none.
"""

from __future__ import annotations

import functools
import sys
import weakref
from collections import Counter
from collections.abc import Callable, Iterable
from typing import TypeVar

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from ..composite import Args, Kwargs
from ..progress import Position
from ..protocol import Fact, Iteration, Notice, Warned, notice
from ..replacing import Original, replace, wrap
from ..session import Session
from .batches import gradient_of, is_trial, nominal_batch, parallel_by, part_of, samples_of
from .random_steps import SteadySteps, repeats

# Iterations of scripts that update their weights without a torch optimizer.
#
# ``p.data.add_(p.grad, alpha=-lr)``, ``with torch.no_grad(): w -= lr * w.grad``, and optimizers that are
# classes of the script's own. An iteration then ends with the first backward pass after an update.

Result = TypeVar("Result")

# Backward passes that may precede an optimizer's first step: it exists, or no update was seen.
MOST_SPANS_BY_HAND = 16


class ByHand:
    """Tells from backward passes and writes to weights where an iteration ends."""

    def __init__(self) -> None:
        self.optimizer_exists = False
        """The script made a torch optimizer, which may yet step."""
        self.num_spans = 0
        """Ends reported so far, of the kind that is reported now."""
        self._has_updates = False

    def end_backward(self, *, updated: bool) -> bool:
        """Whether an iteration ends here; ``updated`` if weights changed since the last backward."""
        if updated and not self._has_updates:
            # What was counted so far were passes that accumulate gradients.
            self._has_updates, self.num_spans = True, 0
        ends = updated or not (self._has_updates or self.optimizer_exists)
        self.num_spans += ends
        return ends

    def is_certain(self, spans_wanted: int) -> bool:
        """Whether enough was seen to say that no optimizer will step."""
        sure = self._has_updates and not self.optimizer_exists
        return self.num_spans >= (spans_wanted if sure else MOST_SPANS_BY_HAND)

    @property
    def warning(self) -> Notice:
        return notice(Warned.ITERATION_SEEN, of="updates-alone" if self._has_updates else "no-step")


def watch_backward(begin: Callable[[], None], end: Callable[[], None]) -> None:
    """Call ``begin`` and ``end`` around each outermost use of the autograd engine."""
    depth = 0

    def watched(function: Callable[..., Result]) -> Callable[..., Result]:
        @functools.wraps(function)
        def run(*args: object, **kwargs: object) -> Result:
            nonlocal depth
            if depth == 0:
                begin()
            depth += 1
            try:
                result = function(*args, **kwargs)
            finally:
                depth -= 1
            if depth == 0:
                end()
            return result

        return run

    autograd = torch.autograd
    replace(autograd, backward=watched(autograd.backward), grad=watched(autograd.grad))


# Forward passes between two steps that try the model instead of training it.
#
# Those over batches of a DataLoader that were taken without gradients belong to no iteration. Others may: a
# policy plays, a model labels its own batches. So they are counted and named. So are those of steps before: a
# validation at intervals seldom falls into the iteration that is recorded.


class Evaluations:
    """Counts what an iteration holds besides training."""

    def __init__(self) -> None:
        self._num_between: int | None = None  # in spans before, but for what comes before the first step
        self.start_span()

    def start_span(self) -> None:
        self.num_passes = self._num_calls = 0

    def add(self, model: torch.nn.Module, num_calls: int) -> None:
        if not model.training and any(weight.requires_grad for weight in model.parameters()):
            self.num_passes += 1
            self._num_calls += num_calls

    def end_span(self, *, num_left_out: int, num_calls: int) -> list[Notice]:
        """What to know of an iteration with so many calls, of whose batches so many were left out."""
        num_here, num_between = num_left_out + self.num_passes, self._num_between
        # What runs before the first step may do so once.
        self._num_between = 0 if num_between is None else num_between + num_here
        warnings = []
        if num_between and not num_here:
            warnings.append(notice(Warned.EVALUATION_SEEN, where="between", num_passes=num_between))
        if num_left_out:
            warnings.append(notice(Warned.EVALUATION_SEEN, where="left-out", num_batches=num_left_out))
        if self.num_passes:
            inside = {
                "num_passes": self.num_passes,
                "num_calls": self._num_calls,
                "num_calls_of_all": num_calls,
            }
            warnings.append(notice(Warned.EVALUATION_SEEN, where="inside", **inside))
        return warnings


# Whose steps bound an iteration where a script has several optimizers.

# A Wasserstein GAN's critic steps 5 times, at times 10, before the generator steps once.
MOST_STEPS_OF_A_PERIOD = 32


class StepPeriod:
    """Follows the optimizers' steps; the one that steps least often bounds the iteration."""

    def __init__(self) -> None:
        self.optimizers: weakref.WeakValueDictionary[int, torch.optim.Optimizer] = (
            weakref.WeakValueDictionary()
        )
        """Those alive, by id; a script may make more than it uses."""
        self.num_steps = 0
        """How often the bounding optimizer stepped since it is the bounding one."""
        self._bound: int | None = None
        self._last_step: dict[int, int] = {}
        self._in_span: Counter[int] = Counter()
        self._open: list[int] = []

    @property
    def has_begun(self) -> bool:
        return self._bound is not None

    def is_bound_by(self, optimizer: torch.optim.Optimizer) -> bool:
        return id(optimizer) == self._bound

    def begin_step(self, optimizer: torch.optim.Optimizer) -> None:
        """An optimizer begins to step; of nested ones the outermost begins first."""
        key = id(optimizer)
        self.optimizers[key] = optimizer
        if self._bound is None:
            self._bound = key
        if key in self._open:  # its last step ended in an error
            del self._open[self._open.index(key) :]
        self._open.append(key)

    def leave_step(self, optimizer: torch.optim.Optimizer) -> bool:
        """Whether the step that is over was a part of another one, as that of a ZeroRedundancyOptimizer's."""
        if id(optimizer) in self._open:
            del self._open[self._open.index(id(optimizer)) :]
        return bool(self._open)

    def end_step(self, optimizer: torch.optim.Optimizer) -> tuple[bool, bool]:
        """Whether this step ends an iteration, and whether another optimizer than before bounds it."""
        key = id(optimizer)
        self._in_span[key] += 1
        moved = key != self._bound and self.num_steps - self._last_step.get(key, 0) > 1
        if moved:
            self._bound, self.num_steps = key, 0
            self._last_step = dict.fromkeys(self._last_step, 1)
        if key == self._bound:
            self.num_steps += 1
        self._last_step[key] = self.num_steps
        return key == self._bound, moved

    def missing(self) -> list[torch.optim.Optimizer]:
        """Optimizers without a step in this span, whose weights no other one stepped."""
        stepped = [optimizer for key, optimizer in self.optimizers.items() if key in self._in_span]
        trained = {id(tensor) for optimizer in stepped for tensor in parameters(optimizer)}
        return [
            optimizer
            for optimizer in self.optimizers.values()
            if any(id(tensor) not in trained for tensor in parameters(optimizer) if tensor.requires_grad)
        ]

    @property
    def num_in_span(self) -> int:
        return len(self._in_span)

    @property
    def most_steps(self) -> int:
        """The steps in this span of the optimizer that stepped most often in it."""
        return max(self._in_span.values(), default=0)

    def start_span(self) -> None:
        self._in_span = Counter()


def parameters(optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
    """All tensors that an optimizer steps."""
    return [tensor for group in optimizer.param_groups for tensor in group["params"]]


# Forward passes between phases of updates, which no recorded iteration holds.
#
# Reinforcement learning plays with the policy before it learns from what it saw, and language models
# generate what they are tuned on; an iteration is from one step of an optimizer to its next.

# A dry run for lazy modules or for a summary of the model takes a few passes.
MOST_IGNORED = 10


class Rollouts:
    """Counts forward passes without gradients from the making of the optimizer to its first step."""

    def __init__(self) -> None:
        self._in_span = 0
        self._before_first_step: int | None = None

    def add(self) -> None:
        self._in_span += 1

    def start_span(self) -> None:
        self._in_span = 0

    def end_span(self) -> Notice | None:
        """A warning where this iteration lacks what came before the first step."""
        if self._before_first_step is None:
            self._before_first_step = self._in_span
        if self._before_first_step - self._in_span <= MOST_IGNORED:
            return None
        return notice(Warned.EVALUATION_SEEN, where="rollouts", num_passes=self._before_first_step)


# The first span holds the set-up, the second what loops log at iteration 0; the third is steady, unless
# it ends an epoch with fewer samples than the others. Where batches differ in size we stop looking.
SPANS_WANTED = 3
MOST_SPANS = 6
# Libraries try a hundred learning rates.
MOST_TRIALS = 300


class Iterations:
    """Cuts the run into spans and keeps the newest complete one.

    Args:
        on_span: called with the number of complete spans at the end of each.
        by_call: steps and backward passes end no span, only `end_call` does.
        position: called with everything that shows where the run is.
    """

    def __init__(
        self, session: Session, on_span: Callable[[int], None] = lambda _: None, *, by_call: bool = False,
        position: Position | None = None,
    ) -> None:  # fmt: skip
        self._session = session
        self._on_span = on_span
        self._by_call = by_call
        self._position = position
        self._period = StepPeriod()
        self._by_hand = ByHand()
        self._rollouts = Rollouts()
        self._evaluations = Evaluations()
        # A real GPU's steps are timed, calls of a function are iterations, and dropout draws on the CPU, too.
        self._steps = None if by_call or session.backend == "cuda" else SteadySteps()
        self._draws = self._steps.draws if self._steps and session.backend == "fake" else None
        self._models: weakref.WeakValueDictionary[int, torch.nn.Module] = weakref.WeakValueDictionary()
        self.depth = 0
        """Of the module that runs; 0 outside of all."""
        self._first_call = 0
        self._num_backward_calls = 0
        self._seen_backward = False
        self._num_evaluations = 0
        self.num_spans = 0
        self.last: Iteration | None = None
        """The newest complete span, as it goes into the result."""
        self.is_steady = False
        """It is past the start and holds as many samples as any span so far."""
        self.warnings: list[Notice] = []
        """What its reader should know of how it was found."""
        self.nominal_batch: int | None = None
        """Samples of a step after the warm-up, if the script says so."""
        self._most_samples = 0
        self._is_trial = False

    def install(self) -> None:
        """Hook into every optimizer and module of the process, and into the autograd engine."""
        register_optimizer_step_pre_hook(self._before_step)
        register_optimizer_step_post_hook(self._after_step)
        if self._session.backend != "cuda":
            self.watch_modules()
        watch_backward(self._session.stopper.check, self._after_backward)

        def make_and_tell(
            make: Original, optimizer: torch.optim.Optimizer, *args: object, **kwargs: object
        ) -> None:
            make(optimizer, *args, **kwargs)
            self._optimizer_made(optimizer)

        wrap(torch.optim.Optimizer, "__init__", make_and_tell)

    def watch_modules(self) -> None:
        """Hook into every module: what torch.compile compiles with such hooks is slower."""
        modules = torch.nn.modules.module
        modules.register_module_forward_pre_hook(self._enter_module)
        modules.register_module_forward_hook(self._leave_module, always_call=True)

    def _optimizer_made(self, optimizer: torch.optim.Optimizer) -> None:
        self._period.optimizers[id(optimizer)] = optimizer
        self._by_hand.optimizer_exists = True
        self._rollouts.start_span()
        self._session.recorder.follows_leaves = False
        self._session.recorder.written_leaves.clear()

    def _before_step(
        self, optimizer: torch.optim.Optimizer, args: tuple[object, ...], kwargs: Kwargs
    ) -> tuple[tuple[object, ...], Kwargs]:
        session = self._session
        session.stopper.check()
        if not self._period.has_begun:
            # What looked like updates by hand was preparation.
            self.num_spans = self._most_samples = 0
        self._period.begin_step(optimizer)
        session.recorder.begin_step()
        session.memory.begin_step()
        for tensor in parameters(optimizer) if session.is_watched else ():
            _tag(session, gradient_of(tensor), "gradient")
        return (
            tuple(self._evaluated_as_forward(value) for value in args),
            {name: self._evaluated_as_forward(value) for name, value in kwargs.items()},
        )

    def _evaluated_as_forward(self, value: object) -> object:
        """A closure as the optimizer gets it: what it runs is no work of the optimizer."""
        if not callable(value) or isinstance(value, (type, torch.nn.Module)):
            return value

        @functools.wraps(value, updated=())
        def evaluate(*args: object, **kwargs: object) -> object:
            recorder = self._session.recorder
            self._num_evaluations += 1
            recorder.phase = "forward"
            try:
                return value(*args, **kwargs)
            finally:
                recorder.resume_step()

        return evaluate

    def _after_step(self, optimizer: torch.optim.Optimizer, args: Args, kwargs: Kwargs) -> None:  # noqa: ARG002
        self._session.memory.end_step()
        self._session.recorder.end_step()
        if self._period.leave_step(optimizer):
            return
        if self._period.is_bound_by(optimizer) and not (
            self._num_backward_calls > 0 or self._session.recorder.has_forward_work()
        ):
            return  # Schedulers are wound forward by steps without gradients.
        ends, moved = self._period.end_step(optimizer)
        if self._by_call:
            return
        if moved:
            self.num_spans = self._most_samples = 0
        if ends:
            self._close_span()

    def _after_backward(self) -> None:
        self._num_backward_calls += 1
        if self._position is not None:
            self._position.went_backward()
        self._tag_owned()
        recorder = self._session.recorder
        updated, recorder.wrote_weights = recorder.wrote_weights, False
        # Before the first backward pass weights are written to because they are initialised.
        updated = updated and self._seen_backward
        self._seen_backward = True
        recorder.follows_leaves = not self._by_hand.optimizer_exists
        # Updates by hand are seen by the dispatch mode alone, which a real GPU has at the end only.
        is_told = self._by_call or self._period.has_begun or self._session.backend == "cuda"
        if is_told or not self._by_hand.end_backward(updated=updated):
            return
        if self._by_hand.num_spans == 1:
            self.num_spans = self._most_samples = 0
        self._close_span()

    def end_call(self) -> None:
        self._close_span()

    def _close_span(self) -> None:
        session = self._session
        self._tag_owned()
        # The training comes after the trials of a learning rate, if it does come.
        was_trial, self._is_trial = self._is_trial, is_trial(sys._getframe()) and not self._by_call
        self.num_spans = 1 if was_trial and not self._is_trial else self.num_spans + 1
        before = self.last
        if not session.loading.num_evaluated:
            session.recorder.keep_evaluation()
        self.last = {
            "operators": session.recorder.operators(),
            "calls": session.recorder.calls(),
            "flows": session.recorder.flows(),
            # Every evaluation of a closure has a backward pass, over the same samples.
            "num_backward_passes": session.recorder.num_backward_passes // max(1, self._num_evaluations),
            "memory": session.memory.usage(),
            "collectives": session.collectives.entries(),
            "awaits_reductions": session.collectives.awaits_reductions,
            "loading": session.loading.usage(),
            "making_s": session.making_s,
            "amp_dtype": session.amp_dtype,
            "compile_mode": session.compiled.mode(),
            "parallel_by": parallel_by(sys._getframe()),
            "num_optimizers": self._period.num_in_span,
            "most_steps": self._period.most_steps,
        }
        self.nominal_batch = nominal_batch(sys._getframe())
        self.warnings = self._warnings()
        is_tried = self._is_trial and self.num_spans < MOST_TRIALS
        self.is_steady = not is_tried and self._is_enough(self.last, before)
        self.start_span()
        if self._position is not None:
            self._position.stepped(self.num_spans)
        self._on_span(self.num_spans)

    def typical(self) -> Iteration | None:
        """The iteration that stands for all: the newest, or the most typical of several that differ."""
        return (None if self._steps is None else self._steps.typical()) or self.last

    def _is_enough(self, span: Iteration, before: Iteration | None) -> bool:
        is_steady = self._seems_steady(span, before)
        if self._steps is None:
            return is_steady
        is_clean = self.num_spans > 1 and not self._evaluations.num_passes
        return self._steps.add(span, is_clean=is_clean, is_steady=is_steady)

    def _seems_steady(self, span: Iteration, before: Iteration | None) -> bool:
        samples = samples_of(span)
        if self.num_spans > 1:  # the first also holds batches that are fetched ahead
            self._most_samples = max(self._most_samples, samples)
        is_full = samples >= self._most_samples or self.num_spans >= MOST_SPANS
        if not is_full or (self.num_spans < SPANS_WANTED and not (before and repeats(span, before))):
            return False
        if self._evaluations.num_passes and self.num_spans < MOST_SPANS:
            return False  # the next one may be without them
        if not self._period.has_begun:
            return self._by_hand.is_certain(SPANS_WANTED)
        return self._period.num_steps >= MOST_STEPS_OF_A_PERIOD or not self._period.missing()

    def _warnings(self) -> list[Notice]:
        warnings = [] if self._period.has_begun or self._by_call else [self._by_hand.warning]
        missing = self._period.missing() if self._period.has_begun else []
        if missing:
            names = sorted({type(optimizer).__name__ for optimizer in missing})
            num = self._period.num_steps
            warnings.append(notice(Warned.ITERATION_SEEN, of="optimizer-idle", names=names, num=num))
        if self._period.num_in_span > 1 and self._period.most_steps > 1 and not self._by_call:
            warnings.append(notice(Warned.ITERATION_SEEN, of="steps-unequal", num=self._period.most_steps))
        if self._session.compiled.is_asked and self._session.compiled.mode() is None:
            warnings.append(notice(Warned.COMPILE_SEEN, how="ignored"))
        compiled = self._session.compiled
        # On a real GPU what was measured has them.
        if compiled.everywhere is None and compiled.mode() is not None and (breaks := compiled.breaks()):
            facts: dict[str, Fact] = {"num_breaks": sum(breaks.values()), "operators": sorted(breaks)}
            warnings.append(notice(Warned.COMPILE_SEEN, how="breaks", **facts))
        if self._num_evaluations > 1:
            warnings.append(notice(Warned.ITERATION_SEEN, of="closure-repeated", num=self._num_evaluations))
        if not self._by_call:
            warnings += self._evaluations.end_span(
                num_left_out=self._session.loading.num_evaluated,
                num_calls=sum(len(calls) for calls in self._session.recorder.calls()),
            )
        return [*warnings, *filter(None, [self._rollouts.end_span() if self._period.has_begun else None])]

    def start_span(self) -> None:
        session = self._session
        session.recorder.start_span()
        session.compiled.start_span()
        session.memory.start_span()
        session.collectives.start_span()
        session.loading.start_span()
        session.amp_dtype = session.autocast_dtype
        self._period.start_span()
        self._rollouts.start_span()
        self._evaluations.start_span()
        self._num_backward_calls = self._num_evaluations = 0

    def _tag_owned(self) -> None:
        if not self._session.is_watched:
            return
        for optimizer in list(self._period.optimizers.values()):
            self._tag_weights(parameters(optimizer))
            for state in optimizer.state.values():
                for value in state.values() if isinstance(state, dict) else ():
                    _tag(self._session, value, "optimizer")
        # Frozen parameters belong to no optimizer.
        for model in list(self._models.values()):
            self._tag_weights(model.parameters())
            self._session.memory.shapes_of_models.update(buffer.shape for buffer in model.buffers())
        self._tag_weights(self._session.recorder.written_leaves.values())
        self._session.recorder.making.resume()

    def _tag_weights(self, tensors: Iterable[torch.Tensor]) -> None:
        for tensor in tensors:
            part = part_of(tensor)
            _tag(self._session, tensor if part is None else part, "parameter")
            _tag(self._session, gradient_of(tensor), "gradient")
            if part is not None or any(
                not placement.is_replicate() for placement in getattr(tensor, "placements", ())
            ):
                self._session.world.is_sharded = True

    def _enter_module(self, module: torch.nn.Module, args: Args) -> None:  # noqa: ARG002
        compiled = self._session.compiled
        compiled.enter(compiled.mode_of(module))
        if self.depth == 0:
            if self._draws is not None and torch.is_grad_enabled():
                self._draws.begin()
            self._models[id(module)] = module
            self._session.recorder.enter_model()
            self._first_call = self._session.recorder.next_call
        self.depth += 1

    def _leave_module(self, module: torch.nn.Module, args: Args, result: object) -> None:  # noqa: ARG002
        self.depth = max(0, self.depth - 1)
        self._session.compiled.leave()
        if self.depth == 0 and self._draws is not None:
            self._draws.end()
        if not (self.depth or torch.is_grad_enabled()):
            self.passed(module, self._session.recorder.next_call - self._first_call)

    def passed(self, module: torch.nn.Module, num_calls: int) -> None:
        """A model was asked without gradients, for so many operators."""
        if self._position is not None:
            self._position.evaluated()
        if num_calls > 0 and not self._session.loading.is_evaluating:
            self._rollouts.add()
            self._evaluations.add(module, num_calls)


def _tag(session: Session, value: object, kind: str) -> None:
    if not isinstance(value, torch.Tensor) or value.device.type != session.device_type:
        return
    if value.layout is torch.sparse_coo:
        session.has_sparse_gradients |= kind == "gradient"
        session.memory.tag(value._indices(), kind)
        session.memory.tag(value._values(), kind)
    elif value.layout is torch.strided:
        session.memory.tag(value, kind)
