"""What the price of a machine covers besides its GPUs, in words."""

from __future__ import annotations

from advisor.core.units import GB, GIB, TB


def price_includes(
    *, vcpus: int, memory_bytes: int, local_ssd_bytes: int, architecture: str
) -> tuple[str, ...]:
    """The host of a machine in words, as `Offer.includes` holds it.

    Args:
        vcpus: as the cloud counts them.
        memory_bytes: of the host.
        local_ssd_bytes: disks whose price is part of the machine's; 0 without.
        architecture: of the CPU, ``"x86_64"`` or ``"arm64"``.

    >>> price_includes(vcpus=96, memory_bytes=1152 * GIB, local_ssd_bytes=8 * TB, architecture="x86_64")
    ('96 vCPU', '1152 GiB RAM', '8 TB local SSD')
    """
    parts = [f"{vcpus} vCPU" + (" (Arm)" if architecture == "arm64" else "")]
    parts.append(f"{memory_bytes / GIB:g} GiB RAM")
    if local_ssd_bytes:
        large = local_ssd_bytes >= TB
        size = f"{local_ssd_bytes / TB:g} TB" if large else f"{local_ssd_bytes / GB:g} GB"
        parts.append(f"{size} local SSD")
    return tuple(parts)
