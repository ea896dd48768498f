"""Instance types: machines that someone rents, and the file that lists them (``instances.csv``).

Every source prices these: the snapshot and the live clouds by provider and name, own rates and gpuhunt from
what their rows say. Read by the csv module, since this lies on the path of ``recommend``'s start-up.
"""

import csv
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from datetime import date, datetime
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, TypeVar, cast, get_args, get_type_hints

from advisor.core.errors import CatalogError
from advisor.core.gpus import catalog_path
from advisor.core.units import GB, GIB, TB
from advisor.core.values import Interval, Market, Offer

K = TypeVar("K")
V = TypeVar("V")


def read_rows(path: Path, columns: tuple[str, ...], read_row: Callable[[list[str]], None]) -> None:
    """Calls ``read_row`` with the fields of each row.

    Raises CatalogError: names file and line; no file, other columns, or ``read_row`` raised ValueError.
    """
    line = 1
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = csv.reader(file, strict=True)
            if (header := tuple(next(rows, ()))) != columns:
                raise ValueError(f"the columns are {','.join(header)}, not {','.join(columns)}")
            for row in rows:
                line = rows.line_num
                if len(row) != len(columns):
                    raise ValueError(f"{len(row)} fields instead of {len(columns)}")
                read_row(row)
    except OSError as error:
        raise CatalogError(f"cannot read the catalog file {path}: {error}") from error
    except (ValueError, csv.Error) as error:
        raise CatalogError(
            f"{path}, line {line}: {error}. Build the catalog again or reinstall gpu-advisor."
        ) from error


def read_table(
    path: Path, columns: tuple[str, ...], read_row: Callable[[list[str]], tuple[K, V]]
) -> dict[K, V]:
    """Each row's value by its key. Raises CatalogError: as `read_rows`, or a key is there twice."""
    table: dict[K, V] = {}

    def add(row: list[str]) -> None:
        key, value = read_row(row)
        if key in table:
            named = " ".join(map(str, key)) if isinstance(key, tuple) else repr(key)
            raise ValueError(f"{named} is listed twice")
        table[key] = value

    read_rows(path, columns, add)
    return table


def columns_of(kind: type[Any]) -> tuple[str, ...]:
    """The columns of a table whose rows are values of a dataclass: its fields, in their order."""
    return tuple(field.name for field in fields(kind))


def read_as(path: Path, kind: type[V]) -> tuple[V, ...]:
    """The rows of a table that ships, each as a value whose fields are the columns.

    What the rows must be beyond their types is checked by tests/integrity, since only we write these tables.

    Raises CatalogError: the file is missing, has other columns, or a cell is none of its type.
    """
    rows: list[V] = []
    read = _row_reader(kind)
    read_rows(path, columns_of(kind), lambda row: rows.append(read(row)))
    return tuple(rows)


def _row_reader(kind: type[V], **own: Callable[[str], object]) -> Callable[[list[str]], V]:
    """Makes a value of a row, each cell read as the type of its field says, or by one's own reader.

    Blanks part the texts of a tuple, a bool is yes or no, and what may be None is so where the cell is empty.
    """
    hints, make = get_type_hints(kind), cast("Callable[..., V]", kind)

    def cell_reader(hint: Any) -> Callable[[str], object]:
        if not isinstance(hint, UnionType):
            return _CELLS.get(hint, cast("Callable[[str], object]", hint))
        read = cell_reader(next(kind for kind in get_args(hint) if kind is not NoneType))
        return lambda text: read(text) if text else None

    readers = [(name, own.get(name) or cell_reader(hints[name])) for name in columns_of(kind)]
    return lambda row: make(**{name: read(text) for (name, read), text in zip(readers, row, strict=True)})


def positive(column: str, value: float) -> float:
    """The value, if it is a finite number above 0. Raises ValueError: names the column."""
    if not (value > 0 and math.isfinite(value)):
        raise ValueError(f"{column} is {value:g}: it must be above 0 (0 means unknown, never free)")
    return value


@cache
def parse_date(text: str) -> date:
    """``"2026-08-03"``; kept, since thousands of rows share a few dates."""
    return date.fromisoformat(text)


_CELLS: Mapping[Any, Callable[[str], object]] = {
    date: parse_date,
    tuple[str, ...]: lambda text: tuple(text.split()),
    bool: lambda text: bool(("no", "yes").index(text)),
}


def price_includes(
    *, vcpus: int, memory_bytes: int, local_ssd_bytes: int, architecture: str
) -> tuple[str, ...]:
    """The host of a machine in words, as `Offer.includes` holds it; values as in `InstanceType`.

    >>> price_includes(vcpus=96, memory_bytes=1152 * GIB, local_ssd_bytes=8 * TB, architecture="x86_64")
    ('96 vCPU', '1152 GiB RAM', '8 TB local SSD')
    """
    unit, name = (TB, "TB") if local_ssd_bytes >= TB else (GB, "GB")
    disks = (f"{local_ssd_bytes / unit:g} {name} local SSD",) if local_ssd_bytes else ()
    arm = " (Arm)" if architecture == "arm64" else ""
    return f"{vcpus} vCPU{arm}", f"{memory_bytes / GIB:g} GiB RAM", *disks


INSTANCE_FILE = "instances.csv"
InstanceKey = tuple[str, str]
"""Provider and name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceType:
    """A machine that someone rents, without its price. The file tells all of it, other sources less."""

    provider: str
    instance_type: str
    gpu: str
    """Catalog name, or the provider's own where the catalog lacks it."""
    num_gpus: int
    vcpus: int | None = None
    """Of the host, None if unknown; so are the host's memory, disks and architecture."""
    memory_bytes: int | None = None
    gpu_memory: str = ""
    """Of one GPU, as the cloud documents it (``"22.35 GiB"``); "" if it does not."""
    network_bits_per_s: float | None = None
    """Baseline, None where the cloud documents none."""
    local_ssd_bytes: int | None = None
    """Disks whose price the machine's price includes."""
    architecture: str | None = None
    """Of the CPU, ``x86_64`` or ``arm64``."""
    minimum_billed_s: float = 60.0
    """Least time billed."""
    includes: tuple[str, ...] = ()
    """What the price covers besides GPUs, in words."""
    source: str
    as_of: date
    """When the facts were true."""

    @property
    def key(self) -> InstanceKey:
        """Provider and name."""
        return self.provider, self.instance_type

    def offer(
        self,
        *,
        region: str,
        market: Market,
        usd_per_h: float,
        retrieved_at: datetime,
        source: str,
        zone: str | None = None,
        spot_usd_per_h: Interval | None = None,
    ) -> Offer:
        """The machine at the list price of the whole of it in a place; arguments as in `Offer`."""
        return Offer(
            provider=self.provider,
            instance_type=self.instance_type,
            region=region,
            zone=zone,
            gpu=self.gpu,
            num_gpus=self.num_gpus,
            market=market,
            list_usd_per_h=usd_per_h,
            spot_usd_per_h=spot_usd_per_h,
            includes=self.includes,
            minimum_billed_s=self.minimum_billed_s,
            num_vcpus=self.vcpus,
            architecture=self.architecture,
            retrieved_at=retrieved_at,
            source=source,
        )


@cache
def load_instances() -> Mapping[InstanceKey, InstanceType]:
    """The shipped instance types by provider and name. Raises CatalogError: as `read_instances`."""
    return read_instances(catalog_path(INSTANCE_FILE))


def read_instances(path: Path) -> Mapping[InstanceKey, InstanceType]:
    """Instance types of a file, which may be a user's, by provider and name.

    Raises CatalogError: the file is missing or a row is broken or double; it names file and line.
    """
    read = _row_reader(InstanceType, includes=lambda text: tuple(text.split(", ")) if text else ())

    def read_row(row: list[str]) -> tuple[InstanceKey, InstanceType]:
        one = read(row)
        if not all((one.provider, one.instance_type, one.gpu, one.source)):
            raise ValueError("provider, instance_type, gpu or source is empty")
        for column in ("num_gpus", "vcpus", "memory_bytes", "minimum_billed_s"):
            positive(column, getattr(one, column) or 0)
        if one.network_bits_per_s is not None:
            positive("network_bits_per_s", one.network_bits_per_s)
        return one.key, one

    return read_table(path, columns_of(InstanceType), read_row)
