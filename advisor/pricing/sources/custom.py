"""A user's own rates: the files, the machines they price, and the source that offers them."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from functools import cached_property
from glob import glob
from pathlib import Path
from typing import Annotated, Literal

import pydantic
from pydantic_core import ErrorDetails

from advisor.core.errors import ConfigError, UnknownGpuError, did_you_mean
from advisor.core.gpus import resolve_gpu
from advisor.core.limits import MAX_PLANNED_S
from advisor.core.values import Market, Offer
from advisor.formats.foreign_files import shown
from advisor.formats.user_files import fault_in_words, read_document, read_text
from advisor.pricing.instance_types import load_instances
from advisor.pricing.price_history import MachineKey, key_of
from advisor.pricing.sources import protocol


def _gpu(name: str) -> str:
    try:
        return resolve_gpu(name).name
    except UnknownGpuError as error:
        raise ValueError(str(error).removesuffix(".")) from error


def _day(value: object) -> object:
    try:
        return date.fromisoformat(value) if isinstance(value, str) else value
    except ValueError as error:
        raise ValueError("a day is written 2026-11-21") from error


def _words(value: object) -> object:
    return tuple(word.strip() for word in value.split(",")) if isinstance(value, str) else value


def _dollars(currency: str) -> str:
    if currency != "USD":
        raise ValueError("only USD is understood: convert the price, and date it by the exchange rate")
    return currency


# Numbers are strict: a quoted number in YAML is a slip, and a guess at its meaning could cost money.
Text = Annotated[str, pydantic.StringConstraints(strip_whitespace=True, min_length=1)]
Usd = Annotated[float, pydantic.Field(strict=True, gt=0, lt=1e6, allow_inf_nan=False)]
Seconds = Annotated[float, pydantic.Field(strict=True, ge=0, le=MAX_PLANNED_S, allow_inf_nan=False)]


class OwnRate(pydantic.BaseModel):
    """A row of a file of own rates."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)

    provider: Annotated[Text, pydantic.StringConstraints(to_lower=True)]
    instance_type: Text
    gpu: Annotated[Text, pydantic.AfterValidator(_gpu)]
    num_gpus: Annotated[int, pydantic.Field(strict=True, ge=1, le=4096)]
    region: Text = protocol.ANYWHERE
    zone: Text | None = None
    market: Market = Market.ON_DEMAND
    usd_per_h: Usd | None = None
    usd_per_gpu_h: Usd | None = None
    currency: Annotated[Text, pydantic.AfterValidator(_dollars)] = "USD"
    as_of: Annotated[date, pydantic.BeforeValidator(_day), pydantic.Field(strict=True)] = pydantic.Field(
        validation_alias=pydantic.AliasChoices("as_of", "retrieved_at")
    )
    minimum_billed_s: Seconds = 60.0
    billed_step_s: Annotated[Seconds, pydantic.Field(gt=0)] = 1.0
    includes: Annotated[tuple[Text, ...], pydantic.BeforeValidator(_words)] = ()
    note: Text | None = None

    @pydantic.model_validator(mode="after")
    def _one_price(self) -> OwnRate:
        if (self.usd_per_h is None) == (self.usd_per_gpu_h is None):
            raise ValueError("give either usd_per_h, of the whole machine, or usd_per_gpu_h")
        return self

    @pydantic.model_validator(mode="after")
    def _as_sold(self) -> OwnRate:
        """A cloud sells no variants under one name: another GPU or count than the catalog's is a slip."""
        known = load_instances().get((self.provider, self.instance_type))
        if known is not None and (known.gpu, known.num_gpus) != (self.gpu, self.num_gpus):
            raise ValueError(
                f"{self.provider} {self.instance_type} has {known.num_gpus} x {known.gpu}, not"
                f" {self.num_gpus} x {self.gpu}: correct the row, or give a machine of your own another name"
            )
        return self

    def offer(self, source: str) -> Offer:
        """The offer at this rate, which is what is paid: no contract of the settings applies to it again."""
        known = load_instances().get((self.provider, self.instance_type))
        per_gpu = (self.usd_per_gpu_h or 0.0) * self.num_gpus
        usd_per_h = per_gpu if self.usd_per_h is None else self.usd_per_h
        return Offer(
            provider=self.provider,
            instance_type=self.instance_type,
            region=self.region,
            zone=self.zone,
            gpu=self.gpu,
            num_gpus=self.num_gpus,
            market=self.market,
            list_usd_per_h=usd_per_h,
            contracted_usd_per_h=usd_per_h,
            includes=self.includes,
            minimum_billed_s=self.minimum_billed_s,
            billed_step_s=self.billed_step_s,
            architecture=None if known is None else known.architecture,
            retrieved_at=datetime.combine(self.as_of, datetime.min.time(), UTC),
            source=source if self.note is None else f"{source} ({self.note})",
        )


COLUMNS = (*OwnRate.model_fields, "retrieved_at")


def rate_of(row: Mapping[str, object], form: Literal["yaml", "csv"]) -> OwnRate | list[str]:
    """A rate, or all faults of its row in words; in CSV every value is text, in YAML a number is one."""
    try:
        return OwnRate.model_validate_strings(row) if form == "csv" else OwnRate.model_validate(row)
    except pydantic.ValidationError as error:
        return [_fault(item) for item in error.errors()]


def _fault(item: ErrorDetails) -> str:
    name = ".".join(map(str, item["loc"]))
    if item["type"] == "extra_forbidden":
        return unknown_column(name)
    if item["type"] == "missing":
        return f"{name!r} is missing."
    return f"{name!r}: {fault_in_words(item)}" if name else f"{item['msg'].removeprefix('Value error, ')}."


def unknown_column(name: str) -> str:
    """What to say of a column that no rate has."""
    hint = did_you_mean(name, COLUMNS) or f" Columns are {', '.join(COLUMNS)}."
    return f"there is no column {shown(name)}.{hint}"


MOST_FAULTS = 20
_MOST_COUNTED = 200
_MOST_VALUES = 50_000

_ADVICE = "docs/plugins.md shows how rates are written."
_KIND = "list of rates"


def find_files(patterns: Sequence[str]) -> tuple[Path, ...]:
    """Files of the patterns (``~``, ``**``), each once, in order. Raises ConfigError: one names none."""
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

    Raises ConfigError: a file cannot be read, a row is wrong or two rows price the same; all faults at once,
    each with its file and line or entry.
    """
    by_file: dict[Path, tuple[Offer, ...]] = {}
    faults: list[str] = []
    first: dict[MachineKey, str] = {}
    for path in paths:
        offers = []
        for where, read in _read(path):
            if not isinstance(read, Offer):
                faults += [f"{where}: {fault}" for fault in read]
            elif (earlier := first.setdefault(key_of(read), where)) != where:
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
    rows = read_document(path, kind=_KIND, advice=_ADVICE, most_values=_MOST_VALUES).value
    if not isinstance(rows, list):
        raise ConfigError("the file must be a list of rates, each beginning with '- '.")
    for number, row in enumerate(rows, 1):
        fault = f"a rate has columns such as 'gpu: L4'; got {shown(row)}."
        yield f"entry {number}", row if isinstance(row, Mapping) else [fault]


def _csv_rows(path: Path) -> Iterator[tuple[str, Mapping[str, object] | list[str]]]:
    reader = csv.reader(io.StringIO(read_text(path, kind=_KIND)), strict=True, skipinitialspace=True)
    try:
        header = [name.strip() for name in next(reader, [])]
        _check_header(header)
        for cells in filter(None, reader):
            told = {name: text for name, cell in zip(header, cells, strict=False) if (text := cell.strip())}
            wrong = [f"{len(cells)} fields instead of {len(header)}."]
            yield f"line {reader.line_num}", told if len(cells) == len(header) else wrong
    except csv.Error as error:
        raise ConfigError(f"line {reader.line_num}: {error}.") from error


def _check_header(header: Sequence[str]) -> None:
    if len(header) > 2 * len(COLUMNS):
        raise ConfigError(f"the first line names {len(header):,} columns; a rate has {len(COLUMNS)}.")
    faults = [] if header else ["the first line must name the columns."]
    faults += [unknown_column(name) for name in header if name not in COLUMNS]
    twice = [name for name in dict.fromkeys(header) if header.count(name) > 1]
    if faults := [*faults, *(f"the column {name!r} stands twice." for name in twice)]:
        raise ConfigError(" ".join(faults))


class CustomSource:
    """Rates from the YAML and CSV files that patterns name, as `find_files` takes them."""

    name = "custom"
    capabilities = protocol.Capabilities(providers=(), markets=tuple(Market))

    def __init__(self, patterns: Sequence[str]) -> None:
        self._patterns = patterns

    def offers(self, query: protocol.OfferQuery) -> Iterator[protocol.Part]:
        """Offers that match, a part for each file. Raises ConfigError: all faults of the files at once."""
        for path, offers in self._rates.items():
            yield protocol.Part(scope=str(path), offers=tuple(filter(query.matches, offers)))

    def freshness(self) -> tuple[protocol.Freshness, ...]:
        """Age of what is held, by provider. Raises ConfigError: as `offers`."""
        return protocol.freshness_of([offer for offers in self._rates.values() for offer in offers])

    def credentials(self) -> protocol.Credentials:
        """Files need none."""
        return protocol.Credentials.NOT_NEEDED

    @cached_property
    def _rates(self) -> Mapping[Path, tuple[Offer, ...]]:
        return read_rates(find_files(self._patterns))


def custom_source(options: Mapping[str, object]) -> CustomSource:
    """The entry point: option ``files`` lists the files of rates; without it there are none.

    Raises ConfigError: another option is given, or ``files`` is no list of texts.
    """
    protocol.check_options("custom", options, ("files",))
    files = options.get("files") or ()
    if not isinstance(files, list | tuple) or not all(isinstance(file, str) for file in files):
        raise ConfigError(f"prices.options.custom.files must be a list such as [rates.yaml]; got {files!r}.")
    return CustomSource(tuple(files))
