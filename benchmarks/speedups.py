"""Published speed-ups from V100 to A100 in training, beside predicted ones.

Pairs of rows of NVIDIA's DeepLearningExamples with the same model, batch and precision (FP32 on V100 is TF32
on A100), one GPU each. Pairs with a row that served to fit an assumed constant are marked
(``advisor/predict/training/assumed_constants.toml``).
Printed by ``python -m benchmarks.accuracy --third-party DIR``.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from advisor.gpus import resolve_gpu
from advisor.predict import predict
from advisor.predict.knowledge import Knowledge
from advisor.profile import profile, profile_callable
from advisor.types import Trace

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
FILE = "nvidia_dle_train_perf.csv"
_CONVNETS = "Classification/ConvNets/"
_PRECISIONS = {"AMP": ("AMP-FP16", "AMP-FP16"), "TF32": ("FP32", "TF32")}
_V100 = {"V100-SXM-16GB": "V100 SXM2/3 16GB", "V100-SXM-32GB": "V100 SXM2/3 32GB"}
_A100 = {"A100-SXM-40GB": "A100 SXM4 40GB", "A100-SXM-80GB": "A100 SXM4 80GB"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """A published model and what builds its like.

    Attributes:
        published: the table's name of it.
        build: a trace of one iteration, with autocast to fp16 or without.
        fitted: pairs (GPU, precision) whose throughput fitted a constant.
    """

    name: str
    published: str
    build: Callable[[bool], Trace]
    fitted: frozenset[tuple[str, str]] = frozenset()


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


def _example(script: str, *arguments: str, amp: bool) -> Trace:
    return profile(EXAMPLES / script, (*arguments, *(("--amp",) if amp else ())))


def _timm(name: str, batch_size: int, *, amp: bool) -> Trace:
    """A training step with SGD, random images, as NVIDIA's scripts run it."""
    import torch

    def build() -> tuple[Any, ...]:
        # Profiled as the script's import would be: torchvision beneath it may be built for another torch.
        import timm

        with torch.device("cuda"):
            model = timm.create_model(name).to(memory_format=torch.channels_last)
            images = torch.rand(batch_size, 3, 224, 224).to(memory_format=torch.channels_last)
            labels = torch.zeros(batch_size, dtype=torch.int64)
        optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
        return model, optimizer, images, labels

    def step(state: tuple[Any, ...]) -> None:
        model, optimizer, images, labels = state
        with torch.autocast("cuda", dtype=torch.float16, enabled=amp):
            loss = torch.nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return profile_callable(step, setup=build, batch_size=batch_size)


NETWORKS = (
    Network(
        name="ResNet-50",
        published=f"{_CONVNETS}resnet50v1.5",
        build=lambda amp: _example("train_resnet50.py", "--batch-size", "256", amp=amp),
        fitted=frozenset({("V100-SXM-16GB", "AMP"), ("A100-SXM-80GB", "TF32")}),
    ),
    Network(
        name="ResNeXt-101 32x4d",
        published=f"{_CONVNETS}resnext101-32x4d",
        build=lambda amp: _timm("resnext101_32x4d", 128 if amp else 64, amp=amp),
    ),
    Network(
        name="SE-ResNeXt-101 32x4d",
        published=f"{_CONVNETS}se-resnext101-32x4d",
        build=lambda amp: _timm("seresnext101_32x4d", 128 if amp else 64, amp=amp),
    ),
    Network(
        name="GNMT (LSTM of its size)",
        published="Translation/GNMT",
        build=lambda amp: _example(
            "train_lstm.py", "--batch-size", "128", "--length", "50", "--layers", "8",
            "--vocabulary", "32320", amp=amp,
        ),
    ),
)  # fmt: skip


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
    on_v100, on_a100 = _PRECISIONS[precision]
    v100 = _throughputs(network, rows, _V100, on_v100)
    a100 = _throughputs(network, rows, _A100, on_a100)
    seconds = partial(_iteration_s, network, precision, knowledge)
    for origin, slow in v100.items():
        for destination, fast in a100.items():
            fitted = {(origin, precision), (destination, precision)} & network.fitted
            yield SpeedUp(
                name=network.name,
                precision=precision,
                origin=origin,
                destination=destination,
                published=fast / slow,
                predicted=seconds(origin) / seconds(destination),
                fitted=bool(fitted),
            )


def _throughputs(
    network: Network, rows: list[dict[str, str]], gpus: dict[str, str], precision: str
) -> dict[str, float]:
    """By GPU of the catalog; the table gives one row each."""
    wanted = {(network.published, published, precision): name for name, published in gpus.items()}
    found = {wanted.get((row["model"], row["gpu"], row["precision"])): row["throughput"] for row in rows}
    return {name: float(text) for name, text in found.items() if name is not None}


def _iteration_s(network: Network, precision: str, knowledge: Knowledge | None, gpu: str) -> float:
    trace = _trace_of(network, precision)
    return predict(trace, resolve_gpu(gpu), knowledge=knowledge).iteration_s.p50


@cache
def _trace_of(network: Network, precision: str) -> Trace:
    trace = network.build(precision == "AMP")
    # The containers of these tables let TF32 replace FP32 in products too, which later PyTorch does not.
    return replace(trace, precision=replace(trace.precision, tf32_matmul=True, tf32_cudnn=True))
