"""Over what the GPUs of a layout exchange, where only their data sheet tells."""

from __future__ import annotations

from advisor.core.values import Fabric, GpuSpec, Layout, Link


def fabric_or_sheet(layout: Layout, gpu: GpuSpec) -> Fabric:
    """The layout's fabric, or that of the GPU's data sheet: NVLink if built in, else PCIe."""
    if layout.fabric is not None:
        return layout.fabric
    if gpu.nvlink_bytes_per_s:
        return Fabric(link=Link.NVSWITCH, link_bytes_per_s=gpu.nvlink_bytes_per_s)
    return Fabric(link=Link.PCIE, link_bytes_per_s=gpu.pcie_bytes_per_s)
