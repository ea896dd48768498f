"""One iteration of the networks of Lambda's runs, as NVIDIA's scripts train them under apex O2: in halves.

BERT answers questions on 384 tokens, GNMT translates. A step's time is measured, so its batch only has to
tell how the time divides among the operators.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from advisor.profile import profile_callable
from research.bert import FINE_TUNING_LENGTH, VOCABULARY
from research.published import resnet_50

if TYPE_CHECKING:
    from advisor.core.values import Trace

_SENTENCES, _QUESTIONS, _IMAGES = 128, 8, 64
_LARGE = {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096}


@cache
def _bert(large: bool, half: bool) -> Trace:
    def build() -> tuple[Any, ...]:
        import torch
        import transformers

        config = transformers.BertConfig(
            vocab_size=VOCABULARY, attn_implementation="eager", **(_LARGE if large else {})
        )
        with torch.device("cuda"):
            model = transformers.BertForQuestionAnswering(config).train()
            ids = torch.ones(_QUESTIONS, FINE_TUNING_LENGTH, dtype=torch.int64)
            answers = torch.ones(_QUESTIONS, dtype=torch.int64)
        model = model.half() if half else model
        return model, torch.optim.Adam(model.parameters(), fused=True), ids, answers

    def loss(model: Any, ids: Any, answers: Any) -> Any:
        return model(
            ids, attention_mask=ids, token_type_ids=ids, start_positions=answers, end_positions=answers
        ).loss

    return profile_callable(partial(_step, loss), setup=build, batch_size=_QUESTIONS)


@cache
def _gnmt(half: bool) -> Trace:
    def build() -> tuple[Any, ...]:
        import torch

        from research.gnmt import LENGTH, WIDTH, Translator
        from research.gnmt import VOCABULARY as WORDS

        with torch.device("cuda"):
            model = Translator(WIDTH, WORDS)
            tokens = torch.ones(_SENTENCES, LENGTH, dtype=torch.int64)
        model = model.half() if half else model
        return model, torch.optim.Adam(model.parameters(), fused=True), tokens

    def loss(model: Any, tokens: Any) -> Any:
        import torch

        return torch.nn.functional.cross_entropy(model(tokens, tokens).flatten(0, 1), tokens.flatten())

    trace = profile_callable(partial(_step, loss), setup=build, batch_size=_SENTENCES)
    return reducing_behind(trace)


def _step(loss: Callable[..., Any], state: tuple[Any, ...]) -> None:
    model, optimizer, *batch = state
    optimizer.zero_grad()
    loss(model, *batch).backward()
    optimizer.step()


def reducing_behind(trace: Trace) -> Trace:
    """The same where nothing of the exchange hides.

    So do NVIDIA's runs of GNMT. Two boards that exchange through a host lose as much time as all gradients
    take, twice as much in FP32 as in halves; of BERT's they lose half.
    """
    return replace(trace, awaits_reductions=True)


NETWORKS: Mapping[str, Callable[[bool], Trace]] = {
    "bert_base_squad": partial(_bert, False),
    "bert_large_squad": partial(_bert, True),
    "gnmt": _gnmt,
    "resnet50": lambda amp: resnet_50(amp, _IMAGES),
}
"""By the table's name of it: a trace in half precision, or in single."""
