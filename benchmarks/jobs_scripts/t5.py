"""Fine-tune T5-large (770 million parameters) on pairs of texts, in bfloat16 under autocast.

python t5.py --batch-size 16
"""

import argparse

import torch
from torch.utils.data import DataLoader, Dataset
from transformers import T5Config, T5ForConditionalGeneration

SHAPE = T5Config(
    d_model=1024, d_ff=4096, d_kv=64, num_heads=16, num_layers=24, num_decoder_layers=24,
    vocab_size=32_128, decoder_start_token_id=0,
)  # fmt: skip


class Summaries(Dataset):
    """287,113 articles of 512 tokens with summaries of 128, as CNN/Daily Mail has them."""

    def __len__(self):
        return 287_113

    def __getitem__(self, index):
        return torch.randint(1, 32_000, (512,)), torch.randint(1, 32_000, (128,))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=16)
    args = parser.parse_args()

    with torch.device("cuda"):
        model = T5ForConditionalGeneration(SHAPE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    loader = DataLoader(Summaries(), args.batch_size, shuffle=True, num_workers=2)
    for texts, summaries in loader:
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = model(input_ids=texts.to("cuda"), labels=summaries.to("cuda")).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
