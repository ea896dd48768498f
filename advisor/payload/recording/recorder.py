"""The operators of one span, equal calls counted together."""

from __future__ import annotations

import copy
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import torch
from torch._ops import OpOverload

from ..composite import Args, Kwargs
from ..protocol import GRADIENT, NUM_ROLES, OUTSIDE, PARAMETER, Operator, OperatorFlow, OperatorPhase, Tensor
from .memory import MemoryTracker
from .stopwatch import Making

# No kernel runs: they allocate, or change only how memory is looked at without saying so in the schema.
_NO_KERNEL = {
    "aten::empty", "aten::empty_like", "aten::empty_strided", "aten::new_empty", "aten::detach_",
    "aten::new_empty_strided", "aten::_unsafe_view", "aten::_reshape_alias", "aten::set_",
    "aten::resize_", "aten::t_", "aten::transpose_", "aten::squeeze_", "aten::unsqueeze_",
    "aten::as_strided_", "aten::record_stream", "aten::lift", "aten::lift_fresh", "aten::is_coalesced",
    "aten::_sparse_coo_tensor_with_dims_and_tensors", "aten::_sparse_coo_tensor_unsafe",
    "aten::_coalesced_", "aten::_nnz",
}  # fmt: skip
# torch.sparse.mm takes dense operands, too.
_OF_DENSE = {"aten::_sparse_addmm": "aten::addmm"}
# What runs where an operand is sparse; a sum with a dense tensor adds rows to it.
_OF_SPARSE = {
    "aten::mm": "aten::_sparse_mm", "aten::addmm": "aten::_sparse_addmm", "aten::mv": "aten::_sparse_mm",
    "aten::add_": "aten::index_add_", "aten::sub_": "aten::index_add_",
}  # fmt: skip
_OF_VALUES = {"data_dependent_output", "dynamic_output_shape"}  # of torch.Tag
_SKIPPED_TYPES = ("Device", "Layout", "MemoryFormat", "Generator", "Stream", "Storage")


class Signature:
    """Names, tensors and side effects of one operator."""

    def __init__(self, func: OpOverload) -> None:
        schema = func._schema
        self.name: str = _OF_DENSE.get(schema.name, schema.name)
        """``aten::convolution``, without the overload."""
        self.arguments = [_argument(argument) for argument in schema.arguments]
        """For each argument its name, whether it takes tensors, whether it is written to, whether it is an
        attribute worth keeping, and its default."""
        self.operands = [(index, one[0], one[2]) for index, one in enumerate(self.arguments) if one[1]]
        """Position and name of the arguments that take tensors, and whether they are written to."""
        self.written = [index for index, argument in enumerate(self.arguments) if argument[2]]
        self.needs_values = any(tag.name in _OF_VALUES for tag in func.tags)
        """Its result's shape, or what Python learns of it, follows from values."""
        self.of_sparse = self._renamed(_OF_SPARSE.get(self.name))
        """The same with the name of what runs on sparse tensors, None where that is the same."""
        self.runs_kernel = self.name not in _NO_KERNEL and not _is_view(schema)
        """False for views and allocations."""

    def _renamed(self, name: str | None) -> Signature | None:
        if name is None:
            return None
        other = copy.copy(self)
        other.name, other.of_sparse, other.runs_kernel = name, None, True
        return other


def _argument(argument: torch.Argument) -> tuple[str, bool, bool, bool, object]:
    kind = str(argument.type)
    takes_tensors = "Tensor" in kind
    written = argument.alias_info is not None and argument.alias_info.is_write
    is_attribute = not takes_tensors and not any(word in kind for word in _SKIPPED_TYPES)
    # device, layout, pin_memory and the like arrive as plain int or bool.
    is_attribute = is_attribute and argument.name not in ("device", "layout", "pin_memory",
                                                          "memory_format", "generator",
                                                          "non_blocking")  # fmt: skip
    default = argument.default_value if argument.has_default_value() else None
    return argument.name, takes_tensors, written, is_attribute, default


def _is_view(schema: torch.FunctionSchema) -> bool:
    returned = [result.alias_info for result in schema.returns]
    return bool(returned) and all(info is not None and not info.is_write for info in returned)


# Which kernels of attention a script allows, where it does not leave the choice to PyTorch.
#
# ``sdpa_kernel``, ``enable_flash_sdp`` and the like set switches of the process. Which kernel runs follows
# from them and from the GPU, so a trace that is to tell of other GPUs keeps the switches beside the kernel.

Choice = tuple[tuple[str, object], ...]
_FUSED = "aten::_scaled_dot_product_"
_BACKENDS = torch.backends.cuda
# By their number in torch.nn.attention.SDPBackend.
_SWITCHES: dict[int, tuple[str, Callable[[], bool]]] = {
    0: ("math", _BACKENDS.math_sdp_enabled),
    1: ("flash", _BACKENDS.flash_sdp_enabled),
    2: ("efficient", _BACKENDS.mem_efficient_sdp_enabled),
    3: ("cudnn", _BACKENDS.cudnn_sdp_enabled),
}
# PyTorch itself puts this one in place on GPUs of compute capability 9.0 and 10.0.
_CUDNN_FIRST = (3, 1, 2, 0)


class AttentionChoice:
    """Attributes of calls of fused attention; none where all kernels are allowed in PyTorch's order.

    A backward pass runs after the script's ``with`` block has ended, so it has the choice of the last forward
    pass over tensors of the same sizes.
    """

    def __init__(self) -> None:
        self._usual_order = _order()
        self._of_forward: dict[object, Choice] = {}

    def of(self, name: str, inputs: Sequence[TensorKey]) -> Choice:
        """``backends`` that a call allows; ``prefers_backends`` if they are in the script's own order."""
        if not name.startswith(_FUSED):
            return ()
        is_backward = name.endswith("_backward")
        sizes = tuple((shape, dtype) for shape, dtype, _ in inputs[is_backward : is_backward + 3])
        if is_backward:
            return self._of_forward.get(sizes, ())
        choice = self._of_forward[sizes] = self._now()
        return choice

    def _now(self) -> Choice:
        order = _order()
        switches = [_SWITCHES[number] for number in order]
        allowed = tuple(name for name, is_enabled in switches if is_enabled())
        is_whole = len(allowed) == len(order)
        if order == self._usual_order or (is_whole and order == _CUDNN_FIRST):
            return () if is_whole else (("backends", allowed),)
        return ("backends", allowed), ("prefers_backends", True)


def _order() -> tuple[int, ...]:
    return tuple(number for number in torch._C._get_sdp_priority_order() if number in _SWITCHES)


# Which calls made what a call reads, and of which forward call a backward call is.
#
# Equal calls are counted together, whatever made their operands. Flows distinguish them by the operators
# that did: the first layer reads an embedding, all others read the layer before.

_ROLES = {"parameter": PARAMETER, "gradient": GRADIENT}


class Entry:
    """Equal calls of one operator."""

    __slots__ = ("nodes", "numbers", "parameters")

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self.parameters: set[int | None] = set()
        """That they read, by the numbers of their storages."""
        self.nodes: dict[object, Node] = {}
        """These calls by the entries that made what they read."""

    def add(self, other: Entry) -> None:
        """Calls that were kept apart are of this entry."""
        self.numbers = sorted(self.numbers + other.numbers)
        self.nodes.update({node: node for node in other.nodes.values()})


class Node:
    """Calls of an entry that read what the same entries made."""

    __slots__ = ("entry", "new_parameters", "reads")

    def __init__(self, entry: Entry) -> None:
        self.entry = entry
        self.reads: Counter[RecordedRead] = Counter()
        """How many of them read what."""
        self.new_parameters: Counter[RecordedRead] = Counter()
        """Of those reads, how many parameters no call of the entry had read before."""


Source = Node | int  # what made a tensor, or the role of what nothing in the span made


class Forward(NamedTuple):
    """Whose gradient a node of the autograd graph computes: a call's, or a view's of what a call made."""

    node: Node
    is_of_view: bool


class RecordedRead(NamedTuple):
    """What one call reads, and the forward call that it is the backward call of."""

    sources: tuple[Source, ...]
    forward: Forward | None


class FlowTracker:
    """Follows tensors by their storages, and calls by the autograd graph's sequence numbers."""

    def __init__(self, memory: MemoryTracker) -> None:
        self._memory = memory
        self.start_span()

    def start_span(self) -> None:
        self._made: dict[int, Node] = {}
        self._forward: dict[int, Forward] = {}

    def call(self, entry: Entry, operands: Sequence[torch.Tensor], results: Sequence[torch.Tensor]) -> None:
        # With gradients recorded it is checkpointing, which runs the forward pass again.
        running = None if torch.is_grad_enabled() else torch._C._current_autograd_node()
        serials = [*map(self._memory.serial, operands)]
        forward = None if running is None else self._forward.get(running._sequence_nr())
        sources = tuple(map(self._source, serials))
        key = (
            None if forward is None else (forward.node.entry, forward.is_of_view),
            *(source if isinstance(source, int) else source.entry for source in sources),
        )
        node = entry.nodes.get(key)
        if node is None:
            node = entry.nodes[key] = Node(entry)
        read = RecordedRead(sources, forward)
        node.reads[read] += 1
        before = len(entry.parameters)
        entry.parameters |= {
            serial for serial, source in zip(serials, sources, strict=True) if source == PARAMETER
        }
        node.new_parameters[read] += len(entry.parameters) - before
        self._made.update((made, node) for made in map(self._memory.serial, results) if made is not None)
        is_in_place = any(result is operand for result in results for operand in operands)
        self._remember(Forward(node, is_of_view=False), is_in_place=is_in_place)

    def view(self, tensor: torch.Tensor) -> None:
        """The tensor was looked at in another way, which the backward pass has to undo."""
        source = self._source(self._memory.serial(tensor))
        if isinstance(source, Node):
            self._remember(Forward(source, is_of_view=True))

    def _source(self, serial: int | None) -> Source:
        if serial is None:
            return OUTSIDE
        role = _ROLES.get(self._memory.kinds.get(serial, ""))
        return self._made.get(serial, OUTSIDE) if role is None else role

    def _remember(self, forward: Forward, *, is_in_place: bool = False) -> None:
        if not torch.is_grad_enabled():
            return
        # The autograd graph has its node before the operator runs; what has none finds the one before.
        number = torch.autograd._get_sequence_nr() - 1  # type: ignore[attr-defined]
        if is_in_place and number in self._forward:
            number -= 1  # what the backward pass needs was copied in between, which has a node of its own
        self._forward.setdefault(number, forward)


def flows(entries: Sequence[Entry]) -> Iterator[list[OperatorFlow]]:
    """The flows of each entry; what other entries made comes from outside."""
    nodes = [node for entry in entries for node in entry.nodes.values()]
    ids = {node: NUM_ROLES + index for index, node in enumerate(nodes)}

    def number(source: Source) -> int:
        return source if isinstance(source, int) else ids.get(source, OUTSIDE)

    for entry in entries:
        yield [
            {
                "id": ids[node],
                "count": count,
                "sources": list(map(number, read.sources)),
                "new_parameters": node.new_parameters[read],
                "forward": None if read.forward is None else ids.get(read.forward.node),
                "is_of_view": read.forward is not None and read.forward.is_of_view,
            }
            for node in entry.nodes.values()
            for read, count in node.reads.items()
        ]


Shape = tuple[int, ...]
TensorKey = tuple[Shape, str, Shape | None]  # shape, dtype, stride (None if a compressed sparse one)
AttributeList = list[tuple[str, object]]
_NO_TASK = -1
READ = "aten::item"


class Description(NamedTuple):
    """A call but for its phase."""

    signature: Signature
    inputs: tuple[TensorKey, ...]
    outputs: tuple[TensorKey, ...]
    attributes: tuple[tuple[str, object], ...]


class RecordedCall(NamedTuple):
    """What is the same for calls that are counted together."""

    name: str
    phase: OperatorPhase
    inputs: tuple[TensorKey, ...]
    outputs: tuple[TensorKey, ...]
    attributes: tuple[tuple[str, object], ...]


class Recorder:
    """Takes each operator that would have run on the GPU."""

    def __init__(self, memory: MemoryTracker, device_type: str = "cuda") -> None:
        self.phase: OperatorPhase = "forward"
        """``forward`` or ``optimizer``; backward follows from the autograd engine."""
        self._step_depth = 0
        self._averages: set[int | None] | None = None
        """Behind a step, the storages of what was computed of weights alone; None once other work began."""
        self.next_call = 0
        """The number that the next call will get; calls count through all spans."""
        self.wrote_weights = False
        """Weights were written to outside of an optimizer's step and of backward passes."""
        self.follows_leaves = False
        """There is no optimizer, so any leaf that is written to is a weight."""
        self.written_leaves: dict[int, torch.Tensor] = {}
        """Such leaves by id; strong, since torch cannot convert a weakly referenced one."""
        self.value_calls: dict[str, list[int]] = {}
        """Numbers of the calls whose results follow from values, by operator name; ``READ`` for values that
        Python reads."""
        self.is_evaluating: Callable[[], bool] = lambda: False
        """Whether forward work of now belongs to an evaluation, which is kept apart."""
        self.making = Making()
        """How long the script takes to make what it copies to the GPU."""
        self._memory = memory
        self._device_type = device_type
        self._step_task = _NO_TASK
        self._signatures: dict[OpOverload, Signature] = {}
        self._dtype_names: dict[torch.dtype, str] = {}
        self._calls: dict[RecordedCall, Entry] = {}
        self._evaluation: dict[RecordedCall, Entry] = {}
        self._flow = FlowTracker(memory)
        self._backward_passes: set[int] = set()
        self._attention = AttentionChoice()

    def start_span(self) -> None:
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
        self._step_depth -= 1
        if self._step_depth <= 0:
            self.phase = "forward"
            self._averages = set()

    def enter_model(self) -> None:
        """What follows a step computes no averages of weights any more, as a teacher without autograd."""
        self._averages = None

    def resume_step(self) -> None:
        """What a step called that is no work of its own is over."""
        self.phase = "optimizer"
        self._step_task = torch._C._current_graph_task_id()

    def has_forward_work(self) -> bool:
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
        are_sparse = (getattr(one, "layout", None) is torch.sparse_coo for one in args)
        if signature.of_sparse is not None and any(are_sparse):
            signature = signature.of_sparse
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
        outputs = [self._spec(tensor) for tensor in self._tensors(result)] or written
        if not inputs and not outputs:
            return None
        return Description(signature, tuple(inputs), tuple(outputs), tuple(attributes))

    def count(
        self, described: Description | None, args: Args, kwargs: Kwargs, result: object, *,
        call: int | None = None,
    ) -> None:  # fmt: skip
        if described is None:
            for tensor in self._tensors(args[:1]):
                self._flow.view(tensor)
            return
        signature, inputs, outputs, attributes = described
        attributes += self._attention.of(signature.name, inputs)
        phase = self._phase(signature.name)
        if phase == "forward" and self._updates(signature, args, result):
            phase = "optimizer"
        entry = self._count(RecordedCall(signature.name, phase, inputs, outputs, attributes), call)
        if phase != "optimizer":
            operands: list[torch.Tensor] = []
            results = list(self._tensors(result))
            for index, name, is_written in signature.operands:
                tensors = list(self._tensors(args[index] if index < len(args) else kwargs.get(name)))
                operands += tensors
                results += tensors if is_written else ()
            self._flow.call(entry, operands, results)
        if signature.needs_values and (
            signature.name != "aten::index" or any(dtype in ("bool", "uint8") for _, dtype, _ in inputs[1:])
        ):
            self.value_calls.setdefault(signature.name, []).append(entry.numbers[-1])

    def record_copy(
        self, name: str, tensor: torch.Tensor, dtype: torch.dtype, *, call: int | None = None
    ) -> int:
        """Count a copy between host and device, ``advisor::h2d_copy`` or ``advisor::d2h_copy``."""
        if name == "advisor::h2d_copy":
            self._averages = None
        source = self._spec(tensor)
        copied = (source[0], self._dtype(dtype), source[2])
        return self._count(RecordedCall(name, self._phase(name), (source,), (copied,), ()), call).numbers[-1]

    def record_read(self, tensor: torch.Tensor) -> None:
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

    def _count(self, key: RecordedCall, call: int | None) -> Entry:
        is_kept_apart = key.phase == "forward" and self.is_evaluating()
        calls = self._evaluation if is_kept_apart else self._calls
        entry = calls.get(key)
        if entry is None:
            entry = calls[key] = Entry()
        entry.numbers.append(self.number() if call is None else call)
        return entry

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

    def _updates(self, signature: Signature, args: Args, result: object) -> bool:
        """Whether a call outside of any step writes to weights, reads their gradients, or averages them."""
        kinds = self._memory.kind
        written = [tensor for index in signature.written for tensor in self._tensors(args[index : index + 1])]
        for tensor in written:
            is_leaf = self.follows_leaves and tensor.requires_grad and tensor.is_leaf
            if is_leaf:
                self.written_leaves[id(tensor)] = tensor
            if is_leaf or kinds(tensor) == "parameter":
                self.wrote_weights = True
                return True
        is_of_gradient = any(kinds(tensor) == "gradient" for tensor in self._tensors(args))
        return is_of_gradient or self._averages_weights(args, result)

    def _averages_weights(self, args: Args, result: object) -> bool:
        """Whether a call right behind a step computes without autograd of what is like a model's alone."""
        if self._averages is None:
            return False
        operands = list(self._tensors(args))
        is_average = not torch.is_grad_enabled() and not self.is_evaluating()
        if not is_average or not operands or not all(map(self._is_average, operands)):
            self._averages = None
            return False
        self._averages |= {self._memory.serial(tensor) for tensor in self._tensors(result)}
        return True

    def _is_average(self, tensor: torch.Tensor) -> bool:
        """Whether it was made by such calls, or is older than the step and has a shape of a model."""
        serial = self._memory.serial(tensor)
        if serial is not None and serial in (self._averages or ()):
            return True
        is_like = tensor.dim() == 0 or tensor.shape in self._memory.shapes_of_models
        return is_like and self._memory.outlives_steps(serial)

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


def _plain(spec: TensorKey) -> Tensor:
    shape, dtype, stride = spec
    return {"shape": list(shape), "dtype": dtype, "stride": None if stride is None else list(stride)}
