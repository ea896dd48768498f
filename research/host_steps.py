"""What launching a step costs the host, fitted and judged.

    python -m research.host_steps --published DIR --kineto DIR

Profiles of ResNet-50 (pytorch/kineto, BSD-3-Clause) tell how kinds of calls compare, but not their level: a
profiler slows each call. That is fitted to published steps of small networks (PyTorch's smoke test on an
A100, BSD-3-Clause); a hash of the name draws which of them judge. Zeus (NSDI 2023, Apache-2.0) measured such
networks on four other hosts, which judge alone. Profiling takes some minutes.
"""

from __future__ import annotations

import argparse
import csv
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import geometric_mean, median

import advisor
from advisor.core.gpus import resolve_gpu
from advisor.core.values import Phase, Trace
from advisor.kineto.events import KinetoEvents, read_recording
from advisor.kineto.export import KinetoStep, join
from advisor.predict.host import HostCall, calls_of, host_costs
from advisor.predict.iteration import predict
from advisor.predict.step_time import HOST
from research.training.drawn import fraction_of

SCRIPT = Path(__file__).with_name("host_script.py")
SMOKE_TEST, ZEUS = "pytorch_torchbench_inductor_a100.csv", "zeus_nsdi23_epoch_time_power.csv"
# The smoke test's models that torchvision has, and whose convolutions do not fill an A100.
BATCHES = {
    "densenet121": 4, "mnasnet1_0": 32, "mobilenet_v2": 96, "mobilenet_v3_large": 32, "resnet18": 16,
    "resnet50": 32, "resnet152": 32, "resnext50_32x4d": 8, "shufflenet_v2_x1_0": 128, "squeezenet1_1": 32,
}  # fmt: skip
# Zeus' names: what they are, images of an epoch, and their side.
ZEUS_MODELS = {
    ("cifar100", "shufflenetv2"): ("shufflenet_v2_x1_0", 50_000, 32),
    ("imagenet", "resnet50"): ("resnet50", 1_281_167, 224),
}
ZEUS_GPUS = {
    "A40": "A40",
    "P100": "P100-PCIE-16GB",
    "Quadro RTX 6000": "Quadro-RTX-6000",
    "V100": "V100-SXM-16GB",
}
ZEUS_BATCH = 8
JUDGING = 0.5
# Kernels that fill less than this part of a step leave the rest to the host.
MOST_FILLED = 0.75
EAGER = (HostCall.FORWARD, HostCall.BACKWARD, HostCall.STEP)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A published step, and its like."""

    name: str
    gpu: str
    seconds: float
    trace: Trace
    use: str
    """``fits`` or ``judges``."""

    @property
    def kernels_s(self) -> float:
        """Predicted seconds of the GPU."""
        estimate = predict(self.trace, resolve_gpu(self.gpu))
        return estimate.device_s.p50 - estimate.by_operator.get(HOST, 0.0)

    def host_s(self, ratios: Mapping[HostCall, float]) -> float:
        """Seconds of the host if calls took so long."""
        costs = replace(host_costs(), call_s={**host_costs().call_s, **ratios})
        return sum(costs.seconds(calls) for calls in calls_of(self.trace.ops).values())


def profiled(name: str, batch: int, side: int, optimizer: str, precision: str) -> Trace:
    """A step of a model of torchvision."""
    arguments = (name, str(batch), str(side), optimizer, precision)
    return advisor.profile(SCRIPT, arguments, settings={"profile.backend": "fake", "profile.timeout": "9m"})


def smoke_test(folder: Path) -> Iterator[Measured]:
    """Steps of PyTorch's smoke test."""
    with (folder / SMOKE_TEST).open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            name = row["model"]
            if name in BATCHES:
                yield Measured(
                    name=name,
                    gpu="A100-SXM-40GB",
                    seconds=float(row["eager_step_ms_derived"]) / 1e3,
                    trace=profiled(name, BATCHES[name], 224, "sgd", "amp"),
                    use="judges" if fraction_of(name) < JUDGING else "fits",
                )


def zeus(folder: Path) -> Iterator[Measured]:
    """Steps of Zeus' smallest batch, at the highest power limit of each GPU."""
    with (folder / ZEUS).open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if _is_used(row)]
    most = {gpu: max(float(row["power_limit_w"]) for row in rows if row["gpu"] == gpu) for gpu in ZEUS_GPUS}
    traces: dict[tuple[str, str], Trace] = {}
    for row in rows:
        if float(row["power_limit_w"]) < most[row["gpu"]]:
            continue
        name, images, side = ZEUS_MODELS[row["dataset"], row["model"]]
        key = name, row["optimizer"]
        if key not in traces:
            traces[key] = profiled(name, ZEUS_BATCH, side, row["optimizer"], "fp32")
        yield Measured(
            name=f"{name}, {row['optimizer']}, host of {row['gpu']}",
            gpu=ZEUS_GPUS[row["gpu"]],
            seconds=float(row["time_per_epoch_s"]) / math.ceil(images / ZEUS_BATCH),
            trace=traces[key],
            use="judges",
        )


def _is_used(row: Mapping[str, str]) -> bool:
    return (row["dataset"], row["model"]) in ZEUS_MODELS and int(row["batch_size"]) == ZEUS_BATCH


def ratios_of(folder: Path) -> Mapping[HostCall, float]:
    """Seconds of the kinds of eager calls over those of a forward call."""
    each = [ratios for path in sorted(folder.glob("*.json.gz")) for ratios in _ratios(read_recording(path))]
    return {call: geometric_mean(ratios[call] for ratios in each) for call in EAGER}


def _ratios(recording: KinetoEvents) -> Iterator[Mapping[HostCall, float]]:
    """Of each step."""
    marks = {mark.begin_s: mark.end_s for mark in recording.marks if mark.name.startswith("Optimizer.step")}
    for step in join(recording)[0]:
        forward, backward, optimizer = (_begins(step, phase) for phase in Phase)
        stepping = [begin for begin in optimizer if any(a <= begin <= b for a, b in marks.items())]
        every = {HostCall.FORWARD: forward, HostCall.BACKWARD: backward, HostCall.STEP: stepping}
        gaps = {call: (begins[-1] - begins[0]) / (len(begins) - 1) for call, begins in every.items()}
        yield {call: gap / gaps[HostCall.FORWARD] for call, gap in gaps.items()}


def _begins(step: KinetoStep, phase: Phase) -> Sequence[float]:
    """When the operators of a phase began, after the step's images had come to the GPU."""
    begun = sorted(
        (call.operator.begin_s, call.operator.name)
        for call in step.calls
        if call.phase is phase and call.operator is not None
    )
    last_copy = max((i for i, (_, name) in enumerate(begun) if name == "aten::copy_"), default=-1)
    return [begin for begin, _ in begun[last_copy + 1 :]]


def level_of(steps: Sequence[Measured], ratios: Mapping[HostCall, float]) -> float:
    """Seconds of a forward call: the median over steps that wait for their host, lists at what they cost."""
    waiting = [step for step in steps if step.use == "fits" and step.kernels_s < MOST_FILLED * step.seconds]
    lists_s = dict.fromkeys(ratios, 0.0)
    return median(
        (step.seconds - step.host_s(lists_s)) / (step.host_s(ratios) - step.host_s(lists_s))
        for step in waiting
    )


def main() -> None:
    """Print the constants, and each step beside what they predict."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--published", type=Path, required=True)
    parser.add_argument("--kineto", type=Path, required=True)
    options = parser.parse_args()
    steps = [*smoke_test(options.published), *zeus(options.published)]
    ratios = ratios_of(options.kineto)
    level = level_of(steps, ratios)
    fitted = ", ".join(f"{call} {level * ratio * 1e6:.1f} us" for call, ratio in ratios.items())
    print(f"fitted: {fitted}\n\n{table(steps)}")


def table(steps: Sequence[Measured]) -> str:
    """Each step beside what the shipped constants predict, and how far off they are."""
    lines = [
        "| step | calls | measured ms | kernels ms | step ms (p10 .. p90) | off | |",
        "|---|" + "---:|" * 5 + "---|",
    ]
    logs = []
    for step in steps:
        estimate = predict(step.trace, resolve_gpu(step.gpu))
        took, calls = estimate.device_s, sum(sum(c.values()) for c in calls_of(step.trace.ops).values())
        logs.append((step.use, took.p50 / step.seconds - 1, took.p10 <= step.seconds <= took.p90))
        interval = f"{took.p50 * 1e3:.1f} ({took.p10 * 1e3:.1f} .. {took.p90 * 1e3:.1f})"
        cells = step.name, f"{calls:,}", f"{step.seconds * 1e3:.1f}", f"{step.kernels_s * 1e3:.1f}", interval
        lines.append("| " + " | ".join((*cells, f"{logs[-1][1]:+.0%}", step.use)) + " |")
    for use in ("fits", "judges"):
        own = [(off, is_inside) for kind, off, is_inside in logs if kind == use]
        mean = sum(abs(off) for off, _ in own) / len(own)
        lines += [
            "",
            f"{use}: {mean:.0%} off on average, {sum(inside for _, inside in own)} of {len(own)} inside.",
        ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
