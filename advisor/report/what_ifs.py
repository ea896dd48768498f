"""What changes of the script bring, as a table: the surest first, then those that do not apply and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

from advisor.core.units import format_duration
from advisor.core.values import ChangeGain, Interval, Recommendation
from advisor.report.cells import CENTS, PLAIN, Cell, Worded
from advisor.report.document import Column, Row, Table, Tone
from advisor.report.options import where
from advisor.report.words import finding_json, sentence

COLUMNS = (
    Column("Change", wraps=False),
    Column("Training saved", PLAIN, wraps=False),
    Column("Rent saved", CENTS, wraps=False),
    Column("Of a sample's time", wraps=False),
    Column("Odds", wraps=False),
    Column("Then"),
)


def gains_table(recommendation: Recommendation) -> Table:
    """A row for each change that was asked for."""
    rows = tuple(Row(_cells(gain), _tone(gain)) for gain in recommendation.gains)
    return Table(columns=COLUMNS, rows=rows, caption="What if", keeps_words=False)


def _tone(gain: ChangeGain) -> Tone:
    if gain.saved_share is None:
        return Tone.FAINT
    return Tone.GOOD if gain.saved_share.p10 > 0 else Tone.PLAIN


def _cells(gain: ChangeGain) -> tuple[Cell, ...]:
    if gain.saved_share is None:
        return gain.change, None, None, None, None, _then(gain)
    share = Worded(_percent(gain.saved_share), gain.saved_share.p50)
    odds = None if gain.p_faster is None else Worded(f"{gain.p_faster:.0%}", gain.p_faster)
    return gain.change, _signed(gain.saved_s), gain.saved_usd, share, odds, _then(gain)


def _signed(saved_s: float | None) -> Worded | None:
    if saved_s is None:
        return None
    return Worded(f"{'-' if saved_s < 0 else ''}{format_duration(abs(saved_s))}", saved_s)


def _percent(share: Interval) -> str:
    """``46 % (31 .. 61)``: the median, and within which 8 of 10 lie."""
    return f"{share.p50 * 100:.0f} % ({share.p10 * 100:.0f} .. {share.p90 * 100:.0f})"


def _then(gain: ChangeGain) -> str:
    why = "" if gain.why_not is None else sentence(gain.why_not)
    move = "" if gain.instead is None else f"would be recommended: {where(gain.instead)}"
    return "; ".join(filter(None, (why, move)))


def gain_json(gain: ChangeGain) -> Mapping[str, object]:
    """One change as a member of ``what_ifs``, see docs/json.md."""
    return {
        "change": gain.change,
        "option": None if gain.option is None else gain.option.plan.id,
        "instead": None if gain.instead is None else gain.instead.plan.id,
        "saved_s": gain.saved_s,
        "saved_usd": gain.saved_usd,
        "saved_share": None if gain.saved_share is None else asdict(gain.saved_share),
        "p_faster": gain.p_faster,
        "why_not": None if gain.why_not is None else sentence(gain.why_not),
        "why_not_finding": None if gain.why_not is None else finding_json(gain.why_not),
    }
