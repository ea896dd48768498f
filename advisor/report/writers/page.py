"""A document as a page of its own: one file that opens offline, light or dark, on paper and on a phone."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from importlib import metadata, resources
from itertools import takewhile
from pathlib import Path

from markupsafe import Markup

from advisor.core.files import write_atomically
from advisor.report.cells import day_text
from advisor.report.document import Block, Chart, Document, Section
from advisor.report.plain import Shown
from advisor.report.writers.html import BlockWriter
from advisor.report.writers.templating import ours, templates

_NAMELESS = "advisor"


def to_page(document: Document) -> Shown:
    """A whole HTML document; what its texts say is shown and never run."""
    blocks = document.blocks if document.page is None else document.page()
    lead = [block.title for block in takewhile(_is_sentence, blocks) if isinstance(block, Section)]
    style, scripts = _template("page.css"), list(_scripts(blocks))
    page = templates().get_template("page.html.j2")
    return Shown(
        page.render(
            title=document.title or _NAMELESS,
            lead=lead,
            body=BlockWriter(draw=_figure, inline=False, heading=2).html(blocks[len(lead) :]),
            style=ours(style),
            scripts=map(ours, scripts),
            policy=_policy(style, scripts),
            version=metadata.version("gpu-advisor"),
            day=day_text(datetime.now(UTC)),
        )
    )


def _is_sentence(block: Block) -> bool:
    return isinstance(block, Section) and not block.entries


def _figure(chart: Chart) -> Markup:
    from advisor.report.writers.figure import figure_html

    return figure_html(chart)


def _policy(style: str, scripts: Sequence[str]) -> str:
    """Nothing is loaded or sent, and nothing runs but the scripts that we wrote."""
    allowed = " ".join(map(_hash, scripts))
    return (
        f"default-src 'none'; script-src {allowed}; style-src {_hash(style)}; base-uri 'none';"
        " form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _scripts(blocks: Iterable[Block]) -> Iterator[str]:
    from advisor.report.writers.pictures import can_draw

    if any(isinstance(block, Chart) for block in blocks) and can_draw():
        runtime = vega_runtime()
        if runtime is not None:
            yield runtime
    yield _template("page.js")


@cache
def _template(name: str) -> str:
    return resources.files("advisor.report").joinpath("templates", name).read_text("utf-8")


def vega_runtime() -> str | None:
    """Vega, Vega-Lite and Vega-Embed as one script; made once for each version, which takes seconds.

    None where memory is too scarce for it.
    """
    path = _runtime_path()
    with suppress(OSError):
        return path.read_text("utf-8")
    from advisor.report.writers.pictures import javascript

    bundle = javascript("window.vegaEmbed = vegaEmbed;")
    if bundle is None:
        return None
    script = bundle.replace("</script", "<\\/script")
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, script.encode(), private=True)
    return script


def _runtime_path() -> Path:
    import platformdirs

    version = metadata.version("vl-convert-python")
    return platformdirs.user_cache_path("advisor") / f"vega-{version}.js"
