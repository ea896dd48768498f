"""Files of own rates -> offers, or everything that is wrong with them."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator, Mapping, Sequence
from glob import glob
from pathlib import Path

from advisor.core.errors import ConfigError
from advisor.core.values import Offer
from advisor.formats.user_files import read_text, read_yaml, shown
from advisor.pricing.sources.own_rates import COLUMNS, rate_of, unknown_column

MOST_FAULTS = 20
_MOST_COUNTED = 200
_MOST_VALUES = 50_000

_ADVICE = "docs/plugins.md shows how rates are written."
_KIND = "list of rates"


def find_files(patterns: Sequence[str]) -> tuple[Path, ...]:
    """Files that the patterns name, each once, in the order of the patterns and then of the alphabet.

    Args:
        patterns: paths with ``~`` and wildcards (``**`` for any depth), relative to the working directory.

    Raises:
        ConfigError: a pattern names no file.
    """
    paths: dict[Path, None] = {}
    for pattern in patterns:
        names = sorted(glob(os.path.expanduser(pattern), recursive=True))  # noqa: PTH111, PTH207 - absolute patterns
        files = [Path(name) for name in names if Path(name).is_file()]
        if not files:
            raise ConfigError(
                f"no file of own rates is called {pattern!r} (from {str(Path.cwd())!r}):"
                " correct prices.options.custom.files."
            )
        paths |= dict.fromkeys(files)
    return tuple(paths)


def read_rates(paths: Sequence[Path]) -> dict[Path, tuple[Offer, ...]]:
    """The offers of each file.

    Raises:
        ConfigError: a file cannot be read, a row is wrong or two rows price the same; all faults at once,
            each with its file and line or entry.
    """
    by_file: dict[Path, tuple[Offer, ...]] = {}
    faults: list[str] = []
    first: dict[tuple[str | None, ...], str] = {}
    for path in paths:
        offers = []
        for where, read in _read(path):
            if not isinstance(read, Offer):
                faults += [f"{where}: {fault}" for fault in read]
            elif (earlier := first.setdefault(_key(read), where)) != where:
                faults.append(f"{where}: the same machine, place and market as {earlier}.")
            else:
                offers.append(read)
            if len(faults) > _MOST_COUNTED:
                raise _refused(faults)
        by_file[path] = tuple(offers)
    if faults:
        raise _refused(faults)
    return by_file


def _refused(faults: Sequence[str]) -> ConfigError:
    at_least = "at least " if len(faults) > _MOST_COUNTED else ""
    more = [f"... and {at_least}{len(faults) - MOST_FAULTS} more."] if len(faults) > MOST_FAULTS else []
    return ConfigError("\n".join([*faults[:MOST_FAULTS], *more, _ADVICE]))


def _key(offer: Offer) -> tuple[str | None, ...]:
    return offer.provider, offer.instance_type, offer.region, offer.zone, offer.market


def _read(path: Path) -> Iterator[tuple[str, Offer | list[str]]]:
    """Where each row stands, and its offer or its faults."""
    form = {".csv": _csv_rows, ".yaml": _yaml_rows, ".yml": _yaml_rows}.get(path.suffix.lower())
    if form is None:
        yield str(path), ["own rates are read from .yaml, .yml and .csv files."]
        return
    try:
        for place, row in form(path):
            rate = row if isinstance(row, list) else rate_of(row, "csv" if form is _csv_rows else "yaml")
            where = f"{path}, {place}"
            yield where, rate if isinstance(rate, list) else rate.offer(f"own rates, {path.name}, {place}")
    except ConfigError as error:
        yield str(path), [str(error)]


def _yaml_rows(path: Path) -> Iterator[tuple[str, Mapping[str, object] | list[str]]]:
    document = read_yaml(path, kind=_KIND, advice=_ADVICE, most_values=_MOST_VALUES)
    if not isinstance(document, list):
        raise ConfigError("the file must be a list of rates, each beginning with '- '.")
    for number, row in enumerate(document, 1):
        is_row = isinstance(row, Mapping)
        yield (
            f"entry {number}",
            row if is_row else [f"a rate has columns such as 'gpu: L4'; got {shown(row)}."],
        )


def _csv_rows(path: Path) -> Iterator[tuple[str, Mapping[str, object] | list[str]]]:
    reader = csv.reader(io.StringIO(read_text(path, kind=_KIND)), strict=True, skipinitialspace=True)
    try:
        header = [name.strip() for name in next(reader, [])]
        _check_header(header)
        for cells in reader:
            place = f"line {reader.line_num}"
            if len(cells) == len(header):
                yield (
                    place,
                    {name: cell.strip() for name, cell in zip(header, cells, strict=True) if cell.strip()},
                )
            elif cells:
                yield place, [f"{len(cells)} fields instead of {len(header)}."]
    except csv.Error as error:
        raise ConfigError(f"line {reader.line_num}: {error}.") from error


def _check_header(header: Sequence[str]) -> None:
    if len(header) > 2 * len(COLUMNS):
        raise ConfigError(f"the first line names {len(header):,} columns; a rate has {len(COLUMNS)}.")
    faults = [unknown_column(name) for name in header if name not in COLUMNS]
    faults += [
        f"the column {name!r} stands twice." for name in dict.fromkeys(header) if header.count(name) > 1
    ]
    if not header:
        faults = ["the first line must name the columns."]
    if faults:
        raise ConfigError(" ".join(faults))
