"""The layout that Inductor chooses, by its own rules: as the installed torch decides on the same graphs."""

from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from advisor.core.gpus import resolve_gpu
from advisor.core.values import Op, Phase, TensorSpec
from advisor.operators.convolution import is_channels_last
from advisor.predict.iteration import predict
from advisor.predict.what_if.channels_last import turned
from advisor.predict.what_if.compiled import as_run, chooses_channels_last, compiled, laid_out
from tests.builders import make_op, make_trace

GPU = resolve_gpu("A100-SXM-80GB")
BACKWARD = make_op("aten::mm", phase=Phase.BACKWARD)
# Channels out and in, groups, side of the filter: what the rules tell apart.
WIDE, SMALL, NARROWING, GROUPED, DEPTHWISE = (
    (128, 128, 1, 3), (32, 32, 1, 3), (64, 256, 1, 3), (128, 128, 32, 3), (128, 128, 128, 3),
)  # fmt: skip
NARROWING_POINTS = (64, 256, 1, 1)
Shape = tuple[int, int, int, int]


def image(channels: int, side: int = 16) -> TensorSpec:
    return TensorSpec(
        shape=(2, channels, side, side),
        dtype="float16",
        stride=(channels * side * side, side * side, side, 1),
    )


def convolution(shape: Shape, count: int = 1) -> Op:
    out, channels, groups, side = shape
    weight = TensorSpec(
        shape=(out, channels // groups, side, side),
        dtype="float16",
        stride=(channels // groups * side * side, side * side, side, 1),
    )
    return replace(
        make_op("aten::convolution", flops=2 * 2 * 256 * out * channels // groups * side * side),
        inputs=(image(channels), weight),
        outputs=(image(out),),
        attributes={
            "stride": (1, 1), "padding": (side // 2,) * 2, "dilation": (1, 1), "transposed": False,
            "output_padding": (0, 0), "groups": groups,
        },
        count=count,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("shapes", "training", "inference"),
    [
        ((WIDE,), True, True),
        ((WIDE, SMALL), True, True),
        ((SMALL,), False, True),
        ((WIDE, NARROWING), False, True),
        ((WIDE, NARROWING_POINTS), True, True),
        ((WIDE, GROUPED), False, True),
        ((GROUPED,), False, False),
        ((WIDE, DEPTHWISE), True, True),
        ((), False, False),
    ],
)
def test_by_the_shapes_of_convolutions(shapes, training, inference):
    ops = tuple(map(convolution, shapes))
    assert chooses_channels_last((*ops, BACKWARD)) is training
    assert chooses_channels_last(ops) is inference


def test_a_few_convolutions_among_much_else_change_nothing():
    others = make_op("aten::gelu", count=299)
    assert chooses_channels_last((convolution(WIDE), replace(others, count=298), BACKWARD))
    assert not chooses_channels_last((convolution(WIDE), others, BACKWARD))
    assert chooses_channels_last((convolution(WIDE, count=2), others, BACKWARD))


def _graph(torch: Any, shapes: tuple[Shape, ...]) -> Any:
    """The same convolutions as Inductor sees them."""
    graph = torch.fx.Graph()
    mode = torch._subclasses.FakeTensorMode()
    for i, (out, channels, groups, side) in enumerate(shapes):
        source, weight = graph.placeholder(f"source_{i}"), graph.placeholder(f"weight_{i}")
        node = graph.call_function(
            torch.ops.aten.convolution.default,
            (source, weight, None, [1, 1], [side // 2] * 2, [1, 1], False, [0, 0], groups),
        )
        with mode:
            source.meta["val"] = torch.empty(2, channels, 16, 16, dtype=torch.float16, device="cuda")
            weight.meta["val"] = torch.empty(
                out, channels // groups, side, side, dtype=torch.float16, device="cuda"
            )
            node.meta["val"] = torch.empty(2, out, 16, 16, dtype=torch.float16, device="cuda")
    graph.output(None)
    return torch.fx.GraphModule({}, graph)


@pytest.mark.parametrize("is_inference", [False, True])
def test_as_the_installed_torch_decides(monkeypatch, is_inference):
    torch = pytest.importorskip("torch")
    inductor = pytest.importorskip("torch._inductor.graph")
    if torch.version.hip:
        pytest.skip("Inductor leaves the layout on ROCm")
    shapes = (WIDE, SMALL, NARROWING, NARROWING_POINTS, GROUPED, DEPTHWISE)
    for chosen in product(shapes, repeat=2):
        theirs = inductor.GraphLowering.decide_layout_opt(_graph(torch, chosen), is_inference=is_inference)
        ops = tuple(map(convolution, chosen))
        ours = chooses_channels_last(ops if is_inference else (*ops, BACKWARD))
        assert ours is theirs, chosen


def test_a_compiled_step_runs_in_it_and_an_eager_one_does_not():
    trace = make_trace(ops=(convolution(WIDE), make_op("aten::gelu", num_bytes=10**6), BACKWARD))
    made = compiled(trace)
    assert made is not None
    assert is_channels_last(as_run(made, "NVIDIA").ops[0].outputs[0])
    assert as_run(made, "AMD").ops[0] == trace.ops[0]
    assert as_run(trace, "NVIDIA") is trace
    made_s, eager_s = (predict(each, GPU).by_family["convolution"] for each in (made, trace))
    assert made_s < eager_s


@pytest.mark.parametrize(
    ("release", "is_laid_out"),
    [("2.13.0+cpu", True), ("2.1.0", True), ("2.0.1", False), ("1.13.1", False), ("", True), ("later", True)],
)
def test_since_torch_2_1(release, is_laid_out):
    ops = (convolution(WIDE), BACKWARD)
    assert (laid_out(ops, "NVIDIA", release) != ops) is is_laid_out


@pytest.mark.parametrize(
    "changes",
    [
        {"attributes": {}},
        {"inputs": ()},
        {"inputs": (image(8),)},
        {"inputs": (image(8), TensorSpec(shape=(8,), dtype="float16"))},
    ],
)
def test_convolutions_that_a_profile_does_not_describe_choose_nothing(changes):
    untold = replace(convolution(WIDE), **changes)
    assert not chooses_channels_last((untold, BACKWARD))
    assert chooses_channels_last((untold, convolution(WIDE), BACKWARD))


def test_convolutions_of_sequences_count_by_their_channels():
    weight = TensorSpec(shape=(128, 128, 3), dtype="float16", stride=(384, 3, 1))
    flat = replace(convolution(WIDE), inputs=(image(128), weight))
    assert chooses_channels_last((flat, BACKWARD))


def test_inductors_own_norm_of_groups_reads_any_layout():
    """PyTorch's kernel does not: in eager mode its image is copied there and back."""
    norm = replace(make_op("aten::native_group_norm"), inputs=(image(128),), outputs=(image(128),))
    ops = (convolution(WIDE), norm, BACKWARD)
    assert len(laid_out(ops, "NVIDIA", "2.13.0")) == 3
    assert len(turned(ops)) == 5


def test_what_is_channels_last_already_stays():
    ops = laid_out((convolution(WIDE), BACKWARD), "NVIDIA", "2.13.0")
    assert laid_out(ops, "NVIDIA", "2.13.0") is ops
