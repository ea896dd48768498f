"""Samples of the right form, to plan with."""

import torch
from torch.utils.data import Dataset


class RandomSamples(Dataset):
    """Inputs of a shape, floats or token ids, with one label or several; put your own data here."""

    def __init__(self, num_samples, shape, label_shape, num_labels, vocabulary=None):
        self.num_samples, self.shape, self.label_shape = num_samples, shape, label_shape
        self.num_labels, self.vocabulary = num_labels, vocabulary

    def __len__(self):
        return self.num_samples

    def __getitem__(self, index):
        if self.vocabulary is None:
            inputs = torch.randn(self.shape)
        else:
            inputs = torch.randint(self.vocabulary, self.shape)
        return inputs, torch.randint(self.num_labels, self.label_shape)
