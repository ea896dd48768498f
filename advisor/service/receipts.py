"""Run a command and keep a receipt: how long it took, how many steps it made, where, and what that cost."""

from __future__ import annotations

import getpass
import os
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.core.errors import AdvisorError, InputError, ReceiptLostError
from advisor.core.files import temporary_folder
from advisor.core.limits import MAX_USD, MAX_USD_PER_H
from advisor.core.redaction import redact, redact_words
from advisor.core.values import Interval, RunStatus
from advisor.service.ledger import num_nodes_of, place_of_entry, recommendation_of
from advisor.service.machine_here import machine_here
from advisor.service.plan_facts import PlanRequest
from advisor.service.ran_on import Place, place_of
from advisor.service.receipt_keeping import Begun, begin, keep
from advisor.service.run_costs import cost_of

if TYPE_CHECKING:
    from advisor.config.layers import Config
    from advisor.config.settings import StoreSettings
    from advisor.receipt.command import Ending
    from advisor.receipt.receipt_files import Steps
    from advisor.service.listening import Listener
    from advisor.service.machine_here import MachineHere
    from advisor.store.ledger import LedgerEntry, Run

_MOST_NAME = 200
_DATABASE_WAIT_S = 1.0
"""For each other writer: a receipt that does not get in waits as a file, and a command waits for nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandRequest:
    """A command to run, and what is known of it beforehand; None is not known.

    Attributes:
        command: the program and its arguments.
        recommendation: id in the ledger, or ``last``.
        plan: id of an option, which says where it runs.
        cost_usd: of the whole run, before tax.
        usd_per_h: of the machine.
        receipt: a file to write the receipt to as well.
    """

    command: tuple[str, ...]
    recommendation: str | None = None
    plan: str | None = None
    project: str | None = None
    cost_usd: float | None = None
    usd_per_h: float | None = None
    note: str = ""
    receipt: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What a run took, beside what was predicted.

    Attributes:
        advised: the recommendation that it follows; None without one.
        is_recorded: whether the database took it.
        exit_code: of the command, as a shell has it.
    """

    run: Run
    advised: LedgerEntry | None
    is_recorded: bool
    exit_code: int

    @property
    def predicted_s(self) -> Interval | None:
        """What was predicted for a step on these very GPUs; None if nothing was."""
        advised, run = self.advised, self.run
        if advised is None or (advised.gpu, advised.num_gpus) != (run.gpu, run.num_gpus):
            return None
        return advised.iteration_s


def run_and_keep(request: CommandRequest, config: Config, listener: Listener) -> Receipt:
    """Run the command to its end, whatever happens to its receipt.

    Raises:
        InputError: there is no such program, plan or recommendation, so that nothing was run.
        ReceiptLostError: the command ran, and we failed afterwards.
    """
    from advisor.store.transactions import waiting_at_most

    _check(request, listener)
    with waiting_at_most(_DATABASE_WAIT_S):
        return _run_and_keep(request, config, listener)


def _run_and_keep(request: CommandRequest, config: Config, listener: Listener) -> Receipt:
    from advisor.receipt.command import run_command
    from advisor.receipt.receipt_files import read_steps, steps_environment

    database = config.settings.store
    given = _given_place(request, config, listener)
    advised, doubts = _recommendation(request.recommendation, database, listener)
    with temporary_folder("steps") as folder:

        def begun_at(moment: datetime) -> Begun:
            sent_to = None if advised is None else place_of_entry(advised)
            where = machine_here(given, sent_to, os.environ, config.settings.run)
            return begin(_unseen(request, where, advised, moment), where, folder, database)

        environment = steps_environment(os.environ, folder)
        ending, begun = run_command(request.command, environment, _or_why_not(begun_at))
        with _whatever_happens(ending):
            if isinstance(begun, Exception):
                raise begun
            steps, strange = read_steps(folder, ending.duration_s)
            run = _ended(begun, ending, steps, request, config)
            is_recorded, trouble = keep(begun, run, database, also=request.receipt)
            listener.warn([*doubts, *begun.warnings, *strange, *_several(steps), *trouble])
            return Receipt(run=run, advised=advised, is_recorded=is_recorded, exit_code=ending.exit_code)


def _or_why_not(begin: Callable[[datetime], Begun]) -> Callable[[datetime], Begun | Exception]:
    """What happens beside the command must not keep it from ending as it does."""

    def begun_or_why_not(started_at: datetime) -> Begun | Exception:
        try:
            return begin(started_at)
        except Exception as error:  # noqa: BLE001 - it is raised again when the command has ended
            return error

    return begun_or_why_not


@contextmanager
def _whatever_happens(ending: Ending) -> Iterator[None]:
    """The exit code is the command's own, whatever becomes of its receipt."""
    try:
        yield
    except Exception as error:
        raise ReceiptLostError(
            f"the command ran and ended with exit code {ending.exit_code}; its receipt is lost, by a fault of"
            f" advisor: {type(error).__name__}: {error}",
            exit_code=ending.exit_code,
        ) from error


def _check(request: CommandRequest, listener: Listener) -> None:
    if not request.command:
        raise InputError("nothing to run: give a command after --, as in: advisor run -- python train.py")
    for name, most in (("cost_usd", MAX_USD), ("usd_per_h", MAX_USD_PER_H)):
        amount = getattr(request, name)
        if amount is not None and not 0 <= amount <= most:
            raise InputError(
                f"{listener.name_of(name)} must be between 0 and {most:,.0f} US dollars, got {amount:g}."
            )


def _given_place(request: CommandRequest, config: Config, listener: Listener) -> Place:
    if request.plan is None:
        return Place(provider=None, gpu=None, num_gpus=None, market=None)
    return place_of(PlanRequest(plan=request.plan), config, listener)


def _recommendation(
    wanted: str | None, database: StoreSettings, listener: Listener
) -> tuple[LedgerEntry | None, list[str]]:
    """The recommendation that is followed; a database that is down keeps nothing from running."""
    if wanted is None:
        return None, []
    try:
        return recommendation_of(database, wanted, listener), []
    except InputError:
        raise
    except AdvisorError as error:
        return None, [f"nothing is predicted, since the recommendation cannot be read: {error}"]


def _unseen(
    request: CommandRequest, where: MachineHere, advised: LedgerEntry | None, started_at: datetime
) -> Run:
    """What is known while the command runs; if nothing more is heard of it, this is its receipt."""
    from advisor.store.ledger import Run

    place = where.place
    return Run(
        recommendation_id=None if advised is None else advised.id,
        project=request.project or ("" if advised is None else advised.project),
        script=_script(request.command) if advised is None else advised.script,
        provider=place.provider or "",
        gpu=place.gpu or "",
        num_gpus=place.num_gpus or (0 if place.gpu is None else 1),
        market=place.market,
        started_at=started_at,
        duration_s=None,
        cost_usd=None,
        note=redact(request.note),
        instance_type=place.instance_type,
        region=place.region,
        zone=where.zone,
        user=_user(),
        status=RunStatus.LOST,
        num_nodes=num_nodes_of(advised, place.gpu, place.num_gpus),
    )


def _ended(begun: Begun, ending: Ending, steps: Steps | None, request: CommandRequest, config: Config) -> Run:
    cost = cost_of(begun.where, ending.duration_s, config, usd=request.cost_usd, usd_per_h=request.usd_per_h)
    return replace(
        begun.run,
        duration_s=ending.duration_s,
        status=ending.status,
        exit_code=ending.returncode,
        num_steps=None if steps is None else steps.num_steps,
        step_s=None if steps is None else steps.step_s,
        cost_usd=cost.usd,
        cost_kind=cost.kind,
        usd_per_h=cost.usd_per_h,
        price_retrieved_at=cost.price_retrieved_at,
    )


def _several(steps: Steps | None) -> list[str]:
    if steps is None or steps.num_processes < 2:
        return []
    return [
        f"{steps.num_processes} processes trained on their own: the steps are those of the one that made most"
    ]


def _script(command: Sequence[str]) -> str:
    """A name for the command: the Python file that it runs, else what was typed, without secrets."""
    script = next((argument for argument in command if argument.endswith(".py")), None)
    return Path(script).name if script else shlex.join(redact_words(command, os.environ))[:_MOST_NAME]


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return ""
