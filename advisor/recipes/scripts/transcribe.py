"""Fine-tune Whisper to transcribe clips of 30 seconds.

Weights in float32, products in bfloat16 (autocast). Needs transformers: pip install transformers.
One GPU: python SCRIPT. Several: torchrun --nproc-per-node GPUS SCRIPT
"""

import torch
from hf_model import FromConfig
from random_samples import RandomSamples
from training import placed, start, train
from transformers import AutoModelForSpeechSeq2Seq

MODEL = "whisper-small"
CONFIG = {}
SAMPLES = 10_000  # of an epoch
EPOCHS = 1
BATCH = 16  # samples of one pass of one GPU
ACCUMULATION = 1  # passes of an optimizer step
SHARD = False  # divide the model among GPUs (FSDP); otherwise each holds a copy (DDP)
CHECKPOINTING = False  # recompute activations in the backward pass, for memory
SEQUENCE = 128  # tokens of a transcript, padding included
LEARNING_RATE = 1e-5


class Transcriber(FromConfig):
    def forward(self, features, tokens):
        """The mean loss of the batch."""
        return self.model(input_features=features, labels=tokens).loss


def main():
    start()
    with torch.device("meta"):
        model = Transcriber(AutoModelForSpeechSeq2Seq, CONFIG, CHECKPOINTING)
    model = placed(model, model.layers, SHARD)
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE, weight_decay=0.0, fused=True)
    data = RandomSamples(SAMPLES, (CONFIG["num_mel_bins"], 3000), (SEQUENCE,), CONFIG["vocab_size"])
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
