"""What the user's interpreter starts: ``python child.py JOB.json``. Needs torch and the standard library.

It lives beside the user's modules without a trace: its folder leaves ``sys.path``, and the payload is
loaded by location under a private name, so a project with its own ``advisor`` package works.
"""

from __future__ import annotations

import ctypes
import importlib.util
import json
import signal
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .protocol import ChildJob

PAYLOAD = "_gpu_advisor_payload"
# Of torch 2.9 and later; this file alone is read by older ones.
OLDEST_PYTHON = (3, 10)


def load_payload(module: str) -> ModuleType:
    """A module of the payload, under its private package name.

    Raises ImportError: the payload is not where it was installed, or torch is missing.
    """
    if PAYLOAD not in sys.modules:
        folder = Path(__file__).resolve().parent
        spec = importlib.util.spec_from_file_location(
            PAYLOAD, folder / "__init__.py", submodule_search_locations=[str(folder)]
        )
        if spec is None or spec.loader is None:
            raise ImportError(f"advisor's payload is missing from {folder}: install gpu-advisor anew")
        sys.modules[PAYLOAD] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[PAYLOAD])
    return importlib.import_module(f"{PAYLOAD}.{module}")


def start(job: ChildJob, *parts: object) -> None:
    """Let the module that the job names run it, with parts that no file can hold; never returns."""
    if job.get("version") != load_payload("protocol").VERSION:
        load_payload("progress").refuse(job)
    load_payload(job["module"]).run(job, *parts)


def die_with_the_parent() -> None:
    """Linux ends us when our parent is killed; elsewhere the timeout has to do."""
    if sys.platform == "linux":
        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)


def main() -> None:
    """Run the job whose file is the only argument; returns where this Python is too old for it."""
    die_with_the_parent()
    job = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    if sys.version_info < OLDEST_PYTHON:
        # None of the payload's modules can be loaded to say it.
        version = ".".join(map(str, sys.version_info[:3]))
        said = {"format_version": job["version"], "status": "old_python", "message": version}
        Path(job["result"]).write_text(json.dumps(said), encoding="utf-8")
        return
    # Python put the folder of this file first; the user's modules must be found, not ours.
    own = Path(__file__).resolve().parent
    sys.path[:] = [entry for entry in sys.path if not entry or Path(entry).resolve() != own]
    # Our own editable installation hooks imports before sys.path; the user's modules go first.
    ours = [finder for finder in sys.meta_path if "advisor" in getattr(finder, "known_source_files", ())]
    for finder in ours:
        sys.meta_path.remove(finder)
        sys.meta_path.append(finder)
    start(job)


if __name__ == "__main__":
    main()
