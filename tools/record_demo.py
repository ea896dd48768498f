"""Records the main job in a terminal; ``python tools/record_demo.py`` writes docs/demo.{cast,svg}.

The recording is an asciicast (version 2): ``asciinema play docs/demo.cast`` shows it as it was; the picture
is its end.
"""

from __future__ import annotations

import argparse
import codecs
import fcntl
import io
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from advisor.core.files import write_atomically

ROOT = Path(__file__).resolve().parent.parent
COMMAND = (
    "advisor",
    "recommend",
    "examples/train_resnet50.py",
    "--epochs",
    "90",
    "--budget",
    "200",
    "--top",
    "8",
)
# So that the recording is the same on every machine, and keeps out of its files.
SETTINGS = {"ADVISOR_PROFILE__SANDBOX": "true", "ADVISOR_PRICES__OFFLINE": "true"}
WIDTH, HEIGHT = 120, 40
PROMPT = "$ "
_TYPED_S, _THINKING_S = 0.04, 0.6
_FONT_FACE = re.compile(r"@font-face \{\{.*?\}\}", re.DOTALL)


class Event(NamedTuple):
    """What a terminal got, and when."""

    at_s: float
    text: str


def typed(command: Sequence[str], begin_s: float = _THINKING_S) -> Iterator[Event]:
    """The command as somebody types it."""
    yield Event(0.0, PROMPT)
    for i, letter in enumerate(" ".join(command)):
        yield Event(begin_s + i * _TYPED_S, letter)


def played(command: Sequence[str], begin_s: float) -> Iterator[Event]:
    """What the command writes to a terminal of this size, when it writes it."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", HEIGHT, WIDTH, 0, 0))
    environment = {
        **os.environ,
        **SETTINGS,
        "TERM": "xterm-256color",
        "COLUMNS": str(WIDTH),
        "LINES": str(HEIGHT),
    }
    started_s = time.monotonic()
    process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, cwd=ROOT, env=environment)
    os.close(slave)
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    while payload := _read(master):
        yield Event(begin_s + time.monotonic() - started_s, decoder.decode(payload))
    os.close(master)
    if process.wait():
        sys.exit(f"{' '.join(command)} ended with {process.returncode}: nothing was written.")


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # Linux's word for: the other side is closed
        return b""


def cast(events: Sequence[Event], title: str) -> str:
    """An asciicast: a line of JSON for the terminal, then one for each event."""
    header = {"version": 2, "width": WIDTH, "height": HEIGHT, "title": title, "idle_time_limit": 1.5}
    lines = [json.dumps(header), *(json.dumps([round(at_s, 3), "o", text]) for at_s, text in events)]
    return "\n".join(lines) + "\n"


def picture(events: Sequence[Event], title: str) -> str:
    """What stands on the terminal in the end, as SVG."""
    from rich._export_format import CONSOLE_SVG_FORMAT
    from rich.console import Console
    from rich.text import Text

    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    for line in "".join(event.text for event in events).replace("\r\n", "\n").split("\n"):
        # A line that was written over shows what was written last.
        console.print(Text.from_ansi(line.rpartition("\r")[2]))
    # A picture in a README must not ask another server for fonts.
    plain = _FONT_FACE.sub("", CONSOLE_SVG_FORMAT).replace("Fira Code", "ui-monospace, Menlo, Consolas")
    return console.export_svg(title=title, code_format=plain)


def main() -> None:
    """Record, and write both files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "docs", help="folder of the two files")
    folder = parser.parse_args().out
    title = " ".join(COMMAND[:2])
    events = [*typed(COMMAND)]
    events.append(Event(events[-1].at_s + _THINKING_S, "\r\n"))
    events += played([sys.executable, "-m", *COMMAND], events[-1].at_s)
    write_atomically(folder / "demo.cast", cast(events, title).encode())
    write_atomically(folder / "demo.svg", picture(events, title).encode())


if __name__ == "__main__":
    main()
