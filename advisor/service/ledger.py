"""What a person tells of a run -> the ledger; recommendations -> the ledger."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from advisor.core.errors import InputError, did_you_mean
from advisor.core.limits import MAX_USD
from advisor.core.values import Market, Recommendation, Trace
from advisor.service.live import now, opened
from advisor.service.ran_on import Place, place_of

if TYPE_CHECKING:
    from advisor.config.layers import Config
    from advisor.store.database import Store
    from advisor.store.ledger import LedgerEntry, Run

# Before the first GPU that trains anything; also keeps times within what databases hold.
EARLIEST = datetime(2006, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A run as it was typed; None is not told.

    Attributes:
        start: ISO 8601; UTC without a zone.
        duration: with units.
    """

    start: str
    duration: str
    cost_usd: float
    recommendation: str | None
    plan: str | None
    provider: str | None
    gpu: str | None
    market: Market | None
    script: str | None
    project: str | None
    note: str
    run_id: str | None


def keep_run(config: Config, told: Told) -> tuple[Run, bool]:
    """The run, and whether it was new to the ledger; the same one again changes nothing.

    Raises:
        InputError: a time, amount, plan or recommendation that cannot be; an id that another run has.
        UnknownGpuError: a name that no GPU has.
        StoreError: the database cannot be read or written.
    """
    from advisor.store.ledger import record_run

    started_at, duration_s = _when(told)
    if told.run_id is not None and not told.run_id.strip():
        raise InputError("--id is empty: give a name, or leave it out.")
    place = place_of(config, told.plan, provider=told.provider, gpu=told.gpu, market=told.market)
    advised = None if told.recommendation is None else _recommendation(config, told.recommendation)
    if advised is not None:
        place = place.or_else(_place_of_entry(advised))
    run = _run(told, place, config, advised=advised, started_at=started_at, duration_s=duration_s)
    with opened(config) as store:
        is_new = _is_new(store, run)
        record_run(store, run)
    return run, is_new


def _is_new(store: Store, run: Run) -> bool:
    from advisor.store.ledger import find_run

    before = find_run(store, run.id)
    if before is not None and before != run:
        raise InputError(
            f"--id: {run.id!r} is the id of another run, which started at {before.started_at.isoformat()}"
            f" and cost {before.cost_usd:g} USD. Nothing was recorded: choose another id."
        )
    return before is None


def _when(told: Told) -> tuple[datetime, float]:
    from advisor.core.units import parse_duration_s

    started_at = parse_time("--start", told.start)
    try:
        duration_s = parse_duration_s(told.duration)
    except ValueError as error:
        raise InputError(f"--duration: {error}.") from error
    if not 0 < duration_s < math.inf:
        raise InputError(f"--duration must be above 0, got {told.duration!r}.")
    if started_at > now():
        raise InputError(f"--start {told.start!r} lies in the future: record a run when it has ended.")
    if (now() - started_at).total_seconds() < duration_s:
        raise InputError(
            f"a run that started at {started_at.isoformat()} and took {told.duration} would end in the"
            " future: record it when it has ended, or check --start (UTC without a zone)."
        )
    return started_at, duration_s


def parse_time(flag: str, text: str) -> datetime:
    """A moment with a time zone, UTC where none is written.

    Raises:
        InputError: it is no time, or none at which a GPU trained anything.
    """
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise InputError(
            f"{flag}: {text!r} is no time: write 2026-11-01 or 2026-11-01T09:30 (both UTC),"
            " or 2026-11-01T09:30+01:00."
        ) from error
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    if moment < EARLIEST:
        raise InputError(f"{flag}: {text!r} lies before {EARLIEST.date()}: check the year.")
    return moment


def _recommendation(config: Config, wanted: str) -> LedgerEntry:
    from advisor.store.database import open_store
    from advisor.store.ledger import find_recommendation, recommendation_ids

    ids: tuple[str, ...] = ()
    store = open_store(config.settings.store.url, must_exist=True)
    if store is not None:
        with store:
            entry = find_recommendation(store, wanted)
            if entry is not None:
                return entry
            ids = recommendation_ids(store)
    raise InputError(
        f"--recommendation: none with the id {wanted!r} is recorded.{did_you_mean(wanted, ids)}"
        " `advisor recommend --record` prints the id."
    )


def _run(
    told: Told,
    place: Place,
    config: Config,
    *,
    advised: LedgerEntry | None,
    started_at: datetime,
    duration_s: float,
) -> Run:
    from advisor.store.ledger import Run, new_id

    provider, gpu, num_gpus, market = place.complete(config)
    is_free = market is None and told.cost_usd == 0
    if not (is_free or 0 < told.cost_usd <= MAX_USD):
        raise InputError(
            f"--cost must be above 0 US dollars, got {told.cost_usd:g}: at most {MAX_USD:,.0f}, and 0 is for"
            " a machine of your own."
        )
    return Run(
        id=told.run_id or new_id(),
        recommendation_id=advised.id if advised is not None else None,
        project=_first(told.project, None if advised is None else advised.project),
        script=_first(told.script, None if advised is None else advised.script),
        provider=provider,
        gpu=gpu,
        num_gpus=num_gpus,
        market=market,
        started_at=started_at.astimezone(UTC),
        duration_s=duration_s,
        cost_usd=told.cost_usd,
        note=told.note,
    )


def _first(*texts: str | None) -> str:
    return next((text for text in texts if text is not None), "")


def _place_of_entry(entry: LedgerEntry) -> Place:
    return Place(provider=entry.provider, gpu=entry.gpu, num_gpus=entry.num_gpus, market=entry.market)


def recorded_runs(config: Config, since: str | None, project: str | None) -> tuple[Run, ...]:
    """Runs in order of time; none where there is no database yet.

    Raises:
        InputError: ``since`` is neither a time nor a duration.
        StoreError: the database cannot be read.
    """
    from advisor.store.database import open_store
    from advisor.store.ledger import runs

    start = EARLIEST if since is None else _since(since)
    store = open_store(config.settings.store.url, must_exist=True)
    if store is None:
        return ()
    with store:
        return runs(store, since=start, project=project)


def _since(text: str) -> datetime:
    from advisor.core.units import parse_duration_s

    try:
        seconds = parse_duration_s(text)
    except ValueError:
        return parse_time("--since", text)
    age_s = (now() - EARLIEST).total_seconds()
    return now() - timedelta(seconds=min(seconds, age_s))


def keep_recommendation(
    config: Config, recommendation: Recommendation, trace: Trace, *, entry_id: str, project: str
) -> None:
    """Enter what was recommended into the ledger.

    Raises:
        StoreError: a number is not finite, or the database cannot be written.
    """
    from advisor.store.ledger import LedgerEntry, record_recommendation

    chosen = next(o for o in recommendation.options if o.plan.id == recommendation.recommended)
    plan = chosen.plan
    entry = LedgerEntry(
        id=entry_id,
        at=now(),
        project=project,
        script=trace.script,
        plan_id=plan.id,
        provider=plan.provider,
        gpu=plan.gpu,
        num_gpus=plan.num_gpus,
        market=plan.offer.market if plan.offer is not None else None,
        time_s=chosen.time_s,
        cost_usd=chosen.cost_usd,
    )
    with opened(config) as store:
        record_recommendation(store, entry)
