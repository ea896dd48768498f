"""What was trained, on what: the facts of the model card that a training knows."""

from __future__ import annotations

import json
from collections.abc import Mapping

import numpy as np
import torch

from advisor.predict.knowledge import LearnedNetwork
from research.training.data_sets import used
from research.training.samples import Samples


def card(samples: Samples, networks: Mapping[str, LearnedNetwork], *, fold: str, seed: int) -> str:
    """JSON: fold, seed, rows by GPU, kind and split, parameters by family, versions."""
    groups = np.char.add(np.char.add(samples.gpus, " "), np.char.add(samples.kinds, " "))
    names, counts = np.unique(np.char.add(groups, samples.splits), return_counts=True)
    facts = {
        "fold": fold,
        "seed": seed,
        "members": max(len(network.weights[0]) for network in networks.values()) if networks else 0,
        "source": " and ".join(data_set.cite(part) for data_set, part in used(samples)),
        "rows": dict(zip(names.tolist(), counts.tolist(), strict=True)),
        "parameters": {family: _parameters(network) for family, network in sorted(networks.items())},
        "torch": torch.__version__,
    }
    return json.dumps(facts, indent=1) + "\n"


def _parameters(network: LearnedNetwork) -> int:
    return sum(array.size for array in (*network.weights, *network.biases))
