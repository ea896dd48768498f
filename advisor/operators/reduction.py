"""Reductions, pooling and losses: more elements in than out."""

from collections.abc import Iterator, Mapping
from functools import partial
from math import prod
from typing import cast

from advisor.core.values import Phase
from advisor.operators import case, work
from advisor.operators.elementwise import ELEMENTWISE
from advisor.operators.family import Autocast, Family, each, names


def _window(inputs: work.Tensors, outputs: work.Tensors, attributes: work.Attributes) -> int:  # noqa: ARG001
    sides = cast("tuple[int, ...]", attributes["kernel_size"])
    return work.numel(outputs[0]) * prod(sides * 2 if len(sides) == 1 else sides)


def _picks_targets(inputs: work.Tensors, outputs: work.Tensors, attributes: work.Attributes) -> int:  # noqa: ARG001
    """The loss of classes reads one probability per target."""
    picked = work.tensor_bytes(inputs[1]) // 8 * work.item_bytes(inputs[0].dtype)
    return picked + work.total_bytes(inputs[1:]) + work.total_bytes(outputs)


_REDUCTIONS: Mapping[str, case.Make] = {
    "sum of columns": case.mapped("sum.dim_IntList", 1, [0], True),
    "mean of rows": case.mapped("mean.dim", 1, [1], True),
    "norm": case.mapped("linalg_vector_norm", 1),
}


def _pooling(index: int, caps: case.Caps) -> Iterator[case.Case]:
    draw = case.Draw("pooling", index)
    dtype = draw.choice(case.FLOATS)
    kernel, padding = draw.choice(((3, 1), (2, 0)))
    channels = draw.size(16, 512, 8)
    sizes = draw.size(1, 256), draw.size(8, 128, 2)
    batch, side = case.shrunk(
        sizes, lambda batch, side: caps.allow(5 * batch * channels * side**2, dtype), least=4
    )
    side = max(4, side // 2 * 2)
    source = case.tensor((batch, channels, side, side), dtype, name="source")
    window = ([kernel] * 2, [2, 2], [padding] * 2, [1, 1], False)
    forward = case.call("max_pool2d_with_indices", source, *window, results=("out", "indices"))
    gradient = case.tensor((batch, channels, side // 2, side // 2), dtype)
    backward = case.call(
        "max_pool2d_with_indices_backward", gradient, source, *window, case.result("indices")
    )
    yield from case.both_ways("pooling", dtype, forward, backward)


def _losses(index: int, caps: case.Caps) -> Iterator[case.Case]:
    """What cross entropy does besides the log-softmax, which autocast makes float32."""
    draw = case.Draw("nll_loss", index)
    sizes = draw.size(32, 65536), draw.size(64, 32768)
    rows, classes = case.shrunk(sizes, lambda *it: caps.allow(4 * prod(it), "float32"))
    scores = case.tensor((rows, classes), "float32", name="scores")
    targets = case.tensor((rows,), "int64", below=classes, name="targets")
    gradient = case.tensor((), "float32", name="gradient")
    forward = case.call("nll_loss_forward", scores, targets, None, 1, -100, results=("loss", "total"))
    backward = case.call("nll_loss_backward", gradient, scores, targets, None, 1, -100, case.result("total"))
    yield from case.both_ways("loss", "float32", forward, backward)


REDUCTION = Family(
    word=ELEMENTWISE.word,
    others=names("kl_div"),
    flops=each("max_pool2d_with_indices avg_pool2d", _window),
    nominal={
        **each(
            """binary_cross_entropy_with_logits max_pool2d_with_indices_backward avg_pool2d_backward""",
            work.PerElement(of_output=1),
        ),
        **each(
            """mse_loss_backward binary_cross_entropy_backward smooth_l1_loss_backward
            huber_loss_backward""",
            work.PerElement(of_output=2),
        ),
        **each(
            """sum mean prod max min amax amin any all argmax argmin nansum norm linalg_vector_norm
            logsumexp var std var_mean std_mean mse_loss l1_loss smooth_l1_loss huber_loss
            binary_cross_entropy nll_loss_backward _adaptive_avg_pool2d adaptive_avg_pool2d
            _adaptive_avg_pool2d_backward
            adaptive_max_pool2d max_pool3d_with_indices avg_pool3d count_nonzero""",
            work.PerElement(of_input=1),
        ),
        **each("nll_loss_forward nll_loss2d_forward nll_loss2d_backward", work.MOVES),
    },
    traffic={
        **each("nll_loss_forward nll_loss2d_forward", _picks_targets),
        # They take the forward's input for its shape alone.
        **each(
            """nll_loss_backward nll_loss2d_backward max_pool2d_with_indices_backward avg_pool2d_backward
            _adaptive_avg_pool2d_backward""",
            lambda inputs, outputs, _: work.total_bytes([inputs[0], *inputs[2:], *outputs]),
        ),
    },
    calibrates=ELEMENTWISE.calibrates,
    autocast=Autocast(
        full=names(
            """prod nll_loss_forward nll_loss2d_forward mse_loss smooth_l1_loss huber_loss
            binary_cross_entropy binary_cross_entropy_with_logits kl_div logsumexp"""
        )
    ),
    cases={
        "loss": _losses,
        "reduction": partial(case.streams, "reduction", _REDUCTIONS, Phase.BACKWARD),
        "pooling": _pooling,
    },
)
