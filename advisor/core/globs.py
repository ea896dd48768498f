"""Names, letter case aside, and wildcards: which providers, regions, machines and offers are meant.

The one rule for case: names are compared by ``same_name`` or ``is_any`` wherever they come from, and what is
printed has the catalog's spelling. Names of GPUs have more than one spelling: ``advisor.core.gpus``.
"""

import re
from collections.abc import Collection, Iterable
from fnmatch import translate
from functools import lru_cache
from typing import Protocol

from advisor.core.values import Market, Offer


class Machines(Protocol):
    """Machines that a rule is about, such as a contract or a quota."""

    @property
    def provider(self) -> str:
        """In full."""
        ...

    @property
    def instance_types(self) -> Iterable[str]:
        """Globs."""
        ...

    @property
    def regions(self) -> Iterable[str]:
        """Globs."""
        ...

    @property
    def markets(self) -> Collection[Market]:
        """On what terms."""
        ...


def same_name(name: str, other: str) -> bool:
    """Whether two names mean one provider or place.

    >>> same_name("AWS", "aws")
    True
    """
    return name.casefold() == other.casefold()


def is_any(globs: Iterable[str], name: str) -> bool:
    """Whether one of the globs means a name.

    >>> is_any(["eu-*", "US-east-?"], "us-east-1")
    True
    """
    return _pattern(tuple(globs)).match(name.lower()) is not None


@lru_cache(maxsize=1024)
def _pattern(globs: tuple[str, ...]) -> re.Pattern[str]:
    """Of all globs at once, kept: thousands of prices are held against the same few."""
    return re.compile("|".join(translate(glob.lower()) for glob in globs) or "(?!)")


def is_among(offer: Offer, machines: Machines) -> bool:
    """Whether a rule is about an offer."""
    return (
        same_name(machines.provider, offer.provider)
        and offer.market in machines.markets
        and is_any(machines.instance_types, offer.instance_type)
        and is_any(machines.regions, offer.region)
    )
