"""All commands by name."""

from functools import cache
from importlib import import_module
from typing import Annotated

import typer

from advisor.cli.common import TRUSTS_PROJECT, Click, LazyCommands, PlainGroup, ScriptCommand, option

COMMANDS = {
    "recommend": (
        "recommend:recommend",
        "Rank where to run a training script: this machine, your cluster, AWS and GCP.",
    ),
    "profile": (
        "recommend:profile",
        "Run a script until one steady iteration is known, with or without a GPU, and write it to a file.",
    ),
    "predict": (
        "recommend:predict",
        "Predict time per iteration and memory of a script on GPUs; all of the catalog by default.",
    ),
    "compare": (
        "recommend:compare",
        "Show two plans for a job line by line, and say what decides between them.",
    ),
    "diff": (
        "recommend:diff",
        "Say what a change of a script costs: dollars a run, memory, and which operators did it.",
    ),
    "report": (
        "report:report",
        "Report a team's spending: plans, costs, predictions, prices, budgets, leaks and savings.",
    ),
    "gpus": ("prices:gpus", "Show, filter and compare the GPUs of the catalog."),
    "measure": (
        "config:measure",
        "Measure kernels on this machine's GPU, some 1,700 in about ten minutes, and keep them in a file.",
    ),
    "calibrate": (
        "config:calibrate",
        "Measure some fifty kernels in about a minute, and predict this GPU by what it reached from now on.",
    ),
    "doctor": ("config:doctor", "Check this installation; exits with 1 if the main job cannot work."),
    "init": ("config:init", "Write a first settings file, every line commented out and explained."),
    "trust": ("config:trust", "Let all of a project's .advisor.yaml count, as long as it stays as it is."),
    "prices": (
        "prices:prices_app",
        "What is for rent, cheapest first; live prices, their history and their age.",
    ),
    "queue": ("logs:queue_app", "How long jobs wait in a cluster's queue, from its job log."),
    "spot": ("logs:spot_app", "How often spot machines go away, from a log of them."),
    "recipe": ("recipe:app", "Training scripts for who has none yet: docs/recipes.md."),
    "launch": (
        "run:launch",
        "Start a job file that `advisor recommend --emit` wrote, by the tool that it is for.",
    ),
    "mcp": (
        "agents:mcp",
        "Answer questions of agents and editors over standard input and output (Model Context Protocol).",
    ),
    "serve": (
        "serve:serve",
        "Show jobs, prices, spending and schedules of the store in a browser, and as JSON below /api.",
    ),
    "sweep": (
        "sweep:sweep",
        "Recommend a machine for each combination of scripts, arguments and limits; say what moved.",
    ),
    "run": (
        "run:app",
        "Run a command and keep a receipt (`advisor run -- python train.py`); list and record what ran.",
    ),
    "schedule": (
        "schedule:app",
        "Commands that run at set times, such as a report each Monday: docs/schedule.md.",
    ),
    "catalog": ("prices:catalog_app", "Dated snapshots of prices."),
    "policy": ("policy:app", "Rules of an organisation, its teams and projects: docs/policy.md."),
    "deliver": ("sending:app", "Channels that answers are sent to with --to: docs/delivery.md."),
    "config": ("config:app", "Settings and where each comes from."),
}
"""Where each command is, in this room, and the first sentence of its help.

A command is imported when it is asked for: all of them would take longer than the help page may."""


@cache
def load(name: str) -> Click:
    """The command of a name in `COMMANDS`; to make it of our annotations takes longer than most answers."""
    from advisor.cli.options import with_groups

    module, _, attribute = COMMANDS[name][0].partition(":")
    found = getattr(import_module(f"advisor.cli.{module}"), attribute)
    holder = typer.Typer(rich_markup_mode=None, add_completion=False)
    if isinstance(found, typer.Typer):
        kept: list[Click] = [*found.registered_commands, found.registered_callback]
        for one in filter(None, kept):
            one.callback = one.callback and with_groups(one.callback)
        holder.add_typer(found, name=name)
    else:
        kind = ScriptCommand if found.__module__ == "advisor.cli.recommend" else None
        holder.command(name, cls=kind)(with_groups(found))
    return typer.main.get_group(holder).commands[name]


class Root(PlainGroup):
    """The command `advisor`."""

    def __init__(self, **attrs: Click) -> None:
        super().__init__(**attrs)
        self.commands = LazyCommands({name: words for name, (_, words) in COMMANDS.items()}, load)


# Rich help pages would cost a third of the start-up time.
app = typer.Typer(
    name="advisor",
    cls=Root,
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
