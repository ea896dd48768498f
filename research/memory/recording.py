"""Records the traces that ``points.csv`` names: models of transformers on a GPU that is not there.

    python -m research.memory.recording [NAME ...]

Weights are random, tokens are ones: only shapes count. AdamW's lists of tensors (``foreach``) are torch's
default. MPT computes its loss by a fused kernel that writes the gradient over the logits.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from advisor.core.values import Trace
from advisor.formats.trace_files import write_trace
from advisor.profile import profile_callable
from research.memory.points import MPT_TOKENS, TRACES

_LLAMA = {"hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32, "num_attention_heads": 32}
_LLAMA_3 = _LLAMA | {"intermediate_size": 14336, "num_key_value_heads": 8, "vocab_size": 128256}
_BERT = {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096}
_ESM = {
    "vocab_size": 33, "hidden_size": 640, "num_hidden_layers": 30, "num_attention_heads": 20,
    "intermediate_size": 2560, "max_position_embeddings": 1026, "position_embedding_type": "rotary",
    "token_dropout": False, "pad_token_id": 1, "mask_token_id": 32,
}  # fmt: skip
# Width, layers and heads by size (third_party/README.md of the measurements).
_MPT = {
    "125m": (768, 12, 12, 8), "350m": (1024, 24, 16, 4), "760m": (1536, 24, 12, 4), "1b": (2048, 24, 16, 2),
    "3b": (2560, 32, 20, 1), "7b": (4096, 32, 32, 1), "13b": (5120, 40, 40, 1), "30b": (7168, 48, 56, 1),
    "70b": (8192, 80, 64, 1),
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """What is recorded."""

    config: str
    """The name of transformers' configuration, without its ending."""
    head: str
    """Of the model."""
    facts: Mapping[str, object]
    batch: int
    num_tokens: int
    dtype: str = "bfloat16"
    """Of weights."""
    autocast: str | None = None
    """Of products; None without."""
    fuses_loss: bool = False
    """The loss's kernel overwrites the logits."""


def _llama(num_tokens: int, facts: Mapping[str, object]) -> Model:
    return Model(config="Llama", head="LlamaForCausalLM", facts=facts, batch=1, num_tokens=num_tokens)


def _gpt(width: int, layers: int, heads: int, **facts: object) -> Mapping[str, object]:
    return {"n_embd": width, "n_layer": layers, "n_head": heads, **facts}


def _gpt_2(width: int, heads: int) -> Model:
    facts = _gpt(width, 48, heads, attn_implementation="eager")
    return Model(
        config="GPT2", head="GPT2LMHeadModel", facts=facts, batch=1, num_tokens=1024, dtype="float16"
    )


def _mpt(width: int, layers: int, heads: int, batch: int) -> Model:
    rates = dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), 0.0)
    facts = _gpt(
        width, layers, heads, n_positions=MPT_TOKENS, vocab_size=50368, activation_function="gelu", **rates
    )
    return Model(
        config="GPT2", head="GPT2LMHeadModel", facts=facts, batch=batch, num_tokens=MPT_TOKENS,
        fuses_loss=True,
    )  # fmt: skip


_BERT_4 = Model(
    config="Bert", head="BertForSequenceClassification", facts=_BERT | {"attn_implementation": "eager"},
    batch=4, num_tokens=512, dtype="float32",
)  # fmt: skip
MODELS: Mapping[str, Model] = {
    "llama-7b-bf16-512": _llama(512, _LLAMA),
    "llama3-8b-bf16-2048": _llama(2048, _LLAMA_3),
    "llama3-8b-bf16-8192": _llama(8192, _LLAMA_3),
    "internlm-7b-bf16-2048": _llama(2048, _LLAMA | {"vocab_size": 103168}),
    "gpt2-xl-fp16-1024": _gpt_2(1600, 25),
    "gpt-1.4b-fp16-1024": _gpt_2(1536, 24),
    "bert-large-fp32-512": _BERT_4,
    "bert-large-amp-512": replace(_BERT_4, autocast="float16"),
    "esm2-150m-bf16-512": Model(
        config="Esm", head="EsmForMaskedLM", facts=_ESM, batch=8, num_tokens=512, dtype="float32",
        autocast="bfloat16",
    ),
    **{f"mpt-{size}": _mpt(*shape) for size, shape in _MPT.items()},
}  # fmt: skip


def recorded_anew(model: Model) -> Trace:
    """A training step of a model.

    Raises:
        ProfileError: it cannot be built or run.
    """

    def step(state: tuple[Any, ...]) -> None:
        import torch

        network, optimizer, loss_of = state
        with torch.autocast(
            "cuda", getattr(torch, model.autocast or "float16"), enabled=model.autocast is not None
        ):
            loss = loss_of(network)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return profile_callable(step, setup=lambda: _built(model), batch_size=model.batch)


def _built(model: Model) -> tuple[Any, ...]:
    import torch
    import transformers

    facts = {"attn_implementation": "sdpa", "use_cache": False, **model.facts}
    config = getattr(transformers, f"{model.config}Config")(**facts)
    torch.set_default_dtype(getattr(torch, model.dtype))
    with torch.device("cuda"):
        network = getattr(transformers, model.head)(config).train()
        ids = torch.ones(model.batch, model.num_tokens, dtype=torch.int64)
    torch.set_default_dtype(torch.float32)
    labels = ids[:, 0] if "Sequence" in model.head else ids
    return network, torch.optim.AdamW(network.parameters()), _loss(model, ids, labels)


def _loss(model: Model, ids: Any, labels: Any) -> Callable[[Any], Any]:
    if not model.fuses_loss:
        return lambda network: network(input_ids=ids, labels=labels).loss
    import torch

    class Fused(torch.autograd.Function):
        """A loss whose gradient takes the place of the logits."""

        @staticmethod
        def forward(ctx: Any, logits: torch.Tensor) -> torch.Tensor:
            ctx.save_for_backward(logits)
            return logits.sum()

        @staticmethod
        def backward(ctx: Any, *_: torch.Tensor) -> torch.Tensor:
            (logits,) = ctx.saved_tensors
            return logits.detach().mul_(1.0)

    return lambda network: Fused.apply(network(input_ids=ids).logits)


def main() -> None:
    """Record those that are named, or all."""
    for name in sys.argv[1:] or MODELS:
        trace = replace(recorded_anew(MODELS[name]), script=name, versions={})
        write_trace(trace, TRACES / f"{name}.json.gz")
        print(name, trace.memory, flush=True)


if __name__ == "__main__":
    main()
