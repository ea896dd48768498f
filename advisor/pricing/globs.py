"""Names with wildcards, letter case aside: which regions, machines and offers are meant."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from fnmatch import fnmatchcase
from typing import Protocol

from advisor.types import Market, Offer


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


def is_any(globs: Iterable[str], name: str) -> bool:
    """Whether one of the globs means a name.

    >>> is_any(["eu-*", "US-east-?"], "us-east-1")
    True
    """
    return any(fnmatchcase(name.lower(), glob.lower()) for glob in globs)


def is_among(offer: Offer, machines: Machines) -> bool:
    """Whether a rule is about an offer."""
    return (
        machines.provider == offer.provider
        and offer.market in machines.markets
        and is_any(machines.instance_types, offer.instance_type)
        and is_any(machines.regions, offer.region)
    )
