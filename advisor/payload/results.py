"""How a child ends: its result whole in its place, then out of the process."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from pathlib import Path

from .protocol import VERSION, Details, Job, Notice, Status

# Room for the parent to take out secrets before it cuts as short as a person wants it.
_MOST_CHARACTERS = 65_536
_MOST_TEXTS = 200


def write_result(job: Job, status: Status, details: Details) -> None:
    """Put the result in its place whole or not at all."""
    target = Path(job["result"])
    temporary = target.with_suffix(".part")
    # The version first: nothing else may be read of a result of another one.
    kept = details.copy()
    for text in ("message", "traceback"):
        if text in kept:
            kept[text] = _cut(kept[text])
    if "refused" in kept:
        kept["refused"] = [_cut(text) for text in kept["refused"][:_MOST_TEXTS]]
    if "warnings" in kept:
        kept["warnings"] = [_cut_facts(warning) for warning in kept["warnings"][:_MOST_TEXTS]]
    document = {"format_version": VERSION, "status": status, **kept}
    temporary.write_text(json.dumps(document), encoding="utf-8")
    temporary.replace(target)


def refuse(job: Job) -> None:
    """Answer a job of another version: the parent sees ours in the result, and leave the process."""
    write_result(job, Status.CRASHED, {"message": f"the payload reads jobs of version {VERSION} only"})
    leave()


def leave() -> None:
    """End the process."""
    # Not sys.exit: exit handlers of the script would upload, save or wait.
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    os._exit(0)


def _cut_facts(warning: Notice) -> Notice:
    facts = {name: _cut(fact) if isinstance(fact, str) else fact for name, fact in warning["facts"].items()}
    return {"code": warning["code"], "facts": facts}


def _cut(text: str) -> str:
    """Both ends of a text: an exception's can be as long as a data set."""
    if len(text) <= _MOST_CHARACTERS:
        return text
    half = _MOST_CHARACTERS // 2
    return f"{text[:half]} [... cut ...] {text[-half:]}"


# Whether this interpreter has a torch that the payload can work with; imports it to find out.


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
