"""What ran: the board, its limits, the driver, the libraries, the host."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from .lines import Lines

_PACKAGES = ("torch", "torchvision", "transformers", "timm", "triton", "numpy", "nvidia-ml-py")
_SECTIONS = ("POWER", "CLOCK", "PERFORMANCE", "TEMPERATURE", "ECC", "MEMORY")


def describe(lines: Lines, backend: str, tiny: bool, folder: Path) -> None:
    """One line for the host and its software, one for the device, one for nvidia-smi's own words."""
    lines.case("host", _host)
    lines.case("device", lambda: _device(backend))
    if shutil.which("nvidia-smi"):
        asked = ["nvidia-smi", "-q", "-d", ",".join(_SECTIONS)]
        lines.case("nvidia_smi", lambda: {"text": _said(asked)})
        lines.case("topology", lambda: {"text": _said(["nvidia-smi"])})


def _host() -> dict[str, object]:
    known: dict[str, str | None] = {}
    for package in _PACKAGES:
        try:
            known[package] = version(package)
        except PackageNotFoundError:
            known[package] = None
    cpu = Path("/proc/cpuinfo")
    facts = [line.partition(":")[2].strip() for line in cpu.read_text().splitlines()
             if line.startswith(("model name", "cpu MHz"))] if cpu.exists() else []  # fmt: skip
    return {
        "packages": known,
        "python": platform.python_version(),
        "system": platform.platform(),
        "cpu": facts[0] if facts else platform.processor(),
        "cpu_mhz": facts[1::2],
        "num_cpus": os.cpu_count(),
    }


def _device(backend: str) -> dict[str, object]:
    import torch

    if backend != "cuda":
        return {"name": platform.processor() or platform.machine(), "backend": backend}
    facts = torch.cuda.get_device_properties(0)
    return {
        "backend": backend,
        "name": torch.cuda.get_device_name(),
        "compute_capability": list(torch.cuda.get_device_capability()),
        "num_sms": facts.multi_processor_count,
        "memory_bytes": facts.total_memory,
        "l2_bytes": getattr(facts, "L2_cache_size", None),
        "cuda": torch.version.cuda,
        "cudnn": torch.backends.cudnn.version(),
    }


def _said(asked: list[str]) -> str:
    return subprocess.run(asked, capture_output=True, text=True, timeout=20, check=True).stdout
