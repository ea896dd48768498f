"""``--fake-data``: the grammar that says what one sample of a missing data set looks like.

::

    SAMPLE = FIELD{,FIELD}               a tuple; a single field stands for itself
    FIELD  = [NAME=][SIZE{xSIZE}:]KIND   with names, a dict
    KIND   = class | float32 | int64 | ...

``3x224x224:float32,1000:class`` is an image and its label, one of 1000;
``input_ids=512:int64,labels=512:int64`` a dict of tokens; ``float32`` alone is one number.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from advisor.core.errors import InputError, did_you_mean

EXAMPLE = "3x224x224:float32,1000:class"
DTYPES = ("float32", "float16", "bfloat16", "float64", "int64", "int32", "int16", "int8", "uint8", "bool")
CLASS = "class"
_FIELD = re.compile(r"(?:(?P<name>[^=:,]*)=)?(?:(?P<shape>[^=:,]*):)?(?P<kind>[^=:,]*)")
_MOST_ELEMENTS = 2**31


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeField:
    """One part of a sample.

    Attributes:
        name: its key if samples are dicts.
        kind: a dtype, or ``class`` for a label, whose number of classes is the shape.
    """

    name: str | None
    shape: tuple[int, ...]
    kind: str


def parse_fake_data(text: str) -> tuple[FakeField, ...]:
    """The fields of one sample.

    Raises:
        InputError: names the field, where it begins, and an example.

    >>> parse_fake_data("3x8x8:float32,10:class")[1]
    FakeField(name=None, shape=(10,), kind='class')
    """
    fields = []
    position = 0
    for part in text.split(","):
        try:
            fields.append(_field(part.strip()))
        except ValueError as error:
            raise InputError(
                f"`profile.fake_data`: {part!r} at character {position + 1}: {error}. Write for instance"
                f" {EXAMPLE}, or input_ids=512:int64,labels=512:int64."
            ) from error
        position += len(part) + 1
    names = [field.name for field in fields]
    if None in names and any(names):
        raise InputError(f"`profile.fake_data` {text!r}: name all fields (a dict) or none (a tuple).")
    if any(names) and len(set(names)) < len(names):
        raise InputError(f"`profile.fake_data` {text!r}: a name stands twice.")
    return tuple(fields)


def _field(text: str) -> FakeField:
    match = _FIELD.fullmatch(text)
    if match is None or not text:
        raise ValueError("a field is SIZExSIZE:KIND" if text else "an empty field")
    name, shape, kind = match["name"], match["shape"], match["kind"].strip().removeprefix("torch.")
    if name is not None and not name.strip().isidentifier():
        raise ValueError(f"{name!r} is no name of a field")
    if kind not in (*DTYPES, CLASS):
        kinds = (CLASS, *DTYPES)
        raise ValueError(f"unknown kind {kind!r}.{did_you_mean(kind, kinds)} There are {', '.join(kinds)}")
    sizes = () if shape is None else tuple(_size(size) for size in shape.split("x"))
    if kind == CLASS and len(sizes) != 1:
        raise ValueError("a class needs the number of classes before it, such as 1000:class")
    num_elements = 1
    for size in sizes:
        num_elements *= size
    if num_elements > _MOST_ELEMENTS:
        raise ValueError(f"a sample of {num_elements:,} elements is too large")
    return FakeField(name=None if name is None else name.strip(), shape=sizes, kind=kind)


def _size(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,10}", text.strip()) or int(text) < 1:
        raise ValueError(f"{text!r} is no size: whole numbers from 1 on, joined by x")
    return int(text)
