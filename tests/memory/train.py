"""``train.py MODEL DEVICE``: four steps of one of the models."""

import sys

from models import training

_, _, step = training(*sys.argv[1:])
for _ in range(4):
    step()
