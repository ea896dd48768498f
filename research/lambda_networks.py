"""Training steps of Lambda Labs' tables (2020 to 2022), as their scripts took them.

They ran NVIDIA's DeepLearningExamples of those years. ResNet-50 keeps its channels first and runs under
autocast or apex O1; on older boards, and in all other networks, half precision is apex O2: a half model whose
optimizer keeps FP32 masters. BERT answers questions on 384 tokens, with attention by single operators; in
FP32 its optimizer goes from tensor to tensor and reads each gradient's norm on the host (``bert_adam.py``).
FP32 products and convolutions use TF32 where a board has it, as those containers let them.

    python -m research.lambda_networks

profiles what ``research/measured/lambda_traces`` lacks.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import partial

import torch
from torch import nn

from advisor.core.values import Trace
from advisor.formats.trace_files import write_trace
from advisor.profile import profile_callable
from research import gnmt
from research.bert_adam import TensorByTensor
from research.gpu_day.steps import Made, Maker, Precision, Step, prepared, registry, run
from research.lambda_steps import TRACES, Work

# Precisions beside TF32, and batches that bracket those of the table.
_PROFILED: dict[str, tuple[tuple[Precision, ...], tuple[int, ...]]] = {
    "resnet50": (("fp16", "o2"), (64, 512)),
    "bert_base_squad": (("o2",), (8, 64, 512)),
    "bert_large_squad": (("o2",), (8, 64)),
    "gnmt": (("o2",), (64, 512)),
}
_QUESTION_TOKENS, _VOCABULARY = 384, 30_528
_BERT = {"bert_base_squad": (768, 12, 12), "bert_large_squad": (1024, 24, 16)}


def makers(*, is_half: bool) -> dict[str, Maker]:
    """Every network that is built, by its name in the table."""
    return {
        "resnet50": registry()["resnet50"],
        **{name: partial(_bert, sizes, is_half) for name, sizes in _BERT.items()},
        "gnmt": _gnmt,
    }


def _bert(sizes: tuple[int, int, int], is_half: bool, batch: int, tiny: bool) -> Made:
    import transformers

    width, layers, heads = (64, 2, 2) if tiny else sizes
    config = transformers.BertConfig(
        vocab_size=_VOCABULARY, hidden_size=width, num_hidden_layers=layers, num_attention_heads=heads,
        intermediate_size=4 * width, attn_implementation="eager",
    )  # fmt: skip
    ids = torch.ones(batch, 16 if tiny else _QUESTION_TOKENS, dtype=torch.int64)
    answers = torch.ones(batch, dtype=torch.int64)
    return Made(
        model=transformers.BertForQuestionAnswering(config),
        inputs=(ids, answers),
        loss=lambda model, ids, answers: (
            model(
                ids, attention_mask=ids, token_type_ids=ids, start_positions=answers, end_positions=answers
            ).loss
        ),
        # apex's, which takes one pass over all weights, or BERT's own.
        optimizer=partial(torch.optim.Adam, lr=1e-4, fused=True) if is_half else TensorByTensor,
    )


def _gnmt(batch: int, tiny: bool) -> Made:
    words, width, length = (100, 32, 8) if tiny else (gnmt.VOCABULARY, gnmt.WIDTH, gnmt.LENGTH)

    def loss(model: nn.Module, tokens: torch.Tensor) -> torch.Tensor:
        return gnmt.smoothed(model(tokens, tokens).flatten(0, 1), tokens.flatten())

    tokens = torch.ones(batch, length, dtype=torch.int64)
    return Made(model=gnmt.Translator(width, words), inputs=(tokens,), loss=loss, optimizer=gnmt.ClippedAdam)


def profiled(work: Work, batch: int) -> Trace:
    """The step on the fake GPU.

    Raises:
        ProfileError: it cannot be profiled here.
    """
    step = Step(network=work.network, precision=work.precision, batch=batch)
    maker = makers(is_half=work.is_half)[work.network]
    trace = profile_callable(run, setup=lambda: prepared(step, maker), batch_size=batch)
    return replace(trace, script="", data_loading_s=0.0, loader_cpu_s_per_sample=None)


def main() -> None:
    """Profile what is missing."""
    TRACES.mkdir(parents=True, exist_ok=True)
    for network, (half, batches) in _PROFILED.items():
        for work in (Work(network, precision) for precision in (*half, "tf32")):
            for batch in batches:
                if not work.path(batch).exists():
                    write_trace(profiled(work, batch), work.path(batch))
                    print(work.path(batch).name, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
