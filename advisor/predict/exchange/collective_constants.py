"""What collectives reach of the data sheets: ``catalogs/collectives.toml``, which the training writes."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any

from advisor.core.errors import CatalogError
from advisor.core.gpus import catalog_path
from advisor.core.values import Link, Network

COLLECTIVES_FILE = "collectives.toml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """A way to send.

    Attributes:
        latency: in multiples of the fastest protocol's.
        payload: the share of what is sent that is no flag.
        bytes_per_s: that a GPU handles, whatever the link could.
    """

    latency: float
    payload: float
    bytes_per_s: float = math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class Road:
    """A kind of link or network.

    Attributes:
        efficiency: of the data sheet's rate, with large messages.
        hop_s: of one step along it.
        sigma: of the logarithm of the rate.
        stream_bytes_per_s: that the CPU carries of one GPU; infinite where no CPU does.
    """

    efficiency: float
    hop_s: float
    sigma: float
    stream_bytes_per_s: float = math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class InSwitch:
    """Reductions that the switch does (NVLink SHARP): GPUs of which architectures know it, and what it costs.

    Attributes:
        latency: in multiples of a launch with one step each way.
        efficiency: of the link's rate.
    """

    architectures: tuple[str, ...]
    latency: float
    efficiency: float


class Manner(StrEnum):
    """How ranks exchange: along a ring, each with each, or one with one."""

    RING = "ring"
    ALL_TO_ALL = "all_to_all"
    SEND = "send"


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """What a manner of exchange reaches.

    Attributes:
        rate: of the link, relative to a ring's.
        stream: of the CPU, relative to a ring's.
        own_share: what a rank's own part of the buffer costs, of a part that it sends; at most 1.
    """

    rate: float
    stream: float
    own_share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveConstants:
    """All of a file.

    Attributes:
        launch_s: of a kernel that takes no steps.
        pace: latency within a node, by architecture, relative to the mean of all.
        peer_protocols: of which the fastest is taken.
        ring_protocols: those and more.
        unknown_network_bytes_per_s: of a node whose network nobody stated.
        latency_sigma: of the logarithm of latency within a node; `network_latency_sigma` between nodes.
        unknown_sigma: of the rate of a network that nobody stated.
    """

    launch_s: float
    pace: Mapping[str, float]
    peer_protocols: tuple[Protocol, ...]
    ring_protocols: tuple[Protocol, ...]
    in_switch: InSwitch
    manners: Mapping[Manner, Exchange]
    links: Mapping[Link, Road]
    networks: Mapping[Network, Road]
    unknown_network_bytes_per_s: float
    latency_sigma: float
    network_latency_sigma: float
    unknown_sigma: float


@cache
def collective_constants() -> CollectiveConstants:
    """The shipped constants.

    Raises:
        CatalogError: as `read_constants`.
    """
    return read_constants(catalog_path(COLLECTIVES_FILE))


def read_constants(path: Path) -> CollectiveConstants:
    """The constants of a file.

    Raises:
        CatalogError: the file cannot be read, or an entry is missing.
    """
    try:
        return constants_from(tomllib.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CatalogError(f"{path}: {error}. Install gpu-advisor again.") from error


def constants_from(table: Mapping[str, Any]) -> CollectiveConstants:
    """The constants of a parsed file.

    Raises:
        KeyError: an entry is missing.
        ValueError: a link, network or manner that is none.
        TypeError: an entry has other fields.
    """
    peers, rings = (
        tuple(Protocol(**row) for row in table["protocols"][name].values()) for name in ("peers", "rings")
    )
    switch = table["in_switch"]
    return CollectiveConstants(
        launch_s=table["launch_s"],
        pace=table["pace"],
        peer_protocols=peers,
        ring_protocols=(*peers, *rings),
        in_switch=InSwitch(**{**switch, "architectures": tuple(switch["architectures"])}),
        manners={Manner(name): Exchange(**row) for name, row in table["manners"].items()},
        links={Link(name): Road(**row) for name, row in table["links"].items()},
        networks={Network(name): Road(**row) for name, row in table["networks"].items()},
        unknown_network_bytes_per_s=table["unknown_network_bytes_per_s"],
        latency_sigma=table["latency_sigma"],
        network_latency_sigma=table["network_latency_sigma"],
        unknown_sigma=table["unknown_sigma"],
    )
