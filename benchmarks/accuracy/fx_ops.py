"""Nodes of a ``torch.fx`` graph as operators of a profile, forward and backward.

Modules are told apart by the last part of their names, linear layers by what is left. The tables of
embeddings are not in the graph; a lookup reads what it returns. Nodes that only make views or compute shapes
are none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from advisor.core.values import Op, Phase, TensorSpec
from advisor.operators.registry import cost_of
from benchmarks.accuracy.op_traces import Node, Shape

_NO_WORK = frozenset(
    {"size", "dim", "view", "permute", "transpose", "getattr", "getitem", "unsqueeze", "expand", "eq", "ne",
     "gt", "finfo", "split", "tensor"}
)  # fmt: skip
_PRODUCTS = frozenset({"addmm", "matmul", "bmm", "linear"})
_COPIES = frozenset({"contiguous", "reshape", "to", "type", "type_as", "bool", "long", "float"})
_NAMES = {
    "truediv": "aten::div.Tensor", "add": "aten::add.Tensor", "mul": "aten::mul.Tensor",
    "sub": "aten::sub.Tensor", "where": "aten::where.self", "pow": "aten::pow.Tensor_Scalar",
    "softmax": "aten::_softmax", "layer_norm": "aten::native_layer_norm", "dropout": "aten::native_dropout",
    "embedding": "aten::embedding", "max": "aten::maximum", "copy": "aten::clone",
}  # fmt: skip
# Tensors as large as the output that the backward operator reads, the gradient included, and writes.
_BACKWARD = {
    "softmax": ("aten::_softmax_backward_data", 2), "layer_norm": ("aten::native_layer_norm_backward", 2),
    "dropout": ("aten::native_dropout_backward", 2), "embedding": ("aten::embedding_dense_backward", 1),
    "gelu": ("aten::gelu_backward", 2), "tanh": ("aten::tanh_backward", 2),
    "relu": ("aten::threshold_backward", 2), "pow": ("aten::mul.Tensor", 2), "max": ("aten::where.self", 3),
}  # fmt: skip


def kind_of(node: Node) -> str:
    """``linear``, ``softmax``, ``copy`` ... or ``""`` for a node that runs nothing on the GPU.

    A call of a module is told by its name: ``ln_1`` and ``LayerNorm`` normalise, ``wte`` looks up.
    """
    if not node.is_call or node.output_shape == (1,) or node.target in _NO_WORK:
        return ""
    if node.kind == "call_module":
        return _kind_of_module(node.target.rpartition(".")[2].lower())
    return "copy" if node.target in _COPIES else node.target


def _kind_of_module(name: str) -> str:
    words = {
        "norm": "layer_norm", "ln_": "layer_norm", "drop": "dropout", "embed": "embedding",
        "wte": "embedding", "wpe": "embedding", "activation_fn": "relu", "activation": "tanh",
    }  # fmt: skip
    return next((kind for word, kind in words.items() if word in name), "linear")


def forward_ops(node: Node) -> tuple[Op, ...]:
    """What the node runs forward."""
    kind = kind_of(node)
    if not kind:
        return ()
    if kind in _PRODUCTS:
        batch, m, n, k = product(node)
        return (_product(batch, m, n, k, Phase.FORWARD),)
    inputs = [_tensor(shape) for shape in node.input_shapes if shape != (1,)]
    if kind == "layer_norm":
        inputs += [_tensor(node.output_shape[-1:])] * 2
    if kind == "embedding":
        inputs = [_tensor(node.output_shape), *inputs[:1]]
    name = _NAMES.get(kind, f"aten::{kind}")
    return (_op(name, inputs, _tensor(node.output_shape, node.dtype), Phase.FORWARD),)


def backward_ops(node: Node) -> tuple[Op, ...]:
    """What the node runs backward: of a product both gradients, of a sum nothing."""
    kind = kind_of(node)
    if not kind or kind in ("add", "sub"):
        return ()
    if kind in _PRODUCTS:
        batch, m, n, k = product(node)
        return _product(batch, m, k, n, Phase.BACKWARD), _product(batch, k, n, m, Phase.BACKWARD)
    name, reads = _BACKWARD.get(kind, ("aten::mul.Tensor", 1))
    whole = _tensor(node.output_shape)
    return (_op(name, [whole] * reads, whole, Phase.BACKWARD),)


def accumulate_ops(node: Node) -> tuple[Op, ...]:
    """Adding the gradients of the node's parameters to those of the iteration before."""
    kind = kind_of(node)
    if kind in ("linear", "addmm"):
        _, _, n, k = product(node)
        weight = _tensor((k, n))
    elif kind in ("layer_norm", "embedding"):
        weight = _tensor(node.output_shape[-1:] if kind == "layer_norm" else node.output_shape)
    else:
        return ()
    return (_op("aten::add_.Tensor", [weight, weight], weight, Phase.BACKWARD),)


def product(node: Node) -> tuple[int, int, int, int]:
    """Batch, rows, columns and inner size of a node that multiplies matrices."""
    columns = node.output_shape[-1]
    first = node.input_shapes[1 if node.target == "addmm" else 0]
    if node.target in ("matmul", "bmm"):
        return math.prod(node.output_shape[:-2]), node.output_shape[-2], columns, first[-1]
    return 1, math.prod(node.output_shape[:-1]), columns, first[-1]


def _product(batch: int, m: int, n: int, k: int, phase: Phase) -> Op:
    if batch == 1:
        return _op("aten::mm", [_tensor((m, k)), _tensor((k, n))], _tensor((m, n)), phase)
    operands = [_tensor((batch, m, k)), _tensor((batch, k, n))]
    return _op("aten::bmm", operands, _tensor((batch, m, n)), phase)


def _tensor(shape: Shape, dtype: str = "float32") -> TensorSpec:
    stride = tuple(math.prod(shape[i + 1 :]) for i in range(len(shape)))
    return TensorSpec(shape=shape, dtype=dtype or "float32", stride=stride)


def _op(name: str, inputs: Sequence[TensorSpec], output: TensorSpec, phase: Phase) -> Op:
    cost = cost_of(name.partition(".")[0], inputs, [output], {})
    return Op(
        name=name,
        phase=phase,
        inputs=tuple(inputs),
        outputs=(output,),
        attributes={},
        flops=cost.flops,
        bytes=cost.bytes,
        count=1,
    )
