"""A language model of transformers (pip install transformers), made from its configuration."""

from torch import nn
from torch.nn import functional as F
from transformers import AutoConfig, AutoModelForCausalLM


class Decoder(nn.Module):
    def __init__(self, config, checkpointing):
        super().__init__()
        self.model = AutoModelForCausalLM.from_config(AutoConfig.for_model(**config))
        if checkpointing:
            self.model.gradient_checkpointing_enable({"use_reentrant": False})

    @property
    def layers(self):
        """The blocks: the longest list of modules."""
        lists = (module for module in self.model.modules() if isinstance(module, nn.ModuleList))
        return max(lists, key=len)

    def reset_parameters(self):
        # Tables of positions, too, and weights that two layers share.
        self.model.init_weights()

    def forward(self, tokens, targets):
        """The mean loss of the batch."""
        logits = self.model(input_ids=tokens, use_cache=False).logits
        return F.cross_entropy(logits.float().flatten(0, 1), targets.flatten())
