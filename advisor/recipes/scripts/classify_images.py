"""Train an image classifier (ViT, ResNet) on images of 224 pixels.

Weights in float32, products in bfloat16 (autocast). Needs transformers: pip install transformers.
One GPU: python SCRIPT. Several: torchrun --nproc-per-node GPUS SCRIPT
"""

import torch
from torch.nn import functional as F
from hf_model import FromConfig
from random_samples import RandomSamples
from training import placed, start, train
from transformers import AutoModelForImageClassification

MODEL = "vit-b16"
CONFIG = {}
SAMPLES = 1_281_167  # of an epoch
EPOCHS = 1
BATCH = 64  # samples of one pass of one GPU
ACCUMULATION = 1  # passes of an optimizer step
SHARD = False  # divide the model among GPUs (FSDP); otherwise each holds a copy (DDP)
CHECKPOINTING = False  # recompute activations in the backward pass, for memory
SIZE = 224
NUM_LABELS = 1000
CHANNELS_LAST = False  # faster for convolutions
LEARNING_RATE = 3e-4


class Classifier(FromConfig):
    def forward(self, images, labels):
        """The mean loss of the batch."""
        if CHANNELS_LAST:
            images = images.contiguous(memory_format=torch.channels_last)
        return F.cross_entropy(self.model(pixel_values=images).logits, labels)


def main():
    start()
    with torch.device("meta"):
        model = Classifier(
            AutoModelForImageClassification, {**CONFIG, "num_labels": NUM_LABELS}, CHECKPOINTING
        )
    model = placed(model, model.layers, SHARD)
    if CHANNELS_LAST and not SHARD:  # FSDP keeps weights flat
        model = model.to(memory_format=torch.channels_last)
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE, weight_decay=0.05, fused=True)
    data = RandomSamples(SAMPLES, (3, SIZE, SIZE), (), NUM_LABELS)
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
