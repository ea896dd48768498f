"""Fused attention as a trace holds it, at cost."""

from advisor.core.values import AttributeValue, Op, Phase, TensorSpec
from advisor.operators.registry import cost_of


def make_attention(
    *,
    batch: int = 4,
    heads: int = 16,
    key_heads: int | None = None,
    queries: int = 1024,
    keys: int | None = None,
    size: int = 64,
    value_size: int | None = None,
    dtype: str = "bfloat16",
    is_causal: bool = False,
    backward: bool = False,
    mask: bool = False,
    kernel: str = "flash",
    dropout_p: float = 0.0,
    keeps_sums: bool = True,
    allowed: tuple[str, ...] | None = None,
    prefers: bool = False,
) -> Op:
    """``aten::_scaled_dot_product_*_attention`` or its backward, of which a script may allow some."""
    keys, key_heads = keys or queries, key_heads or heads

    def tensor(*shape: int, of: str = dtype) -> TensorSpec:
        return TensorSpec(shape=shape, dtype=of)

    query, key = tensor(batch, heads, queries, size), tensor(batch, key_heads, keys, size)
    value = tensor(batch, key_heads, keys, value_size or size)
    output = tensor(batch, heads, queries, value_size or size)
    sums = tensor(batch, heads, queries, of="float32")
    masks = (TensorSpec(shape=(batch, heads, queries, keys), dtype=dtype, stride=(0, 0, keys, 1)),)
    given = (query, key, value, *(masks if mask else ()))
    name = f"aten::_scaled_dot_product_{kernel}_attention"
    attributes: dict[str, AttributeValue] = {"is_causal": is_causal, "dropout_p": dropout_p}
    if kernel == "efficient" and not backward:
        attributes["compute_log_sumexp"] = keeps_sums
    if allowed is not None:
        attributes["backends"] = allowed
    if prefers:
        attributes["prefers_backends"] = True
    inputs, outputs = (given, (output, sums))
    if backward:
        name, inputs, outputs = f"{name}_backward", (output, *given, output, sums), (query, key, value)
    cost = cost_of(name, inputs, outputs, attributes)
    return Op(
        name=name,
        phase=Phase.BACKWARD if backward else Phase.FORWARD,
        inputs=inputs,
        outputs=outputs,
        attributes=attributes,
        flops=cost.flops,
        bytes=cost.bytes,
        count=1,
    )
