"""All commands by name."""

from __future__ import annotations

from typing import Annotated

import typer

from advisor.cli import (
    calibrate,
    catalog,
    config,
    doctor,
    gpus,
    measure,
    policy,
    predict,
    prices,
    profile,
    queue,
    recommend,
    run,
    spot_rates,
    trust,
)
from advisor.cli.common import TRUSTS_PROJECT, ScriptCommand
from advisor.cli.usage import PlainGroup

# Rich help pages would cost a third of the start-up time.
app = typer.Typer(
    name="advisor",
    cls=PlainGroup,
    help="Where should this PyTorch training script run? Predicted time, real prices, one ranked answer.",
    rich_markup_mode=None,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _version(show: bool) -> None:
    if show:
        from advisor import __version__

        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[  # noqa: ARG001 - its callback prints it
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
    trust_project: Annotated[
        bool,
        typer.Option(
            "--trust-project",
            help="Let all of the project's .advisor.yaml count this once, as ADVISOR_TRUST_PROJECT=1 does.",
        ),
    ] = False,
) -> None:
    TRUSTS_PROJECT.set(trust_project)


app.command("recommend", cls=ScriptCommand)(recommend.recommend)
app.command("profile", cls=ScriptCommand)(profile.profile)
app.command("predict", cls=ScriptCommand)(predict.predict)
app.command("gpus")(gpus.gpus)
app.command("measure")(measure.measure)
app.command("calibrate")(calibrate.calibrate)
app.command("doctor")(doctor.doctor)
app.command("init")(config.init)
app.command("trust")(trust.trust)
app.add_typer(prices.app, name="prices")
app.add_typer(queue.app, name="queue")
app.add_typer(spot_rates.app, name="spot")
app.add_typer(run.app, name="run")
app.add_typer(catalog.app, name="catalog")
app.add_typer(policy.app, name="policy")
app.add_typer(config.app, name="config")
