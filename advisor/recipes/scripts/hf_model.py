"""A model of transformers (pip install transformers), made from its configuration."""

from torch import nn
from transformers import AutoConfig


class FromConfig(nn.Module):
    def __init__(self, kind, config, checkpointing):
        super().__init__()
        self.model = kind.from_config(AutoConfig.for_model(**config))
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
