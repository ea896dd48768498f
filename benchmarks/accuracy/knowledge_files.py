"""Folders of fitted constants and learned weights, and the hashes that say which ones an evaluation used."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from advisor.core.errors import InputError
from advisor.core.gpus import resolve_gpu
from advisor.predict.knowledge import CARD, CONSTANTS, NETWORKS

HASHES = "SHA256SUMS"
AS_SHIPPED = "as shipped"
# How the folds of training are called in tables.
_FOLDS = {"all": "all kernels", "five": "training-split kernels of five GPUs"}
_WITHOUT = "without:"
_REBUILD = "python -m research.accuracy.rebuild --kernels DIR"


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
    listed = _listed(folder)
    if missing := [name for name in listed if not (folder / name).is_file()]:
        raise InputError(
            f"{str(folder)!r} lacks {', '.join(missing)}. Weights are not committed; train them: {_REBUILD}."
        )
    if wrong := [name for name, digest in listed.items() if _sha256(folder / name) != digest]:
        raise InputError(
            f"{str(folder / HASHES)!r} names other files than these: {', '.join(wrong)}. Remove them and"
            f" train again ({_REBUILD}); another torch or processor may round otherwise: then write hashes"
            " and results anew."
        )


def folders_of(group: Path) -> list[str]:
    """Names of the folders whose files ``SHA256SUMS`` lists."""
    return list(dict.fromkeys(name.partition("/")[0] for name in _listed(group)))


def is_complete(folder: Path) -> bool:
    """Whether all files that the ``SHA256SUMS`` above lists of a folder are there and right."""
    listed = {
        name: digest for name, digest in _listed(folder.parent).items() if name.startswith(f"{folder.name}/")
    }
    return all(_is_that(folder.parent / name, digest) for name, digest in listed.items())


def _listed(folder: Path) -> dict[str, str]:
    """Name -> hash; empty without a list."""
    path = folder / HASHES
    if not path.is_file():
        return {}
    entries = [line.split(maxsplit=1) for line in path.read_text(encoding="utf-8").splitlines() if line]
    try:
        return {name.lstrip("*"): digest for digest, name in entries}
    except ValueError as error:
        raise InputError(f"{str(path)!r} is not what sha256sum writes: HASH NAME in each line.") from error


def _is_that(path: Path, digest: str) -> bool:
    return path.is_file() and _sha256(path) == digest


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
