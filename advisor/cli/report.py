"""``advisor report``: what was planned, what it cost, where money leaks and what to do."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

from advisor.cli.common import moment_or_duration_s, option, settings_with
from advisor.cli.listening import TERMINAL
from advisor.cli.options import JsonOption, asked
from advisor.cli.sending import PreviewOption, ToOption, check_delivered, outlet
from advisor.core.errors import InputError
from advisor.core.files import check_can_be_file, write_atomically
from advisor.report.plain import Shown, print_text
from advisor.report.printing import Format, text_of

if TYPE_CHECKING:
    from advisor.report.document import Document
    from advisor.review.team_review import TeamReview
    from advisor.service.reporting import ReportRequest


class ReportFormat(StrEnum):
    """What ``--format`` takes here."""

    TABLE = "table"
    HTML = "html"
    MARKDOWN = "markdown"
    CSV = "csv"
    JSON = "json"
    FOCUS = "focus"
    SLACK = "slack"


# The first is what a file of this name holds, if nothing else is said.
_FORMS_OF_SUFFIX = {
    "": (ReportFormat.TABLE, *ReportFormat),
    ".txt": (ReportFormat.TABLE,),
    ".html": (ReportFormat.HTML,),
    ".htm": (ReportFormat.HTML,),
    ".md": (ReportFormat.MARKDOWN,),
    ".csv": (ReportFormat.CSV, ReportFormat.FOCUS),
    ".json": (ReportFormat.JSON, ReportFormat.SLACK),
}


def form_of(wanted: ReportFormat | None, out: Path | None) -> ReportFormat:
    """The format of a report: as asked, else what the file's name says, else the table.

    Raises InputError: the name says another, or none that we know.
    """
    suffix = "" if out is None else out.suffix.lower()
    forms = _FORMS_OF_SUFFIX.get(suffix)
    if forms is None and wanted is None:
        raise InputError(
            f"--out {str(out)!r}: no format is known by {suffix!r}: end the name in"
            f" {', '.join(filter(None, _FORMS_OF_SUFFIX))}, or say which with --format."
        )
    if forms and wanted is not None and wanted not in forms:
        raise InputError(
            f"--out {str(out)!r} is a name for {forms[0]}, and --format says {wanted}: leave --format out,"
            " or give the file another name."
        )
    return wanted or (forms or (ReportFormat.TABLE,))[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodOptions:
    """Of which time and whom, and what it is held against."""

    since: str = asked("A date, or how far back: 2026-11-01, 7d, 365d.", metavar="TIME", default="7d")
    until: str | None = asked("The end, in the same forms; default: now.", metavar="TIME")
    team: str | None = asked("Projects of this team alone (report.teams).", metavar="NAME")
    project: str | None = asked("This project alone.", metavar="NAME")
    policy: list[Path] | None = asked("A policy with budgets. Repeatable.", metavar="FILE")
    bills: list[Path] | None = asked(
        "What clouds billed: FOCUS, or Google's export. Repeatable.", metavar="FILE"
    )

    fail_above: str | None = asked(
        "Exit with 5 once more of a monthly limit is spent: 80%.", metavar="PERCENT"
    )

    def request(self) -> ReportRequest:
        """The report to make. Raises InputError: a time is none."""
        from advisor.service.reporting import ReportRequest

        return ReportRequest(
            since=moment_or_duration_s("--since", self.since),
            until=None if self.until is None else moment_or_duration_s("--until", self.until),
            team=self.team,
            project=self.project,
            policies=tuple(self.policy or ()),
            bills=tuple(self.bills or ()),
        )

    @property
    def asked(self) -> str:
        """What makes two reports the same question."""
        return f"{self.since} to {self.until} by {', '.join(map(str, self.policy or ()))}"


def report(
    *,
    period: PeriodOptions,
    cost_explorer: Annotated[
        bool | None,
        option(
            "Ask AWS what it billed, for 0.01 USD a call.",
            "--cost-explorer/--no-cost-explorer",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        ReportFormat | None,
        option(
            "How to write it; default: table, or what the name of --out ends in.",
            "--format",
            "-f",
            case_sensitive=False,
        ),
    ] = None,
    as_json: JsonOption = False,
    out: Annotated[Path | None, option("Write it there instead of printing it.", metavar="FILE")] = None,
    to: ToOption = None,
    preview: PreviewOption = False,
) -> None:
    """Report a team's spending: plans, costs, predictions, prices, budgets, leaks and savings.

    Exits with 5 above --fail-above, when the report is written and sent.
    """
    from advisor.service.recommend.comparing import parse_share
    from advisor.service.reporting import check_budgets, report_of

    request = period.request()
    most = None if period.fail_above is None else parse_share("--fail-above", period.fail_above)
    if as_json and output not in (None, ReportFormat.JSON):
        raise InputError(f"--json and --format {output} contradict each other: leave one out.")
    form = form_of(ReportFormat.JSON if as_json else output, out)
    if out is not None:
        check_can_be_file(out, "the report")
    config = settings_with(report__cost_explorer=cost_explorer)
    outbound = outlet("report", to, config.settings, preview=preview)
    if outbound.channels:
        if out is not None:
            raise InputError("--out writes the report to a file and --to sends it: give one of them.")
        if form in (ReportFormat.FOCUS, ReportFormat.SLACK):
            raise InputError(
                f"a channel chooses its own form: leave --format {form.value} out, or leave out --to."
            )
    review = report_of(request, config, TERMINAL)
    document = _document(review, as_focus=form is ReportFormat.FOCUS)
    if outbound.channels:
        summary = Format(form.value)
        check_delivered(
            outbound.hand_out(
                document, summary, subject=document.subject or document.title, asked=period.asked
            )
        )
    else:
        _hand_out(document, form, out)
    if review is not None and most is not None:
        check_budgets(review.budgets, most)


def _hand_out(document: Document, form: ReportFormat, out: Path | None) -> None:
    """To stdout or into a file; warnings of what only programs read go to stderr."""
    if form in (ReportFormat.CSV, ReportFormat.FOCUS, ReportFormat.JSON):
        TERMINAL.warn(cast("list[str]", document.facts["warnings"]))
    if form is ReportFormat.FOCUS and out is not None and out.suffix == ".parquet":
        from advisor.report.focus_export import to_parquet

        _write(out, to_parquet(document))
        return
    text = _text(document, form)
    if out is None:
        print_text(text)
    else:
        _write(out, f"{text}\n".encode())


def _document(review: TeamReview | None, *, as_focus: bool) -> Document:
    from advisor.report.review import first_document, review_document

    if review is None:
        return first_document()
    if as_focus:
        from advisor.report.focus_export import focus_document

        return focus_document(review)
    return review_document(review)


def _text(document: Document, form: ReportFormat) -> Shown:
    if form is ReportFormat.SLACK:
        from advisor.report.writers.mail import to_slack

        return Shown(json.dumps({"blocks": to_slack(document, document.title)}, indent=2))
    # A FOCUS data set is a CSV file of other rows.
    return text_of(document, Format.CSV if form is ReportFormat.FOCUS else Format(form.value))


def _write(path: Path, payload: bytes) -> None:
    try:
        write_atomically(path, payload)
    except OSError as error:
        raise InputError(f"cannot write {str(path)!r}: {error.strerror or error}.") from error
    TERMINAL.note(f"wrote {str(path)!r}")
