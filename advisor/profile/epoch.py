"""What an epoch holds and how its data is loaded, from the DataLoader that fed the recorded iteration."""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

from advisor.core.errors import InputError, did_you_mean
from advisor.core.findings import Finding, about_traces
from advisor.payload.protocol import Loading, Result

# Endless samplers and streams claim a length that nothing reaches: 10**8, 2**31, sys.maxsize.
_ENDLESS_SAMPLES, _ENDLESS_BATCHES = 10**8, 10**7


@dataclass(frozen=True, slots=True, kw_only=True)
class Epoch:
    """The part of a Trace that its DataLoader tells; None is unknown, and a warning says why."""

    accumulation: int
    batch_size: int | None = None
    samples_per_epoch: int | None = None
    iterations_per_epoch: int | None = None
    seconds: float | None = None
    """Of loading one iteration's samples in one process."""
    cpu_s_per_sample: float | None = None
    """Of the CPU, to load one."""
    num_workers: int | None = None
    batch_variation: float | None = None
    """Standard deviation of what a batch holds, over its mean."""
    warnings: tuple[Finding, ...] = ()


def epoch_of(recording: Result) -> Epoch:
    """The epoch of the child's recording."""
    # Without a DataLoader, backward passes tell; but a GAN's networks have one each.
    single = recording["num_optimizers"] <= 1
    passes = max(1, recording["num_backward_passes"]) if single else 1
    loading = recording["loading"]
    if loading is None:
        return _of_own_samples(recording, passes)
    if loading["fetches"] == 0:
        return Epoch(
            accumulation=passes,
            samples_per_epoch=loading["num_samples"],
            num_workers=loading["num_workers"],
            warnings=(about_traces.LengthUnknown(why="no-batch"),),
        )
    iterations, warnings = _iterations(loading)
    cpu_s, num_samples = loading["cpu_seconds"], loading["samples"]
    return Epoch(
        # Batches of a critic's several steps are not accumulated.
        accumulation=max(1, loading["fetches"] // max(1, recording["most_steps"])),
        batch_size=num_samples,
        samples_per_epoch=loading["num_samples"],
        iterations_per_epoch=iterations,
        seconds=loading["seconds"],
        cpu_s_per_sample=None if cpu_s is None or not num_samples else cpu_s / num_samples,
        num_workers=loading["num_workers"],
        batch_variation=loading["batch_variation"],
        warnings=(*warnings, *_warnings(loading)),
    )


def _of_own_samples(recording: Result, passes: int) -> Epoch:
    """Without a DataLoader: samples that were made where we measured were made by the script's process."""
    making_s = recording["making_s"]
    is_measured = making_s is not None or recording["backend"] == "cuda"
    return Epoch(
        accumulation=passes,
        seconds=making_s,
        num_workers=0 if is_measured else None,
        warnings=(about_traces.LengthUnknown(why="no-loader"),),
    )


def _iterations(loading: Loading) -> tuple[int | None, list[Finding]]:
    if loading["num_batches"] is not None:
        return math.ceil(loading["num_batches"] / loading["fetches"]), []
    if loading["num_samples"] is None:
        return None, [about_traces.LengthUnknown(why="no-length")]
    if loading["samples"] is None:
        return None, [about_traces.LengthUnknown(why="batch-size")]
    per_epoch = math.ceil(loading["num_samples"] / loading["samples"])
    return per_epoch, [about_traces.LengthAssumed(of="sampler", num_iterations=per_epoch)]


def _warnings(loading: Loading) -> Iterator[Finding]:
    samples, batches = loading["num_samples"] or 0, loading["num_batches"] or 0
    if samples >= _ENDLESS_SAMPLES or batches >= _ENDLESS_BATCHES:
        yield about_traces.LengthAssumed(of="endless", num_samples=samples, num_batches=batches)
    if loading["rivals"]:
        yield about_traces.LengthAssumed(
            of="several-loaders", num_batches=loading["num_batches"], others=loading["rivals"]
        )
    if loading["is_dynamic"] and loading["batch_sizes"] is not None:
        smallest, largest = loading["batch_sizes"]
        yield about_traces.BatchesDiffer(smallest=smallest, largest=largest, batch_size=loading["samples"])


# ``--fake-data``: the grammar that says what one sample of a missing data set looks like.
#
# ::
#
# SAMPLE = FIELD{,FIELD}               a tuple; a single field stands for itself
# FIELD  = [NAME=][SIZE{xSIZE}:]KIND   with names, a dict
# KIND   = class | float32 | int64 | ...
#
# ``3x224x224:float32,1000:class`` is an image and its label, one of 1000;
# ``input_ids=512:int64,labels=512:int64`` a dict of tokens; ``float32`` alone is one number.

EXAMPLE = "3x224x224:float32,1000:class"
DTYPES = ("float32", "float16", "bfloat16", "float64", "int64", "int32", "int16", "int8", "uint8", "bool")
CLASS = "class"
_FIELD = re.compile(r"(?:(?P<name>[^=:,]*)=)?(?:(?P<shape>[^=:,]*):)?(?P<kind>[^=:,]*)")
_MOST_ELEMENTS = 2**31


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeField:
    """One part of a sample."""

    name: str | None
    """Its key if samples are dicts."""
    shape: tuple[int, ...]
    kind: str
    """A dtype, or ``class`` for a label, whose number of classes is the shape."""


def parse_fake_data(text: str) -> tuple[FakeField, ...]:
    """The fields of one sample.

    Raises InputError: names the field, where it begins, and an example.

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
    if (num_elements := math.prod(sizes)) > _MOST_ELEMENTS:
        raise ValueError(f"a sample of {num_elements:,} elements is too large")
    return FakeField(name=None if name is None else name.strip(), shape=sizes, kind=kind)


def _size(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,10}", text.strip()) or int(text) < 1:
        raise ValueError(f"{text!r} is no size: whole numbers from 1 on, joined by x")
    return int(text)
