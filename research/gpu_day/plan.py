"""Which steps are recorded, the most telling first: time may end before the list does.

Most of a convolution network's time goes to cuDNN's benchmark, where that is on (2 to 27 s a step on an H100
for half precision, up to 68 s for FP32, against 1 s for everything else): those steps come last.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from .steps import Precision, Step

# Of each network the batch and the precision that its published runs use most.
_CONVOLUTIONS: dict[str, tuple[int, Precision]] = {
    "resnet50": (256, "fp16"),
    "unet3d": (2, "fp16"),
    "efficientnet_b0": (128, "fp16"),
    "vgg16": (64, "fp16"),
    "resnext50_32x4d": (128, "fp16"),
    "unet2d": (16, "fp16"),
    "mobilenet_v2": (128, "fp16"),
    "densenet121": (64, "fp16"),
    "convnext_tiny": (64, "bf16"),
    "efficientnet_b4": (64, "fp16"),
    "dcgan": (128, "fp16"),
}
_OTHERS: dict[str, tuple[int, Precision]] = {
    "bert_large_384": (16, "fp16"),
    "gpt2_1024": (8, "bf16"),
    "llama_1b_2048": (2, "pure_bf16"),
    "translator_gnmt": (128, "fp16"),
    "transformer_xl_192": (32, "fp16"),
    "vit_b_16": (64, "bf16"),
    "speech_ctc": (32, "fp16"),
    "dlrm": (16_384, "fp32"),
    "bert_base_128": (64, "fp16"),
    "t5_base_512": (8, "bf16"),
    "swin_t": (64, "bf16"),
    "transformer_big": (128, "fp16"),
    "lstm_words": (64, "fp32"),
    "dlrm_sparse": (16_384, "fp32"),
    "experts": (8192, "bf16"),
    "bert_large_512": (8, "fp16"),
}

# Profiled before the layouts are.
_FIRST = 12
# Of these, what cuDNN's benchmark changes is told in both layouts.
_BENCHMARKED = ("resnet50", "unet3d", "vgg16", "resnext50_32x4d", "unet2d", "dcgan", "convnext_tiny",
                "mobilenet_v2", "densenet121", "efficientnet_b0")  # fmt: skip


def steps(tiny: bool = False) -> tuple[Step, ...]:
    """All steps, each once; ``tiny`` ones are each network's first and all kinds of one network's."""
    main = list(_main())
    kinds = [step for step in _all() if step.network in ("resnet50", "bert_large_384", "unet3d")]
    wanted = [*main, *kinds] if tiny else [*main, *_all()]
    if tiny:
        wanted = [replace(step, batch=2 if step.batch < 1000 else 16, tiny=True) for step in wanted]
    return tuple({step.name: step for step in wanted}.values())


def profiled(tiny: bool = False) -> tuple[Step, ...]:
    """Steps whose kernels are recorded one by one: the main one of each network, and layouts of two."""
    main = list(_main())
    layouts = [*_layouts("resnet50", 256), *_layouts("unet3d", 2)]
    chosen = [*main[:_FIRST], *layouts, *main[_FIRST:]]
    if tiny:
        chosen = [replace(step, batch=2, tiny=True) for step in chosen if step.network == "resnet50"]
    return tuple({step.name: step for step in chosen}.values())


def _main() -> Iterator[Step]:
    convolutions, others = (
        [Step(network=name, batch=batch, precision=precision) for name, (batch, precision) in known.items()]
        for known in (_CONVOLUTIONS, _OTHERS)
    )
    for number in range(max(len(convolutions), len(others))):
        yield from convolutions[number : number + 1]
        yield from others[number : number + 1]


def _layouts(network: str, batch: int) -> Iterator[Step]:
    for precision in ("fp16", "fp32"):
        for layout in ("contiguous", "channels_last"):
            yield Step(network=network, batch=batch, precision=precision, layout=layout)


def _all() -> Iterator[Step]:
    yield from _of_resnet50()
    # Layouts, then precisions, so that each list is cut at its end and not at its beginning.
    for network, (batch, precision) in _CONVOLUTIONS.items():
        yield Step(network=network, batch=batch, precision=precision, layout="channels_last")
    for network, (batch, precision) in _OTHERS.items():
        yield from (
            Step(network=network, batch=batch, precision=other)
            for other in ("tf32", "fp32") if other != precision
        )  # fmt: skip
    for network, (batch, _) in _CONVOLUTIONS.items():
        yield Step(network=network, batch=batch, precision="fp32")
    for network in ("bert_large_384", "bert_base_128", "gpt2_1024", "vit_b_16"):
        yield from (
            Step(network=network, batch=_OTHERS[network][0], precision=other)
            for other in ("o2", "fp16", "bf16", "pure_bf16")
            if not (other == "o2" and network == "gpt2_1024")
        )
    for network, (batch, _) in _CONVOLUTIONS.items():
        yield Step(network=network, batch=batch, precision="fp32", layout="channels_last")
        yield Step(network=network, batch=batch, precision="strict")
    yield from _benchmarked()


def _of_resnet50() -> Iterator[Step]:
    name = "resnet50"
    for precision in ("o2", "bf16", "fp32", "strict"):
        for layout in ("contiguous", "channels_last"):
            yield Step(network=name, batch=256, precision=precision, layout=layout)
    for batch in (8, 64, 128):
        for layout in ("contiguous", "channels_last"):
            yield Step(network=name, batch=batch, precision="fp16", layout=layout)


def _benchmarked() -> Iterator[Step]:
    for precision in ("fp16", "o2", "bf16", "fp32"):
        for layout in ("contiguous", "channels_last"):
            yield Step(network="resnet50", batch=256, precision=precision, layout=layout, benchmark=True)
    for network in _BENCHMARKED:
        batch, precision = _CONVOLUTIONS[network]
        for layout in ("contiguous", "channels_last"):
            yield Step(network=network, batch=batch, precision=precision, layout=layout, benchmark=True)
