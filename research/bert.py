"""Iterations of BERT-large as NVIDIA's published tables ran it, by transformers with eager attention.

Pre-training accumulates the gradients of hundreds of passes before each step, so a pass is an iteration,
and the optimizer does not count; logits are computed of the masked positions alone. Fine-tuning (SQuAD)
steps after each pass. The rows of pre-training with 512 tokens are scored nowhere: they cannot be of
whole sequences, since the published 19 a second take 19 TFLOP/s of FP32 products, and the V100's peak is
15.7.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from advisor.profile import profile_callable

if TYPE_CHECKING:
    from advisor.core.values import Trace

PUBLISHED = "LanguageModeling/BERT"
# Padded to a multiple of 8 for tensor cores.
VOCABULARY = 30_528
# Masked positions that the data holds for each sequence, by its length.
MASKED = {128: 20, 512: 80}
FINE_TUNING_LENGTH = 384


@cache
def pre_training(length: int, amp: bool, batch_size: int) -> Trace:
    """Forward and backward of one batch of sequences, with autocast to fp16 or without.

    Raises:
        KeyError: the length is not one of ``MASKED``.
        ProfileError: it cannot be profiled here.
    """
    masked = MASKED[length]

    def build() -> tuple[Any, ...]:
        import torch

        model = _model("BertForPreTraining")
        with torch.device("cuda"):
            ids = torch.ones(batch_size, length, dtype=torch.int64)
            positions = torch.ones(batch_size * masked, dtype=torch.int64)
            following = torch.ones(batch_size, dtype=torch.int64)
        return model, ids, positions, following

    def step(state: tuple[Any, ...]) -> None:
        import torch

        cross_entropy = torch.nn.functional.cross_entropy
        model, ids, positions, following = state
        with torch.autocast("cuda", dtype=torch.float16, enabled=amp):
            hidden, pooled = model.bert(ids, attention_mask=ids, token_type_ids=ids)[:2]
            words, pairs = model.cls(hidden.flatten(0, 1).index_select(0, positions), pooled)
            loss = cross_entropy(words, positions) + cross_entropy(pairs, following)
        loss.backward()

    return profile_callable(step, setup=build, batch_size=batch_size)


@cache
def fine_tuning(amp: bool, batch_size: int) -> Trace:
    """A training step on questions, with autocast to fp16 or without; apex's optimizer, or BERT's own.

    Raises:
        ProfileError: it cannot be profiled here.
    """

    def build() -> tuple[Any, ...]:
        import torch

        from research.bert_adam import TensorByTensor

        model = _model("BertForQuestionAnswering")
        with torch.device("cuda"):
            ids = torch.ones(batch_size, FINE_TUNING_LENGTH, dtype=torch.int64)
            answers = torch.ones(batch_size, dtype=torch.int64)
        scaler = torch.amp.GradScaler("cuda", enabled=amp)
        weights = model.parameters()
        optimizer = torch.optim.Adam(weights, fused=True) if amp else TensorByTensor(weights)
        return model, optimizer, scaler, ids, answers

    def step(state: tuple[Any, ...]) -> None:
        import torch

        model, optimizer, scaler, ids, answers = state
        with torch.autocast("cuda", dtype=torch.float16, enabled=amp):
            loss = model(
                ids, attention_mask=ids, token_type_ids=ids, start_positions=answers, end_positions=answers
            ).loss
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()

    return profile_callable(step, setup=build, batch_size=batch_size)


def _model(head: str) -> Any:
    import torch
    import transformers

    config = transformers.BertConfig(
        vocab_size=VOCABULARY, hidden_size=1024, num_hidden_layers=24, num_attention_heads=16,
        intermediate_size=4096, attn_implementation="eager",
    )  # fmt: skip
    with torch.device("cuda"):
        return getattr(transformers, head)(config).train()
