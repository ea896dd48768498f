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


def text_model(name: str) -> nn.Module | None:
    """A model of transformers with few layers; None for another name."""
    import transformers

    if name == "gpt2":
        return transformers.GPT2LMHeadModel(transformers.GPT2Config(n_layer=4))
    if name == "t5":
        config = transformers.T5Config(num_layers=3, decoder_start_token_id=0)
        return transformers.T5ForConditionalGeneration(config)
    if name == "bert":
        return transformers.BertForMaskedLM(transformers.BertConfig(num_hidden_layers=4))
    if name == "opt":
        config = transformers.OPTConfig(num_hidden_layers=4)
        return transformers.OPTForCausalLM(config)
    if name == "electra":
        return transformers.ElectraForMaskedLM(transformers.ElectraConfig(num_hidden_layers=4))
    if name == "distilbert":
        return transformers.DistilBertForMaskedLM(transformers.DistilBertConfig(n_layers=4))
    return None


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
