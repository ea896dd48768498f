"""Clusters behind published runs of sharded models: nodes of eight GPUs behind NVSwitch, joined by RoCE."""

from __future__ import annotations

from advisor.core.values import Fabric, GpuSpec, Layout, Link, Network

# MosaicML's: 1,600 Gb/s a node (llm-foundry, scripts/train/benchmarking/README.md).
MOSAIC_NETWORK_BYTES_PER_S = 200e9
# Meta's Grand Teton: 400 Gb/s a GPU.
TITAN_NETWORK_BYTES_PER_S = 400e9
# Shanghai AI Laboratory's: four cards of 100 Gb/s a node (InternEvo, doc/en/train_performance.md).
INTERN_NETWORK_BYTES_PER_S = 50e9
_GPUS_PER_NODE = 8


def layout_of(
    num_gpus: int, gpu: GpuSpec, network_bytes_per_s: float | None, power_limit_w: float | None = None
) -> Layout:
    """How a run's GPUs are laid out.

    Args:
        num_gpus: of the run.
        gpu: which all of them are.
        network_bytes_per_s: of a node; None where it is not published.
        power_limit_w: what each GPU may draw; None where that is not published.
    """
    fabric = Fabric(
        link=Link.NVSWITCH, link_bytes_per_s=gpu.nvlink_bytes_per_s, network=Network.ROCE,
        network_bytes_per_s=network_bytes_per_s,
    )  # fmt: skip
    within = min(num_gpus, _GPUS_PER_NODE)
    return Layout(
        gpus_per_node=within, num_nodes=num_gpus // within, fabric=fabric, power_limit_w=power_limit_w
    )
