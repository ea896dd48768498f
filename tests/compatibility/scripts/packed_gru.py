"""GRU classifier with packed sequences
PyTorch docs, pack_padded_sequence; the name classifier of "NLP from scratch" in batches.
"""

import random

import torch
import torch.nn as nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence
from torch.utils.data import DataLoader, Dataset

LONGEST = 15


class Names(Dataset):
    def __init__(self, size):
        self.names = [torch.randint(1, 58, (random.randint(4, LONGEST - 1),)) for _ in range(size)]
        self.names[::8] = [torch.randint(1, 58, (LONGEST,)) for _ in self.names[::8]]

    def __len__(self):
        return len(self.names)

    def __getitem__(self, index):
        return self.names[index], index % 18


def pad(batch):
    names, languages = zip(*batch)
    lengths = torch.tensor([len(name) for name in names])
    return pad_sequence(names, batch_first=True), lengths, torch.tensor(languages)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(58, 32, padding_idx=0)
        self.gru = nn.GRU(32, 64, num_layers=2, bidirectional=True, batch_first=True, dropout=0.2)
        self.fc = nn.Linear(128, 18)

    def forward(self, names, lengths):
        embedded = self.embedding(names)
        packed = pack_padded_sequence(embedded, lengths, batch_first=True, enforce_sorted=False)
        output, hidden = self.gru(packed)
        unpacked, _ = pad_packed_sequence(output, batch_first=True)
        mask = torch.arange(unpacked.size(1))[None, :] < lengths[:, None]
        pooled = (unpacked * mask.unsqueeze(-1).to(unpacked.device)).sum(1)
        pooled = pooled / lengths.unsqueeze(1).to(unpacked.device)
        return self.fc(pooled + torch.cat([hidden[-2], hidden[-1]], dim=1))


device = torch.device("cuda")
model = Classifier().to(device)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters())
loader = DataLoader(Names(160), batch_size=32, collate_fn=pad)
for epoch in range(2):
    for names, lengths, languages in loader:
        optimizer.zero_grad()
        loss = criterion(model(names.to(device), lengths), languages.to(device))
        loss.backward()
        nn.utils.clip_grad_value_(model.parameters(), 1.0)
        optimizer.step()
        print(loss.item())
