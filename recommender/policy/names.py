"""Names with wildcards: ``*`` any text, ``?`` one character; letter case does not count."""

from __future__ import annotations

from functools import cache

from advisor.core.errors import UnknownGpuError, did_you_mean
from advisor.core.globs import is_any
from advisor.core.gpus import load_gpus, resolve_gpus
from advisor.core.values import Market

# Brackets and braces mean something in other tools; taken literally they would match nothing in silence.
_FOREIGN = frozenset("[]{}!,;|")
_LONGEST = 100


def checked_glob(text: str) -> str:
    """The text, if it is a name with ``*`` and ``?`` at most.

    Raises:
        ValueError: says what is allowed.
    """
    if not text.strip() or len(text) > _LONGEST or _FOREIGN & set(text) or not text.isprintable():
        raise ValueError("one name an entry, with the wildcards * and ? at most, such as us-*")
    return text.strip()


def checked_market(text: str) -> str:
    """The text, if it stands for a market.

    Raises:
        ValueError: with near matches.
    """
    if not any(matches(text, market) for market in Market):
        hint = did_you_mean(text, [market.value for market in Market])
        raise ValueError(f"no market is called so.{hint} There are {', '.join(Market)}")
    return text


def checked_gpu(text: str) -> str:
    """The text, if it stands for a GPU of the catalog.

    Raises:
        ValueError: with near matches.
    """
    gpu_members(text)
    return text


def matches(glob: str, name: str) -> bool:
    """Whether a name is meant.

    >>> matches("us-*", "US-East-1"), matches("us", "us-east-1")
    (True, False)
    """
    return is_any([glob], name)


@cache
def gpu_members(glob: str) -> tuple[str, ...]:
    """GPUs of the catalog that a name, an alias, a family or a glob over names and families means.

    Raises:
        ValueError: none; with near matches.

    >>> gpu_members("A100-80GB")
    ('A100-PCIE-80GB', 'A100-SXM-80GB')
    """
    if not {"*", "?"} & set(glob):
        try:
            return tuple(gpu.name for gpu in resolve_gpus(glob))
        except UnknownGpuError as error:
            raise ValueError(str(error).rstrip(".")) from None
    members = tuple(
        gpu.name
        for gpu in load_gpus().values()
        if any(matches(glob, name) for name in (gpu.name, *gpu.families))
    )
    if not members:
        raise ValueError("no GPU of the catalog matches; `advisor gpus` lists all")
    return members


def may_overlap(left: str, right: str) -> bool:
    """Whether a name exists that both globs match.

    >>> may_overlap("us-*", "*-east-1"), may_overlap("us-*", "eu-*")
    (True, False)
    """
    a, b = left.lower(), right.lower()

    @cache
    def from_(i: int, j: int) -> bool:
        if i == len(a) or j == len(b):
            return set(a[i:] + b[j:]) <= {"*"}
        if a[i] == "*":
            return from_(i + 1, j) or from_(i, j + 1)
        if b[j] == "*":
            return from_(i, j + 1) or from_(i + 1, j)
        return (a[i] == b[j] or "?" in (a[i], b[j])) and from_(i + 1, j + 1)

    return from_(0, 0)
