"""Predictions beside published training steps of Llama-3.2-1B, by kernel of attention.

    python -m research.llama_steps --published DIR --out research/docs/accuracy/llama.md

The published rows (cudnn-frontend, MIT) time forward, backward and SGD of Hugging Face's model in bf16 on an
H200 and a B200, each with attention forced to one backend. Each batch is profiled once, and its trace says
of attention what the recorder writes where a script forces a backend.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from advisor.core.files import write_atomically
from advisor.core.gpus import load_gpus
from advisor.operators.attention_kernels import SWITCHES, AttentionBackend, attention_call
from advisor.predict.iteration import predict
from advisor.profile import profile_callable
from research.training.published_rows import published_rows

if TYPE_CHECKING:
    from advisor.core.values import Trace

FILE = "cudnn_frontend_llama32_1b_train_step.csv"
# Of the model's published config.json.
VOCABULARY = 128_256
_CONFIG = {
    "vocab_size": VOCABULARY,
    "hidden_size": 2048,
    "intermediate_size": 8192,
    "num_hidden_layers": 16,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 64,
    "max_position_embeddings": 131_072,
    "rms_norm_eps": 1e-5,
    "rope_theta": 500_000.0,
    "tie_word_embeddings": True,
    "attn_implementation": "sdpa",
}
# Sequences, and tokens of each.
BATCHES = ((24, 768), (12, 1024), (6, 2048), (3, 4096), (2, 8192), (1, 16_384))
_BACKENDS = {
    "CUDNN_ATTENTION": AttentionBackend.CUDNN,
    "FLASH_ATTENTION": AttentionBackend.FLASH_2,
    "EFFICIENT_ATTENTION": AttentionBackend.EFFICIENT,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LlamaStep:
    """One published row and what is predicted for it; ``sequences`` of ``length`` tokens."""

    gpu: str
    backend: AttentionBackend
    sequences: int
    length: int
    measured_s: float
    predicted_s: float
    is_inside: bool

    @property
    def error(self) -> float:
        """Relative, above 0 where the prediction is too slow."""
        return self.predicted_s / self.measured_s - 1


@cache
def trace_of(sequences: int, length: int) -> Trace:
    """Forward, backward and SGD of one batch in bf16.

    Raises:
        ProfileError: it cannot be profiled here.
    """

    def build() -> tuple[Any, ...]:
        import torch
        from transformers import LlamaConfig, LlamaForCausalLM

        model = LlamaForCausalLM(LlamaConfig(**_CONFIG)).to("cuda", torch.bfloat16)
        ids = torch.ones(sequences, length, dtype=torch.int64, device="cuda")
        return model, torch.optim.SGD(model.parameters(), lr=1e-3), ids

    def step(state: tuple[Any, ...]) -> None:
        model, optimizer, ids = state
        model(input_ids=ids, labels=ids, use_cache=False).loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return profile_callable(step, setup=build, batch_size=sequences)


def llama_steps(published: Path, build: Callable[[int, int], Trace] = trace_of) -> Iterator[LlamaStep]:
    """Each row of the file.

    Raises:
        FileNotFoundError: the file is missing.
    """
    for row in published_rows(published / FILE):
        gpu = next(spec for name, spec in load_gpus().items() if name.startswith(f"{row['gpu']}-SXM"))
        sequences, length = int(row["batch_per_gpu"]), int(row["sequence_length"])
        trace, backend = build(sequences, length), _BACKENDS[row["sdpa_backend"]]
        estimate = predict(forced(trace, backend), gpu).iteration_s
        measured_s = float(row["step_ms"]) / 1e3
        yield LlamaStep(
            gpu=gpu.name,
            backend=backend,
            sequences=sequences,
            length=length,
            measured_s=measured_s,
            predicted_s=estimate.p50,
            is_inside=estimate.p10 <= measured_s <= estimate.p90,
        )


def forced(trace: Trace, backend: AttentionBackend) -> Trace:
    """The trace as if the script's attention ran under ``sdpa_kernel`` of this backend alone."""
    name = next(name for name, each in SWITCHES.items() if each is backend)
    attend = {"backends": (name,)}
    ops = (
        replace(op, attributes={**op.attributes, **attend}) if attention_call(op) is not None else op
        for op in trace.ops
    )
    return replace(trace, ops=tuple(ops))


_HEAD = """# Steps of Llama-3.2-1B

Written by `python -m research.llama_steps --published DIR --out research/docs/accuracy/llama.md`.

Forward, backward and SGD of Hugging Face's model in bf16 on one GPU, by the backend that attention was
forced to. Published by cudnn-frontend (MIT, 2025-05-22): PyTorch 2.7, cuDNN 9.9.

All 36 rows only judge: none fitted or chose anything. Kernels of attention of the same project, apart from
any model, are among those that fitted [attention](fitted.md).

"""


def page(steps: Sequence[LlamaStep]) -> str:
    """Markdown: errors by backend, and each row."""
    return "\n".join([_HEAD + "\n".join(_by_backend(steps)), "", *_each(steps), ""])


def _each(steps: Sequence[LlamaStep]) -> Iterator[str]:
    yield "| GPU | attention | batch x tokens | published | predicted | error |"
    yield "|---|---|---|---|---|---|"
    for step in steps:
        yield (
            f"| {step.gpu} | {step.backend} | {step.sequences} x {step.length:,} "
            f"| {1e3 * step.measured_s:.0f} ms | {1e3 * step.predicted_s:.0f} ms | {step.error:+.0%} |"
        )


def _by_backend(steps: Sequence[LlamaStep]) -> Iterator[str]:
    yield "| attention | mean error | worst | inside p10..p90 |"
    yield "|---|---|---|---|"
    for backend in dict.fromkeys(step.backend for step in steps):
        yield _errors(backend, [step for step in steps if step.backend is backend])
    yield _errors("all", steps)


def _errors(name: str, steps: Sequence[LlamaStep]) -> str:
    errors = [abs(step.error) for step in steps]
    inside = sum(step.is_inside for step in steps)
    return f"| {name} | {statistics.mean(errors):.1%} | {max(errors):.0%} | {inside} of {len(steps)} |"


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--published", type=Path, required=True, metavar="DIR")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE.md")
    options = parser.parse_args()
    try:
        steps = list(llama_steps(options.published))
    except FileNotFoundError as error:
        parser.error(f"no {error.filename}: name the folder of published measurements.")
    write_atomically(options.out, page(steps).encode())


if __name__ == "__main__":
    main()
