"""The table of measured data sets: a new one is one file with one ``DataSet`` and one row here."""

from __future__ import annotations

from training.deepbench import DEEPBENCH
from training.miopen import MIOPEN
from training.neusight import NEUSIGHT
from training.products import PRODUCTS
from training.recordings import RECORDINGS
from training.samples import DataSet, Samples

DATA_SETS: tuple[DataSet, ...] = (NEUSIGHT, DEEPBENCH, MIOPEN, RECORDINGS, PRODUCTS)


def used(samples: Samples) -> list[tuple[DataSet, Samples]]:
    """The data sets that samples are of, each with its own."""
    parts = [(data_set, samples.where(samples.sources == data_set.flag)) for data_set in DATA_SETS]
    return [(data_set, part) for data_set, part in parts if part.ops]
