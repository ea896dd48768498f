"""Iterations of BERT-base as DLPerf pre-trained it: sequences of 128 tokens, a step after each batch."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from advisor.profile import profile_callable
from research.bert import MASKED, VOCABULARY

if TYPE_CHECKING:
    from advisor.core.values import Trace

_LENGTH = 128


@cache
def pre_training(amp: bool, batch_size: int) -> Trace:
    """A training step with AdamW, with autocast to fp16 or without.

    Raises:
        ProfileError: it cannot be profiled here.
    """

    def build() -> tuple[Any, ...]:
        import torch
        import transformers

        config = transformers.BertConfig(vocab_size=VOCABULARY, attn_implementation="eager")
        with torch.device("cuda"):
            model = transformers.BertForPreTraining(config).train()
            ids = torch.ones(batch_size, _LENGTH, dtype=torch.int64)
            positions = torch.ones(batch_size * MASKED[_LENGTH], dtype=torch.int64)
            following = torch.ones(batch_size, dtype=torch.int64)
        return model, torch.optim.AdamW(model.parameters(), fused=True), ids, positions, following

    def step(state: tuple[Any, ...]) -> None:
        import torch

        cross_entropy = torch.nn.functional.cross_entropy
        model, optimizer, ids, positions, following = state
        with torch.autocast("cuda", dtype=torch.float16, enabled=amp):
            hidden, pooled = model.bert(ids, attention_mask=ids, token_type_ids=ids)[:2]
            words, pairs = model.cls(hidden.flatten(0, 1).index_select(0, positions), pooled)
            loss = cross_entropy(words, positions) + cross_entropy(pairs, following)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return profile_callable(step, setup=build, batch_size=batch_size)
