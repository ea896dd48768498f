"""Train a language model from random weights, kept in float32, with products in bfloat16 (autocast).

One GPU: python SCRIPT. Several: torchrun --nproc-per-node GPUS SCRIPT
"""

import torch
from decoder import Decoder
from tokens import Tokens
from torch.distributed.fsdp import MixedPrecisionPolicy
from training import placed, start, train

MODEL = "llama-3.2-1b"
CONFIG = {}
DATA = ""  # a file of int32 token ids; random ones without one
TOKENS = 20_000_000  # of an epoch, where DATA is empty
EPOCHS = 1
SEQUENCE = 2048
BATCH = 4  # sequences of one pass of one GPU
ACCUMULATION = 2  # passes of an optimizer step
SHARD = False  # divide the model among GPUs (FSDP); otherwise each holds a copy (DDP)
CHECKPOINTING = True  # recompute activations in the backward pass, for memory
LEARNING_RATE = 3e-4


def main():
    start()
    with torch.device("meta"):
        model = Decoder(CONFIG, CHECKPOINTING)
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    model = placed(model, model.layers, SHARD, mp_policy=policy)
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=LEARNING_RATE, betas=(0.9, 0.95), weight_decay=0.1, fused=True
    )
    data = Tokens(DATA, SEQUENCE, CONFIG["vocab_size"], TOKENS)
    train(
        model,
        optimizer,
        data,
        batch=BATCH,
        accumulation=ACCUMULATION,
        epochs=EPOCHS,
        learning_rate=LEARNING_RATE,
        amp=True,
    )


if __name__ == "__main__":
    main()
