"""What predictions rest on: fitted constants and learned networks, as shipped or from a folder."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TypedDict

from advisor.core.errors import CatalogError
from advisor.core.gpus import catalog_path
from advisor.predict.calibration.calibration_files import Constants
from advisor.predict.exchange.scaling import Scaling
from advisor.predict.learned.network import Network
from advisor.predict.learned.weights import read_networks

CONSTANTS, NETWORKS, CARD = "fitted.toml", "learned.npz", "learned.json"


class Tables(TypedDict):
    """``fitted.toml``: constants by GPU that was measured, and what is assumed by architecture."""

    gpu: Mapping[str, Constants]
    assumed: Mapping[str, Constants]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Knowledge:
    """Constants and networks that were fitted to the same measurements; equals no other one but itself.

    Attributes:
        tables: constants by GPU, and what is assumed for others.
        networks: by family; empty where none were trained, which leaves the roofline.
        fingerprint: of the networks' file: the first 16 hexadecimal digits of its SHA-256; None without one.
        corrections: by GPU and family, the part of the predicted rate that the GPU reached when it was
            calibrated.
        kernels: by GPU and family, as ``FittedConstants.learned_kernels``.
        is_calibrated_here: whether this machine's calibrations count as well.
        scaling: what several GPUs cost each other.
    """

    tables: Tables
    networks: Mapping[str, Network]
    fingerprint: str | None = None
    corrections: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    kernels: Mapping[str, Mapping[str, Sequence[Sequence[float]]]] = field(default_factory=dict)
    is_calibrated_here: bool = False
    scaling: Scaling = field(default_factory=Scaling)


def in_bursts(knowledge: Knowledge) -> Knowledge:
    """The same for kernels that were measured in bursts, too short for a GPU to lower its clocks."""
    assumed = {
        architecture: {name: value for name, value in table.items() if name != "sustained_clock"}
        for architecture, table in knowledge.tables["assumed"].items()
    }
    return replace(knowledge, tables=Tables(gpu=knowledge.tables["gpu"], assumed=assumed))


def read_knowledge(folder: Path) -> Knowledge:
    """The knowledge of a folder that holds ``fitted.toml`` and, where networks were trained, ``learned.npz``.

    Raises:
        CatalogError: there is no ``fitted.toml``, or one of the files is broken.
    """
    constants, networks = folder / CONSTANTS, folder / NETWORKS
    try:
        tables = parsed(constants.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise CatalogError(
            f"no {CONSTANTS} in {str(folder)!r}: name a folder that the training wrote."
        ) from error
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise CatalogError(f"cannot read {str(constants)!r}: {error}. Reinstall gpu-advisor.") from error
    except KeyError as error:
        raise CatalogError(
            f"{str(constants)!r} lacks [gpu] or [assumed.any]. Reinstall gpu-advisor."
        ) from error
    if not networks.exists():
        return Knowledge(tables=tables, networks={})
    return Knowledge(
        tables=tables,
        networks=read_networks(networks),
        fingerprint=hashlib.sha256(networks.read_bytes()).hexdigest()[:16],
    )


def parsed(text: str) -> Tables:
    """The constants of a ``fitted.toml``.

    Raises:
        TOMLDecodeError: it is no TOML.
        KeyError: it lacks ``[gpu]`` or ``[assumed.any]``.
    """
    document = tomllib.loads(text)
    if not isinstance(document.get("gpu"), dict) or "any" not in document.get("assumed", {}):
        raise KeyError("gpu" if "gpu" not in document else "assumed.any")
    return Tables(gpu=document["gpu"], assumed=document["assumed"])


@cache
def shipped() -> Knowledge:
    """What the catalog ships, with this machine's calibrations.

    Raises:
        CatalogError: constants or networks are missing or broken.
    """
    catalog_path(NETWORKS)  # without networks the roofline would answer, and nobody would notice
    return replace(read_knowledge(catalog_path(CONSTANTS).parent), is_calibrated_here=True)
