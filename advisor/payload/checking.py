"""Whether this interpreter has a torch that the payload can work with; imports it to find out."""

from __future__ import annotations

from typing import Any


def unusable_torch() -> tuple[str, dict[str, Any]] | None:
    """Status and message of a torch that is missing, broken or too old; None for one that will do."""
    try:
        import torch
    except ModuleNotFoundError as error:
        if error.name == "torch":
            return "no_torch", {"message": str(error)}
        return "broken_torch", {"message": str(error)}
    except Exception as error:  # noqa: BLE001 - a broken installation can raise anything
        return "broken_torch", {"message": f"{type(error).__name__}: {error}"}
    if not hasattr(torch, "accelerator"):
        return "old_torch", {"message": str(torch.__version__)}
    return None
