"""What is found of prices."""

from collections.abc import Mapping, Sequence

from advisor.core.findings import Caution, Note

# What to know of prices.


class GpuFamily(Note):
    name: str
    gpus: Sequence[str]


class PricesComputed(Caution):
    num_computed: int
    num_prices: int
    source_begins: str


class PricesImplausible(Caution):
    num_prices: int
    source: str
    examples: str
    is_kept: bool


class PricesNotLive(Caution):
    num_dated: int
    num_prices: int
    ages: Sequence[Mapping[str, str | int]]
    is_public: bool


class PricesStale(Caution):
    examples: Sequence[str]
    num_machines: int
    num_prices: int
    sources: Sequence[str]
    is_kept: bool
