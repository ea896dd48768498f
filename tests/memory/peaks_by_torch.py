"""Peaks of all models as torch's own MemTracker counts them, on real CPU tensors; printed as JSON."""

import json
import sys

from torch.distributed._tools.mem_tracker import MemTracker

from tests.memory.models import MODELS, training


def peak(name):
    model, optimizer, step = training(name, "cpu")
    step()  # the optimizer makes its state
    tracker = MemTracker()
    tracker.track_external(model, optimizer)
    with tracker:
        step()
    ((_, by_kind),) = tracker.get_tracker_snapshot("peak").items()
    return by_kind["Total"]


json.dump({name: peak(name) for name in MODELS}, sys.stdout)
