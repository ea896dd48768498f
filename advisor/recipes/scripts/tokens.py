"""A file of token ids as samples of one length."""

from pathlib import Path

import torch
from torch.utils.data import Dataset


class Tokens(Dataset):
    """Samples of a file of int32 token ids; random ones where there is no file."""

    def __init__(self, path, length, vocabulary, num_tokens):
        self.length, self.vocabulary, self.ids = length, vocabulary, None
        if path:
            num_tokens = Path(path).stat().st_size // 4
            self.ids = torch.from_file(path, size=num_tokens, dtype=torch.int32)
        self.num_samples = max(num_tokens // length, 1)

    def __len__(self):
        return self.num_samples

    def __getitem__(self, index):
        if self.ids is None:
            ids = torch.randint(self.vocabulary, (self.length + 1,))
        else:
            ids = self.ids[index * self.length : (index + 1) * self.length + 1].long()
            ids = torch.nn.functional.pad(ids, (0, self.length + 1 - len(ids)))
        return ids[:-1], ids[1:]
