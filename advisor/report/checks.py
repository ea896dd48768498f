"""Findings of ``advisor doctor``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from advisor.report.plain import print_text, stacked
from advisor.report.rows import Format, print_rows, to_json
from advisor.service.checks import Check

_STYLES = {"ok": "", "note": "yellow", "broken": "bold red"}


def print_checks(checks: Sequence[Check], output: Format) -> None:
    """Findings to stdout."""
    if output is Format.JSON:
        print_text(to_json({"checks": [asdict(check) for check in checks]}))
        return
    rows = [[check.name, check.state, stacked(*check.detail.split("\n"))] for check in checks]
    styles = [_STYLES[check.state] for check in checks]
    print_rows(("Check", "State", "Detail"), rows, output, styles=styles)
