"""Fine-tune all weights of a language model; weights, gradients and AdamW's moments in bfloat16.

One GPU: python SCRIPT. Several: torchrun --nproc-per-node GPUS SCRIPT
"""

import torch
from decoder import Decoder
from tokens import Tokens
from training import placed, start, train
from weights import load_weights

MODEL = "llama-3.2-1b"
CONFIG = {}
WEIGHTS = ""  # a folder with the model's published *.safetensors; random weights without one
DATA = ""  # a file of int32 token ids; random ones without one
TOKENS = 20_000_000  # of an epoch, where DATA is empty
EPOCHS = 1
SEQUENCE = 2048
BATCH = 4  # sequences of one pass of one GPU
ACCUMULATION = 2  # passes of an optimizer step
SHARD = False  # divide the model among GPUs (FSDP); otherwise each holds a copy (DDP)
CHECKPOINTING = True  # recompute activations in the backward pass, for memory
LEARNING_RATE = 2e-5


def main():
    start()
    with torch.device("meta"):
        model = Decoder(CONFIG, CHECKPOINTING).bfloat16()
    model = placed(model, model.layers, SHARD)
    load_weights(model, WEIGHTS)
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE, weight_decay=0.01, fused=True)
    data = Tokens(DATA, SEQUENCE, CONFIG["vocab_size"], TOKENS)
    train(
        model,
        optimizer,
        data,
        batch=BATCH,
        accumulation=ACCUMULATION,
        epochs=EPOCHS,
        learning_rate=LEARNING_RATE,
    )


if __name__ == "__main__":
    main()
