"""Published speed-ups from V100 to A100 in training, beside predicted ones.

Pairs of rows of NVIDIA's DeepLearningExamples with the same model and precision (FP32 on V100 is TF32 on
A100), one GPU each; where the published batches differ, each side has its own and the name says so. Pairs
with a row that served to fit an assumed constant are marked
(``research/training/assumed_constants.toml``). Printed by ``python -m benchmarks.accuracy
--third-party DIR``.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any

from advisor.core.gpus import resolve_gpu
from advisor.core.values import Trace
from advisor.predict.iteration import predict
from advisor.predict.knowledge import Knowledge
from advisor.profile import profile_callable
from research import bert, networks
from research.published import as_in_containers, resnet_50

FILE = "nvidia_dle_train_perf.csv"
_CONVNETS = "Classification/ConvNets/"
_PRECISIONS = {"AMP": ("AMP-FP16", "AMP-FP16"), "TF32": ("FP32", "TF32")}
_V100 = {"V100-SXM-16GB": "V100 SXM2/3 16GB", "V100-SXM-32GB": "V100 SXM2/3 32GB"}
_A100 = {"A100-SXM-40GB": "A100 SXM4 40GB", "A100-SXM-80GB": "A100 SXM4 80GB"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """A published model and what builds its like."""

    name: str
    published: str
    """The table's name of it."""
    build: Callable[[bool, int], Trace]
    """A trace of one iteration, with autocast to fp16 or without, of a batch size."""
    batch_sizes: Mapping[str, int] = field(default_factory=dict)
    """By precision, where the table does not tell."""
    variant: str = ""
    """The table's name of how it is trained."""
    fitted: frozenset[tuple[str, str]] = frozenset()
    """Pairs (GPU, precision) whose throughput fitted a constant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedUp:
    """Throughput of the A100 over that of the V100."""

    name: str
    precision: str
    origin: str
    destination: str
    published: float
    predicted: float
    fitted: bool

    @property
    def error(self) -> float:
        """Relative, positive where the prediction is too fast."""
        return self.predicted / self.published - 1


def timm_step(name: str, amp: bool, batch_size: int, *, side: int = 224, averages: bool = False) -> Trace:
    """A training step on random images, as NVIDIA's scripts run it: channels last under autocast.

    Args:
        name: timm's, of the model.
        amp: autocast to fp16.
        batch_size: images.
        side: of an image.
        averages: RMSprop and a moving average of the model, as EfficientNet is trained; others with SGD.
    """
    import torch

    def build() -> tuple[Any, ...]:
        # Profiled as the script's import would be: torchvision beneath it may be built for another torch.
        import timm

        with torch.device("cuda"):
            layout = torch.channels_last if amp else torch.contiguous_format
            model = timm.create_model(name).to(memory_format=layout)
            images = torch.rand(batch_size, 3, side, side).to(memory_format=layout)
            labels = torch.zeros(batch_size, dtype=torch.int64)
        optimizer = _optimizer(model, averages)
        return model, optimizer, torch.amp.GradScaler("cuda", enabled=amp), images, labels

    def step(state: tuple[Any, ...]) -> None:
        model, optimizer, scaler, images, labels = state
        with torch.autocast("cuda", dtype=torch.float16, enabled=amp):
            loss = torch.nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

    return profile_callable(step, setup=build, batch_size=batch_size)


def _optimizer(model: Any, averages: bool) -> Any:
    """Tensor by tensor, as in torch before 1.12."""
    import torch

    if not averages:
        return torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, foreach=False)
    kept = [value.clone() for value in model.state_dict().values() if value.is_floating_point()]

    class Averaging(torch.optim.RMSprop):
        @torch.no_grad()
        def step(self, closure: Any = None) -> Any:
            loss = super().step(closure)
            values = (value for value in model.state_dict().values() if value.is_floating_point())
            for average, value in zip(kept, values, strict=True):
                average.mul_(_DECAY).add_((1 - _DECAY) * value)
            return loss

    return Averaging(model.parameters(), 0.1, alpha=0.9, momentum=0.9, weight_decay=1e-5, foreach=False)


# Of a moving average.
_DECAY = 0.9999
_RESNEXT_BATCHES = {"AMP": 128, "TF32": 64}
NETWORKS = (
    Network(
        name="ResNet-50",
        published=f"{_CONVNETS}resnet50v1.5",
        build=resnet_50,
        batch_sizes=dict.fromkeys(_PRECISIONS, 256),
        fitted=frozenset({("A100-SXM-80GB", "TF32")}),
    ),
    Network(
        name="ResNeXt-101 32x4d",
        published=f"{_CONVNETS}resnext101-32x4d",
        build=partial(timm_step, "resnext101_32x4d"),
        batch_sizes=_RESNEXT_BATCHES,
    ),
    Network(
        name="SE-ResNeXt-101 32x4d",
        published=f"{_CONVNETS}se-resnext101-32x4d",
        build=partial(timm_step, "seresnext101_32x4d"),
        batch_sizes=_RESNEXT_BATCHES,
    ),
    Network(name="GNMT v2", published="Translation/GNMT", build=networks.gnmt),
    Network(
        name="Transformer-XL",
        published="LanguageModeling/Transformer-XL",
        variant="Base model",
        build=networks.transformer_xl,
    ),
    Network(name="Transformer (big)", published="Translation/Transformer", build=networks.transformer),
    Network(
        name="BERT-large, 128 tokens",
        published=bert.PUBLISHED,
        variant="pretrain/seq128",
        build=partial(bert.pre_training, 128),
    ),
    Network(
        name="BERT-large fine-tuning", published=bert.PUBLISHED, variant="finetune", build=bert.fine_tuning
    ),
)


def speed_ups(folder: Path, knowledge: Knowledge | None = None) -> Iterator[SpeedUp]:
    """Every pair of published rows of the networks, each network and precision profiled once.

    Raises:
        OSError: the folder lacks the table.
    """
    with (folder / FILE).open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["n_gpus"] == "1"]
    for network in NETWORKS:
        for precision in _PRECISIONS:
            yield from _pairs(network, precision, rows, knowledge)


def _pairs(
    network: Network, precision: str, rows: list[dict[str, str]], knowledge: Knowledge | None
) -> Iterator[SpeedUp]:
    v100, a100 = (
        _published(network, rows, gpus, precision, name)
        for gpus, name in zip((_V100, _A100), _PRECISIONS[precision], strict=True)
    )
    predicted = partial(_throughput, network, precision, knowledge)
    for (origin, slow, few), (destination, fast, many) in product(v100, a100):
        fitted = {(origin, precision), (destination, precision)} & network.fitted
        yield SpeedUp(
            name=network.name if few == many else f"{network.name}, batch {few:,} to {many:,}",
            precision=precision,
            origin=origin,
            destination=destination,
            published=fast / slow,
            predicted=predicted(destination, many) / predicted(origin, few),
            fitted=bool(fitted),
        )


def _published(
    network: Network, rows: list[dict[str, str]], gpus: Mapping[str, str], precision: str, name: str
) -> list[tuple[str, float, int]]:
    """GPU of the catalog, throughput and batch size of each row; the table calls the precision ``name``."""
    gpu_of = {published: gpu for gpu, published in gpus.items()}
    chosen = (network.published, network.variant, name)
    return [
        (
            gpu_of[row["gpu"]],
            float(row["throughput"]),
            int(row["batch_per_gpu"] or network.batch_sizes[precision]),
        )
        for row in rows
        if (row["model"], row["variant"], row["precision"]) == chosen and row["gpu"] in gpu_of
    ]


def _throughput(
    network: Network, precision: str, knowledge: Knowledge | None, gpu: str, batch_size: int
) -> float:
    trace = _trace_of(network.build, precision == "AMP", batch_size)
    return batch_size / predict(trace, resolve_gpu(gpu), knowledge=knowledge).iteration_s.p50


@cache
def _trace_of(build: Callable[[bool, int], Trace], amp: bool, batch_size: int) -> Trace:
    return as_in_containers(build(amp, batch_size))
