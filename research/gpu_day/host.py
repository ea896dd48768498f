"""What the host takes to launch an operator: chains of calls whose kernels take less than their launch."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

import torch
from torch import nn

from .device import Device
from .lines import Lines

_SIDE = 8
_CALLS = {False: 400, True: 3}
_REPEATS = {False: 7, True: 2}
_TENSORS = {False: 200, True: 4}

Case = tuple[str, int, Callable[[], object]]


def time_host(lines: Lines, backend: str, tiny: bool, folder: Path) -> None:
    """Time each chain: seconds of a call until its kernels are done, and until they are launched."""
    device = Device(backend)
    torch.manual_seed(0)
    with torch.device(backend):
        made = [*_operators(tiny), *_passes(tiny), *_optimizers(tiny)]
    # Outside of the context, which looks at each call of torch.
    for name, number, chain in made:
        lines.case(name, lambda number=number, chain=chain: _timed(number, chain, device, tiny))  # type: ignore[misc]
    if backend == "cuda":
        lines.case("graph_replay", lambda: _graph(device, tiny))
        lines.case("h2d_copies", lambda: _copies(device, tiny))


def _timed(number: int, chain: Callable[[], object], device: Device, tiny: bool) -> Mapping[str, object]:
    """Medians over repetitions, per call; the least too, since others may use the host."""
    chain()
    done, launched = [], []
    for _ in range(_REPEATS[tiny]):
        device.wait()
        begin_s = time.perf_counter()
        chain()
        launched.append((time.perf_counter() - begin_s) / number)
        device.wait()
        done.append((time.perf_counter() - begin_s) / number)
    done.sort()
    launched.sort()
    middle = len(done) // 2
    return {
        "num_calls": number, "call_s": done[middle], "least_s": done[0], "launched_s": launched[middle],
    }  # fmt: skip


def _repeated(call: Callable[[], object], number: int) -> Callable[[], object]:
    def chain() -> None:
        for _ in range(number):
            call()

    return chain


def _operators(tiny: bool) -> Iterator[Case]:
    """Single operators of the forward pass, without and with autograd's bookkeeping."""
    number = _CALLS[tiny]
    plain, indices = torch.randn(_SIDE, _SIDE), torch.arange(_SIDE)
    kind = plain.device.type
    tracked = torch.randn(_SIDE, _SIDE, requires_grad=True)
    images = torch.randn(2, _SIDE, _SIDE, _SIDE)
    linear, norm = nn.Linear(_SIDE, _SIDE), nn.LayerNorm(_SIDE)
    conv, batch_norm = nn.Conv2d(_SIDE, _SIDE, 3, padding=1), nn.BatchNorm2d(_SIDE)
    calls: dict[str, Callable[[], object]] = {
        "python_loop": lambda: None,
        "empty": lambda: torch.empty(_SIDE, device=kind),
        "view": lambda: plain.view(-1),
        "add": lambda: plain + plain,
        "add_tracked": lambda: tracked + plain,
        "add_in_place": lambda: plain.add_(1e-6),
        "mul_tracked": lambda: tracked * plain,
        "relu_tracked": lambda: torch.relu(tracked),
        "mm": lambda: plain @ plain,
        "mm_tracked": lambda: tracked @ plain,
        "bmm": lambda: torch.bmm(images[0], images[0]),
        "linear_module": lambda: linear(plain),
        "layer_norm_module": lambda: norm(plain),
        "conv2d_module": lambda: conv(images),
        "batch_norm_module": lambda: batch_norm(images),
        "softmax_tracked": lambda: tracked.softmax(-1),
        "dropout": lambda: nn.functional.dropout(tracked, 0.1),
        "cat": lambda: torch.cat((plain, plain)),
        "sum": lambda: tracked.sum(),
        "cross_entropy": lambda: nn.functional.cross_entropy(tracked, plain),
        "attention": lambda: nn.functional.scaled_dot_product_attention(images, images, images),
        "embedding": lambda: nn.functional.embedding(indices, plain),
        "copy": lambda: plain.clone(),
        "cast": lambda: plain.half(),
        "item": lambda: plain[0, 0].item(),
    }
    for name, call in calls.items():
        yield f"forward/{name}", number, _repeated(call, number)

    def autocast() -> None:
        with torch.autocast(kind, dtype=torch.bfloat16):
            for _ in range(number):
                linear(plain)

    yield "forward/linear_autocast", number, autocast


def _passes(tiny: bool) -> Iterator[Case]:
    """Forward and backward of one chain; the difference to the forward pass alone is the backward pass."""
    number = _CALLS[tiny]
    start = torch.randn(_SIDE, _SIDE, requires_grad=True)
    weight = torch.randn(_SIDE, _SIDE, requires_grad=True)
    mlp = nn.Sequential(*(nn.Linear(_SIDE, _SIDE) for _ in range(number)))
    bodies: dict[str, Callable[[], torch.Tensor]] = {
        "mul": lambda: _chained(start, number, lambda hidden: hidden * 0.5),
        "relu": lambda: _chained(start, number, torch.relu),
        "mm": lambda: _chained(start, number, lambda hidden: hidden @ weight),
        "linears": lambda: mlp(start),
    }
    for name, body in bodies.items():
        yield f"chain_forward/{name}", number, body
        yield f"chain_both/{name}", number, partial(_both_passes, body)


def _both_passes(body: Callable[[], torch.Tensor]) -> None:
    body().sum().backward()


def _chained(hidden: torch.Tensor, number: int, call: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
    for _ in range(number):
        hidden = call(hidden)
    return hidden


def _optimizers(tiny: bool) -> Iterator[Case]:
    """One step over many small weights, a call a tensor."""
    number = _TENSORS[tiny]
    kinds = ("foreach", "fused", "for_loop")
    for name, make in {"sgd": torch.optim.SGD, "adamw": torch.optim.AdamW}.items():
        for kind in kinds:
            weights = [torch.randn(_SIDE, _SIDE, requires_grad=True) for _ in range(number)]
            for weight in weights:
                weight.grad = torch.randn_like(weight)
            momentum = {"momentum": 0.9} if name == "sgd" else {}
            how = {"foreach": kind == "foreach", "fused": kind == "fused"}
            optimizer = make(weights, lr=1e-3, **how, **momentum)
            yield f"optimizer/{name}_{kind}", number, optimizer.step
    weights = [torch.randn(_SIDE, _SIDE, requires_grad=True) for _ in range(number)]
    for weight in weights:
        weight.grad = torch.randn_like(weight)
    yield "optimizer/clip_grad_norm", number, lambda: nn.utils.clip_grad_norm_(weights, 1.0)


def _graph(device: Device, tiny: bool) -> Mapping[str, object]:
    """A CUDA graph of as many small kernels as the chains have."""
    number = _CALLS[tiny]
    plain = torch.randn(_SIDE, _SIDE, device="cuda")
    plain.add_(1e-6)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(number):
            plain.add_(1e-6)
    return _timed(number, graph.replay, device, tiny)


def _copies(device: Device, tiny: bool) -> Mapping[str, object]:
    """Small copies from page-locked memory."""
    number = _CALLS[tiny]
    source = torch.randn(_SIDE, _SIDE).pin_memory()
    target = torch.empty(_SIDE, _SIDE, device="cuda")
    return _timed(number, _repeated(lambda: target.copy_(source, non_blocking=True), number), device, tiny)
