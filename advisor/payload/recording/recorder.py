"""The operators of one span, equal calls counted together."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple, Optional

import torch

from ..protocol import Operator, OperatorFlow, OperatorPhase, Tensor
from .attention_choice import AttentionChoice
from .flow import Entry, Flow, flows
from .memory import MemoryTracker
from .own_samples import Making
from .signature import Signature

if TYPE_CHECKING:
    from torch._ops import OpOverload

    from ..dispatch import Args, Kwargs

Shape = tuple[int, ...]
TensorKey = tuple[Shape, str, Optional[Shape]]  # shape, dtype, stride (None if a compressed sparse one)
AttributeList = list[tuple[str, object]]
_NO_TASK = -1
READ = "aten::item"


class Description(NamedTuple):
    """A call but for its phase."""

    signature: Signature
    inputs: tuple[TensorKey, ...]
    outputs: tuple[TensorKey, ...]
    attributes: tuple[tuple[str, object], ...]


class Call(NamedTuple):
    """What is the same for calls that are counted together."""

    name: str
    phase: OperatorPhase
    inputs: tuple[TensorKey, ...]
    outputs: tuple[TensorKey, ...]
    attributes: tuple[tuple[str, object], ...]


class Recorder:
    """Takes each operator that would have run on the GPU.

    Attributes:
        phase: ``forward`` or ``optimizer``; backward is told by the autograd engine.
        next_call: the number that the next call will get; calls count through all spans.
        wrote_weights: weights were written to outside of an optimizer's step and of backward passes.
        follows_leaves: there is no optimizer, so any leaf that is written to is a weight.
        written_leaves: such leaves by id; strong, since torch cannot convert a weakly referenced one.
        value_calls: numbers of the calls whose results follow from values, by operator name; ``READ`` for
            values that Python reads.
        is_evaluating: whether forward work of now belongs to an evaluation, which is kept apart.
        making: how long the script takes to make what it copies to the GPU.
    """

    def __init__(self, memory: MemoryTracker, device_type: str = "cuda") -> None:
        self.phase: OperatorPhase = "forward"
        self._step_depth = 0
        self.next_call = 0
        self.wrote_weights = False
        self.follows_leaves = False
        self.written_leaves: dict[int, torch.Tensor] = {}
        self.value_calls: dict[str, list[int]] = {}
        self.is_evaluating: Callable[[], bool] = lambda: False
        self.making = Making()
        self._memory = memory
        self._device_type = device_type
        self._step_task = _NO_TASK
        self._signatures: dict[OpOverload, Signature] = {}
        self._dtype_names: dict[torch.dtype, str] = {}
        self._calls: dict[Call, Entry] = {}
        self._evaluation: dict[Call, Entry] = {}
        self._flow = Flow(memory)
        self._backward_passes: set[int] = set()
        self._attention = AttentionChoice()

    def start_span(self) -> None:
        """Forget the operators so far."""
        self._calls, self._evaluation = {}, {}
        self._flow.start_span()
        self.making.start_span()
        self.value_calls = {}
        self._backward_passes = set()

    def keep_evaluation(self) -> None:
        """What was kept apart is part of the span after all."""
        for key, entry in self._evaluation.items():
            self._calls.setdefault(key, Entry()).add(entry)
        self._calls = dict(sorted(self._calls.items(), key=lambda item: item[1].numbers[0]))
        self._evaluation = {}

    def begin_step(self) -> None:
        """An optimizer steps, perhaps inside another, or the backward pass that computes its gradients."""
        self._step_depth += 1
        self.resume_step()

    def end_step(self) -> None:
        """The innermost step is over."""
        self._step_depth -= 1
        if self._step_depth <= 0:
            self.phase = "forward"

    def resume_step(self) -> None:
        """What a step called that is no work of its own is over."""
        self.phase = "optimizer"
        self._step_task = torch._C._current_graph_task_id()

    def has_forward_work(self) -> bool:
        """Whether the span holds more than an optimizer's work."""
        return any(call.phase != "optimizer" for call in self._calls)

    @property
    def num_backward_passes(self) -> int:
        """How often the autograd engine ran in this span."""
        return len(self._backward_passes)

    def number(self) -> int:
        """A number for a call that is about to run."""
        self.next_call += 1
        return self.next_call - 1

    def record(
        self, func: OpOverload, args: Args, kwargs: Kwargs, result: object, *, call: int | None = None
    ) -> None:
        """Count one call, unless it is a view or an allocation."""
        self.count(self.describe(func, args, kwargs, result), args, kwargs, result, call=call)

    def describe(self, func: OpOverload, args: Args, kwargs: Kwargs, result: object) -> Description | None:
        """What follows from the form of the call; None for a view or an allocation."""
        signature = self._signatures.get(func)
        if signature is None:
            signature = self._signatures[func] = Signature(func)
        if not signature.runs_kernel:
            return None
        if signature.of_sparse is not None and any(map(_is_sparse, args)):
            signature = signature.of_sparse
        inputs, written, attributes = self._split(signature, args, kwargs)
        outputs = [self._spec(tensor) for tensor in self._tensors(result)] or written
        if not inputs and not outputs:
            return None
        return Description(signature, tuple(inputs), tuple(outputs), tuple(attributes))

    def count(
        self,
        described: Description | None,
        args: Args,
        kwargs: Kwargs,
        result: object,
        *,
        call: int | None = None,
    ) -> None:
        """Count one call that was described before."""
        if described is None:
            for tensor in self._tensors(args[:1]):
                self._flow.view(tensor)
            return
        signature, inputs, outputs, attributes = described
        attributes += self._attention.of(signature.name, inputs)
        phase = self._phase(signature.name)
        if phase == "forward" and self._updates_by_hand(signature, args):
            phase = "optimizer"
        entry = self._count(Call(signature.name, phase, inputs, outputs, attributes), call)
        if phase != "optimizer":
            self._follow(entry, signature, args, kwargs, result)
        if signature.needs_values and _is_of_values(signature.name, inputs):
            self.value_calls.setdefault(signature.name, []).append(entry.numbers[-1])

    def record_copy(
        self, name: str, tensor: torch.Tensor, dtype: torch.dtype, *, call: int | None = None
    ) -> int:
        """Count a copy between host and device, ``advisor::h2d_copy`` or ``advisor::d2h_copy``."""
        source = self._spec(tensor)
        copied = (source[0], self._dtype(dtype), source[2])
        return self._count(Call(name, self._phase(name), (source,), (copied,), ()), call).numbers[-1]

    def record_read(self, tensor: torch.Tensor) -> None:
        """Count the copy of a value that Python asks for."""
        number = self.record_copy("advisor::d2h_copy", tensor, tensor.dtype)
        self.value_calls.setdefault(READ, []).append(number)

    def operators(self) -> list[Operator]:
        """The span's operators in the order in which each was first seen."""
        return [
            {
                "name": name,
                "phase": phase,
                "inputs": [_plain(spec) for spec in inputs],
                "outputs": [_plain(spec) for spec in outputs],
                "attributes": dict(attributes),
                "count": len(entry.numbers),
            }
            for (name, phase, inputs, outputs, attributes), entry in self._calls.items()
        ]

    def calls(self) -> list[list[int]]:
        """The numbers of the calls of each operator, in the order of ``operators``."""
        return [entry.numbers for entry in self._calls.values()]

    def flows(self) -> list[list[OperatorFlow]]:
        """What the calls of each operator read, in the order of ``operators``."""
        return list(flows(list(self._calls.values())))

    def forward_calls(self) -> list[int]:
        """The numbers of the calls of the forward pass."""
        return [
            number
            for call, entry in self._calls.items()
            if call.phase == "forward"
            for number in entry.numbers
        ]

    def _split(
        self, signature: Signature, args: Args, kwargs: Kwargs
    ) -> tuple[list[TensorKey], list[TensorKey], AttributeList]:
        inputs: list[TensorKey] = []
        written: list[TensorKey] = []
        attributes: AttributeList = []
        for index, (name, takes_tensors, is_written, is_attribute, default) in enumerate(signature.arguments):
            value = args[index] if index < len(args) else kwargs.get(name, default)
            if takes_tensors:
                specs = [self._spec(tensor) for tensor in self._tensors(value)]
                inputs += specs
                if is_written:
                    written += specs
                if index == 0 and isinstance(value, (list, tuple)):
                    attributes.append(("num_tensors", len(value)))
            elif is_attribute:
                attributes.append((name, self._attribute(value)))
        return inputs, written, attributes

    def _count(self, key: Call, call: int | None) -> Entry:
        is_kept_apart = key.phase == "forward" and self.is_evaluating()
        calls = self._evaluation if is_kept_apart else self._calls
        entry = calls.get(key)
        if entry is None:
            entry = calls[key] = Entry()
        entry.numbers.append(self.number() if call is None else call)
        return entry

    def _follow(self, entry: Entry, signature: Signature, args: Args, kwargs: Kwargs, result: object) -> None:
        operands: list[torch.Tensor] = []
        results = list(self._tensors(result))
        for index, (name, takes_tensors, is_written, _, _) in enumerate(signature.arguments):
            if takes_tensors:
                tensors = list(self._tensors(args[index] if index < len(args) else kwargs.get(name)))
                operands += tensors
                results += tensors if is_written else ()
        self._flow.call(entry, operands, results)

    def _phase(self, name: str) -> OperatorPhase:
        task = torch._C._current_graph_task_id()
        if self.phase == "optimizer" and task == self._step_task:
            return "optimizer"
        if task != _NO_TASK:
            self._backward_passes.add(task)
            return "backward"
        # Lists of tensors are worked on by optimizers, gradient clipping and gradient scaling alone.
        if name.startswith(("aten::_foreach", "aten::_amp_", "aten::_fused_ada", "aten::_fused_sgd")):
            return "optimizer"
        return self.phase

    def _updates_by_hand(self, signature: Signature, args: Args) -> bool:
        """Whether a call outside of any step writes to weights, or reads their gradients."""
        kinds = self._memory.kind
        written = [tensor for index in signature.written for tensor in self._tensors(args[index : index + 1])]
        for tensor in written:
            is_leaf = self.follows_leaves and tensor.requires_grad and tensor.is_leaf
            if is_leaf:
                self.written_leaves[id(tensor)] = tensor
            if is_leaf or kinds(tensor) == "parameter":
                self.wrote_weights = True
                return True
        return any(kinds(tensor) == "gradient" for tensor in self._tensors(args))

    def _tensors(self, value: object) -> Iterator[torch.Tensor]:
        if isinstance(value, torch.Tensor):
            # Zero-dimensional CPU tensors travel to a GPU as kernel arguments.
            if value.layout is torch.sparse_coo:
                yield from (value._indices(), value._values())
            elif value.dim() > 0 or value.device.type == self._device_type:
                yield value
        elif isinstance(value, (list, tuple)):
            for item in value:
                yield from self._tensors(item)

    def _spec(self, tensor: torch.Tensor) -> TensorKey:
        stride = tuple(tensor.stride()) if tensor.layout is torch.strided else None
        return tuple(tensor.shape), self._dtype(tensor.dtype), stride

    def _dtype(self, dtype: torch.dtype) -> str:
        name = self._dtype_names.get(dtype)
        if name is None:
            name = self._dtype_names[dtype] = str(dtype).rpartition(".")[2]
        return name

    def _attribute(self, value: object) -> object:
        if isinstance(value, float):
            # JSON has no infinity.
            return value if math.isfinite(value) else str(value)
        if isinstance(value, (bool, int, str)) or value is None:
            return value
        if isinstance(value, (list, tuple)):
            return tuple(self._attribute(item) for item in value)
        return self._dtype(value) if isinstance(value, torch.dtype) else str(value)


def _is_sparse(value: object) -> bool:
    return isinstance(value, torch.Tensor) and value.layout is torch.sparse_coo


def _is_of_values(name: str, inputs: tuple[TensorKey, ...]) -> bool:
    """Of an index by numbers the shape is known, of one by a mask it is not."""
    return name != "aten::index" or any(dtype in ("bool", "uint8") for _, dtype, _ in inputs[1:])


def _plain(spec: TensorKey) -> Tensor:
    shape, dtype, stride = spec
    return {"shape": list(shape), "dtype": dtype, "stride": None if stride is None else list(stride)}
