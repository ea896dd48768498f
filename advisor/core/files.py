"""Writing files whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def write_atomically(path: Path, payload: bytes, *, private: bool = False) -> None:
    """Write beside the target and rename; on any failure nothing is left behind and the old file stays.

    Args:
        path: of the file.
        payload: all of it.
        private: only its owner may read it, whatever the umask says.

    Raises:
        OSError: the folder is missing, not writable, or the disk is full.
    """
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(payload)
        if not private:  # mkstemp made it for its owner alone
            temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
