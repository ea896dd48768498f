"""The language models of PyTorch's dashboards, with random weights, and what they are trained on.

Configurations and lengths are those of ``benchmarks/dynamo/huggingface.py`` and torchbench (BSD-3-Clause):
the library's default configuration but where given, and attention by single operators, as in 2023.
"""

from __future__ import annotations

from typing import Any

import torch
import transformers

_T5_SMALL = {"vocab_size": 32128, "d_model": 512, "d_kv": 64, "d_ff": 2048, "num_layers": 6, "num_heads": 8}
_T5_LARGE = {**_T5_SMALL, "d_model": 1024, "d_ff": 4096, "num_layers": 24, "num_heads": 16}
_GPT2_LARGE = {"n_embd": 1280, "n_layer": 36, "n_head": 20}
_LONGFORMER = {"max_position_embeddings": 4098, "attention_window": [512] * 12, "vocab_size": 50265}
# Class, configuration, length, and whether it takes labels, the answer's span or nothing but tokens.
MODELS: dict[str, tuple[str, str, dict[str, Any], int, str]] = {
    "AlbertForMaskedLM": ("AlbertForMaskedLM", "AlbertConfig", {}, 512, "labels"),
    "AlbertForQuestionAnswering": ("AlbertForQuestionAnswering", "AlbertConfig", {}, 512, "span"),
    "XLNetLMHeadModel": ("XLNetLMHeadModel", "XLNetConfig", {}, 512, "labels"),
    "DebertaV2ForMaskedLM": ("DebertaV2ForMaskedLM", "DebertaV2Config", {}, 512, "labels"),
    "DebertaV2ForQuestionAnswering": (
        "DebertaV2ForQuestionAnswering", "DebertaV2Config", {}, 512, "span",
    ),
    "PegasusForConditionalGeneration": (
        "PegasusForConditionalGeneration", "PegasusConfig", {}, 128, "labels",
    ),
    "TrOCRForCausalLM": ("TrOCRForCausalLM", "TrOCRConfig", {}, 256, "labels"),
    "AllenaiLongformerBase": ("LongformerForMaskedLM", "LongformerConfig", _LONGFORMER, 1024, "labels"),
    "MBartForConditionalGeneration": ("MBartForConditionalGeneration", "MBartConfig", {}, 1024, "labels"),
    "BartForConditionalGeneration": ("BartForConditionalGeneration", "BartConfig", {}, 1024, "labels"),
    "hf_GPT2_large": ("GPT2LMHeadModel", "GPT2Config", _GPT2_LARGE, 512, "labels"),
    "hf_T5_large": ("T5ForConditionalGeneration", "T5Config", _T5_LARGE, 512, "labels"),
    "hf_T5": ("T5ForConditionalGeneration", "T5Config", _T5_SMALL, 1024, "labels"),
    "hf_BigBird": ("BigBirdForMaskedLM", "BigBirdConfig", {}, 1024, "labels"),
    "hf_Reformer": ("ReformerForMaskedLM", "ReformerConfig", {"is_decoder": False}, 4096, "labels"),
}  # fmt: skip


def model_and_inputs(name: str, batch: int) -> tuple[torch.nn.Module, dict[str, torch.Tensor]]:
    """The model, and what its forward pass is given by name."""
    model_class, config_class, settings, length, kind = MODELS[name]
    config = getattr(transformers, config_class)(**settings)
    config._attn_implementation = "eager"
    config.decoder_start_token_id = 0
    if hasattr(config, "use_cache"):
        config.use_cache = False
    model = getattr(transformers, model_class)(config)
    tokens = torch.zeros(batch, length, dtype=torch.long)
    inputs = {"input_ids": tokens}
    if kind == "labels":
        inputs["labels"] = tokens
    else:
        inputs["start_positions"] = inputs["end_positions"] = tokens[:, 0]
    return model, inputs
