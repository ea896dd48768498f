"""Samples of a given form in place of the script's data (``--fake-data``)."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterator, Sized
from typing import cast

import torch
from torch.utils.data import Dataset, IterableDataset

from ..composite import Args, Kwargs
from ..protocol import Notice, SampleField, Warned, notice
from ..recording.batches import length
from ..replacing import replace

_CLASS_NAMES = ("classes", "class_to_idx")
# For a data set that is missing and whose length is unknown: it makes samplers work, and is not reported.
STAND_IN_LENGTH = 1_000_000
# Training and test samples of torchvision's data sets, as their authors publish them; some by their split.
_TORCHVISION_LENGTHS = {
    "CIFAR10": (50_000, 10_000), "CIFAR100": (50_000, 10_000), "FashionMNIST": (60_000, 10_000),
    "Food101": (75_750, 25_250), "ImageNet": (1_281_167, 50_000), "KMNIST": (60_000, 10_000),
    "MNIST": (60_000, 10_000), "SVHN": (73_257, 26_032), "SVHN extra": (531_131,) * 2,
    "EMNIST byclass": (697_932, 116_323), "EMNIST bymerge": (697_932, 116_323),
    "EMNIST balanced": (112_800, 18_800), "EMNIST letters": (124_800, 20_800),
    "EMNIST digits": (240_000, 40_000), "EMNIST mnist": (60_000, 10_000),
    "QMNIST": (60_000, 60_000), "QMNIST test10k": (10_000,) * 2, "QMNIST test50k": (50_000,) * 2,
    "QMNIST nist": (402_953,) * 2, "STL10": (5_000, 8_000), "STL10 unlabeled": (100_000,) * 2,
    "STL10 train+unlabeled": (105_000,) * 2,
}  # fmt: skip


class SampleMaker:
    """Makes samples, and puts them where data is missing."""

    def __init__(
        self, fields: list[SampleField], num_samples: int | None, warn: Callable[..., None],
        forget_lengths: Callable[[], None],
    ) -> None:  # fmt: skip
        self._fields, self._num_samples = fields, num_samples
        self._warn, self._forget_lengths = warn, forget_lengths
        self.num_replaced = 0

    def sample(self, index: int) -> object:
        """One sample: a tuple, a dict, or the only field."""
        values = [_value(field, index) for field in self._fields]
        if self._fields[0]["name"] is not None:
            return {field["name"]: value for field, value in zip(self._fields, values, strict=True)}
        return tuple(values) if len(values) > 1 else values[0]

    def instead_of(self, data: Dataset[object]) -> object:
        """A data set of as many fake samples as the script's has."""
        self.num_replaced += 1
        kind = _FakeStream if isinstance(data, IterableDataset) else _FakeDataset
        return kind(self, data)

    def summary(self) -> Notice:
        if not self.num_replaced:
            return notice(Warned.FAKE_DATA)
        return notice(Warned.FAKE_DATA, num_loaders=self.num_replaced)

    def stand_in(
        self, data: object, error: Exception, create: Callable[..., None], args: Args, kwargs: Kwargs
    ) -> None:
        """Turn an instance whose constructor failed on these arguments into a data set of fake samples."""
        cls = type(data)
        num_samples = self._num_samples or _published_length(cls, _arguments(create, args, kwargs))
        if num_samples is None:
            self._forget_lengths()
        self._warn(
            Warned.FAKE_DATA,
            data_set=cls.__name__,
            error=f"{type(error).__name__}: {' '.join(str(error).split())}"[:200],
            num_samples=num_samples,
        )
        names = self._class_names()
        replace(data, __class__=_missing(cls, self, num_samples or STAND_IN_LENGTH, names))
        # What the constructor came to before it failed are not the fake samples' classes.
        for name in names:
            vars(data).pop(name, None)

    def _class_names(self) -> dict[str, object]:
        classes = next((field["shape"][0] for field in self._fields if field["kind"] == "class"), None)
        if classes is None:
            return {}
        names = [str(number) for number in range(classes)]
        return dict(zip(_CLASS_NAMES, (names, {name: i for i, name in enumerate(names)}), strict=True))


class _Replacing:
    """As long as the data set that it replaces."""

    def __init__(self, source: SampleMaker, replaced: object) -> None:
        self._source, self._replaced = source, replaced

    def __len__(self) -> int:
        return len(cast("Sized", self._replaced))


class _FakeDataset(_Replacing, Dataset[object]):
    """Fake samples at any index; everything else is the replaced data set's."""

    def __getitem__(self, index: object) -> object:
        return self._source.sample(index if isinstance(index, int) else 0)

    def __iter__(self) -> Iterator[object]:
        # Any index has a sample, so that Python would never see the end.
        return (self[index] for index in range(len(self)))

    def __getattr__(self, name: str) -> object:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._replaced, name)


class _FakeStream(_Replacing, IterableDataset[object]):
    """Fake samples in a row, without end where the replaced data set has no length."""

    def __iter__(self) -> Iterator[object]:
        num_samples = length(self._replaced)
        indices = itertools.count() if num_samples is None else range(num_samples)
        return (self._source.sample(index) for index in indices)


def _missing(cls: type, source: SampleMaker, length: int, names: dict[str, object]) -> type:
    def getitem(self: object, index: object) -> object:  # noqa: ARG001
        return source.sample(index if isinstance(index, int) else 0)

    def iterate(self: object) -> Iterator[object]:  # noqa: ARG001
        return (source.sample(index) for index in range(length))

    methods = {"__len__": lambda self: length, "__getitem__": getitem, "__iter__": iterate}  # noqa: ARG005
    # A subclass, so that isinstance and the class's own methods go on to work. The names of classes are its
    # attributes, not the instance's: of MNIST and its kin `class_to_idx` is a property.
    return type(cls.__name__, (cls,), {**methods, **names, "__module__": cls.__module__})


def _value(field: SampleField, index: int) -> object:
    if field["kind"] == "class":
        return index % field["shape"][0]
    return torch.zeros(field["shape"], dtype=getattr(torch, field["kind"]), device="cpu")


def _published_length(cls: type, arguments: dict[str, object]) -> int | None:
    base = next((base for base in cls.__mro__ if base.__module__.startswith("torchvision.")), None)
    if base is None:
        return None
    split = arguments.get("split") or arguments.get("what")
    of_split = _TORCHVISION_LENGTHS.get(f"{base.__name__} {split}")
    lengths = of_split or _TORCHVISION_LENGTHS.get(base.__name__)
    if lengths is None:
        return None
    is_training = arguments.get("train", True) and (of_split is not None or split in (None, "train"))
    return lengths[0 if is_training else 1]


def _arguments(create: Callable[..., None], args: Args, kwargs: Kwargs) -> dict[str, object]:
    try:
        bound = inspect.signature(create).bind(None, *args, **kwargs)
    except (TypeError, ValueError):
        return dict(kwargs)
    bound.apply_defaults()
    return {**bound.arguments, **kwargs}  # those that the constructor only passes on, too
