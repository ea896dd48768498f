"""Hugging Face's Llama 3 under FSDP as VectorLM fine-tunes it: torchrun --nproc-per-node N vector_script.py.

Blocks are checkpointed, weights and optimizer are in bf16. With ``--lora`` the script trains adapters of
rank 8 beside queries and values.
"""

import argparse
import os

import torch
import transformers
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.utils.checkpoint import checkpoint

CONFIG = {
    "vocab_size": 128_256, "hidden_size": 4096, "intermediate_size": 14_336, "num_attention_heads": 32,
    "num_key_value_heads": 8, "attn_implementation": "sdpa", "use_cache": False,
}  # fmt: skip
RANK = 8


class Adapted(nn.Module):
    """A frozen layer and what an adapter of low rank adds to it."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer
        self.dropout = nn.Dropout(0.1)
        self.down = nn.Linear(layer.in_features, RANK, bias=False)
        self.up = nn.Linear(RANK, layer.out_features, bias=False)

    def forward(self, x):
        """Both together."""
        return self.layer(x) + self.up(self.down(self.dropout(x))) * 4.0


def adapt(model):
    """Freeze the model and put adapters beside queries and values."""
    model.requires_grad_(False)
    for block in model.model.layers:
        attention = block.self_attn
        attention.q_proj, attention.v_proj = Adapted(attention.q_proj), Adapted(attention.v_proj)


def checkpointed(block):
    """Make the block compute its activations again in the backward pass."""
    forward = block.forward

    def again(*args, **kwargs):
        return checkpoint(forward, *args, use_reentrant=False, **kwargs)

    block.forward = again


def main(args):
    """Train on random tokens."""
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    torch.distributed.init_process_group("nccl", device_id=device)
    config = transformers.LlamaConfig(num_hidden_layers=args.layers, **CONFIG)
    torch.set_default_dtype(torch.bfloat16)
    with device:
        model = transformers.LlamaForCausalLM(config).train()
        if args.lora:
            adapt(model)
            # Without it no gradient would reach the first checkpointed block.
            model.enable_input_require_grads()
    for block in model.model.layers:
        checkpointed(block)
        fully_shard(block)
    fully_shard(model)
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=2e-5)
    for _ in range(10):
        tokens = torch.randint(config.vocab_size, (args.batch, args.length), device=device)
        model(input_ids=tokens, labels=tokens).loss.backward()
        nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        optimizer.zero_grad()
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("layers", "length", "batch"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--lora", action="store_true")
    main(parser.parse_args())
