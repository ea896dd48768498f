"""``advisor policy check / show / schema / explain``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from advisor.cli import options
from advisor.cli.common import duration_s, group, settings_with
from advisor.cli.listening import TERMINAL
from advisor.core.limits import MAX_NODES
from advisor.core.values import Market, Tier
from advisor.report.plain import print_text
from advisor.report.printing import print_document

if TYPE_CHECKING:
    from advisor.service.plan_facts import PlanRequest

app = group("Rules of an organisation, its teams and projects: docs/policy.md.")
FilesArgument = Annotated[list[Path], typer.Argument(help="Policy files of any layers.", metavar="FILES...")]


@app.command("check")
def check(files: FilesArgument, output: options.OutputOptions = options.AS_TABLE) -> None:
    """Look for everything that is wrong with policy files, each and together. Exits with 2 if anything is."""
    from advisor.report.policy_verdicts import check_document
    from advisor.site_files.policy_files import check_policies, policy_error

    checked = check_policies(files)
    print_document(check_document(checked), output.form)
    if checked.policy is None:
        raise policy_error(checked.faults)


@app.command("show")
def show(files: FilesArgument, output: options.OutputOptions = options.AS_TABLE) -> None:
    """Print the rules that the files make together, each with where it stands and what it overrules."""
    from advisor.report.policy_verdicts import policy_document
    from advisor.site_files.policy_files import read_policies

    print_document(policy_document(read_policies(files)), output.form)


@app.command("schema")
def schema() -> None:
    """Print the JSON Schema of policy files, for editors and other programs."""
    import json

    from recommender.policy.model import json_schema

    print_text(json.dumps(json_schema(), indent=2))


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOptions:
    """The facts of a plan that rules look at."""

    plan: str | None = options.asked("As recommend names it: aws/p4d.24xlarge/us-east-1/spot.", metavar="ID")
    tier: Tier | None = options.asked("local, cluster or cloud.", metavar="TIER", case_sensitive=False)
    provider: str | None = options.asked(
        "aws, gcp, a cluster, local.", metavar="NAME", autocompletion=options.provider_names
    )
    instance_type: str | None = options.asked("Machine of a cloud.", metavar="NAME")
    region: str | None = options.asked(
        "Region of a cloud.", metavar="NAME", autocompletion=options.region_names
    )
    market: Market | None = options.asked("on-demand, spot.", metavar="MARKET", case_sensitive=False)
    gpu: str | None = options.asked(
        "With its number, of all nodes: A100-SXM-80GB:8.", metavar="GPU", autocompletion=options.gpu_names
    )
    num_nodes: int | None = options.asked(
        "Machines of the plan.", "--nodes", metavar="N", min=1, max=MAX_NODES
    )
    usd_per_h: float | None = options.asked("Price of the plan.", "--usd-per-hour", metavar="USD")
    usd_per_job: float | None = options.asked("Cost of the job (p90).", metavar="USD")
    train_s: str | None = options.asked(
        "How long the job trains, such as 30h.", "--training-time", metavar="DURATION"
    )
    spent_usd: float | None = options.asked(
        "Spent since the first of the month.", "--spent-this-month", metavar="USD"
    )

    def request(self) -> PlanRequest:
        """The plan to explain."""
        from advisor.service.plan_facts import PlanRequest

        train_s = None if self.train_s is None else duration_s("--training-time", self.train_s)
        return PlanRequest(**options.given(self, train_s=train_s))


@app.command("explain")
def explain(
    files: FilesArgument, *, plan: PlanOptions, output: options.OutputOptions = options.AS_TABLE
) -> None:
    """Say which rules keep or remove a plan: one of the catalog, or one with the facts you give.

    A rule about a fact that is not known is said to be unknown. Spot terms are those of the settings.
    Exits with 3 if a rule removes the plan.
    """
    from advisor.report.policy_verdicts import explained_document
    from advisor.service.plan_facts import given_facts
    from advisor.site_files.policy_files import read_policies
    from recommender.policy.judge import everything_removed, judge_facts

    policy = read_policies(files)
    facts = given_facts(plan.request(), settings_with(), TERMINAL)
    print_document(explained_document(facts, policy), output.form)
    removals = judge_facts(facts, policy).removals
    if removals:
        raise everything_removed({"": removals})
