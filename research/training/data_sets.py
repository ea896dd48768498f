"""The table of measured data sets: a new one is one file with one ``DataSet`` and one row here."""

from __future__ import annotations

from research.training.deepbench import DEEPBENCH
from research.training.miopen import MIOPEN
from research.training.neusight import NEUSIGHT
from research.training.products import PRODUCTS
from research.training.recordings import RECORDINGS
from research.training.samples import DataSet, Samples

DATA_SETS: tuple[DataSet, ...] = (NEUSIGHT, DEEPBENCH, MIOPEN, RECORDINGS, PRODUCTS)


def used(samples: Samples) -> list[tuple[DataSet, Samples]]:
    """The data sets that samples are of, each with its own."""
    parts = [(data_set, samples.where(samples.sources == data_set.flag)) for data_set in DATA_SETS]
    return [(data_set, part) for data_set, part in parts if part.ops]
