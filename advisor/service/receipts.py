"""Run a command and keep a receipt: how long it took, how many steps it made, where, and what that cost."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.core.errors import AdvisorError, InputError, ReceiptLostError
from advisor.core.files import check_can_be_file, temporary_folder
from advisor.core.limits import MAX_USD, MAX_USD_PER_H
from advisor.core.processes import STEPS_FOLDER_VARIABLE, user_name
from advisor.core.redaction import redact, redact_words
from advisor.core.units import HOUR_S, whole_number
from advisor.core.values import CostKind, Interval, Offer, RunStatus
from advisor.service.bookkeeping import Begun, begin, keep, num_nodes_of, recommendation_of
from advisor.service.listening import Listener
from advisor.service.plan_facts import MachineHere, Place, PlanRequest, cheapest_at, place_of
from advisor.service.recommend.policy_in_force import check_guarded
from advisor.service.watching import Watch, WatchRequest, expected_of, verdict_of

if TYPE_CHECKING:
    from advisor.config.layers import Config, PricingSettings
    from advisor.config.settings import RunSettings, Settings, StoreSettings
    from advisor.receipt.command import CommandEnding, GpuUse
    from advisor.receipt.receipt_files import ProcessSteps
    from advisor.store.ledger import LedgerEntry, Run

_MOST_NAME = 200
_NESTED = "this run is a part of another `advisor run`, whose receipt counts it: none of its own is kept"
_DATABASE_WAIT_S = 1.0
"""For each other writer: a receipt that does not get in waits as a file, and a command waits for nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandRequest:
    """A command to run, and what is known of it beforehand; None is not known."""

    command: tuple[str, ...]
    recommendation: str | None = None
    """Id in the ledger, or ``last``."""
    plan: str | None = None
    """Id of an option, which says where it runs."""
    project: str | None = None
    cost_usd: float | None = None
    """Of the whole run, before tax."""
    usd_per_h: float | None = None
    note: str = ""
    receipt: Path | None = None
    watch: WatchRequest = field(default_factory=WatchRequest)
    """Limits, and what to compare the first steps with."""
    has_limit: bool = False
    """Whether it ends at one of its own, as what an emitted file starts does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What a run took, beside what was predicted."""

    run: Run
    advised: LedgerEntry | None
    """The recommendation that it follows; None without one."""
    is_recorded: bool
    exit_code: int
    """Of the command, as a shell has it."""
    stopped_by: str | None = None

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
        PolicyViolationError: the policy demands a limit.
        ReceiptLostError: the command ran, and we failed afterwards.
    """
    from advisor.store.transactions import waiting_at_most

    request.watch.check(listener, has_recommendation=request.recommendation is not None)
    if not request.command:
        raise InputError("nothing to run: give a command after --, as in: advisor run -- python train.py")
    if request.receipt is not None:
        check_can_be_file(request.receipt, "the receipt")
    for name, most in (("cost_usd", MAX_USD), ("usd_per_h", MAX_USD_PER_H)):
        amount = getattr(request, name)
        if amount is not None and not 0 <= amount <= most:
            raise InputError(
                f"{listener.name_of(name)} must be between 0 and {most:,.0f} US dollars, got {amount:g}."
            )
    is_limited = request.has_limit or request.watch.has_limit or _outer_folder(os.environ) is not None
    if not is_limited:
        named = f"{listener.name_of('max_usd')} or {listener.name_of('max_s')}"
        check_guarded(config.settings.policy, f"Give {named}. Nothing was run.")
    with waiting_at_most(_DATABASE_WAIT_S):
        return _run_and_keep(request, config, listener)


def _run_and_keep(request: CommandRequest, config: Config, listener: Listener) -> Receipt:
    from advisor.receipt.command import run_command, sampling
    from advisor.receipt.receipt_files import read_steps, steps_environment

    database = config.settings.store
    given = Place(provider=None, gpu=None, num_gpus=None, market=None)
    if request.plan is not None:
        given = place_of(PlanRequest(plan=request.plan), config, listener)
    outer = _outer_folder(os.environ)
    advised, doubts = _recommendation(request.recommendation, database, listener)
    machine = cache(
        lambda: machine_here(
            given, None if advised is None else Place.of(advised), os.environ, config.settings.run
        )
    )
    with temporary_folder("steps") as own:
        folder = outer or own

        watch = _watch(request, config, listener, machine=machine, advised=advised, folder=folder)

        def begun_at(moment: datetime) -> Begun | Exception:
            try:
                run = _unseen(request, machine(), advised, moment)
                if outer is not None:
                    return Begun(run=run, where=machine(), file=None)
                return begin(run, machine(), folder, database)
            except Exception as error:  # noqa: BLE001 - it is raised again when the command has ended
                return error

        environment = steps_environment(os.environ, folder) if outer is None else dict(os.environ)
        look = None if watch is None else watch.look
        with sampling(os.environ) as sampler:
            ending, begun = run_command(request.command, environment, begun_at, look)
        with _whatever_happens(ending):
            if isinstance(begun, Exception):
                raise begun
            steps, strange = read_steps(own, ending.duration_s)
            stopped_by = None if watch is None else watch.guard.stopped_by
            run = _stopped(_ended(begun, ending, steps, request, config), stopped_by)
            run = _with_use(run, sampler.use)
            is_recorded, trouble = False, [_NESTED]
            if outer is None:
                canary = None if watch is None else watch.verdict
                is_recorded, trouble = keep(begun, run, database, also=request.receipt, canary=canary)
            unsure = _unsure(sampler.use)
            listener.warn([*doubts, *begun.warnings, *strange, *_several(steps), *unsure, *trouble])
            return Receipt(
                run=run,
                advised=advised,
                is_recorded=is_recorded,
                exit_code=ending.exit_code,
                stopped_by=stopped_by,
            )


def _outer_folder(environment: Mapping[str, str]) -> Path | None:
    """Where the `advisor run` counts steps that this one is a part of; None where there is none."""
    folder = Path(environment.get(STEPS_FOLDER_VARIABLE) or os.devnull)
    return folder if folder.is_dir() else None


def _watch(
    request: CommandRequest,
    config: Config,
    listener: Listener,
    *,
    machine: Callable[[], MachineHere],
    advised: LedgerEntry | None,
    folder: Path,
) -> Watch | None:
    """What watches the command; None where nothing is to be watched.

    Raises InputError: the price of what may cost so much at most is unknown.
    """
    if request.watch == WatchRequest():
        return None
    if request.watch.max_usd is not None and rent_of(machine(), request, config) is None:
        named = listener.name_of
        raise InputError(
            f"{named('max_usd')} needs the price of this machine, which is not known: give"
            f" {named('usd_per_h')}, or {named('plan')} ID. Nothing was run."
        )
    return Watch(
        request.watch,
        grace_s=config.settings.run.grace,
        usd_per_h=lambda: rent_of(machine(), request, config),
        expected=lambda: expected_of(advised, machine().place, _nodes_of_job(request, machine())),
        judge=lambda pace: verdict_of(advised, pace, config.settings.choice),
        folder=folder,
        listener=listener,
    )


_NODES_VARIABLE = "SLURM_JOB_NUM_NODES"
_STEP_VARIABLE = "SLURM_STEP_ID"
"""What `srun` starts has it: then each node has a receipt of its own."""


def _slurm_nodes(environment: Mapping[str, str]) -> int | None:
    return whole_number(environment.get(_NODES_VARIABLE, "")) or None


def _nodes_of_job(request: CommandRequest, where: MachineHere) -> int:
    """Machines that train together: as stated, as Slurm or the plan says, else one."""
    return request.watch.num_nodes or _slurm_nodes(os.environ) or where.place.num_nodes or 1


def rent_of(where: MachineHere, request: CommandRequest, config: Config) -> float | None:
    """USD per hour of all machines of a job, each counted once; None where unknown."""
    of_place = cost_of(where, 0.0, config, usd=None, usd_per_h=request.usd_per_h).usd_per_h
    num_counted = where.place.num_nodes or 1
    return None if of_place is None else of_place * _nodes_of_job(request, where) / num_counted


def _with_use(run: Run, use: GpuUse | None) -> Run:
    if use is None:
        return run
    return replace(
        run,
        gpu_busy_share=use.busy_share,
        gpu_mean_w=use.mean_w,
        gpu_mean_clock_hz=use.mean_clock_hz,
        gpu_peak_bytes=use.peak_bytes,
    )


def _stopped(run: Run, why: str | None) -> Run:
    """A script that saved and ended by itself when it was asked to has not finished its job."""
    if why is None:
        return run
    return replace(
        run, status=RunStatus.INTERRUPTED, note="; ".join(filter(None, (run.note, f"stopped by {why}")))
    )


@contextmanager
def _whatever_happens(ending: CommandEnding) -> Iterator[None]:
    """The exit code is the command's own, whatever becomes of its receipt."""
    try:
        yield
    except Exception as error:
        raise ReceiptLostError(
            f"the command ran and ended with exit code {ending.exit_code}; its receipt is lost, by a fault of"
            f" advisor: {type(error).__name__}: {error}",
            exit_code=ending.exit_code,
        ) from error


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
        user=user_name(),
        status=RunStatus.LOST,
        num_nodes=place.num_nodes or num_nodes_of(advised, place.gpu, place.num_gpus),
    )


def _ended(
    begun: Begun, ending: CommandEnding, steps: ProcessSteps | None, request: CommandRequest, config: Config
) -> Run:
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


def _several(steps: ProcessSteps | None) -> list[str]:
    if steps is None or steps.num_processes < 2:
        return []
    return [
        f"{steps.num_processes} processes trained on their own: the steps are those of the one that made most"
    ]


def _unsure(use: GpuUse | None) -> list[str]:
    if use is None or not use.num_unsure:
        return []
    return [f"nvidia-smi tells of no GPU that the command used: all {use.num_unsure} of this machine count"]


def _script(command: Sequence[str]) -> str:
    """A name for the command: the Python file that it runs, else what was typed, without secrets."""
    script = next((argument for argument in command if argument.endswith(".py")), None)
    return Path(script).name if script else shlex.join(redact_words(command, os.environ))[:_MOST_NAME]


def machine_here(
    given: Place, sent_to: Place | None, environment: Mapping[str, str], settings: RunSettings
) -> MachineHere:
    """Look around on this machine.

    Args:
        given: what the caller says, which wins.
        sent_to: where a recommendation sent the job: says what cannot be seen, on the GPU that it names.
        settings: whether the metadata service may be asked.
    """
    from advisor.core.devices import detect_devices
    from advisor.receipt.command import gpus_seen
    from advisor.receipt.instance import this_instance

    seen = this_instance(settings.metadata_url) if settings.metadata else None
    gpus = gpus_seen(detect_devices(), environment)
    # In Slurm's batch script we watch the whole job, whose machines are alike.
    num_nodes = None if _STEP_VARIABLE in environment else _slurm_nodes(environment)
    here = Place(
        provider=None if seen is None else seen.provider,
        gpu=None if gpus is None else gpus.name,
        num_gpus=None if gpus is None else gpus.num_visible * (num_nodes or 1),
        num_nodes=num_nodes,
        market=None if seen is None else seen.market,
        instance_type=None if seen is None else seen.instance_type,
        region=None if seen is None else seen.region,
    )
    place = given.or_else(here)
    if sent_to is not None and sent_to.gpu == place.gpu:
        # A container may not reach the metadata service. On another GPU it went elsewhere.
        place = place.or_else(sent_to)
    return MachineHere(
        place=place,
        zone=None if seen is None or place.region != seen.region else seen.zone,
        share=1.0 if gpus is None else gpus.num_visible / gpus.num_all,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCost:
    """The cost of a run before tax; all None where unknown."""

    usd: float | None = None
    kind: CostKind | None = None
    usd_per_h: float | None = None
    """Of the GPUs that it had, behind an estimate."""
    price_retrieved_at: datetime | None = None
    """When that price was true; None also where a person says it."""


def cost_of(
    where: MachineHere, duration_s: float, config: Config, *, usd: float | None, usd_per_h: float | None
) -> RunCost:
    """What a run cost.

    Args:
        where: it ran; its machine's price counts by the share of the GPUs that it had.
        config: prices at hand and one's own machines; nothing is asked over the network.
        usd: what a person says of the whole run.
        usd_per_h: what a person says of one machine.
    """
    if usd is not None:
        return RunCost(usd=usd, kind=CostKind.STATED)
    stated = None if usd_per_h is None else usd_per_h * where.share * (where.place.num_nodes or 1)
    price, retrieved_at = (stated, None) if stated is not None else _price(where, config)
    if price is None:
        return RunCost()
    return RunCost(
        usd=price * duration_s / HOUR_S,
        kind=CostKind.ESTIMATED,
        usd_per_h=price,
        price_retrieved_at=retrieved_at,
    )


def _price(where: MachineHere, config: Config) -> tuple[float | None, datetime | None]:
    offer = _offer(where, config.pricing)
    if offer is not None:
        # Of a run that went to more GPUs than one machine has: so many machines.
        num_nodes = where.place.num_nodes or max(1.0, (where.place.num_gpus or 1) / offer.num_gpus)
        return offer.usd_per_h * where.share * num_nodes, offer.retrieved_at
    return _own_price(where.place, config.settings), None


def _offer(where: MachineHere, pricing: PricingSettings) -> Offer | None:
    """The offer behind a rented machine: that of its zone, else the cheapest of its region."""
    place = where.place
    if not (place.provider and place.instance_type and place.market):
        return None
    for at in filter(None, (where.zone, place.region)):
        try:
            offer = cheapest_at(pricing, place.provider, place.instance_type, at, place.market, Listener())
        except AdvisorError:
            # Prices that cannot be read leave the cost unknown, as the receipt says.
            return None
        if offer is not None:
            return offer
    return None


def _own_price(place: Place, settings: Settings) -> float | None:
    from advisor.service.recommend.own_machines import own_machines

    try:
        machines = own_machines(settings, Listener())
    except AdvisorError:
        return None
    for machine in machines:
        if (machine.name, machine.gpu) == (place.provider, place.gpu) and machine.usd_per_gpu_h is not None:
            return machine.usd_per_gpu_h * (place.num_gpus or 1)
    return None
