"""Optimizer steps: fused ones, and whatever else streams through memory in the optimizer's phase."""

from collections.abc import Iterator

from advisor.core.values import Phase
from advisor.operators.case import Argument, Call, Caps, Case, Draw, call, shrunk, tensor
from advisor.operators.family import Family, each
from advisor.operators.work import first_list, numel, total_bytes

_DTYPE = "float32"
# Matrices and vectors of a transformer's layer, whose width is drawn.
_LAYER = ((1, 3), (3, 0), (1, 1), (1, 0), (1, 4), (4, 0), (4, 1), (1, 0), (1, 0), (1, 0))
# Parameters, gradients and two moments.
_MOST_LISTS = 4


def _cases(index: int, caps: Caps) -> Iterator[Case]:
    draw = Draw("optimizer", index)
    # A layer has twelve squares of its width.
    width, num_layers = shrunk(
        (draw.size(32, 2048, 8), draw.size(1, 12)),
        lambda width, num_layers: caps.allow(2 * _MOST_LISTS * num_layers * 12 * width**2, _DTYPE),
        least=1,
    )
    shapes = [tuple(side * width for side in sides if side) for _ in range(num_layers) for sides in _LAYER]
    for operation in (*_fused(shapes), *_on_lists(shapes)):
        yield Case(family="optimizer", dtype=_DTYPE, phase=Phase.OPTIMIZER, call=operation)


def _list(shapes: list[tuple[int, ...]]) -> list[Argument]:
    return [tensor(shape, _DTYPE) for shape in shapes]


def _fused(shapes: list[tuple[int, ...]]) -> Iterator[Call]:
    steps = [tensor((), _DTYPE) for _ in shapes]
    for name in ("_fused_adam_", "_fused_adamw_"):
        yield call(
            name, *(_list(shapes) for _ in range(_MOST_LISTS)), [], steps,
            lr=1e-3, beta1=0.9, beta2=0.999, weight_decay=0.01, eps=1e-8, amsgrad=False, maximize=False,
        )  # fmt: skip
    yield call(
        "_fused_sgd_", *(_list(shapes) for _ in range(3)), weight_decay=1e-4, momentum=0.9, lr=0.1,
        dampening=0.0, nesterov=False, maximize=False, is_first_step=False,
    )  # fmt: skip


def _on_lists(shapes: list[tuple[int, ...]]) -> Iterator[Call]:
    scalars = [0.999] * len(shapes)
    yield call("_foreach_add_.List", _list(shapes), _list(shapes), alpha=0.1)
    yield call("_foreach_mul_.Scalar", _list(shapes), 0.999)
    yield call("_foreach_lerp_.Scalar", _list(shapes), _list(shapes), 0.1)
    yield call("_foreach_addcmul_.Scalar", _list(shapes), _list(shapes), _list(shapes), 0.001)
    yield call("_foreach_sqrt", _list(shapes))
    yield call("_foreach_div_.ScalarList", _list(shapes), scalars)
    yield call("_foreach_addcdiv_.ScalarList", _list(shapes), _list(shapes), _list(shapes), scalars)


OPTIMIZER = Family(
    word="optimizer",
    flops={
        **each(
            "_fused_sgd_ _fused_adam_ _fused_adamw_",
            lambda inputs, _, attributes: 12 * sum(map(numel, first_list(inputs, attributes))),
        ),
        "_amp_foreach_non_finite_check_and_unscale_": lambda inputs, _, attributes: sum(
            map(numel, first_list(inputs, attributes))
        ),
    },
    # The schema marks gradients as written, which fused steps do only when they unscale.
    traffic=each(
        "_fused_sgd _fused_adam _fused_adamw",
        lambda inputs, outputs, attributes: (
            total_bytes(inputs) + total_bytes(outputs) - total_bytes(first_list(inputs, attributes))
        ),
    ),
    cases={"optimizer": _cases},
)
