"""What Vega draws of a specification, where no browser does: SVG for pages, PNG for mail."""

from __future__ import annotations

import json
import re

from advisor.report.document import Chart
from advisor.report.writers.vega import PICTURE, STILL_WIDTH, Spec, spec_of

# Letters of two UTF-16 units, such as an emoji: where vl-convert cuts a label within one, it raises an error.
_TWO_UNITS = re.compile("[\U00010000-\U0010ffff]")


def still(spec: Spec) -> str:
    """What a specification draws, as an SVG that nothing moves in.

    A control character in any of its texts would end the process: vl-convert 1.9 aborts.
    """
    import vl_convert

    return str(vl_convert.vegalite_to_svg(_sized(spec)))


def svg(chart: Chart) -> str:
    """A picture that stands alone."""
    return still(spec_of(chart, PICTURE))


def png(chart: Chart, *, scale: float = 2.0) -> bytes:
    """A picture for mail, ``scale`` pixels for each of its points."""
    import vl_convert

    return bytes(vl_convert.vegalite_to_png(_sized(spec_of(chart, PICTURE)), scale=scale))


def _sized(spec: Spec) -> str:
    """As wide as a mail is, where nothing contains it, and without what is only there to be pointed at."""
    layers = [layer for layer in spec["layer"] if layer["mark"].get("opacity") != 0]
    sized = json.dumps({**spec, "width": STILL_WIDTH, "layer": layers}, ensure_ascii=False)
    return _TWO_UNITS.sub("\N{REPLACEMENT CHARACTER}", sized)
