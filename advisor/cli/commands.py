"""All commands by name."""

from typing import Annotated

import typer

from advisor.cli.agents import mcp
from advisor.cli.common import TRUSTS_PROJECT, ScriptCommand
from advisor.cli.config import app as config_app
from advisor.cli.config import doctor, init, trust
from advisor.cli.delivering import app as deliver_app
from advisor.cli.help import PlainGroup, option
from advisor.cli.launch import launch
from advisor.cli.logs import queue_app, spot_app
from advisor.cli.measure import calibrate, measure
from advisor.cli.policy import app as policy_app
from advisor.cli.prices import catalog_app, gpus, prices_app
from advisor.cli.recipe import app as recipe_app
from advisor.cli.recommend import compare, diff, predict, profile, recommend
from advisor.cli.report import report
from advisor.cli.run import app as run_app
from advisor.cli.schedule import app as schedule_app
from advisor.cli.serve import serve
from advisor.cli.sweep import sweep

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
        bool, option("Print the version.", "--version", callback=_version, is_eager=True)
    ] = False,
    trust_project: Annotated[
        bool,
        option(
            "Trust all of the project's .advisor.yaml this once, as ADVISOR_TRUST_PROJECT=1 does.",
            "--trust-project",
        ),
    ] = False,
) -> None:
    TRUSTS_PROJECT.set(trust_project)


app.command("recommend", cls=ScriptCommand)(recommend)
app.command("profile", cls=ScriptCommand)(profile)
app.command("predict", cls=ScriptCommand)(predict)
app.command("compare", cls=ScriptCommand)(compare)
app.command("diff", cls=ScriptCommand)(diff)
app.command("report")(report)
app.command("gpus")(gpus)
app.command("measure")(measure)
app.command("calibrate")(calibrate)
app.command("doctor")(doctor)
app.command("init")(init)
app.command("trust")(trust)
app.add_typer(prices_app, name="prices")
app.add_typer(queue_app, name="queue")
app.add_typer(spot_app, name="spot")
app.add_typer(recipe_app, name="recipe")
app.command("launch")(launch)
app.command("mcp")(mcp)
app.command("serve")(serve)
app.command("sweep")(sweep)
app.add_typer(run_app, name="run")
app.add_typer(schedule_app, name="schedule")
app.add_typer(catalog_app, name="catalog")
app.add_typer(policy_app, name="policy")
app.add_typer(deliver_app, name="deliver")
app.add_typer(config_app, name="config")
