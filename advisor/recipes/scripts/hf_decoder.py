"""A language model of transformers, made from its configuration."""

from hf_model import FromConfig
from torch.nn import functional as F
from transformers import AutoModelForCausalLM


class Decoder(FromConfig):
    def __init__(self, config, checkpointing):
        super().__init__(AutoModelForCausalLM, config, checkpointing)

    def forward(self, tokens, targets):
        """The mean loss of the batch."""
        logits = self.model(input_ids=tokens, use_cache=False).logits
        return F.cross_entropy(logits.float().flatten(0, 1), targets.flatten())
