"""What ``advisor run`` asks of a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from advisor.cli.completion import gpu_names, provider_names
from advisor.core.errors import InputError
from advisor.core.values import Market, RunStatus

if TYPE_CHECKING:
    from advisor.service.ledger import RunRequest

ProjectOption = Annotated[
    str | None, typer.Option(metavar="NAME", help="Whose budget it is; default: none.", show_default=False)
]


PlanOption = Annotated[
    str | None, typer.Option(metavar="ID", help="Id of an option, such as aws/g5.xlarge/use1-az1/spot.")
]
NoteOption = Annotated[str, typer.Option(metavar="TEXT", help="Anything worth remembering.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class RanOptions:
    """A run that has ended: where it ran, how long, and what it cost."""

    start: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="When it started, such as 2026-11-01T09:30+01:00; else UTC."),
    ] = None
    duration: Annotated[
        str | None, typer.Option(metavar="DURATION", help="How long it ran, such as 7h30m.")
    ] = None
    cost: Annotated[
        float | None,
        typer.Option(metavar="USD", help="What was or will be billed, before tax; left out, it is unknown."),
    ] = None
    status: Annotated[
        RunStatus | None,
        typer.Option(
            metavar="STATUS",
            help="How it ended: finished (default), failed, interrupted, lost.",
            case_sensitive=False,
        ),
    ] = None
    recommendation: Annotated[
        str | None,
        typer.Option(metavar="ID", help="What `recommend --record` printed; tells plan, script and project."),
    ] = None
    plan: PlanOption = None
    provider: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="A cloud, a cluster of the settings, or local.",
            autocompletion=provider_names,
        ),
    ] = None
    gpu: Annotated[
        str | None,
        typer.Option(metavar="GPU[:COUNT]", help="One GPU, such as L4:8.", autocompletion=gpu_names),
    ] = None
    market: Annotated[
        Market | None,
        typer.Option(metavar="MARKET", help="On what terms it was rented.", case_sensitive=False),
    ] = None
    script: Annotated[str | None, typer.Option(metavar="NAME", help="What ran.")] = None
    project: ProjectOption = None
    note: NoteOption = ""
    run_id: Annotated[
        str | None,
        typer.Option("--id", metavar="ID", help="An id of yours, so that repeating changes nothing."),
    ] = None

    def request(self) -> RunRequest:
        """The run to enter.

        Raises:
            InputError: nobody says when it started and how long it took.
        """
        from advisor.cli.times import duration_s, moment
        from advisor.service.ledger import RunRequest

        if self.start is None or self.duration is None:
            raise InputError("when did it run, and how long? Give --start and --duration, or --receipt FILE.")
        return RunRequest(
            started_at=moment("--start", self.start),
            duration_s=duration_s("--duration", self.duration),
            cost_usd=self.cost,
            status=self.status,
            recommendation=self.recommendation,
            plan=self.plan,
            provider=self.provider,
            gpu=self.gpu,
            market=self.market,
            script=self.script,
            project=self.project,
            note=self.note,
            run_id=self.run_id,
        )
