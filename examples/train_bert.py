"""Pre-train BERT (BERT-large by default) on random tokens: 15 % of them are to be guessed.

python train_bert.py --batch-size 8 --amp
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

MASK, IGNORED = 103, -100


class MaskedTokens(Dataset):
    """As many sequences as Wikipedia and BookCorpus give with 512 tokens each."""

    def __init__(self, length, vocabulary):
        self.length = length
        self.vocabulary = vocabulary

    def __len__(self):
        return 6_445_000

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        tokens = torch.randint(self.vocabulary, (self.length,), generator=generator)
        is_masked = torch.rand(self.length, generator=generator) < 0.15
        return tokens.masked_fill(is_masked, MASK), tokens.masked_fill(~is_masked, IGNORED)


class Bert(nn.Module):
    def __init__(self, vocabulary, length, width, heads, layers):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(length, width)
        self.norm = nn.LayerNorm(width)
        self.dropout = nn.Dropout(0.1)
        layer = nn.TransformerEncoderLayer(width, heads, 4 * width, 0.1, "gelu", batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers)
        self.head = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.LayerNorm(width))
        self.bias = nn.Parameter(torch.zeros(vocabulary))

    def forward(self, tokens):
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.dropout(self.norm(self.tokens(tokens) + self.positions(positions)))
        return F.linear(self.head(self.encoder(x)), self.tokens.weight, self.bias)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--length", type=int, default=512)
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument("--heads", type=int, default=16)
    parser.add_argument("--layers", type=int, default=24)
    parser.add_argument("--vocabulary", type=int, default=30_522)
    parser.add_argument("--amp", action="store_true", help="fp16 autocast with a gradient scaler")
    args = parser.parse_args()

    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = Bert(args.vocabulary, args.length, args.width, args.heads, args.layers).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 10_000))
    scaler = torch.amp.GradScaler(device, enabled=args.amp)
    data = MaskedTokens(args.length, args.vocabulary)
    loader = DataLoader(data, args.batch_size, shuffle=True, num_workers=4, drop_last=True)

    for epoch in range(args.epochs):
        for step, (tokens, targets) in enumerate(loader):
            tokens, targets = tokens.to(device), targets.to(device)
            with torch.autocast(device, dtype=torch.float16, enabled=args.amp):
                loss = F.cross_entropy(model(tokens).flatten(0, 1), targets.flatten(), ignore_index=IGNORED)
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
            schedule.step()
            if step % 100 == 0:
                print(f"epoch {epoch} step {step} loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
