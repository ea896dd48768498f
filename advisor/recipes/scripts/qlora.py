"""QLoRA: fine-tune adapters on a frozen language model whose weights have four bits.

One GPU: python SCRIPT. Several: torchrun --nproc-per-node GPUS SCRIPT
"""

import torch
from adapters import add_adapters
from decoder import Decoder
from four_bit import packed, quantize
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
ADAPTER_RANK = 16
ALPHA = 32
TARGETS = ()  # names of layers, such as "q_proj"; all linear layers of the blocks where none is named
LEARNING_RATE = 2e-4


def main():
    start()
    with torch.device("meta"):
        model = Decoder(CONFIG, CHECKPOINTING).bfloat16()
        # Embedding, norms and head stay in bfloat16.
        quantize(model.layers)
        add_adapters(model, model.layers, TARGETS, ADAPTER_RANK, ALPHA)
    model = placed(model, model.layers, SHARD)
    load_weights(model, WEIGHTS, packed)
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=LEARNING_RATE, weight_decay=0.0, fused=True)
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
