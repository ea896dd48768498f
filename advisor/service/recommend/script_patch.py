"""The changes that were asked about, written into the script."""

from __future__ import annotations

import tokenize
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.core.changes import ALL
from advisor.core.errors import InputError
from advisor.core.findings.about_estimates import NotPatched
from advisor.core.values import Recommendation, Trace
from advisor.service.traces import holds_data

if TYPE_CHECKING:
    from advisor.edits.patch import Patch
    from advisor.service.listening import Listener
    from advisor.service.recommend.question import RecommendRequest


def check_patchable(request: RecommendRequest, listener: Listener) -> None:
    """Refuse what cannot be patched, before anything is profiled.

    Raises:
        InputError: no changes were named, or the source is no script.
    """
    patch, source = listener.name_of("patch"), request.trace.source
    if not request.what_if:
        raise InputError(f"{patch} needs {listener.name_of('what_if')}: which changes?")
    if isinstance(source, Trace) or holds_data(source):
        raise InputError(f"{patch} changes a script, and a saved trace is none: give the script itself.")


def script_patch(request: RecommendRequest, ranked: Recommendation) -> Patch:
    """The diff of the changes that were named; of all, those that save time with odds of 9 in 10.

    Raises:
        InputError: the script cannot be read or parsed.
    """
    from advisor.edits.patch import patch_of

    source = request.trace.source
    if isinstance(source, Trace):
        raise InputError("a trace is no script: it cannot be patched.")
    helpful = {gain.change for gain in ranked.gains if gain.saved_share and gain.saved_share.p10 > 0}
    names = [gain.change for gain in ranked.gains]
    wanted = [name for name in names if ALL not in (request.what_if or ()) or name in helpful]
    patch = patch_of(_text(source), str(source), wanted)
    left = {
        gain.change: gain.why_not or NotPatched(why="not-helpful")
        for gain in ranked.gains
        if gain.change not in wanted
    }
    return replace(patch, refused={**patch.refused, **left})


def _text(script: Path) -> str:
    try:
        # In the encoding that the script itself names, its line ends kept.
        with script.open("rb") as raw:
            encoding, _ = tokenize.detect_encoding(raw.readline)
        return script.read_bytes().decode(encoding)
    except (OSError, SyntaxError, UnicodeDecodeError) as error:
        raise InputError(f"{str(script)!r} cannot be read, so it cannot be patched: {error}.") from error
