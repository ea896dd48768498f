"""What Vega draws of a specification, where no browser does: SVG for pages, PNG for mail.

Another process draws, which is started with the first picture and ends with this one.
"""

import atexit
import base64
import json
import os
import re
import subprocess
import sys
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from threading import Lock

from advisor.core import processes
from advisor.report.document import Chart
from advisor.report.writers.vega import PICTURE, STILL_WIDTH, Spec, spec_of

# Letters of two UTF-16 units, such as an emoji: where vl-convert cuts a label within one, it raises an error.
_TWO_UNITS = re.compile("[\U00010000-\U0010ffff]")
_DRAWING = Path(__file__).with_name("drawing.py")
_one_at_a_time = Lock()


TOO_LITTLE_MEMORY = "There was too little memory to draw this chart."
NOT_INSTALLED = "Install charts to see this one drawn: pip install 'gpu-advisor[charts]'"


def can_draw() -> bool:
    """Whether the extra ``charts`` is installed."""
    return find_spec("vl_convert") is not None


def still(spec: Spec) -> str | None:
    """What a specification draws, as an SVG that nothing moves in; None where memory is too scarce.

    A control character in any of its texts would end the process that draws: vl-convert 1.9 aborts.
    """
    return _drawn("svg", _sized(spec))


def png(chart: Chart, *, scale: float = 2.0) -> bytes | None:
    """A picture for mail, ``scale`` pixels for each of its points."""
    drawn = _drawn("png", _sized(spec_of(chart, PICTURE)), scale)
    return None if drawn is None else base64.b64decode(drawn)


def javascript(code: str) -> str | None:
    """A script with Vega, Vega-Lite and Vega-Embed in it."""
    return _drawn("javascript", code)


def _drawn(*request: object) -> str | None:
    with _one_at_a_time:
        painter = _painter()
        assert painter.stdin is not None and painter.stdout is not None, "asked for"  # noqa: S101, PT018
        with suppress(BrokenPipeError):
            painter.stdin.write(json.dumps(request).encode() + b"\n")
            painter.stdin.flush()
        answer = painter.stdout.readline()
        if not answer:
            painter.communicate()
            _painter.cache_clear()
            return None
        drawn: str | None = json.loads(answer)
        return drawn


@cache
def _painter() -> subprocess.Popen[bytes]:
    """The process that draws, until it ends."""
    painter = processes.start(
        [sys.executable, "-P", _DRAWING],
        environment=os.environ | processes.search_path(os.environ),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        # Ctrl-C is for this process.
        start_new_session=True,
    )
    atexit.register(_end, painter)
    return painter


def _end(painter: subprocess.Popen[bytes]) -> None:
    painter.kill()
    painter.communicate()


def _sized(spec: Spec) -> str:
    """As wide as a mail is, where nothing contains it, and without what is only there to be pointed at."""
    layers = [layer for layer in spec["layer"] if layer["mark"].get("opacity") != 0]
    sized = json.dumps({**spec, "width": STILL_WIDTH, "layer": layers}, ensure_ascii=False)
    return _TWO_UNITS.sub("\N{REPLACEMENT CHARACTER}", sized)
