"""Folders of fitted constants and learned weights, and the hashes that say which ones an evaluation used."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from advisor.errors import InputError
from advisor.gpus import resolve_gpu
from advisor.predict.knowledge import Knowledge, read_knowledge

HASHES = "SHA256SUMS"
_FILES = ("fitted.toml", "learned.npz")


def read_left_out(folder: Path) -> dict[str, dict[str, Knowledge]]:
    """By name of the GPU that was left out, the members of its group of seeds.

    Args:
        folder: one folder a GPU, with the files of a knowledge in it or in folders within, one a seed.

    Raises:
        InputError: there is none, or a file is not the one that ``SHA256SUMS`` names.
        UnknownGpuError: a folder's name is no GPU of the catalog.
        CatalogError: a folder holds no knowledge.
    """
    check_hashes(folder)
    folders = sorted(path for path in folder.glob("*") if path.is_dir())
    if not folders:
        raise InputError(f"no folder named by a GPU in {str(folder)!r}: expected such as A100-PCIE-40GB/.")
    return {resolve_gpu(path.name).name: read_group(path) for path in folders}


def read_group(folder: Path) -> dict[str, Knowledge]:
    """The knowledge of a folder, or of each folder within, by name.

    Raises:
        CatalogError: there is none.
    """
    within = sorted(path.parent for path in folder.glob("*/fitted.toml"))
    members = [folder] if (folder / "fitted.toml").is_file() or not within else within
    return {path.name: read_knowledge(path) for path in members}


def hashes(folder: Path) -> dict[str, str]:
    """SHA-256 of each file of a knowledge, by its name."""
    paths = [folder / name for name in _FILES]
    return {path.name: _sha256(path) for path in paths if path.is_file()}


def check_hashes(folder: Path) -> None:
    """Hold the files of a folder against its ``SHA256SUMS``, if it has one (``sha256sum */* > SHA256SUMS``).

    Raises:
        InputError: a file is missing or another one.
    """
    listed = folder / HASHES
    if not listed.is_file():
        return
    entries = [line.split(maxsplit=1) for line in listed.read_text(encoding="utf-8").splitlines() if line]
    wrong = [name for digest, name in _pairs(entries, listed) if not _is_that(folder / name, digest)]
    if wrong:
        raise InputError(
            f"{str(listed)!r} names other files than these: {', '.join(wrong)}. Restore them, or train"
            " again and write the hashes anew."
        )


def _pairs(entries: Iterable[list[str]], path: Path) -> list[tuple[str, str]]:
    try:
        return [(digest, name.lstrip("*")) for digest, name in entries]
    except ValueError as error:
        raise InputError(f"{str(path)!r} is not what sha256sum writes: HASH NAME in each line.") from error


def _is_that(path: Path, digest: str) -> bool:
    return path.is_file() and _sha256(path) == digest


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
