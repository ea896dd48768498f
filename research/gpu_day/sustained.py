"""What a board keeps over half a minute: the time of an iteration, second by second."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch

from .device import Device
from .lines import Lines
from .steps import Step, build, run

_SIDE = {False: 8192, True: 64}
_CHUNK_S = {False: 0.5, True: 0.01}
_LONGEST_S = {False: 45.0, True: 0.05}
_STEPS = (
    Step(network="bert_large_384", precision="fp16", batch=32),
    Step(network="resnet50", precision="fp16", batch=256, layout="channels_last", benchmark=True),
)


def sustain(lines: Lines, backend: str, tiny: bool, folder: Path) -> None:
    """A product and two training steps, each over its share of the time that is left."""
    device = Device(backend)

    def product() -> Callable[[], object]:
        left, right = (torch.randn(_SIDE[tiny], _SIDE[tiny], device=backend, dtype=torch.bfloat16)
                       for _ in range(2))  # fmt: skip
        return lambda: left @ right

    def step(chosen: Step) -> Callable[[], object]:
        work = build(replace(chosen, batch=2, tiny=True) if tiny else chosen, backend)
        return lambda: run(work)

    makers: dict[str, Callable[[], Callable[[], object]]] = {
        "product_bf16": product,
        **{one.name: partial(step, one) for one in _STEPS},
    }
    for done, (name, make) in enumerate(makers.items()):
        seconds = min(_LONGEST_S[tiny], (lines.until_s - time.time()) / (len(makers) - done))
        lines.case(name, partial(_kept, make, seconds, device, tiny))
        device.forget()


def _kept(
    make: Callable[[], Callable[[], object]], seconds: float, device: Device, tiny: bool
) -> Mapping[str, object]:
    """Begin, and seconds of an iteration, of one chunk after the other."""
    iterate = make()
    chunks: list[tuple[float, float, int]] = []
    for _ in range(3):
        iterate()
    number, end_s = 1, time.time() + seconds
    while time.time() < end_s or not chunks:
        begun_s = time.time()
        begin = device.mark()
        for _ in range(number):
            iterate()
        end = device.mark()
        device.wait()
        chunk_s = begin.seconds_to(end)
        chunks.append((round(begun_s, 3), chunk_s / number, number))
        number = max(1, min(2000, int(number * _CHUNK_S[tiny] / max(chunk_s, 1e-6))))
    return {"chunks": chunks, "ended_s": time.time()}
