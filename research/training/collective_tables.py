"""Published times of collectives -> one row a size, each with the fabric it ran over.

Whose fabric the tables leave open is written here, with what it rests on. Left out, since they measure
something else than a collective:

- sizes of vidur and pipeweave that take no longer on the wire than ranks wait for each other there;
- vidur's send and receive on cards with NVLink bridges: the same figures under two names;
- pipeweave's pair of H100: 116 GB/s, where two other sources have 270 to 320;
- all-gathers of icicle: lists that are copied, and sizes that took no time;
- implementations other than NCCL.

Some rows only judge: what ran over a network that nobody states, and paths through the host that are far
slower than others of their kind (A40; L40S with four and eight GPUs).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from advisor.core.fabrics import board_fabric, linked
from advisor.core.gpus import load_gpus
from advisor.core.units import MIB
from advisor.core.values import Fabric, GpuSpec, Layout, Link, Network
from advisor.predict.exchange.collective_time import Group, group_of
from research.training.published_rows import published_rows

ORIGIN = (
    "aiconfigurator (Apache-2.0, 2026-08-21), NCCL rows of collectives.csv.gz",
    "vidur (MIT, 2024-07) and DeepBench (Apache-2.0, 2018), NCCL rows of the same",
    "estimate-train-time (MIT), icicle_nccl_a100_gh200.csv.gz",
    "pipeweave (Apache-2.0), pipeweave_collectives.csv.gz",
    "Azure/AI-benchmarking-guide (MIT), azure_ai_benchmarking_guide.csv",
)
UNKNOWN_NETWORK = "unknown network"
# Between two sizes that are kept: tables with thousands of them count as tables with dozens.
_SIZES_PER_DOUBLING = 2
# Ranks wait some 50 us for each other where kernels were timed in a running process.
_LEAST_WIRE_S = 30e-6
# A sender is done with less before the network is.
_BUFFERED_BYTES = 8 * MIB
_KINDS = {"alltoall": "all_to_all", "allreduce": "all_reduce", "send_recv": "send", "p2p": "send"}
# Peers had no access to each other where a node reaches half of what its neighbour in the table does.
_DEEPBENCH_LINKS = {"GTX-1080-Ti": Link.PCIE, "M40-12GB": Link.HOST, "P100-PCIE-16GB": Link.HOST}
_BRIDGE_BYTES_PER_S = 300e9


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredCollective:
    """One collective of one size."""

    source: str
    """Of the table, a word."""
    board: str
    """The GPU, as the catalog calls it if it has it."""
    group: Group
    num_bytes: float
    time_s: float
    fits: bool = True
    """Whether constants may be fitted to it; otherwise it only judges."""
    in_one_process: bool = False
    """Whether threads of one process drove the GPUs, which launch sooner than processes of a training do."""

    @property
    def topology(self) -> str:
        """What it ran over, and of which generation its boards are."""
        fabric = self.group.fabric
        if self.group.num_nodes > 1 and fabric.network is None:
            return UNKNOWN_NETWORK
        path = fabric.network if self.group.num_nodes > 1 else fabric.link
        return f"{path}, {self.group.architecture}"

    @property
    def setting(self) -> tuple[str, str, Group]:
        """All but the size."""
        return self.source, self.board, self.group


def read_collectives(tensor_cores: Path, published: Path) -> list[MeasuredCollective]:
    """All that fit and judge, but what `read_judges` has.

    Args:
        tensor_cores: folder of ``collectives.csv.gz``.
        published: folder of the published tables.

    Raises:
        FileNotFoundError: a table is not there.
    """
    rows = [
        *_of_tensor_cores(tensor_cores / "collectives.csv.gz"),
        *_of_icicle(published / "icicle_nccl_a100_gh200.csv.gz"),
        *_of_pipeweave(published / "pipeweave_collectives.csv.gz"),
        *_of_azure(published / "azure_ai_benchmarking_guide.csv"),
    ]
    return _thinned(rows)


def read_judges(published: Path) -> list[MeasuredCollective]:
    """What only judges, by its licence (stas00, CC-BY-SA-4.0)."""
    return _thinned(_of_stas(published / "stas00_collectives_busbw.csv"))


def _thinned(rows: Iterable[MeasuredCollective]) -> list[MeasuredCollective]:
    """One row for sizes that are near to each other: of the median time."""
    near: dict[object, list[MeasuredCollective]] = defaultdict(list)
    for row in rows:
        near[row.setting, round(_SIZES_PER_DOUBLING * math.log2(row.num_bytes))].append(row)
    return [
        replace(
            group[0],
            num_bytes=median(row.num_bytes for row in group),
            time_s=median(row.time_s for row in group),
        )
        for group in near.values()
    ]


def _of_tensor_cores(path: Path) -> Iterator[MeasuredCollective]:
    for row in published_rows(path):
        layout = _tensor_cores_layout(row)
        if row["library"] != "nccl" or layout is None:
            continue
        kind = _KINDS.get(row["collective"], row["collective"])
        group = group_of(kind, layout, load_gpus()[row["gpu"]])
        measured = MeasuredCollective(
            source=row["source"],
            board=row["gpu"],
            group=group,
            num_bytes=float(row["message_bytes"]),
            time_s=float(row["time_us"]) * 1e-6,
            fits=_is_sound(row["gpu"], group),
            in_one_process=row["source"] == "aiconfigurator",
        )
        if row["source"] != "vidur" or _is_busy(measured):
            yield measured


def _is_sound(board: str, group: Group) -> bool:
    if group.num_nodes > 1:
        return group.fabric.network is not None
    return group.fabric.link is not Link.HOST or board in _DEEPBENCH_LINKS


def _tensor_cores_layout(row: Mapping[str, str]) -> Layout | None:
    """None where rows are a copy, or nobody knows the link."""
    source, name, nodes, num_gpus = row["source"], row["gpu"], int(row["num_nodes"]), int(row["num_gpus"])
    if source == "aiconfigurator":
        # A pair of L40S reaches 20 GB/s, more than any path through host memory; more of them 5 and less.
        link = Link.PCIE if name == "L40S" and num_gpus == 2 else None
        return Layout(gpus_per_node=num_gpus, fabric=_joined(load_gpus()[name], link))
    if source == "deepbench":
        link = _DEEPBENCH_LINKS.get(name)
        fabric = linked(load_gpus()[name], link) if link else None
        return Layout(gpus_per_node=num_gpus // nodes, num_nodes=nodes, fabric=fabric) if fabric else None
    return _vidur_layout(name, row["collective"], nodes, num_gpus)


def _vidur_layout(name: str, collective: str, nodes: int, num_gpus: int) -> Layout | None:
    gpu = load_gpus()[name]
    is_bridged = name in ("A100-PCIE-80GB", "H100-NVL-94GB")
    if is_bridged and collective == "send_recv" and (nodes == 1 or name == "H100-NVL-94GB"):
        return None
    link = Link.NVLINK_PAIRS if is_bridged else None
    fabric = _joined(gpu, link, _BRIDGE_BYTES_PER_S if is_bridged else None)
    if is_bridged and nodes > 1:
        # Azure NC96ads A100 v4 has 80 Gbit/s, without RDMA.
        fabric = replace(fabric, network=Network.TCP, network_bytes_per_s=10e9)
    return Layout(gpus_per_node=num_gpus // nodes, num_nodes=nodes, fabric=fabric)


def _joined(gpu: GpuSpec, link: Link | None = None, link_bytes_per_s: float | None = None) -> Fabric:
    """As stated, else the board's NVLink or the host's memory: no table says that peers had access."""
    return linked(gpu, link or (None if gpu.nvlink_bytes_per_s else Link.HOST), link_bytes_per_s)


def _is_busy(row: MeasuredCollective) -> bool:
    """Whether the bytes take longer than ranks wait for each other, and than buffers of a network hold."""
    if row.group.num_nodes > 1:
        return row.num_bytes >= _BUFFERED_BYTES
    return row.num_bytes / row.group.fabric.link_bytes_per_s >= _LEAST_WIRE_S


def _of_icicle(path: Path) -> Iterator[MeasuredCollective]:
    """Perlmutter: four A100, each pair by a third of its links, 200 Gbit/s a GPU as TCP. Vista: one GH200."""
    gpus = {"Perlmutter": load_gpus()["A100-SXM-80GB"], "Vista": load_gpus()["GH200-96GB"]}
    for row in published_rows(path):
        if row["collective"] == "allgather":
            continue
        is_vista = row["system"] == "Vista"
        gpu, per_node = gpus[row["system"]], int(row["gpus_per_node"])
        link = Link.NVSWITCH if is_vista else Link.NVLINK_MESH
        fabric = Fabric(
            link=link,
            link_bytes_per_s=gpu.nvlink_bytes_per_s,
            link_peers=1 if is_vista else 3,
            network=Network.INFINIBAND if is_vista else Network.TCP,
            network_bytes_per_s=50e9 if is_vista else 25e9 * per_node,
        )
        layout = Layout(gpus_per_node=per_node, num_nodes=int(row["num_nodes"]), fabric=fabric)
        yield MeasuredCollective(
            source="icicle",
            board=gpu.name,
            group=group_of(_KINDS[row["collective"]], layout, gpu),
            num_bytes=float(row["bytes"]),
            time_s=float(row["time_us"]) * 1e-6,
        )


def _of_pipeweave(path: Path) -> Iterator[MeasuredCollective]:
    hopper = load_gpus()["H100-SXM-80GB"]
    gpus = {
        "A100": load_gpus()["A100-SXM-80GB"],
        "H100": hopper,
        "H20": replace(hopper, name="H20"),
        "H800": replace(hopper, name="H800", nvlink_bytes_per_s=200e9),
        "RTX 6000 Ada": load_gpus()["RTX-6000-Ada"],
    }
    for row in published_rows(path):
        gpu, num_gpus = gpus[row["gpu"]], int(row["num_gpus"])
        kind = _KINDS.get(row["collective"], row["collective"])
        measured = MeasuredCollective(
            source="pipeweave",
            board=gpu.name,
            group=group_of(kind, Layout(gpus_per_node=num_gpus, fabric=_joined(gpu)), gpu),
            num_bytes=float(row["size_field_bytes"]),
            time_s=float(row["time_ms_median_over_ranks"]) * 1e-3,
        )
        if _is_busy(measured) and not (row["gpu"] == "H100" and num_gpus == 2):
            yield measured


def _of_azure(path: Path) -> Iterator[MeasuredCollective]:
    """The table has bus bandwidth, rounded to 0.01 GB/s: smaller ones are too coarse."""
    factors = {"K": 1024, "M": MIB, "G": 1024 * MIB}
    for row in published_rows(path):
        if row["benchmark"] != "nccl_all_reduce_8gpu_busbw" or float(row["value"]) < 0.5:
            continue
        gpu = load_gpus()[row["gpu"]]
        num_bytes = float(2 ** round(math.log2(int(row["case"][:-1]) * factors[row["case"][-1]])))
        yield MeasuredCollective(
            source="azure",
            board=gpu.name,
            group=group_of("all_reduce", Layout(gpus_per_node=8), gpu),
            num_bytes=num_bytes,
            time_s=2 * 7 / 8 * num_bytes / (float(row["value"]) * 1e9),
        )


def _of_stas(path: Path) -> Iterator[MeasuredCollective]:
    gpus = {"H200": "H200-SXM-141GB", "B200": "B200-SXM-180GB", "A100": "A100-SXM-80GB", "MI300X": "MI300X"}
    for row in published_rows(path):
        name = gpus.get(row["gpu"])
        is_reduction = row["collective"].startswith("all_reduce") and "NVLS off" not in row["notes"]
        if name is None or not is_reduction or float(row["busbw_gb_per_s"]) < 0.5:
            continue
        gpu, nodes, num_gpus = load_gpus()[name], int(row["num_nodes"]), int(row["num_gpus"])
        fabric = board_fabric(gpu)
        if nodes > 1:
            fabric = replace(fabric, network=Network.EFA, network_bytes_per_s=400e9)
        layout = Layout(gpus_per_node=num_gpus // nodes, num_nodes=nodes, fabric=fabric)
        num_bytes = float(row["payload_bytes"])
        yield MeasuredCollective(
            source="stas00",
            board=gpu.name,
            group=group_of("all_reduce", layout, gpu),
            num_bytes=num_bytes,
            time_s=2 * (num_gpus - 1) / num_gpus * num_bytes / (float(row["busbw_gb_per_s"]) * 1e9),
            fits=False,
        )
