"""Root's scripts in the sandbox run as nobody where nobody can read what they need.

A user namespace with another number in it does not help: to the kernel the files are still root's. So the
user is changed for real inside, where bubblewrap has set everything up, and root's closed folders that lie
on the way are opened in the sandbox alone.
"""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from advisor.core import processes

NOBODY = 65534
_PROGRAM = "setpriv"
_TRIAL_S = 20.0
# bubblewrap takes some thousand arguments.
_MOST_ENTRIES = 600
# For the change of user, after which none is left.
CAPABILITIES = tuple(
    part for name in ("SETUID", "SETGID", "SETPCAP") for part in ("--cap-add", f"CAP_{name}")
)
_CAN_READ = """
import os, sys, sysconfig
home, *read = sys.argv[1:]
for path in read:
    os.listdir(path) if os.path.isdir(path) else open(path).close()
for folder in (".", home, sysconfig.get_paths()["purelib"]):
    os.listdir(folder)
open(os.path.join(os.environ["TMPDIR"], "trial"), "w").close()
os.remove(os.path.join(os.environ["TMPDIR"], "trial"))
"""


def change_of_user() -> list[str] | None:
    """The start of a command that runs as nobody; None where this system has no such program."""
    program = processes.program(_PROGRAM)
    if program is None:
        return None
    return [
        program, f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups",
        "--bounding-set=-all", "--inh-caps=-all",
    ]  # fmt: skip


def opened(needed: Iterable[Path], shown: Iterable[Path]) -> list[str] | None:
    """Arguments of bubblewrap that let nobody pass the folders on the way; None if they hold too much.

    Each closed folder becomes one that is open, with the same entries, read-only. The entries keep their own
    permissions.

    Args:
        needed: files and folders that nobody must come to.
        shown: what is bound; the folders above are made for the sandbox and are open.
    """
    roots = {place for path in shown for place in (path, path.resolve())}
    ways = {place for path in needed for place in (path, path.resolve())}
    folders = {
        folder
        for path in ways
        for folder in (path, *path.parents)
        if _is_closed(folder) and any(folder.is_relative_to(root) for root in roots)
    }
    arguments: list[str] = []
    for folder in sorted(folders, key=lambda path: len(path.parts)):
        entries = list(os.scandir(folder))
        if len(entries) > _MOST_ENTRIES or len(arguments) > _MOST_ENTRIES * 3:
            return None
        arguments += ["--perms", "0755", "--tmpfs", str(folder)]
        for entry in entries:
            target = os.readlink(entry.path) if entry.is_symlink() else entry.path  # noqa: PTH115
            arguments += ["--symlink" if entry.is_symlink() else "--ro-bind", target, entry.path]
    return [*arguments, *(part for folder in folders for part in ("--remount-ro", str(folder)))]


def _is_closed(folder: Path) -> bool:
    try:
        mode = folder.stat().st_mode
    except OSError:
        return False
    open_to_all = stat.S_IROTH | stat.S_IXOTH
    return stat.S_ISDIR(mode) and mode & open_to_all != open_to_all


def give_to_nobody(folder: Path, *, back: bool = False) -> None:
    """Make nobody the owner of the job's folder and what is in it, or root again."""
    owner = 0 if back else NOBODY
    for path in (folder, *folder.rglob("*")):
        os.chown(path, owner, owner, follow_symlinks=False)


def can_read(start: Sequence[str], paths: Sequence[Path], environment: Mapping[str, str]) -> bool:
    """Whether nobody can start the interpreter, read what is needed, and write to the temporary folder.

    Args:
        start: of a command in the sandbox, its interpreter included.
        paths: files and folders to read.
        environment: of the script.
    """
    home = os.path.expanduser("~")  # noqa: PTH111
    words = [home if Path(home).is_dir() else "/", *map(str, paths)]
    try:
        trial = processes.run(
            [*start, "-I", "-c", _CAN_READ, *words], environment=environment, timeout_s=_TRIAL_S
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return trial.returncode == 0
