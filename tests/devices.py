"""What tests that need a device skip for."""

import importlib.util
import subprocess

import pytest


def need_torch_and_cuda() -> None:
    """Skip, with the reason, where torch or a CUDA device is missing."""
    if importlib.util.find_spec("torch") is None:
        pytest.skip("needs torch")
    try:
        subprocess.run(["nvidia-smi", "-L"], capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("needs a CUDA device")
