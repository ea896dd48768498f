"""Train an LSTM language model on random tokens of WikiText-2's size.

python train_lstm.py --batch-size 64 --amp
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset


class RandomTokens(Dataset):
    """As many tokens as WikiText-2's training set."""

    def __init__(self, length, vocabulary, num_tokens=2_088_628):
        self.length = length
        self.vocabulary = vocabulary
        self.num_tokens = num_tokens

    def __len__(self):
        return self.num_tokens // self.length

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        tokens = torch.randint(self.vocabulary, (self.length + 1,), generator=generator)
        return tokens[:-1], tokens[1:]


class LanguageModel(nn.Module):
    def __init__(self, vocabulary, width, layers, dropout=0.5):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.embed = nn.Embedding(vocabulary, width)
        self.lstm = nn.LSTM(width, width, layers, dropout=dropout, batch_first=True)
        self.head = nn.Linear(width, vocabulary)
        self.head.weight = self.embed.weight

    def forward(self, tokens):
        hidden, _ = self.lstm(self.dropout(self.embed(tokens)))
        return self.head(self.dropout(hidden))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--length", type=int, default=70, help="tokens that gradients go back")
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--vocabulary", type=int, default=33_278)
    parser.add_argument("--amp", action="store_true", help="fp16 autocast with a gradient scaler")
    args = parser.parse_args()

    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = LanguageModel(args.vocabulary, args.width, args.layers).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    scaler = torch.amp.GradScaler(device, enabled=args.amp)
    data = RandomTokens(args.length, args.vocabulary)
    loader = DataLoader(data, args.batch_size, shuffle=True, num_workers=2, drop_last=True)

    for epoch in range(args.epochs):
        for step, (tokens, targets) in enumerate(loader):
            tokens, targets = tokens.to(device), targets.to(device)
            with torch.autocast(device, dtype=torch.float16, enabled=args.amp):
                loss = F.cross_entropy(model(tokens).flatten(0, 1), targets.flatten())
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 0.25)
            scaler.step(optimizer)
            scaler.update()
            if step % 100 == 0:
                print(f"epoch {epoch} step {step} loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
