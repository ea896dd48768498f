"""Rows of distributed scripts, each profiled as one process of its group."""

from math import prod

from tests.compatibility.row import ADAM, EFFICIENT, FLASH, Row, dense, fp32_bytes, linear_flops

_SYNCED = ((16, 3, 3, 3), *3 * ((16,),), *dense(16 * 30 * 30, 10))
_SPAWN, _TORCHRUN = dense(1024, 4096, 1024), dense(512, 2048, 10)
_WIDTH, _TOKENS, _LAYERS = 256, 32 * 64, 3
_LAYER = (
    *4 * ((_WIDTH,),), *dense(_WIDTH, 3 * _WIDTH), *dense(_WIDTH, _WIDTH), *dense(_WIDTH, 4 * _WIDTH, _WIDTH),
)  # fmt: skip
# Embeddings of words and of positions, the last norm, and the output.
_ROOT = ((1024, _WIDTH), (64, _WIDTH), (_WIDTH,), (_WIDTH,), (1024, _WIDTH))
_WHOLE = (*_ROOT, *_LAYERS * _LAYER)
# Layers are gathered for either pass, the root stays; what is gathered has the dtype that it computes in.
_GATHERED_BYTES = fp32_bytes(*_ROOT, *2 * _LAYERS * _LAYER)
_FSDP_FLOPS = _LAYERS * (
    linear_flops(_TOKENS, _WIDTH, 3 * _WIDTH, input_needs_gradient=True)
    + linear_flops(_TOKENS, _WIDTH, _WIDTH, input_needs_gradient=True)
    + linear_flops(_TOKENS, _WIDTH, 4 * _WIDTH, _WIDTH, input_needs_gradient=True)
) + linear_flops(_TOKENS, _WIDTH, 1024, input_needs_gradient=True)
# A block of width 256 whose pairs halve: 512 rows, four products of attention and two behind it.
_HALF_FLOPS = (
    3 * linear_flops(512, 256, 128, input_needs_gradient=True)
    + linear_flops(512, 128, 256, input_needs_gradient=True)
    + linear_flops(512, 256, 512, 256, input_needs_gradient=True)
)
_HALF_BYTES = fp32_bytes(*3 * ((128, 256),), (256, 128), (512, 256), (256, 512))


# A wrapped block keeps an eighth of its parameters in one flat tensor.
_BLOCK = dense(256, 4 * 256, 256)
_FLAT = sum(map(prod, _BLOCK)) // 8
_BLOCK_FLOPS = 4 * linear_flops(64, 256, 4 * 256, 256, input_needs_gradient=True) - 2 * 64 * 256 * 4 * 256

_ZERO = ((4096, 512), *dense(*17 * (512,)))


# Words, a head and two layers, in passes of 4 x 64 words.
_GPT = (*2 * ((1024, _WIDTH),), *2 * _LAYER)
_GPT_FLOPS = 2 * (
    linear_flops(256, _WIDTH, 3 * _WIDTH, input_needs_gradient=True)
    + linear_flops(256, _WIDTH, _WIDTH, input_needs_gradient=True)
    + linear_flops(256, _WIDTH, 4 * _WIDTH, _WIDTH, input_needs_gradient=True)
) + linear_flops(256, _WIDTH, 1024, input_needs_gradient=True)
_BF16_BYTES = fp32_bytes(*_GPT) // 2


def _sharded(*shapes: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """What one of eight holds: parts of the first dimension."""
    return tuple((shape[0] // 8, *shape[1:]) for shape in shapes)


GROUPS = (
    Row(
        script="ddp_spawn", world=8, parameters=_SPAWN, warning="no torch DataLoader",
        product_flops=linear_flops(20, 1024, 4096, 1024), collectives={"all_reduce": fp32_bytes(*_SPAWN)},
        calls={"addmm": 2, "mm": 3, "_foreach_add_": 1},
    ),
    # Each rank's mean, deviation and count of 16 channels; then two sums. No mask of ranks is guessed.
    Row(
        script="sync_batch_norm", world=8, batch=16, samples=512, iterations=32, parameters=_SYNCED,
        product_flops=linear_flops(16, 16 * 30 * 30, 10, input_needs_gradient=True),
        collectives={
            "broadcast": 2 * 16 * 4 + 8, "all_gather": 8 * (2 * 16 + 1) * 4,
            "all_reduce": 2 * 16 * 4 + fp32_bytes(*_SYNCED),
        },
        calls={"batch_norm_stats": 1, "batch_norm_backward_elemt": 1, "convolution": 1},
    ),
    Row(
        script="ddp_torchrun", world=8, batch=32, samples=2048, iterations=64, parameters=_TORCHRUN,
        product_flops=linear_flops(32, 512, 2048, 10),
        collectives={"all_reduce": fp32_bytes(*_TORCHRUN)}, calls={"addmm": 2, "mm": 3, "_foreach_add_": 1},
    ),
    Row(
        script="ddp_torchrun", batch=32, samples=2048, iterations=64, parameters=_TORCHRUN,
        product_flops=linear_flops(32, 512, 2048, 10), warning="the only process of its group",
        collectives={"all_reduce": fp32_bytes(*_TORCHRUN)}, calls={"addmm": 2, "mm": 3, "_foreach_add_": 1},
    ),
    # Four groups: the layers and the root. Clipping reduces the norm of each gradient alone.
    Row(
        script="fsdp2", world=8, parameters=_sharded(*_WHOLE), product_flops=_FSDP_FLOPS,
        collectives={"all_gather": _GATHERED_BYTES, "reduce_scatter": fp32_bytes(*_WHOLE),
                     "all_reduce": 4 * len(_WHOLE)},
        calls={"fsdp::all_gather_copy_in": 2 * 3 + 1, "fsdp::chunk_cat": 4, EFFICIENT: 3,
               EFFICIENT + "_backward": 3, ADAM: 1},
    ),
    # BF16 is computed in, which flash attention takes; gradients are still reduced in FP32.
    Row(
        script="fsdp2", arguments=("--mixed-precision",), world=8, parameters=_sharded(*_WHOLE),
        product_flops=_FSDP_FLOPS,
        collectives={"all_gather": _GATHERED_BYTES // 2, "reduce_scatter": fp32_bytes(*_WHOLE),
                     "all_reduce": 4 * len(_WHOLE)},
        calls={"fsdp::all_gather_copy_in": 2 * 3 + 1, "fsdp::chunk_cat": 4, FLASH: 3,
               FLASH + "_backward": 3, ADAM: 1},
    ),
    # The norm of a rank's gradients is reduced once.
    Row(
        script="fsdp1", world=8, parameters=4 * ((_FLAT,),), product_flops=_BLOCK_FLOPS,
        collectives={"all_gather": fp32_bytes(*2 * 4 * _BLOCK), "reduce_scatter": fp32_bytes(*4 * _BLOCK),
                     "all_reduce": 4},
        calls={ADAM: 1}, warning="no torch DataLoader",
    ),
    Row(
        script="fsdp1", arguments=("--auto-wrap",), world=8, parameters=4 * ((_FLAT,),),
        product_flops=_BLOCK_FLOPS, warning="no torch DataLoader",
        collectives={"all_gather": fp32_bytes(*4 * _BLOCK), "reduce_scatter": fp32_bytes(*2 * _BLOCK),
                     "all_reduce": 4},
        calls={ADAM: 1},
    ),
    # Each updates its part of the weights and sends it to all: tensor by tensor, or in one piece.
    *(
        Row(
            script="zero1", arguments=arguments, world=8, parameters=_ZERO, warning="no torch DataLoader",
            product_flops=16 * linear_flops(16 * 128, 512, 512, input_needs_gradient=True),
            collectives={"all_reduce": fp32_bytes(*_ZERO), "broadcast": fp32_bytes(*_ZERO)},
            calls={"embedding": 1, "embedding_dense_backward": 1, ADAM: 1},
        )
        for arguments in ((), ("--bucket-view",))
    ),
    # Gradients are reduced in both passes, weights gathered once, a flag of one byte and a norm reduced.
    Row(
        script="deepspeed_gpt", library="deepspeed", arguments=("--accumulation", "2"), world=8,
        batch=8, samples=1024, iterations=128, accumulation=2, product_flops=2 * _GPT_FLOPS,
        collectives={"all_reduce": 2 * _BF16_BYTES + 5, "all_gather": _BF16_BYTES},
        calls={"_fused_adamw_": 1, FLASH: 2 * 2},
    ),
    # A quarter of the inner width each; the second layer's bias is whole. Its output is summed.
    Row(
        script="tensor_parallel", world=4, parameters=(*dense(512, 512), (512, 512), (512,)),
        product_flops=linear_flops(20, 512, 512, 512), collectives={"all_reduce": fp32_bytes((20, 512))},
        calls={"addmm": 2, "mm": 3, ADAM: 1}, warning="no torch DataLoader",
    ),
    # Pairs share each layer by its heads and inner width, four such pairs what that leaves by rows. Either
    # half's outputs are summed on the way, and each gradient of what went in; the first layer's has none.
    Row(
        script="fsdp2_tensor_parallel", world=8, groups=(2, 4), warning="no torch DataLoader",
        parameters=2 * (*3 * ((128 // 4, 256),), (256 // 4, 128), (512 // 4, 256), (256 // 4, 512)),
        product_flops=2 * _HALF_FLOPS - 3 * 2 * 512 * 256 * 128,
        collectives={"all_gather": 2 * 2 * _HALF_BYTES, "reduce_scatter": 2 * _HALF_BYTES,
                     "all_reduce": (2 * 2 + 2 + 3) * fp32_bytes((4, 128, 256))},
        calls={EFFICIENT: 2, EFFICIENT + "_backward": 2, "fsdp::chunk_cat": 2, ADAM: 1},
    ),
)  # fmt: skip
