"""Whether this interpreter has a torch that the payload can work with; imports it to find out."""

from __future__ import annotations

from .protocol import Details, Status


def unusable_torch() -> tuple[Status, Details] | None:
    """Status and message of a torch that is missing, broken or too old; None for one that will do."""
    try:
        import torch
    except ModuleNotFoundError as error:
        if error.name == "torch":
            return Status.NO_TORCH, {"message": str(error)}
        return Status.BROKEN_TORCH, {"message": str(error)}
    except Exception as error:  # noqa: BLE001 - a broken installation can raise anything
        return Status.BROKEN_TORCH, {"message": f"{type(error).__name__}: {error}"}
    if not hasattr(torch, "accelerator"):
        return Status.OLD_TORCH, {"message": str(torch.__version__)}
    return None
