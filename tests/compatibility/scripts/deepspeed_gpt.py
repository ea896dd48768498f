"""DeepSpeed: a GPT-like model in BF16, its state shared by ZeRO of the stage that its configuration says
DeepSpeed's "Getting Started" and "Zero Redundancy Optimizer" tutorials.
"""

import argparse

import deepspeed
import torch
from torch import nn

VOCABULARY, LENGTH = 1024, 64


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, 4, batch_first=True)
        self.inner = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        normed = self.first(x)
        x = x + self.attention(normed, normed, normed, need_weights=False)[0]
        return x + self.inner(self.second(x))


class Model(nn.Module):
    def __init__(self, width, layers):
        super().__init__()
        self.words = nn.Embedding(VOCABULARY, width)
        self.blocks = nn.Sequential(*(Block(width) for _ in range(layers)))
        self.head = nn.Linear(width, VOCABULARY, bias=False)

    def forward(self, tokens):
        logits = self.head(self.blocks(self.words(tokens)))
        return nn.functional.cross_entropy(logits.flatten(0, 1), tokens.flatten())


def main(args):
    zero = {"stage": args.stage, "reduce_bucket_size": 2_000_000}
    if args.offload:
        zero["offload_optimizer"] = {"device": "cpu"}
    config = {
        "train_micro_batch_size_per_gpu": 4,
        "gradient_accumulation_steps": args.accumulation,
        "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}},
        "bf16": {"enabled": True},
        "zero_optimization": zero,
    }
    model = Model(256, 2)
    tokens = torch.utils.data.TensorDataset(torch.randint(0, VOCABULARY, (1024, LENGTH)))
    engine, _, loader, _ = deepspeed.initialize(
        args=args, model=model, model_parameters=model.parameters(), training_data=tokens, config=config
    )
    for _ in range(2):
        for (batch,) in loader:
            loss = engine(batch.to(engine.device))
            engine.backward(loss)
            engine.step()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--stage", type=int, default=2)
    parser.add_argument("--accumulation", type=int, default=1)
    parser.add_argument("--offload", action="store_true")
    main(parser.parse_args())
