"""A few training steps of a model of timm or transformers, with one change made; run under the profiler.

MODEL BATCH CHANGE
"""

import contextlib
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

LENGTH, PASSES = 192, 4


class Samples(Dataset[object]):
    """Texts or images of zeros."""

    def __init__(self, *, are_texts: bool) -> None:
        self.are_texts = are_texts

    def __len__(self) -> int:
        """Enough for the profiler."""
        return 4096

    def __getitem__(self, index: int) -> object:
        """A text, or an image and its label."""
        return torch.zeros(LENGTH, dtype=torch.long) if self.are_texts else (torch.zeros(3, 224, 224), 0)


# Of transformers: the model, its configuration without the ending, and what makes it small.
TEXT_MODELS = {
    "gpt2": ("GPT2LMHeadModel", "GPT2", {"n_layer": 4}),
    "t5": ("T5ForConditionalGeneration", "T5", {"num_layers": 3, "decoder_start_token_id": 0}),
    "bert": ("BertForMaskedLM", "Bert", {"num_hidden_layers": 4}),
    "opt": ("OPTForCausalLM", "OPT", {"num_hidden_layers": 4}),
    "electra": ("ElectraForMaskedLM", "Electra", {"num_hidden_layers": 4}),
    "distilbert": ("DistilBertForMaskedLM", "DistilBert", {"n_layers": 4}),
    "albert": (
        "AlbertForMaskedLM",
        "Albert",
        {"hidden_size": 768, "num_attention_heads": 12, "intermediate_size": 3072},
    ),
    "gpt_neox": (
        "GPTNeoXForCausalLM",
        "GPTNeoX",
        {"hidden_size": 512, "num_hidden_layers": 6, "num_attention_heads": 8, "intermediate_size": 2048},
    ),
    "mistral": (
        "MistralForCausalLM",
        "Mistral",
        {
            "hidden_size": 1024,
            "num_hidden_layers": 4,
            "num_attention_heads": 16,
            "num_key_value_heads": 4,
            "intermediate_size": 2816,
        },
    ),
    "deberta": (
        "DebertaV2ForMaskedLM",
        "DebertaV2",
        {"hidden_size": 512, "num_hidden_layers": 4, "num_attention_heads": 8, "intermediate_size": 2048},
    ),
}


def text_model(name: str) -> nn.Module | None:
    """A model of transformers with few layers; None for another name."""
    if name not in TEXT_MODELS:
        return None
    import transformers

    model, config, small = TEXT_MODELS[name]
    return getattr(transformers, model)(getattr(transformers, f"{config}Config")(**small))


def image_model(name: str) -> nn.Module:
    """A model of timm."""
    import timm

    return timm.create_model(name)


name, batch, change = sys.argv[1], int(sys.argv[2]), sys.argv[3]
if change == "tf32":
    torch.set_float32_matmul_precision("high")
of_text = text_model(name)
model = (image_model(name) if of_text is None else of_text).train().to("cuda")
if change == "channels_last":
    model = model.to(memory_format=torch.channels_last)
optimizer = torch.optim.AdamW(model.parameters(), 1e-4, fused=(change == "fused") or None)
passes = PASSES if change == "accumulate" else 1
loader = DataLoader(Samples(are_texts=of_text is not None), batch * (2 if change == "batch" else 1))
lowered = torch.autocast("cuda", dtype=torch.bfloat16) if change == "bf16" else contextlib.nullcontext()
for step, given in enumerate(loader):
    if step % passes == 0:
        optimizer.zero_grad()
    with lowered:
        if of_text is None:
            images, labels = given
            loss = nn.functional.cross_entropy(model(images.to("cuda")), labels.to("cuda"))
        else:
            tokens = given.to("cuda")
            loss = model(input_ids=tokens, labels=tokens).loss
    (loss / passes if passes > 1 else loss).backward()
    if step % passes == passes - 1:
        optimizer.step()
