"""``advisor sweep``: what to take for all jobs of a grid, what moved since the last time, and who answers.

The process that answers, one request after another in lines of JSON, is started by
`advisor.service.sweep_engines`, here or on a worker, as ``python -m advisor.cli.sweep``.
"""

from __future__ import annotations

import io
import json
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from advisor.cli.common import option, sweep_settings
from advisor.cli.listening import TERMINAL
from advisor.cli.options import AS_TABLE, OutputOptions
from advisor.core.errors import AdvisorError, StoreError
from advisor.core.processes import ANSWER_FILE_VARIABLE
from advisor.report.plain import print_error
from advisor.report.printing import Format, SweepView, print_document

if TYPE_CHECKING:
    from advisor.service.sweeping import SweepBasis


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
    output: OutputOptions = AS_TABLE,
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
    chosen = output.form
    has_capacity = SweepView.CAPACITY is show or Format.JSON is chosen or ANSWER_FILE_VARIABLE in os.environ
    fleet = fleet_of(swept, terms, config.settings.store if has_capacity else None)
    TERMINAL.warn(fleet.warnings)
    print_document(sweep_document(fleet, show), chosen)
    if not any(one.advice.is_final for one in swept):
        raise AdvisorError("no combination has an answer: mend what is said of them and repeat the command.")


def answered(line: str) -> dict[str, Any]:
    """The reply to a request, as `sweep_engines.Children.answer` says.

    The database of prices may be away for a minute. An answer counts if the world was the same before and
    after.
    """
    from advisor.service.sweeping import WAITS_S, Advice

    facts = json.loads(line)
    for wait_s in (*WAITS_S, 0):
        try:
            return _reply(facts)
        except StoreError as error:
            why = str(error)
            time.sleep(wait_s)
    return {"advice": asdict(Advice(error=why, is_final=False))}


def _world(*, offline: bool) -> SweepBasis:
    from advisor.service.sweeping import world_of

    config = sweep_settings(offline=offline)
    return world_of(config.pricing, config.settings.policy, config.settings.model_dump_json())


def _reply(facts: Mapping[str, Any]) -> dict[str, Any]:
    from advisor.service.sweeping import Request, SweepBasis, SweepJob, advice_of, key_of, rests_on, words_of

    job = SweepJob(**{**facts["job"], "options": tuple(facts["job"]["options"])})
    request = Request(**{**facts, "job": job, "world": SweepBasis(**facts["world"])})
    try:
        os.chdir(request.folder)
        here = _world(offline=request.offline)
        if why := request.world.differs(here):
            return {"refused": why}
        if key_of(job, rests_on(job, here)) != request.key:
            return {"refused": f"files of {job.subject} differ there"}
    except StoreError:
        raise
    except (OSError, AdvisorError) as error:
        return {"refused": f"it needs the same files at the same place: {error}"}
    advice = advice_of(*_said(words_of(request)))
    if why := here.differs(_world(offline=request.offline)):
        return {"refused": f"{why} any more"}
    return {"advice": asdict(advice)}


def _said(words: Sequence[str]) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a command line, run in this process."""
    from advisor.cli import app
    from advisor.report.words import error_text

    out, err = io.StringIO(), io.StringIO()
    code: object = 0
    with redirect_stdout(out), redirect_stderr(err):
        try:
            app(list(words))
        except AdvisorError as error:
            print_error(error_text(error))
            code = error.exit_code
        except SystemExit as end:
            code = end.code
    return code if isinstance(code, int) else 0, out.getvalue(), err.getvalue()


def main() -> None:
    """Answer until there is nothing more to read."""
    requests, replies = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    # What a command and its programs read is nothing, and what they print is no reply.
    with open(os.devnull) as null:  # noqa: PTH123 - its number
        os.dup2(null.fileno(), 0)
    os.dup2(2, 1)
    os.environ["ADVISOR_PRICES__REFRESH"] = "never"
    os.environ.pop(ANSWER_FILE_VARIABLE, None)
    for line in requests:
        print(json.dumps(answered(line)), file=replies, flush=True)


if __name__ == "__main__":
    main()
