"""What predictions rest on: fitted constants and learned nets, as shipped or from a folder."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from advisor.errors import CatalogError
from advisor.gpus import catalog_path


@dataclass(frozen=True, slots=True, kw_only=True)
class Knowledge:
    """The folder it was read from; its constants and nets follow."""

    folder: Path


def read_knowledge(folder: Path) -> Knowledge:
    """The knowledge of a folder that holds ``fitted.toml`` and, where nets were trained, ``learned.npz``.

    Raises:
        CatalogError: there is no ``fitted.toml``.
    """
    if not (folder / "fitted.toml").is_file():
        raise CatalogError(f"no fitted.toml in {str(folder)!r}: name a folder that the training wrote.")
    return Knowledge(folder=folder)


@cache
def shipped() -> Knowledge:
    """What the catalog ships."""
    return read_knowledge(catalog_path("fitted.toml").parent)
