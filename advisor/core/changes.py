"""Changes of a script that can be asked about, by name."""

from collections.abc import Iterable

from advisor.core.errors import InputError, did_you_mean
from advisor.core.limits import MAX_WORLD
from advisor.core.values import Sharding, Split

# Stands for every one of them.
ALL = "all"
CHANGE_NAMES = (
    "tf32", "bf16", "fp16", "channels_last", "compile", "fused", "flash", "batch", "accumulate", "workers",
    "packed", "nvme",
)  # fmt: skip


# Splits of a model by name: ``zero-3``, ``tensor-8``, ``pipeline-4``.

_SHARDINGS = {one.value: one for one in Sharding if one is not Sharding.NONE} | {"fsdp": Sharding.ZERO_3}
_DIVISIONS = ("tensor", "pipeline")
SPLIT_NAMES = (*_SHARDINGS, *(f"{name}-N" for name in _DIVISIONS))
"""What a split is made of; N is a number of GPUs or stages."""


def parse_split(names: Iterable[str], argument: str = "suppose") -> Split:
    """The split that names make together.

    >>> parse_split(["tensor-8", "pipeline-2"]).gpus_per_copy
    16

    Raises InputError: no such name, or two of one kind.
    """
    shardings: list[Sharding] = []
    numbers: dict[str, list[int]] = {name: [] for name in _DIVISIONS}
    for text in names:
        kind, _, number = text.partition("-")
        if text in _SHARDINGS:
            shardings.append(_SHARDINGS[text])
        elif kind in numbers and number.isdecimal() and 2 <= int(number[:9]) <= MAX_WORLD:
            numbers[kind].append(int(number))
        else:
            raise InputError(
                f"{argument} must be some of {', '.join(SPLIT_NAMES)}, with N from 2 to {MAX_WORLD}, got"
                f" {text!r}.{did_you_mean(text, SPLIT_NAMES)}"
            )
    if len(shardings) > 1 or any(len(given) > 1 for given in numbers.values()):
        raise InputError(f"{argument} names two of one kind: a model is divided one way of each.")
    return Split(
        sharding=next(iter(shardings), Sharding.NONE),
        **{name: next(iter(given), 1) for name, given in numbers.items()},
    )
