"""``advisor sweep``: what to take for all jobs of a grid, and what moved since the last time."""

import os
from pathlib import Path
from typing import Annotated

import typer

from advisor.cli.common import chosen_format, option, sweep_settings
from advisor.cli.listening import TERMINAL
from advisor.cli.options import FormatOption, JsonOption
from advisor.core.errors import AdvisorError
from advisor.core.processes import ANSWER_FILE_VARIABLE
from advisor.report.printing import Format, SweepView, print_document


def sweep(
    grid: Annotated[
        Path,
        typer.Argument(metavar="GRID", help="A YAML file: subjects, arguments, options (docs/sweep.md)."),
    ],
    workers: Annotated[
        int | None, option("Answers at once; default: a process for each core.", metavar="N", min=1, max=256)
    ] = None,
    folder: Annotated[
        Path | None, option("Where answers are kept; default: GRID.sweep beside the grid.", metavar="FOLDER")
    ] = None,
    engine: Annotated[
        str, option("Where to compute: this machine, or workers of dask://HOST:PORT.", metavar="ENGINE")
    ] = "local",
    show: Annotated[SweepView, option("What to print; JSON has all of it.")] = SweepView.JOBS,
    parquet: Annotated[bool, option("Also write answers.parquet into the folder.", "--parquet")] = False,
    offline: Annotated[bool, option("Never touch the network.", "--offline")] = False,
    output: FormatOption = Format.TABLE,
    as_json: JsonOption = False,
) -> None:
    """Recommend a machine for each combination of scripts, arguments and limits; say what moved.

    Answers are kept by what they rest on (files, version, settings, prices): another sweep computes what
    changed, and one that was interrupted goes on.
    """
    from advisor.report.sweeps import sweep_document, sweep_parquet
    from advisor.service.fleet import fleet_of
    from advisor.service.sweep_engines import engine_for
    from advisor.service.sweeping import Sweep, read_grid, world_of

    terms, jobs = read_grid(grid)
    config = sweep_settings(offline=offline)
    made = Sweep(
        folder=folder or grid.with_name(f"{grid.name}.sweep"),
        engine=engine_for(engine, workers or os.cpu_count() or 1),
        offline=offline,
        world=world_of(config.pricing, config.settings.policy, config.settings.model_dump_json()),
    )
    swept = made.sweep(jobs, TERMINAL)
    if parquet:
        made.write("answers.parquet", sweep_parquet(swept))
    chosen = chosen_format(output, as_json)
    has_capacity = SweepView.CAPACITY is show or Format.JSON is chosen or ANSWER_FILE_VARIABLE in os.environ
    fleet = fleet_of(swept, terms, config.settings.store if has_capacity else None)
    TERMINAL.warn(fleet.warnings)
    print_document(sweep_document(fleet, show), chosen)
    if not any(one.advice.is_final for one in swept):
        raise AdvisorError("no combination has an answer: mend what is said of them and repeat the command.")
