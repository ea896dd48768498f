"""Fine-tune a diffusion U-Net (Stable Diffusion 1.x) on latents and texts that were encoded beforehand.

Weights in float32, products in bfloat16 (autocast).
One GPU: python SCRIPT. Several: torchrun --nproc-per-node GPUS SCRIPT
"""

import torch
from torch.utils.data import Dataset
from training import placed, start, train
from unet import UNet

MODEL = "sd-1.5"
CONFIG = {}
SAMPLES = 10_000  # of an epoch
EPOCHS = 1
SIZE = 64  # of latents: an eighth of the image's
BATCH = 4  # samples of one pass of one GPU
ACCUMULATION = 1  # passes of an optimizer step
SHARD = False  # divide the model among GPUs (FSDP); otherwise each holds a copy (DDP)
CHECKPOINTING = False  # recompute activations in the backward pass, for memory
LEARNING_RATE = 5e-6


class Encoded(Dataset):
    """Random latents and texts, to plan with; put your own here."""

    def __len__(self):
        return SAMPLES

    def __getitem__(self, index):
        return torch.randn(CONFIG["latent_channels"], SIZE, SIZE), torch.randn(77, CONFIG["context_width"])


def main():
    start()
    with torch.device("meta"):
        model = UNet(CONFIG, CHECKPOINTING)
    model = placed(model, model.layers, SHARD)
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE, weight_decay=0.01, fused=True)
    train(
        model,
        optimizer,
        Encoded(),
        batch=BATCH,
        accumulation=ACCUMULATION,
        epochs=EPOCHS,
        learning_rate=LEARNING_RATE,
        amp=True,
    )


if __name__ == "__main__":
    main()
