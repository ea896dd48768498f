"""Over what GPUs exchange, from ``catalogs/fabrics.toml`` and from what people write of their own clusters.

What is not stated of a machine of one's own is what its boards' driver allows. What is rented may be virtual:
its boards exchange through host memory. A network that is not stated is unknown.
"""

import math
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from advisor.core.errors import CatalogError, ConfigError, did_you_mean
from advisor.core.globs import is_any, same_name
from advisor.core.gpus import catalog_path
from advisor.core.values import Fabric, GpuSpec, Link, Network

FABRICS_FILE = "fabrics.toml"
Kind = TypeVar("Kind")
_WORDS = {"ib": Network.INFINIBAND, "ethernet": Network.TCP, **{kind.value: kind for kind in Network}}
_RATE = re.compile(r"(?:(\d+)\s*x\s*)?(\d+(?:\.\d+)?)\s*([Gg]bit|Gb|GB)(?:/s|ps)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """GPUs whose links are not switched; `peers` are the GPUs that each one's links are shared among."""

    gpus: tuple[str, ...]
    link: Link
    peers: int
    source: str
    as_of: date


@dataclass(frozen=True, slots=True, kw_only=True)
class RentedFabric:
    """What machines that someone rents exchange over."""

    provider: str
    instance_types: tuple[str, ...]
    """Globs."""
    link: Link | None = None
    """None where it is the board's."""
    link_bytes_per_s: float | None = None
    """None where it is what the GPU's data sheet says."""
    network: Network
    network_bits_per_s: float | None = None
    """Of a node; None where the machine's own bandwidth tells."""
    source: str
    as_of: date


@dataclass(frozen=True, slots=True, kw_only=True)
class Fabrics:
    """All of a file."""

    boards: tuple[Board, ...]
    machines: tuple[RentedFabric, ...]


@cache
def load_fabrics() -> Fabrics:
    """The shipped file. Raises CatalogError: as `read_fabrics`."""
    return read_fabrics(catalog_path(FABRICS_FILE))


def read_fabrics(path: Path) -> Fabrics:
    """Boards and machines of a file.

    Raises CatalogError: the file cannot be read, or an entry is incomplete.
    """
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
        return Fabrics(
            boards=tuple(Board(**_typed(entry)) for entry in document["board"]),
            machines=tuple(RentedFabric(**_typed(entry)) for entry in document["machine"]),
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CatalogError(f"{path}: {error}. Install gpu-advisor again.") from error


def _typed(entry: Mapping[str, Any]) -> dict[str, Any]:
    kinds = {"gpus": tuple, "instance_types": tuple, "link": Link, "network": Network}
    return {name: kinds.get(name, lambda same: same)(value) for name, value in entry.items()}


def board_fabric(gpu: GpuSpec) -> Fabric:
    """What the GPU's board tells: its NVLink, else PCIe where its driver lets peers read, and no network.

    >>> from advisor.core.gpus import resolve_gpu
    >>> [board_fabric(resolve_gpu(name)).link.value for name in ("H100-SXM-80GB", "RTX-A6000", "RTX-3090")]
    ['nvswitch', 'pcie', 'host']
    """
    unlisted = Fabric(
        link=Link.NVSWITCH if gpu.nvlink_bytes_per_s else Link.HOST,
        link_bytes_per_s=gpu.nvlink_bytes_per_s or gpu.pcie_bytes_per_s,
    )
    board = next((board for board in load_fabrics().boards if is_any(board.gpus, gpu.name)), None)
    if board is None:
        return unlisted
    is_granted = board.link is not Link.PCIE
    return replace(unlisted, link=board.link, link_peers=board.peers, is_granted=is_granted)


def machine_of(provider: str, instance_type: str) -> RentedFabric | None:
    """The row of a machine, None where there is none."""
    machines = _machines_of(provider)
    return next((machine for machine in machines if is_any(machine.instance_types, instance_type)), None)


@cache
def _machines_of(provider: str) -> tuple[RentedFabric, ...]:
    return tuple(machine for machine in load_fabrics().machines if same_name(machine.provider, provider))


def linked(gpu: GpuSpec, link: Link | None, link_bytes_per_s: float | None = None) -> Fabric:
    """The GPU's board with another link, at a rate that may be stated."""
    board = board_fabric(gpu)
    if link is None or link is board.link:
        rate = link_bytes_per_s or board.link_bytes_per_s
        return replace(board, link_bytes_per_s=rate, is_granted=board.is_granted or link is not None)
    is_nvlink = link not in (Link.PCIE, Link.HOST)
    sheet = (gpu.nvlink_bytes_per_s if is_nvlink else 0.0) or gpu.pcie_bytes_per_s
    return Fabric(link=link, link_bytes_per_s=link_bytes_per_s or sheet)


def stated_fabric(gpu: GpuSpec, link: str | None = None, network: str | None = None) -> Fabric:
    """What someone writes of their own machines.

    Args:
        link: a kind of link, with a rate of one GPU where the data sheet has another: ``"pcie"``,
            ``"nvlink-pairs 300 GB/s"``. None leaves it to the board.
        network: a kind of network with the rate of a node: ``"infiniband 200 Gbit"``, ``"roce 8x400 Gbit"``.

    Raises ConfigError: a kind or a rate that is none.

    >>> from advisor.core.gpus import resolve_gpu
    >>> stated_fabric(resolve_gpu("L4"), "pcie", "tcp 25 Gbit").network_bytes_per_s
    3125000000.0
    """
    kinds = {kind.value: kind for kind in Link}
    kind, rate = _parsed(link, kinds, "link") if link else (None, None)
    fabric = linked(gpu, kind, rate)
    if not network:
        return fabric
    between, network_rate = _parsed(network, _WORDS, "network")
    return replace(fabric, network=between, network_bytes_per_s=network_rate)


def _parsed(text: str, kinds: Mapping[str, Kind], what: str) -> tuple[Kind, float | None]:
    word, _, rest = text.strip().partition(" ")
    kind, rate = kinds.get(word.lower()), _bytes_per_s(rest.strip())
    if kind is None or (rest.strip() and rate is None):
        near = did_you_mean(word, kinds) if kind is None else ""
        raise ConfigError(
            f"{text!r} is no {what}: write one of {', '.join(kinds)}, and a rate such as 200 Gbit,"
            f" 8x400 Gbit or 25 GB/s.{near}"
        )
    return kind, rate


def _bytes_per_s(text: str) -> float | None:
    """None where it is no rate. As everywhere, b is for bits and B for bytes."""
    match = _RATE.fullmatch(text)
    if match is None:
        return None
    count, number, unit = match.groups()
    rate = float(count or 1) * float(number) * (1e9 if unit == "GB" else 1e9 / 8)
    return rate if 0 < rate < math.inf else None
