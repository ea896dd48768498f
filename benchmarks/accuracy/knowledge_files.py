"""Folders of fitted constants and learned weights, and the hashes that say which ones an evaluation used."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from advisor.core.errors import InputError
from advisor.core.gpus import resolve_gpu
from advisor.predict.knowledge import CARD, CONSTANTS, NETWORKS

HASHES = "SHA256SUMS"
AS_SHIPPED = "as shipped"
# How the folds of training are called in tables.
_FOLDS = {"all": "all kernels", "five": "training-split kernels of five GPUs"}
_WITHOUT = "without:"


def group(folder: Path) -> list[Path]:
    """The folder itself if it holds a knowledge, else the folders within that do, one a seed.

    Raises:
        InputError: a file is not the one that ``SHA256SUMS`` names.
    """
    check_hashes(folder)
    within = sorted(path.parent for path in folder.glob(f"*/{CONSTANTS}"))
    return within if within and not (folder / CONSTANTS).is_file() else [folder]


def by_name(folders: Sequence[Path]) -> dict[str, Path]:
    """Folders by the last part of their path, or by all of it where that is not one folder's alone."""
    names = {folder.name for folder in folders}
    return {folder.name if len(names) == len(folders) else str(folder): folder for folder in folders}


def described(folders: Mapping[str, Path]) -> str:
    """What knowledge was trained on, in words, as the cards beside it say; by name where there is none.

    Args:
        folders: by name.
    """
    return " and ".join(dict.fromkeys(_training(name, folder / CARD) for name, folder in folders.items()))


def _training(name: str, card: Path) -> str:
    try:
        fold = str(json.loads(card.read_text(encoding="utf-8"))["fold"])
    except (OSError, ValueError, LookupError, TypeError):
        return f"knowledge {name!r}"
    if fold.startswith(_WITHOUT):
        return f"trained on training-split kernels without the {fold.removeprefix(_WITHOUT)}"
    return f"trained on {_FOLDS.get(fold, f'fold {fold!r}')}"


def left_out_groups(folder: Path) -> dict[str, dict[str, Path]]:
    """By name of the GPU that was left out, the folders of its seeds.

    Args:
        folder: one folder a GPU, with the files of a knowledge in it or in folders within.

    Raises:
        InputError: there is none, or a file is not the one that ``SHA256SUMS`` names.
        UnknownGpuError: a folder's name is no GPU of the catalog.
    """
    check_hashes(folder)
    folders = sorted(path for path in folder.glob("*") if path.is_dir())
    if not folders:
        raise InputError(f"no folder named by a GPU in {str(folder)!r}: expected such as A100-PCIE-40GB/.")
    return {resolve_gpu(path.name).name: by_name(group(path)) for path in folders}


def hashes(folder: Path) -> dict[str, str]:
    """SHA-256 of each file of a knowledge, by its name."""
    paths = [folder / name for name in (CONSTANTS, NETWORKS)]
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
