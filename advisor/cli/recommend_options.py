"""What ``advisor recommend`` asks: of the job, of its data, and how the answer is shown."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from advisor.cli.completion import change_names
from advisor.cli.shared_options import (
    IterationsOption,
    IterationsPerEpochOption,
    LoaderOption,
    SupposeOption,
)
from advisor.core.limits import MAX_ROWS
from advisor.core.values import Scaling

if TYPE_CHECKING:
    from advisor.core.values import Job


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOptions:
    """How much is to be trained, and within which limits."""

    epochs: Annotated[float | None, typer.Option(metavar="N", help="How many epochs to train.")] = None
    iterations: IterationsOption = None
    iterations_per_epoch: IterationsPerEpochOption = None
    budget: Annotated[float | None, typer.Option(metavar="USD", help="For the whole job.")] = None
    deadline: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="Until done, waiting included: 12h, 3d."),
    ] = None
    confidence: Annotated[
        float,
        typer.Option(metavar="P", help="Probability with which budget and deadline must hold."),
    ] = 0.9
    value_of_time: Annotated[
        float | None,
        typer.Option(
            metavar="USD_PER_H",
            help="What an hour until it is done is worth; default: 2.",
        ),
    ] = None
    suppose: SupposeOption = None
    risk: Annotated[
        bool, typer.Option("--risk", help="Keep on the frontier what is slower and dearer, but safer.")
    ] = False

    def job(self) -> Job:
        """The job.

        Raises:
            InputError: the deadline is no duration, or a model cannot be divided so.
        """
        from advisor.cli.times import deadline_s
        from advisor.core.changes import parse_split
        from advisor.core.values import Job

        return Job(
            epochs=self.epochs,
            iterations=self.iterations,
            iterations_per_epoch=self.iterations_per_epoch,
            budget_usd=self.budget,
            deadline_s=deadline_s("--deadline", self.deadline),
            confidence=self.confidence,
            value_of_time_usd_per_h=self.value_of_time,
            risk_counts=self.risk,
            split=parse_split(self.suppose or (), "--suppose"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DataOptions:
    """What is read, moved and fed."""

    dataset_gb: Annotated[
        float | None,
        typer.Option(metavar="GIB", help="Data set (GiB), copied to the machine unless it lies there."),
    ] = None
    data: Annotated[
        str | None,
        typer.Option(metavar="PLACE", help="Where it lies: s3://BUCKET@REGION, gs://..., REGION or local."),
    ] = None
    scaling: Annotated[
        Scaling | None,
        typer.Option(
            case_sensitive=False,
            help="What the script holds when GPUs are added: the batch of one (weak), of all (strong), or"
            " the whole step (unshared).",
            show_default=False,
        ),
    ] = None
    result_gb: Annotated[
        float | None, typer.Option(metavar="GB", help="Result to bring home over the internet.")
    ] = None
    loader_s_per_sample: LoaderOption = None

    def settings(self) -> dict[str, object]:
        """For `settings_with`."""
        return {
            "cloud__dataset_gb": self.dataset_gb,
            "cloud__data": self.data,
            "profile__scaling": self.scaling,
            "cloud__result_gb": self.result_gb,
            "input__loader_s_per_sample": self.loader_s_per_sample,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewOptions:
    """What is shown of an answer."""

    explain: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Show one option line by line: its id or row number."),
    ] = None
    curve: Annotated[
        str | None,
        typer.Option(
            metavar="PLAN",
            help="Show a machine over its numbers of GPUs, and where more stop paying: L4, 'aws L4 spot'.",
        ),
    ] = None
    what_if: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CHANGE",
            help="What a change of the script would bring: all, bf16, fused, ... Repeatable. By default one"
            " line on the best of them.",
            autocompletion=change_names,
        ),
    ] = None
    no_what_if: Annotated[
        bool, typer.Option("--no-what-if", help="Not even the line on the best change.")
    ] = False
    patch: Annotated[
        bool,
        typer.Option(
            "--patch",
            help="Print these changes as a diff of the script; of all, those that surely save time.",
        ),
    ] = False
    top: Annotated[int, typer.Option(metavar="N", help="Rows to show.", min=1, max=MAX_ROWS)] = 15
    all_: Annotated[bool, typer.Option("--all", help="Show every row.")] = False
    plot: Annotated[
        bool, typer.Option("--plot", help="Draw time over cost in the terminal, instead of the table.")
    ] = False
    html: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the answer to this page, too, with a chart to point at."),
    ] = None

    @property
    def changes(self) -> tuple[str, ...] | None:
        """Names of the changes to judge; None for the best of one line.

        Raises:
            InputError: changes are wanted and not.
        """
        from advisor.core.errors import InputError

        if self.no_what_if and self.what_if:
            raise InputError("--what-if and --no-what-if contradict each other: leave one out.")
        return () if self.no_what_if else tuple(self.what_if) if self.what_if else None

    def check(self) -> None:
        """Refuse what cannot be shown together.

        Raises:
            InputError: a patch is wanted, and something else in its place.
        """
        from advisor.core.errors import InputError

        if self.patch and (self.explain is not None or self.plot):
            raise InputError("--patch prints a diff alone: leave --explain and --plot out.")

    @property
    def num_rows(self) -> int | None:
        """Rows to show; None for all."""
        return None if self.all_ else self.top
