"""Whole training steps, as the GPU runs them and as the profiler of the predicting machine does.

A step is data (``Step``). ``build`` makes its model, inputs and optimizer on any device, and ``run`` does
one iteration of it. The precisions do what people's scripts do: ``o2`` is apex's half model whose optimizer
keeps FP32 masters, ``fp32`` leaves torch's flags alone (convolutions may use TF32, products not).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import torch
from torch import nn

Precision = Literal["strict", "fp32", "tf32", "fp16", "bf16", "o2", "pure_bf16"]
Layout = Literal["contiguous", "channels_last"]
_AUTOCAST = {"fp16": torch.float16, "bf16": torch.bfloat16}
_HALF_MODELS = {"o2": torch.float16, "pure_bf16": torch.bfloat16}
_SCALED = ("fp16", "o2")
# Where the scale settles: from torch's 65,536 on, the first steps would overflow and be skipped.
_SCALE = 1024.0
_KEEPS_FP32 = (nn.BatchNorm2d, nn.BatchNorm3d)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One training step."""

    network: str
    """Key of ``registry``."""
    precision: Precision
    batch: int
    """Samples, whatever the network counts."""
    layout: Layout = "contiguous"
    benchmark: bool = False
    """CuDNN tries its algorithms and takes the fastest."""
    tiny: bool = False
    """The same code at sizes that a CPU does in a moment."""

    @property
    def name(self) -> str:
        """Unique among the steps."""
        parts = [self.network, self.precision, self.layout, f"b{self.batch}"]
        return "/".join(parts + ["benchmark"] * self.benchmark + ["tiny"] * self.tiny)


_adamw = partial(torch.optim.AdamW, lr=1e-4)


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A network with its inputs and its loss: ``loss(model, *inputs)``."""

    model: nn.Module
    inputs: tuple[torch.Tensor, ...]
    loss: Callable[..., torch.Tensor]
    optimizer: Callable[..., torch.optim.Optimizer] = _adamw


@dataclass(slots=True, kw_only=True)
class Work:
    """A step that is ready to run."""

    step: Step
    device: str
    model: nn.Module
    inputs: tuple[torch.Tensor, ...]
    loss: Callable[..., torch.Tensor]
    optimizers: list[torch.optim.Optimizer]
    scaler: torch.amp.GradScaler
    halves: list[torch.Tensor]
    masters: list[torch.Tensor]

    def forward(self) -> torch.Tensor:
        """The loss."""
        dtype = _dtype(_AUTOCAST, self.step, self.device)
        with torch.autocast(self.device, dtype=dtype, enabled=dtype not in (None, torch.float32)):
            return self.loss(self.model, *self.inputs)

    def backward(self, loss: torch.Tensor) -> None:
        """Gradients."""
        self.scaler.scale(loss).backward()

    def optimize(self) -> None:
        """The optimizers' step, and gradients are gone."""
        for half, master in zip(self.halves, self.masters, strict=True):
            master.grad = None if half.grad is None else half.grad.float()
            half.grad = None
        for optimizer in self.optimizers:
            self.scaler.step(optimizer)
        self.scaler.update()
        if self.halves:
            with torch.no_grad():
                torch._foreach_copy_(self.halves, self.masters)
        for optimizer in self.optimizers:
            optimizer.zero_grad(set_to_none=True)


def run(work: Work) -> None:
    """One iteration."""
    work.backward(work.forward())
    work.optimize()


def set_flags(step: Step) -> None:
    """What the step's script would switch on at its top."""
    torch.backends.cudnn.benchmark = step.benchmark
    torch.backends.cudnn.allow_tf32 = step.precision != "strict"
    torch.set_float32_matmul_precision("high" if step.precision == "tf32" else "highest")


def _dtype(by_precision: Mapping[str, torch.dtype], step: Step, device: str) -> torch.dtype | None:
    """CPUs, which only rehearse, have slow kernels of float16 and bfloat16, or none: they stay in float32."""
    dtype = by_precision.get(step.precision)
    return torch.float32 if device == "cpu" and dtype is not None else dtype


def build(step: Step, device: str = "cuda") -> Work:
    """Model, inputs and optimizers on a device.

    Raises:
        ImportError: the network is torchvision's or transformers', and that is not installed.
    """
    return prepared(step, registry()[step.network], device)


def prepared(step: Step, maker: Maker, device: str = "cuda") -> Work:
    """The same of a network that the registry need not have."""
    torch.manual_seed(0)
    set_flags(step)
    with torch.device(device):
        made = maker(step.batch, step.tiny)
    model, inputs = made.model.train(), made.inputs
    half = _dtype(_HALF_MODELS, step, device)
    if half is not None:
        model = _halved(model, half, keeps_norms=step.precision == "o2")
        inputs = tuple(value.to(half) if value.is_floating_point() else value for value in inputs)
    if step.layout == "channels_last":
        model, inputs = _last(model), tuple(_last(value) for value in inputs)
    halves = [each for each in model.parameters() if each.dtype == half and step.precision == "o2"]
    masters = [each.detach().float().requires_grad_() for each in halves]
    kept = {id(each) for each in halves}
    trained = masters + [each for each in model.parameters() if id(each) not in kept]
    return Work(
        step=step,
        device=device,
        model=model,
        inputs=inputs,
        loss=made.loss,
        optimizers=_optimizers(made, model, trained),
        scaler=torch.amp.GradScaler(device, init_scale=_SCALE, enabled=step.precision in _SCALED),
        halves=halves,
        masters=masters,
    )


def _halved(model: nn.Module, dtype: torch.dtype, *, keeps_norms: bool) -> nn.Module:
    model = model.to(dtype)
    for module in model.modules():
        if keeps_norms and isinstance(module, _KEEPS_FP32):
            module.float()
    return model


def _last(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        formats = {4: torch.channels_last, 5: torch.channels_last_3d}
        kept = formats.get(value.dim())
        return value if kept is None else value.contiguous(memory_format=kept)
    is_3d = any(isinstance(module, nn.Conv3d) for module in value.modules())
    return value.to(memory_format=torch.channels_last_3d if is_3d else torch.channels_last)


def _optimizers(made: Made, model: nn.Module, trained: Sequence[torch.Tensor]) -> list[torch.optim.Optimizer]:
    sparse = [
        module.weight for module in model.modules()
        if isinstance(module, nn.Embedding | nn.EmbeddingBag) and module.sparse
    ]  # fmt: skip
    kept = {id(weight) for weight in sparse}
    optimizers = [made.optimizer([each for each in trained if id(each) not in kept])]
    return optimizers + ([torch.optim.SparseAdam(sparse)] if sparse else [])


Maker = Callable[[int, bool], Made]
_momentum = partial(torch.optim.SGD, lr=0.01, momentum=0.9, weight_decay=1e-4)
_CLASSES = 1000


def registry() -> dict[str, Maker]:
    """Every network by its name."""
    images = ("resnet50", "resnext50_32x4d", "efficientnet_b0", "efficientnet_b4", "vgg16", "mobilenet_v2",
              "densenet121", "convnext_tiny", "vit_b_16", "swin_t")  # fmt: skip
    return {
        **{name: partial(_image, name) for name in images},
        "unet2d": _unet2d,
        "unet3d": _unet3d,
        "dcgan": _dcgan,
        "bert_base_128": partial(_bert, "base", 128),
        "bert_large_384": partial(_bert, "large", 384),
        "bert_large_512": partial(_bert, "large", 512),
        "gpt2_1024": _gpt2,
        "llama_1b_2048": _llama,
        "t5_base_512": _t5,
        "translator_gnmt": _gnmt,
        "transformer_xl_192": _transformer_xl,
        "transformer_big": _transformer,
        "lstm_words": _words,
        "dlrm": partial(_dlrm, False),
        "dlrm_sparse": partial(_dlrm, True),
        "speech_ctc": _speech,
        "experts": _experts,
    }


def _classified(model: nn.Module, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return nn.functional.cross_entropy(model(images), labels)


def _image(name: str, batch: int, tiny: bool) -> Made:
    import torchvision.models  # type: ignore[import-untyped]

    side = 64 if tiny else 224
    sized = {"image_size": side} if name.startswith("vit") else {}
    model = getattr(torchvision.models, name)(**sized)
    transformer = name.startswith(("vit", "swin", "convnext"))
    return Made(
        model=model,
        inputs=(torch.randn(batch, 3, side, side), torch.randint(_CLASSES, (batch,))),
        loss=_classified,
        optimizer=_adamw if transformer else _momentum,
    )


def _segmented(model: nn.Module, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Cross-entropy and soft Dice, as nnU-Net sums them."""
    logits = model(images)
    cross = nn.functional.cross_entropy(logits, labels)
    chances = logits.softmax(1).flatten(2)
    wanted = nn.functional.one_hot(labels.flatten(1), logits.shape[1]).transpose(1, 2).to(chances.dtype)
    overlap = 2 * (chances * wanted).sum(-1) / (chances.sum(-1) + wanted.sum(-1) + 1e-5)
    return cross + 1 - overlap.mean()


def _unet2d(batch: int, tiny: bool) -> Made:
    from .networks import UNet

    side = 32 if tiny else 512
    widths = (8, 16) if tiny else (32, 64, 128, 256, 512, 512)
    return Made(
        model=UNet(dimensions=2, channels=3, classes=4, widths=widths),
        inputs=(torch.randn(batch, 3, side, side), torch.randint(4, (batch, side, side))),
        loss=_segmented,
        optimizer=_momentum,
    )


def _unet3d(batch: int, tiny: bool) -> Made:
    from .networks import UNet

    side = 16 if tiny else 128
    widths = (8, 16) if tiny else (32, 64, 128, 256, 320, 320)
    return Made(
        model=UNet(dimensions=3, channels=4, classes=4, widths=widths),
        inputs=(torch.randn(batch, 4, side, side, side), torch.randint(4, (batch, side, side, side))),
        loss=_segmented,
        optimizer=_momentum,
    )


def _dcgan(batch: int, tiny: bool) -> Made:
    from .networks import Dcgan

    return Made(
        model=Dcgan(8 if tiny else 64),
        inputs=(torch.randn(batch, 100, 1, 1), torch.randn(batch, 3, 64, 64)),
        loss=lambda model, noise, images: model(noise, images),
        optimizer=partial(torch.optim.Adam, lr=2e-4, betas=(0.5, 0.999)),
    )


def _bert(size: str, length: int, batch: int, tiny: bool) -> Made:
    """Fine-tuning on questions for ``large`` with 384 tokens, else every position's word."""
    import transformers

    width, layers, heads = {"base": (768, 12, 12), "large": (1024, 24, 16)}[size]
    if tiny:
        width, layers, heads, length = 64, 2, 2, 16
    config = transformers.BertConfig(
        vocab_size=30_528, hidden_size=width, num_hidden_layers=layers, num_attention_heads=heads,
        intermediate_size=4 * width, attn_implementation="sdpa",
    )  # fmt: skip
    ids = torch.randint(30_000, (batch, length))
    if size == "large":
        answers = torch.randint(length, (batch,))
        return Made(
            model=transformers.BertForQuestionAnswering(config),
            inputs=(ids, answers),
            loss=lambda model, ids, answers: (
                model(input_ids=ids, start_positions=answers, end_positions=answers).loss
            ),
        )
    return Made(
        model=transformers.BertForMaskedLM(config),
        inputs=(ids,),
        loss=lambda model, ids: model(input_ids=ids, labels=ids).loss,
    )


def _language_loss(model: nn.Module, ids: torch.Tensor) -> torch.Tensor:
    loss: torch.Tensor = model(input_ids=ids, labels=ids, use_cache=False).loss
    return loss


def _gpt2(batch: int, tiny: bool) -> Made:
    import transformers

    small = {"n_layer": 2, "n_embd": 64, "n_head": 2} if tiny else {}
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(attn_implementation="sdpa", **small))
    return Made(
        model=model, inputs=(torch.randint(50_000, (batch, 16 if tiny else 1024)),), loss=_language_loss
    )


def _llama(batch: int, tiny: bool) -> Made:
    """Llama 3.2 1B by its published sizes."""
    import transformers

    sizes = {
        "vocab_size": 128_256, "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16,
        "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 64, "tie_word_embeddings": True,
    }  # fmt: skip
    small = {
        "vocab_size": 1000, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "tie_word_embeddings": True,
    }  # fmt: skip
    config = transformers.LlamaConfig(**(small if tiny else sizes), attn_implementation="sdpa")
    return Made(
        model=transformers.LlamaForCausalLM(config),
        inputs=(torch.randint(1000, (batch, 16 if tiny else 2048)),),
        loss=_language_loss,
        optimizer=partial(torch.optim.AdamW, lr=1e-4, fused=True),
    )


def _t5(batch: int, tiny: bool) -> Made:
    import transformers

    small = {"d_model": 64, "d_kv": 16, "d_ff": 128, "num_layers": 2, "num_heads": 4}
    sizes = {"d_model": 768, "d_kv": 64, "d_ff": 3072, "num_layers": 12, "num_heads": 12}
    config = transformers.T5Config(**(small if tiny else sizes), decoder_start_token_id=0)
    source, target = (16, 8) if tiny else (512, 128)
    return Made(
        model=transformers.T5ForConditionalGeneration(config),
        inputs=(torch.randint(30_000, (batch, source)), torch.randint(30_000, (batch, target))),
        loss=lambda model, ids, labels: model(input_ids=ids, labels=labels, use_cache=False).loss,
    )


def _gnmt(batch: int, tiny: bool) -> Made:
    from research.gnmt import LENGTH, SMOOTHING, VOCABULARY, WIDTH, Translator

    words, width, length = (100, 32, 8) if tiny else (VOCABULARY, WIDTH, LENGTH)

    def loss(model: nn.Module, tokens: torch.Tensor) -> torch.Tensor:
        logits = model(tokens, tokens).flatten(0, 1)
        return nn.functional.cross_entropy(logits, tokens.flatten(), label_smoothing=SMOOTHING)

    return Made(model=Translator(width, words), inputs=(torch.randint(words, (batch, length)),), loss=loss)


def _transformer_xl(batch: int, tiny: bool) -> Made:
    from research.transformer_xl import LENGTH, WIDTH, LanguageModel

    length = 8 if tiny else LENGTH
    return Made(
        model=LanguageModel(),
        inputs=(torch.randint(19_000, (length, batch)), torch.randn(length, batch, WIDTH)),
        loss=lambda model, tokens, memory: model(tokens, memory) / tokens.numel(),
        optimizer=partial(torch.optim.Adam, lr=1e-4, fused=True),
    )


def _transformer(batch: int, tiny: bool) -> Made:
    """``batch`` sentences of 32 tokens."""
    from research.translation import LENGTH, SMOOTHING, VOCABULARY, Transformer

    def loss(model: nn.Module, tokens: torch.Tensor) -> torch.Tensor:
        logits = model(tokens, tokens).flatten(0, 1)
        return nn.functional.cross_entropy(logits, tokens.flatten(), label_smoothing=SMOOTHING)

    tokens = torch.randint(VOCABULARY, (batch, 8 if tiny else LENGTH))
    return Made(model=Transformer(), inputs=(tokens,), loss=loss)


def _words(batch: int, tiny: bool) -> Made:
    from .networks import WordModel

    words, width, length = (100, 32, 8) if tiny else (33_278, 1500, 70)
    return Made(
        model=WordModel(words=words, width=width, layers=2),
        inputs=(torch.randint(words, (length, batch)),),
        loss=lambda model, ids: nn.functional.cross_entropy(model(ids).flatten(0, 1), ids.flatten()),
        optimizer=_momentum,
    )


def _dlrm(sparse: bool, batch: int, tiny: bool) -> Made:
    from .networks import Dlrm

    tables, rows, hidden = (3, 50, 16) if tiny else (26, 500_000, 512)
    return Made(
        model=Dlrm(tables=tables, rows=rows, width=16 if tiny else 128, hidden=hidden, sparse=sparse),
        inputs=(
            torch.randn(batch, 13), torch.randint(rows, (tables, batch)), torch.randint(2, (batch,)).float(),
        ),
        loss=lambda model, numbers, categories, clicks: (
            nn.functional.binary_cross_entropy_with_logits(model(numbers, categories), clicks)
        ),
        optimizer=partial(torch.optim.SGD, lr=0.01),
    )  # fmt: skip


def _speech(batch: int, tiny: bool) -> Made:
    from .networks import Speech

    bands, time, letters, text = (16, 64, 29, 8) if tiny else (160, 800, 29, 120)

    def loss(model: nn.Module, heard: torch.Tensor, spelt: torch.Tensor) -> torch.Tensor:
        chances = model(heard)
        steps, sentences = chances.shape[:2]
        return nn.functional.ctc_loss(chances, spelt, (steps,) * sentences, (text,) * sentences)

    return Made(
        model=Speech(bands=bands, width=32 if tiny else 1024, layers=2 if tiny else 5, letters=letters),
        inputs=(torch.randn(batch, 1, bands, time), torch.randint(1, letters, (batch, text))),
        loss=loss,
        optimizer=_momentum,
    )


def _experts(batch: int, tiny: bool) -> Made:
    """``batch`` tokens."""
    from .networks import Mixture

    width = 32 if tiny else 1024
    return Made(
        model=Mixture(width=width, experts=4 if tiny else 8, layers=2 if tiny else 4),
        inputs=(torch.randn(batch, width),),
        loss=lambda model, hidden: model(hidden).float().square().mean(),
    )
