"""Weights updated by hand, as in pytorch/examples word_language_model."""

import math
import time

import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class RNNModel(nn.Module):
    def __init__(self, num_tokens, width, num_layers, dropout=0.2):
        super().__init__()
        self.num_tokens = num_tokens
        self.drop = nn.Dropout(dropout)
        self.encoder = nn.Embedding(num_tokens, width)
        self.rnn = nn.LSTM(width, width, num_layers, dropout=dropout)
        self.decoder = nn.Linear(width, num_tokens)
        self.num_layers, self.width = num_layers, width
        nn.init.uniform_(self.encoder.weight, -0.1, 0.1)
        nn.init.zeros_(self.decoder.bias)

    def forward(self, tokens, hidden):
        embedded = self.drop(self.encoder(tokens))
        output, hidden = self.rnn(embedded, hidden)
        decoded = self.decoder(self.drop(output)).view(-1, self.num_tokens)
        return nn.functional.log_softmax(decoded, dim=1), hidden

    def init_hidden(self, batch_size):
        weight = next(self.parameters())
        return (
            weight.new_zeros(self.num_layers, batch_size, self.width),
            weight.new_zeros(self.num_layers, batch_size, self.width),
        )


def batchify(data, batch_size):
    num_batches = data.size(0) // batch_size
    data = data.narrow(0, 0, num_batches * batch_size)
    return data.view(batch_size, -1).t().contiguous().to(device)


def repackage_hidden(hidden):
    if isinstance(hidden, torch.Tensor):
        return hidden.detach()
    return tuple(repackage_hidden(part) for part in hidden)


num_tokens, batch_size, bptt, lr, clip = 1000, 20, 35, 20, 0.25
train_data = batchify(torch.randint(num_tokens, (100_000,)), batch_size)
model = RNNModel(num_tokens, 200, 2).to(device)
criterion = nn.NLLLoss()


def get_batch(source, start):
    length = min(bptt, len(source) - 1 - start)
    return source[start : start + length], source[start + 1 : start + 1 + length].view(-1)


def train():
    model.train()
    total_loss = 0.0
    start_time = time.time()
    hidden = model.init_hidden(batch_size)
    for batch, start in enumerate(range(0, train_data.size(0) - 1, bptt)):
        data, targets = get_batch(train_data, start)
        model.zero_grad()
        hidden = repackage_hidden(hidden)
        output, hidden = model(data, hidden)
        loss = criterion(output, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        for p in model.parameters():
            p.data.add_(p.grad, alpha=-lr)
        total_loss += loss.item()
        if batch % 20 == 0 and batch > 0:
            average = total_loss / 20
            elapsed = time.time() - start_time
            print(f"{batch:5d} batches | ms/batch {elapsed * 50:5.2f} | ppl {math.exp(average):8.2f}")
            total_loss = 0
            start_time = time.time()


for _ in range(40):
    train()
