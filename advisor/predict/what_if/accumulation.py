"""A trace as if the script took several passes for one step: gradients are added up, the optimizer waits."""

from __future__ import annotations

from dataclasses import replace

from advisor.core.values import AttributeValue, Op, Phase, TensorSpec, Trace
from advisor.operators.costs import cost_of
from advisor.operators.work import first_list, total_bytes
from advisor.predict.what_if.batch import with_larger_steps
from advisor.predict.what_if.changed_memory import of_more_passes


def accumulated(trace: Trace, passes: int) -> Trace | None:
    """The trace of a script that steps after ``passes`` times as many passes, each as it is.

    The first pass leaves its gradients, each of the others adds to them (PyTorch's ``AccumulateGrad``). Each
    loss is divided by the number of passes.

    Args:
        trace: of the script as it is.
        passes: 4 for four passes where there was one.

    Returns:
        None where the optimizer's parameters are not known.
    """
    parameters = _parameters(trace)
    if not parameters:
        return None
    last = max((i for i, op in enumerate(trace.ops) if op.phase is Phase.BACKWARD), default=-1)
    # Behind the last gradient they are clipped: once a step.
    in_passes = (_repeated(op, passes) if i <= last else op for i, op in enumerate(trace.ops))
    return replace(
        with_larger_steps(trace, passes),
        ops=(*in_passes, *_additions(parameters, passes - 1), *_scaled_losses(passes)),
        accumulation=trace.accumulation * passes,
        memory=of_more_passes(trace.memory),
    )


def _repeated(op: Op, passes: int) -> Op:
    if op.phase is Phase.OPTIMIZER:
        return op
    flows = tuple(replace(flow, count=flow.count * passes) for flow in op.flows)
    return replace(op, count=op.count * passes, flows=flows)


def _parameters(trace: Trace) -> tuple[TensorSpec, ...]:
    """What the optimizer steps over: of what its operators work on, the one as large as the gradients."""
    lists: dict[str, list[TensorSpec]] = {}
    for op in trace.ops:
        if op.phase is Phase.OPTIMIZER:
            stepped = (
                first_list(op.inputs, op.attributes) if "num_tensors" in op.attributes else op.outputs[:1]
            )
            lists.setdefault(op.name, []).extend(tensor for tensor in stepped for _ in range(op.count))

    def order(tensors: list[TensorSpec]) -> tuple[int, int]:
        num_bytes = total_bytes(tensors)
        return abs(num_bytes - (trace.memory.gradient_bytes or num_bytes)), -len(tensors)

    if not lists:
        return ()
    smallest: list[TensorSpec] = min(lists.values(), key=order)
    return tuple(smallest)


def _additions(parameters: tuple[TensorSpec, ...], times: int) -> tuple[Op, ...]:
    counts: dict[TensorSpec, int] = {}
    for tensor in parameters:
        counts[tensor] = counts.get(tensor, 0) + 1
    return tuple(_addition(tensor, count * times) for tensor, count in counts.items())


def _scaled_losses(passes: int) -> tuple[Op, ...]:
    loss = TensorSpec(shape=(), dtype="float32", stride=())
    return tuple(
        _op("aten::div", phase, (loss,), loss, {}, passes) for phase in (Phase.FORWARD, Phase.BACKWARD)
    )


def _addition(tensor: TensorSpec, count: int) -> Op:
    return _op("aten::add_", Phase.BACKWARD, (tensor, tensor), tensor, {"alpha": 1}, count)


def _op(
    name: str,
    phase: Phase,
    inputs: tuple[TensorSpec, ...],
    output: TensorSpec,
    attributes: dict[str, AttributeValue],
    count: int,
) -> Op:
    cost = cost_of(name, inputs, (output,), attributes)
    return Op(
        name=name,
        phase=phase,
        inputs=inputs,
        outputs=(output,),
        attributes=attributes,
        flops=cost.flops,
        bytes=cost.bytes,
        count=count,
    )
