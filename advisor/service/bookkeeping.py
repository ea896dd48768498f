"""What really ran, what was recommended and receipts that wait -> the ledger."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.config.layers import Config
from advisor.config.settings import ClusterSettings, ReportSettings, StoreSettings
from advisor.core.errors import AdvisorError, InputError, did_you_mean
from advisor.core.files import as_text, write_atomically
from advisor.core.limits import EARLIEST, MAX_USD
from advisor.core.redaction import redact
from advisor.core.units import format_duration
from advisor.core.values import CostKind, Market, RunStatus
from advisor.formats.user_files import at_home
from advisor.service.listening import Listener
from advisor.service.plan_facts import MachineHere, Place, PlanRequest, place_of
from advisor.service.prices.live import now
from advisor.service.recommend.past_runs import compared_runs
from advisor.spend.charges import Bill
from advisor.store.database import existing_store, folder_of, open_store
from advisor.store.handle import Store

if TYPE_CHECKING:
    from advisor.receipt.guard import CanaryVerdict
    from advisor.receipt.receipt_files import BegunFile, ReceiptFile
    from advisor.store.ledger import LedgerEntry, Run


LAST = "last"
"""Stands for the newest recommendation."""

# In a message.
MOST_NAMES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """A run that has ended; None is not known."""

    started_at: datetime
    """With a time zone."""
    duration_s: float
    cost_usd: float | None
    """What was or will be billed, before tax; None if unknown."""
    status: RunStatus | None = None
    recommendation: str | None = None
    """Id in the ledger, or ``last``, which knows plan, script and project."""
    plan: str | None = None
    provider: str | None = None
    """A cloud, a cluster or ``local``."""
    gpu: str | None = None
    """One GPU with its number, such as ``L4:8``."""
    market: Market | None = None
    script: str | None = None
    project: str | None = None
    note: str = ""
    run_id: str | None = None
    """One of the caller's, so that repeating changes nothing."""


def keep_run(request: RunRequest, config: Config, listener: Listener) -> tuple[Run, bool]:
    """The run, and whether it was new to the ledger; the same one again changes nothing.

    Raises:
        InputError: a time, amount, plan or recommendation that cannot be; an id that another run has.
        UnknownGpuError: a name that no GPU has.
    """
    started_at, duration_s = request.started_at, request.duration_s
    start, duration = listener.name_of("started_at"), listener.name_of("duration_s")
    _check_moment(start, started_at)
    if not 0 < duration_s < math.inf:
        raise InputError(f"{duration} must be above 0, got {duration_s:g} s.")
    if started_at > now():
        raise InputError(
            f"{start} {started_at.isoformat()} lies in the future: record a run when it has ended."
        )
    if (now() - started_at).total_seconds() < duration_s:
        raise InputError(
            f"a run that started at {started_at.isoformat()} and took {format_duration(duration_s)} would end"
            f" in the future: record it when it has ended, or check {start} (UTC without a zone)."
        )
    if request.run_id is not None and not request.run_id.strip():
        raise InputError(f"{listener.name_of('run_id')} is empty: give a name, or leave it out.")
    asked = PlanRequest(plan=request.plan, gpu=request.gpu, provider=request.provider, market=request.market)
    place = place_of(asked, config, listener)
    advised = None
    if request.recommendation is not None:
        advised = recommendation_of(config.settings.store, request.recommendation, listener)
        place = place.or_else(Place.of(advised))
    run = _run(request, place, config.settings.clusters, listener, advised=advised)
    return _kept(run, config.settings.store, listener)


def keep_receipt(path: Path, database: StoreSettings, listener: Listener) -> tuple[Run, bool]:
    """Enter what ``advisor run`` wrote to a file; the run, and whether it was new to the ledger.

    Raises:
        InputError: the file holds no receipt, or one of a time that cannot be; an id that another run has.
        StoreError: a number cannot be true, or the database cannot be read or written.
    """
    from advisor.receipt.receipt_files import read_receipt

    run = read_receipt(path).run
    _check_moment(str(path), run.started_at)
    return _kept(run, database, listener)


def _kept(run: Run, database: StoreSettings, listener: Listener) -> tuple[Run, bool]:
    from advisor.store.ledger import record_run

    with open_store(database.url) as store:
        is_new = _is_new(store, run, listener)
        record_run(store, run)
    return run, is_new


def _is_new(store: Store, run: Run, listener: Listener) -> bool:
    from advisor.store.ledger import find_run

    before = find_run(store, run.id)
    is_whole = run.status is not RunStatus.LOST
    if before is not None and before.status is RunStatus.LOST and is_whole:
        return True
    if before is not None and before != run:
        cost = "an unknown amount" if before.cost_usd is None else f"{before.cost_usd:g} USD"
        raise InputError(
            f"{listener.name_of('run_id')}: {run.id!r} is the id of another run, which started at"
            f" {before.started_at.isoformat()} and cost {cost}. Nothing was recorded: choose another id."
        )
    return before is None


def _check_moment(argument: str, moment: datetime) -> None:
    """Refuse a time without a zone, or one at which no GPU trained anything."""
    if moment.tzinfo is None:
        raise InputError(f"{argument}: {moment.isoformat()} has no time zone.")
    if moment < EARLIEST:
        raise InputError(f"{argument}: {moment.isoformat()} lies before {EARLIEST.date()}: check the year.")


def recommendation_of(database: StoreSettings, wanted: str, listener: Listener) -> LedgerEntry:
    """The recommendation with this id, or the last one of all.

    Raises InputError: there is none.
    """
    from advisor.store.ledger import find_recommendation, recommendation_ids

    with existing_store(database.url) as store:
        ids = recommendation_ids(store) if store else ()
        entry = find_recommendation(store, ids[0] if wanted == LAST and ids else wanted) if store else None
    if entry is not None:
        return entry
    flag, how = listener.name_of("recommendation"), "`advisor recommend --record` prints the id."
    if wanted == LAST:
        raise InputError(f"{flag} {LAST}: no recommendation is recorded yet. {how}")
    raise InputError(f"{flag}: none with the id {wanted!r} is recorded.{did_you_mean(wanted, ids)} {how}")


def _run(
    request: RunRequest,
    place: Place,
    clusters: Sequence[ClusterSettings],
    listener: Listener,
    *,
    advised: LedgerEntry | None,
) -> Run:
    from advisor.store.ledger import Run, new_id

    provider, gpu, num_gpus, market = place.complete(clusters, listener)
    is_free = market is None and request.cost_usd == 0
    if request.cost_usd is not None and not (is_free or 0 < request.cost_usd <= MAX_USD):
        raise InputError(
            f"{listener.name_of('cost_usd')} must be above 0 US dollars, got {request.cost_usd:g}: at most"
            f" {MAX_USD:,.0f}, and 0 is for a machine of your own."
        )
    project, script = ("", "") if advised is None else (advised.project, advised.script)
    return Run(
        id=request.run_id or new_id(),
        recommendation_id=advised.id if advised is not None else None,
        project=project if request.project is None else request.project,
        script=script if request.script is None else request.script,
        provider=provider,
        gpu=gpu,
        num_gpus=num_gpus,
        market=market,
        started_at=request.started_at.astimezone(UTC),
        duration_s=request.duration_s,
        cost_usd=request.cost_usd,
        cost_kind=None if request.cost_usd is None else CostKind.STATED,
        note=redact(request.note),
        instance_type=place.instance_type,
        region=place.region,
        status=request.status or RunStatus.FINISHED,
        num_nodes=num_nodes_of(advised, gpu, num_gpus),
    )


def num_nodes_of(advised: LedgerEntry | None, gpu: str | None, num_gpus: int | None) -> int | None:
    """Machines of a run that went to the GPUs it was sent to; one with at most one GPU. None if unknown."""
    if (num_gpus or 0) <= 1:
        return 1
    followed = advised is not None and (advised.gpu, advised.num_gpus) == (gpu, num_gpus)
    return advised.num_nodes if advised is not None and followed else None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRuns:
    """Runs in order of time."""

    runs: tuple[Run, ...] = ()
    num_left_out: int = 0
    """Receipts and recorded runs that cannot be true, which no total holds."""


def recorded_runs(
    since: datetime | float | None, project: str | None, database: StoreSettings, listener: Listener
) -> RecordedRuns:
    """Runs in order of time; none where there is no database yet. What cannot be true is a warning each.

    Args:
        since: a moment with a time zone, or seconds before now; None for all, as for ``project``.

    Raises InputError: ``since`` has no time zone, or lies before any run; no such project.
    """
    from advisor.predict.interval import drifts_of
    from advisor.store.ledger import impossible_runs, runs

    num_refused = enter_left_behind(database, listener)
    check_project(project, database, listener)
    start = _start(since)
    _check_moment(listener.name_of("since"), start)
    with existing_store(database.url) as store:
        if store is None:
            return RecordedRuns(num_left_out=num_refused)
        listener.warn(drifts_of(compared_runs(store)))
        impossible = impossible_runs(store, since=start, project=project)
        listener.warn([f"{why}. It is in no total." for why in impossible])
        return RecordedRuns(
            runs=runs(store, since=start, project=project), num_left_out=num_refused + len(impossible)
        )


def check_project(name: str | None, database: StoreSettings, listener: Listener, *others: str | None) -> None:
    """Refuse a project of which nothing is recorded: a mistyped name would look like one that spent nothing.

    Args:
        name: of the caller; None for all projects.
        database: with recommendations and runs; without one there is nothing to compare with.
        others: projects that are known besides.

    Raises InputError: there is no such project.
    """
    known = _known_projects(database, others) if name else frozenset()
    if name and known and name not in known:
        raise _unknown_project(name, known, listener)


def check_new_project(name: str, database: StoreSettings, listener: Listener, *others: str) -> None:
    """As `check_project`, where a project may begin: a name like none is new, which is reported.

    Names with other digits, such as of another model, are not alike.
    """
    known = _known_projects(database, others) if name else frozenset()
    if not known or name in known:
        return
    alike = [one for one in known if _digits(one) == _digits(name)]
    if did_you_mean(name, alike):
        raise _unknown_project(name, frozenset(alike), listener)
    flag = listener.name_of("project")
    listener.warn([f"{flag}: nothing is recorded of a project {name!r} so far, so it counts as a new one"])


def _digits(name: str) -> list[str]:
    return [letter for letter in name if letter.isdigit()]


def _known_projects(database: StoreSettings, others: Iterable[str | None]) -> frozenset[str]:
    from advisor.store.ledger import project_names

    with existing_store(database.url) as store:
        recorded = project_names(store) if store else frozenset()
    return recorded.union(filter(None, others)) - {""}


def _unknown_project(name: str, known: frozenset[str], listener: Listener) -> InputError:
    names = sorted(known)
    near = did_you_mean(name, names) or f" There are {', '.join(names[:MOST_NAMES])}."
    return InputError(
        f"{listener.name_of('project')}: nothing is recorded of a project {name!r}.{near} A project begins"
        f" with its first run (`advisor run --project {name} -- COMMAND`), or with its entry in report.teams."
    )


def read_bills(report: ReportSettings, files: Iterable[Path], listener: Listener) -> list[Bill]:
    """The bills of the settings and of more files. Raises BillError: a file cannot be read, or is no bill."""
    from advisor.spend.bill_files import read_bill

    bills = []
    for path in dict.fromkeys(at_home(path) for path in (*report.bills, *files)):
        with listener.step(f"reading {path.name}"):
            bills.append(read_bill(path, report.project_tag))
    return bills


def _start(since: datetime | float | None) -> datetime:
    if since is None or isinstance(since, datetime):
        return since or EARLIEST
    age_s = (now() - EARLIEST).total_seconds()
    return now() - timedelta(seconds=min(since, age_s))


_FOLDER = "receipts"


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """A run that goes on."""

    run: Run
    """What is known of it if its end is not seen."""
    where: MachineHere
    file: BegunFile | None
    """That says so; None where none could be made."""
    warnings: tuple[str, ...] = ()


def begin(run: Run, where: MachineHere, steps_folder: Path, database: StoreSettings) -> Begun:
    """Make the file of a run that has started."""
    from advisor.receipt.receipt_files import ReceiptFile
    from advisor.receipt.receipt_files import begin as begin_file

    # As JSON takes it: steps under a name of other bytes than UTF-8 are lost if advisor is killed.
    steps = str(steps_folder)
    kept = ReceiptFile(run=run, steps_folder=steps if as_text(steps) == steps else None)
    try:
        file = begin_file(_folder(database), kept)
    except OSError as error:
        why = f"{error.strerror or error} ({_folder(database)})"
        lost = f"this run leaves no trace if advisor is killed: {why}"
        return Begun(run=run, where=where, file=None, warnings=(lost,))
    return Begun(run=run, where=where, file=file)


def keep(
    begun: Begun, run: Run, database: StoreSettings, *, also: Path | None, canary: CanaryVerdict | None = None
) -> tuple[bool, list[str]]:
    """Enter a run that has ended into the database, or leave its file for later.

    Args:
        also: gets the receipt as well, with what the first steps said.

    Returns:
        Whether the database took it, and what went wrong.
    """
    from advisor.receipt.receipt_files import ReceiptFile
    from advisor.store.ledger import record_run

    receipt = ReceiptFile(run=run)
    trouble = []
    try:
        if also is not None:
            write_atomically(also, ReceiptFile(run=run, canary=canary).to_bytes())
    except OSError as error:
        trouble = [f"cannot write the receipt {also}: {error.strerror or error}"]
    # Before the database is asked: if we are ended meanwhile, nothing is lost.
    path = _folder(database) / f"{run.id}.json"
    waits = _waits(begun, receipt, path)
    try:
        with open_store(database.url) as store:
            record_run(store, run)
    except AdvisorError as error:
        return False, [*trouble, str(error), waits]
    with suppress(OSError):
        path.unlink()
    return True, trouble


def _waits(begun: Begun, receipt: ReceiptFile, path: Path) -> str:
    """Put the whole receipt where it can be entered later, and say where; the last resort is to print it."""
    try:
        if begun.file is not None:
            begun.file.replace(receipt)
        else:
            write_atomically(path, receipt.to_bytes(), private=True)
    except OSError as error:
        lost = f"the receipt cannot be kept either: {error.strerror or error}."
        takes = "`advisor run record --receipt FILE` takes it from a file that holds this:"
        return f"{lost} {takes}\n{receipt.to_bytes().decode()}"
    return (
        f"the receipt waits in {path}: `advisor run list` enters it, or `advisor run record --receipt {path}`"
    )


def enter_left_behind(database: StoreSettings, listener: Listener) -> int:
    """Enter receipts that the database did not take, and of runs whose end was not seen.

    Returns:
        How many files hold no receipt that can be true: a warning names each and its field.

    Raises StoreError: the database still takes none.
    """
    folder = _folder(database)
    if not folder.is_dir():
        return 0
    from advisor.receipt.receipt_files import left_behind, read_receipt, read_steps
    from advisor.store.ledger import record_run

    num_refused = 0
    entered: list[str] = []
    with left_behind(folder) as paths:
        for path in paths:
            try:
                receipt = read_receipt(path)
            except InputError as error:
                listener.warn([f"{error} Look at it, or delete it."])
                num_refused += 1
                continue
            run, folder_of_steps = receipt.run, receipt.steps_folder
            steps = read_steps(Path(folder_of_steps), math.inf)[0] if folder_of_steps is not None else None
            if steps is not None:
                run = replace(run, num_steps=steps.num_steps, step_s=steps.step_s)
            with open_store(database.url) as store:
                record_run(store, run)
            path.unlink(missing_ok=True)
            entered.append(run.status)
    if entered:
        by_status = ", ".join(f"{num:,} {status}" for status, num in sorted(Counter(entered).items()))
        runs = f"{len(entered):,} run{'' if len(entered) == 1 else 's'}"
        listener.note(f"entered {runs} that waited in {folder} ({by_status})")
    return num_refused


def _folder(database: StoreSettings) -> Path:
    return folder_of(database.url) / _FOLDER
