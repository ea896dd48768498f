"""Published tables of collectives: what is read of them, and what is left out."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from advisor.core.values import Link, Network
from research.training import collective_tables

TENSOR_CORES = "gpu,num_nodes,num_gpus,collective,library,message_bytes,time_us,source"
ICICLE = "system,collective,bytes,num_nodes,gpus_per_node,time_us"
PIPEWEAVE = "gpu,collective,num_gpus,size_field_bytes,time_ms_median_over_ranks"
AZURE = "gpu,benchmark,case,value"
STAS = "gpu,num_gpus,num_nodes,collective,payload_bytes,busbw_gb_per_s,notes"
A100, BIG = "A100-SXM-80GB", 67_108_864


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """All tables, empty."""
    write(tmp_path, "collectives.csv.gz", TENSOR_CORES)
    write(tmp_path, "icicle_nccl_a100_gh200.csv.gz", ICICLE)
    write(tmp_path, "pipeweave_collectives.csv.gz", PIPEWEAVE)
    write(tmp_path, "azure_ai_benchmarking_guide.csv", AZURE)
    write(tmp_path, "stas00_collectives_busbw.csv", STAS)
    return tmp_path


def write(folder: Path, name: str, *lines: str) -> None:
    content = "\n".join([*lines, ""]).encode()
    (folder / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)


def read(folder: Path) -> list[collective_tables.MeasuredCollective]:
    return collective_tables.read_collectives(folder, folder)


@pytest.mark.parametrize(
    ("line", "topology", "fits"),
    [
        (f"{A100},1,8,alltoall,nccl,512,15.8,aiconfigurator", "nvswitch, Ampere", True),
        ("L40S,1,2,all_reduce,nccl,512,7.7,aiconfigurator", "pcie, Ada", True),
        ("L40S,1,8,all_reduce,nccl,512,22.6,aiconfigurator", "host, Ada", False),
        (f"A100-PCIE-80GB,1,2,all_reduce,nccl,{BIG},385,vidur", "nvlink-pairs, Ampere", True),
        (f"A100-PCIE-80GB,2,2,send_recv,nccl,{BIG},28630,vidur", "tcp, Ampere", True),
        (f"A40,1,2,send_recv,nccl,{BIG},16490,vidur", "host, Ampere", False),
        (f"{A100},2,16,all_reduce,nccl,{BIG},7022,vidur", collective_tables.UNKNOWN_NETWORK, False),
        ("GTX-1080-Ti,1,8,all_reduce,nccl,400000,148.1,deepbench", "pcie, Pascal", True),
        ("M40-12GB,1,8,all_reduce,nccl,400000,249.3,deepbench", "host, Maxwell", True),
    ],
)
def test_fabrics_that_tables_leave_open_are_written_down(
    folder: Path, line: str, topology: str, fits: bool
) -> None:
    write(folder, "collectives.csv.gz", TENSOR_CORES, line)
    (row,) = read(folder)
    assert (row.topology, row.fits) == (topology, fits)
    assert row.time_s == pytest.approx(float(line.split(",")[6]) * 1e-6)


@pytest.mark.parametrize(
    "line",
    [
        # Ranks waited longer for each other than the bytes took.
        f"{A100},1,8,all_reduce,nccl,65536,32,vidur",
        f"{A100},2,2,send_recv,nccl,65536,35,vidur",
        # The same figures under two names.
        f"A100-PCIE-80GB,1,2,send_recv,nccl,{BIG},228,vidur",
        f"H100-NVL-94GB,2,2,send_recv,nccl,{BIG},28630,vidur",
        f"{A100},1,8,all_reduce,vllm_custom,{BIG},300,aiconfigurator",
        # Not in the catalog of GPUs.
        f"GTX-TITAN-X,1,2,all_reduce,nccl,{BIG},13500,deepbench",
    ],
)
def test_what_measures_something_else_is_left_out(folder: Path, line: str) -> None:
    write(folder, "collectives.csv.gz", TENSOR_CORES, line)
    assert read(folder) == []


def test_sizes_that_are_near_to_each_other_are_one(folder: Path) -> None:
    lines = [f"{A100},1,8,all_reduce,nccl,{size},{us},aiconfigurator" for size, us in
             ((1000, 10), (1010, 30), (1020, 11), (4000, 12))]  # fmt: skip
    write(folder, "collectives.csv.gz", TENSOR_CORES, *lines)
    near, far = read(folder)
    assert (near.num_bytes, near.time_s) == (1010, pytest.approx(11e-6))
    assert far.num_bytes == 4000


def test_perlmutter_is_a_mesh_within_and_tcp_between(folder: Path) -> None:
    write(
        folder,
        "icicle_nccl_a100_gh200.csv.gz",
        ICICLE,
        f"Perlmutter,allreduce,{BIG},1,4,531.4",
        f"Perlmutter,allreduce,{BIG},2,4,26639.6",
        f"Perlmutter,allgather,{BIG},2,4,1.0",
        f"Vista,p2p,{BIG},2,1,2035.7",
    )
    within, between, vista = read(folder)
    assert (within.group.fabric.link, within.group.fabric.link_peers) == (Link.NVLINK_MESH, 3)
    assert between.group.fabric.network_bytes_per_s == 100e9
    assert (vista.group.kind, vista.group.fabric.network) == ("send", Network.INFINIBAND)


def test_pipeweave_has_variants_of_boards(folder: Path) -> None:
    write(
        folder,
        "pipeweave_collectives.csv.gz",
        PIPEWEAVE,
        f"H800,all_reduce,8,{BIG},0.6407",
        f"H100,all_reduce,2,{BIG},0.6495",
        "RTX 6000 Ada,all_reduce,2,2048,0.005",
    )
    (row,) = read(folder)
    assert (row.board, row.group.fabric.link_bytes_per_s) == ("H800", 200e9)


def test_bus_bandwidth_becomes_time(folder: Path) -> None:
    line = "H100-SXM5-80GB,nccl_all_reduce_8gpu_busbw,67M,361.78"
    write(folder, "azure_ai_benchmarking_guide.csv", AZURE, line, "H100-SXM5-80GB,gemm,1K,100",
          "H100-SXM5-80GB,nccl_all_reduce_8gpu_busbw,1K,0.07")  # fmt: skip
    (row,) = read(folder)
    assert row.num_bytes == BIG
    assert row.time_s == pytest.approx(7 / 4 * BIG / 361.78e9)


def test_what_only_judges_never_fits(folder: Path) -> None:
    write(
        folder,
        "stas00_collectives_busbw.csv",
        STAS,
        "H200,8,1,all_reduce,1073741824,463.58,nccl2.27.7",
        "H200,8,1,all_reduce_8GiB_ngpus,8589934592,365.6,NVLS off (Ring)",
        "H200,8,1,all_gather,17179869184,361.4,Ring",
        "B200,32,4,all_reduce,1073741824,361.99,",
        "A100? (4-node example run),32,4,all_reduce,1073741824,94.15,",
    )
    one, four = collective_tables.read_judges(folder)
    assert (one.topology, four.topology) == ("nvswitch, Hopper", "efa, Blackwell")
    assert not one.fits
    assert not four.fits
    assert read(folder) == []
