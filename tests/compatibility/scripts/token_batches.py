"""Batches of about as many tokens
PyTorch's documentation of torch.utils.data: a batch_sampler, and a collate_fn that makes a custom batch type.
"""

import random

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset, Sampler

WORDS = ["the", "quick", "brown", "fox", "jumps", "over", "a", "lazy", "dog", "while", "nobody", "looks"]


class Sentences(Dataset):
    def __init__(self, count=5000):
        generator = random.Random(0)
        self.texts = [" ".join(generator.choices(WORDS, k=generator.randint(3, 60))) for _ in range(count)]

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, index):
        return self.texts[index], len(self.texts[index]) % 2


class TokenSampler(Sampler):
    def __init__(self, dataset, max_tokens=2048):
        lengths = [len(text.split()) for text, _ in (dataset[i] for i in range(len(dataset)))]
        self.batches, batch, longest = [], [], 0
        for index in sorted(range(len(lengths)), key=lengths.__getitem__):
            longest = max(longest, lengths[index])
            if batch and longest * (len(batch) + 1) > max_tokens:
                self.batches.append(batch)
                batch, longest = [], lengths[index]
            batch.append(index)
        self.batches.append(batch)

    def __iter__(self):
        random.shuffle(self.batches)
        return iter(self.batches)

    def __len__(self):
        return len(self.batches)


class Batch:
    def __init__(self, samples):
        vocabulary = {word: number + 1 for number, word in enumerate(WORDS)}
        self.tokens = pad_sequence(
            [torch.tensor([vocabulary[word] for word in text.split()]) for text, _ in samples],
            batch_first=True,
        )
        self.labels = torch.tensor([label for _, label in samples])

    def to(self, device):
        self.tokens, self.labels = self.tokens.to(device), self.labels.to(device)
        return self


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(len(WORDS) + 1, 128, padding_idx=0)
        layer = nn.TransformerEncoderLayer(128, 4, 256, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(128, 2)

    def forward(self, tokens):
        hidden = self.encoder(self.embedding(tokens), src_key_padding_mask=tokens == 0)
        return self.head(hidden.mean(1))


data = Sentences()
loader = DataLoader(data, batch_sampler=TokenSampler(data), collate_fn=Batch, num_workers=2)
model = Classifier().cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
for epoch in range(3):
    for batch in loader:
        batch = batch.to("cuda")
        loss = nn.functional.cross_entropy(model(batch.tokens), batch.labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
