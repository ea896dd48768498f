"""Runs the command as a person types it, in a folder and home of its own."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.end_to_end.in_process import call

# With the machines of all regions most answers take twice as long, and say the same.
FEW_REGIONS, ALL_REGIONS = "[us-east-1, us-central1]", "['*']"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a command printed and how it ended."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """stdout as JSON."""
        return json.loads(self.out)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shell:
    """A folder to stand in; the home inside it keeps the machine's own settings out.

    Attributes:
        regions: the setting ``cloud.regions``.
    """

    folder: Path
    regions: str = FEW_REGIONS

    def run(self, *arguments: str, timeout_s: float = 120, **environ: str) -> Answer:
        """``advisor ARGUMENTS`` inside this process, with these variables on top."""
        code, out, err = call(
            arguments, cwd=self.folder, environ=self.environ(**environ), timeout_s=timeout_s
        )
        return Answer(code=code, out=out, err=err)

    def run_process(self, *arguments: str, timeout_s: float = 120, **environ: str) -> Answer:
        """The same as a process of its own, where that is the point: its start, imports, paths or end."""
        done = subprocess.run(
            [sys.executable, "-m", "advisor", *arguments],
            cwd=self.folder,
            env=self.environ(**environ),
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=timeout_s,
        )
        return Answer(code=done.returncode, out=done.stdout, err=done.stderr)

    def start(
        self, *arguments: str, environ: Mapping[str, str] | None = None, **options: Any
    ) -> subprocess.Popen[str]:
        """The same as a process that goes on, for who talks to it or ends it; options are those of Popen."""
        return subprocess.Popen(
            [sys.executable, "-m", "advisor", *arguments],
            cwd=self.folder,
            env=self.environ(**(environ or {})),
            text=True,
            **options,
        )

    def environ(self, **added: str) -> dict[str, str]:
        """Ours without settings of the machine, with a home in the folder and these variables on top."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("ADVISOR_", "COLUMNS"))}
        home = {
            "HOME": str(self.folder),
            "XDG_CONFIG_HOME": str(self.folder / ".config"),
            "XDG_DATA_HOME": str(self.folder / ".local/share"),
            "COLUMNS": "160",  # tables in their widest form
            "ADVISOR_LOCAL__CPU": "false",  # how fast this machine's CPU is decides no test
            "ADVISOR_CLOUD__REGIONS": self.regions,
        }
        return kept | home | added

    def write(self, name: str, text: str) -> Path:
        """A file in the folder."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path


def assert_plain_error(answer: Answer, code: int, *words: str) -> None:
    """The exit code, every word on stderr, and nothing that looks like a crash of ours."""
    assert answer.code == code, answer
    for word in words:
        assert word in answer.err, answer.err
    assert "Traceback" not in answer.err
