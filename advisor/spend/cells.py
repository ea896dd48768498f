"""A cell of a bill -> a value, or a ``ValueError`` that names the column."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import TypeAlias, TypeVar

from advisor.core.limits import MAX_USD
from advisor.formats.foreign_files import read_json

# Clouds bill parts of a nanodollar, in doubles or in BigQuery's NUMERIC of 38 digits.
_MOST_DECIMALS, _MOST_DIGITS = 40, 80
_MOST_TEXT = 1_000

Row: TypeAlias = Mapping[str, object]

# As FOCUS files and invoices name clouds, in small letters.
_PROVIDERS: Mapping[str, str] = {
    "amazon web services": "aws",
    "google cloud": "gcp",
    "google cloud platform": "gcp",
    "microsoft": "azure",
    "microsoft azure": "azure",
    "oracle": "oci",
    "oracle cloud infrastructure": "oci",
}


def text(row: Row, column: str) -> str | None:
    """The text of a cell; None where it is empty, missing, or the NULL of a database."""
    value = row.get(column)
    if value is None:
        return None
    # Cut before anything is done with it: a cell may hold a megabyte.
    written = str(value)[:_MOST_TEXT].strip()
    return None if _is_nothing(written) else written


def _is_nothing(written: str) -> bool:
    return not written or written.upper() == "NULL"


def required_text(row: Row, column: str) -> str:
    """The same of a cell that must not be empty. Raises ValueError: it is."""
    value = text(row, column)
    if value is None:
        raise ValueError(f"{column} is empty")
    return value


def amount(row: Row, column: str) -> Decimal | None:
    """An exact amount of money; None where there is none. Raises ValueError: no number that can be meant."""
    value = row.get(column)
    if value is None or (isinstance(value, str) and _is_nothing(value[:_MOST_TEXT].strip())):
        return None
    if isinstance(value, bool):
        raise ValueError(f"{column} is {_cut(value)}, which is no number")
    try:
        # The shortest text of a double is the number that was meant.
        exact = value if isinstance(value, Decimal) else Decimal(str(value).strip())
    except InvalidOperation:
        raise ValueError(f"{column} is {_cut(value)}, which is no number") from None
    if not (exact.is_finite() and exact.copy_abs() <= MAX_USD):
        raise ValueError(f"{column} is {_cut(value)}: no charge is that large")
    if exact == 0:
        return Decimal(0)  # not -0, nor 0 with a million decimals
    # To add 1e-999999999 to 1 exactly takes a gigabyte.
    if exact.adjusted() < -_MOST_DECIMALS or len(exact.as_tuple().digits) > _MOST_DIGITS:
        raise ValueError(f"{column} is {_cut(value)}: no charge has that many decimals")
    return exact


def required_amount(row: Row, column: str) -> Decimal:
    """The same of a cell that must not be empty. Raises ValueError: it is, or no number."""
    value = amount(row, column)
    if value is None:
        raise ValueError(f"{column} is empty")
    return value


def moment(row: Row, column: str) -> datetime:
    """A time; without a zone it is UTC, as FOCUS and BigQuery define. Raises ValueError: it is none."""
    value = row.get(column)
    if isinstance(value, datetime):
        return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)
    return _parsed(required_text(row, column), column)


# A bill of a month has a hundred rows an hour.
@lru_cache(maxsize=4096)
def _parsed(written: str, column: str) -> datetime:
    try:
        parsed = datetime.fromisoformat(written.removesuffix(" UTC"))
        return parsed.astimezone(UTC) if parsed.tzinfo else parsed.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        raise ValueError(f"{column} is {_cut(written)}, which is no time") from None


def period(row: Row, start: str, end: str) -> tuple[datetime, datetime]:
    """The period of a charge, without its end. Raises ValueError: a time is missing, or they are reversed."""
    begins, ends = moment(row, start), moment(row, end)
    if ends < begins:
        raise ValueError(f"{end} lies before {start}")
    return begins, ends


def currency(row: Row, column: str) -> str:
    """Three letters of ISO 4217. Raises ValueError: they are not."""
    code = required_text(row, column).upper()
    if not (len(code) == 3 and code.isascii() and code.isalpha()):
        raise ValueError(f"{column} is {_cut(code)}, which is no currency: such as USD")
    return code


def provider_name(written: str) -> str:
    """A cloud as advisor names it.

    >>> provider_name("Amazon Web Services"), provider_name("AWS"), provider_name("Nimbus")
    ('aws', 'aws', 'nimbus')
    """
    lower = written.lower()
    return _PROVIDERS.get(lower, lower)


T = TypeVar("T")


def optional(read: Callable[[Row, str], T], row: Row, column: str, odd: list[str]) -> T | None:
    """A cell that a charge can do without; what is wrong with it is added to ``odd``."""
    try:
        return read(row, column)
    except ValueError as error:
        odd.append(str(error))
        return None


def pairs(row: Row, column: str) -> Mapping[str, str]:
    """Tags or labels, however they are written: a JSON object, or a list of keys and values.

    Raises ValueError: a text that is no JSON.

    >>> pairs({"Tags": '{"team": "vision"}'}, "Tags")
    {'team': 'vision'}
    >>> pairs({"labels": [{"key": "team", "value": "vision"}]}, "labels")
    {'team': 'vision'}
    """
    value = row.get(column)
    if isinstance(value, str):
        value = _json(value.strip(), column)
    if isinstance(value, Mapping):
        return {str(key): str(item) for key, item in value.items() if item is not None}
    if not isinstance(value, list):
        return {}
    named: dict[str, str] = {}
    for item in value:
        # Parquet gives a map as pairs, BigQuery as objects.
        if isinstance(item, Mapping):
            item = (item.get("key"), item.get("value"))
        if isinstance(item, tuple | list) and len(item) == 2 and None not in item:
            named[str(item[0])] = str(item[1])
    return named


@lru_cache(maxsize=1024)
def _json(written: str, column: str) -> object:
    if _is_nothing(written):
        return None
    try:
        return read_json(written)
    except ValueError:
        raise ValueError(f"{column} is {_cut(written)}, which is no JSON") from None


def _cut(value: object) -> str:
    shown = repr(str(value))
    return shown if len(shown) <= 40 else f"{shown[:40]}..."
