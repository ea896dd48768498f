"""Fine-tune an encoder (BERT, RoBERTa) to classify texts.

Weights in float32, products in bfloat16 (autocast). Needs transformers: pip install transformers.
One GPU: python SCRIPT. Several: torchrun --nproc-per-node GPUS SCRIPT
"""

import torch
from torch.nn import functional as F
from hf_model import FromConfig
from random_samples import RandomSamples
from training import placed, start, train
from transformers import AutoModelForSequenceClassification

MODEL = "bert-base"
CONFIG = {}
SAMPLES = 100_000  # of an epoch
EPOCHS = 1
BATCH = 32  # samples of one pass of one GPU
ACCUMULATION = 1  # passes of an optimizer step
SHARD = False  # divide the model among GPUs (FSDP); otherwise each holds a copy (DDP)
CHECKPOINTING = False  # recompute activations in the backward pass, for memory
SEQUENCE = 128  # tokens of a sample, padding included
NUM_LABELS = 2
LEARNING_RATE = 2e-5


class Classifier(FromConfig):
    def forward(self, tokens, labels):
        """The mean loss of the batch."""
        return F.cross_entropy(self.model(input_ids=tokens).logits, labels)


def main():
    start()
    with torch.device("meta"):
        model = Classifier(
            AutoModelForSequenceClassification, {**CONFIG, "num_labels": NUM_LABELS}, CHECKPOINTING
        )
    model = placed(model, model.layers, SHARD)
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE, weight_decay=0.01, fused=True)
    data = RandomSamples(SAMPLES, (SEQUENCE,), (), NUM_LABELS, CONFIG["vocab_size"])
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
