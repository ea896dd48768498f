"""What logs say: waits in a cluster's queue, and how often spot machines are reclaimed."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from advisor.core.units import HOUR_S, MINUTE_S, format_duration, format_duration_short
from advisor.core.values import Interval, Quantiles
from advisor.report import document as doc
from advisor.report.words import all_told, sentences, warnings_json
from advisor.report.words.answer_notes import basis as log_basis
from advisor.service.queue_waits import FittedMachine, Wait
from advisor.service.queue_what_ifs import ClassWaits, QueueWhatIf
from advisor.site_files.slurm_limits import QueuedNow
from recommender.queue.fitted import WaitBin, WaitQuantiles
from recommender.queue.scoring import QueueCheck, Score

ANY = "any"
ALIKE_TIMES = 2.0
NO_WAIT = "0 s"  # logs count whole seconds
WAIT = doc.Kind("wait", lambda wait_s: NO_WAIT if wait_s < 1 else format_duration_short(wait_s))
BIN_COLUMNS = (
    *doc.columns("Size", "Walltime", "Queue", ("Jobs", doc.COUNT)),
    *doc.columns("Wait p50", "Wait p90", kind=WAIT),
)
CHECK_COLUMNS = (
    *doc.columns("Quantiles", "Covers p50", "Covers p90"),
    *doc.columns("Pinball p50", "Pinball p90", kind=doc.DECIMALS),
)


def queue_fit_document(waits: WaitQuantiles) -> doc.Document:
    """Every bin with enough jobs."""
    return doc.Document(facts=asdict(waits), blocks=(_bins(waits.bins),))


def wait_document(wait: Wait) -> doc.Document:
    """The wait of one kind of job, and what it rests on."""
    alike, size_unit = wait.alike, wait.size_unit
    facts = {
        "wait_s": None if alike is None else asdict(Quantiles(p50=alike.p50_s, p90=alike.p90_s)),
        "jobs": 0 if alike is None else alike.num_jobs,
        "size_unit": size_unit,
        "based_on": None if alike is None else doc.facts_of(alike, "size walltime queue"),
        "num_waiting": wait.num_waiting,
        "waited_s": wait.waited_s,
        "limits": [asdict(one) for one in wait.limits],
        **all_told("removals", wait.removals),
        **all_told("delays", wait.delays),
        "job": None if wait.job is None else asdict(wait.job),
        **warnings_json(wait.warnings),
    }
    lines = sentences((*wait.removals, *wait.delays))
    if wait.job is not None:
        lines.append(_place_in_words(wait.job))
    if alike is not None:
        lines.append(f"{_wait_in_words(wait, alike)} ({basis(alike, size_unit)})")
    return doc.Document(
        facts=facts, blocks=(doc.Lines(tuple(lines)),), sheet=_bins([] if alike is None else [alike])
    )


def _place_in_words(job: QueuedNow) -> str:
    """Where it stands in its queue, what its priority is made of, and why it waits."""
    parts = ", ".join(f"{name} {value:,.10g}" for name, value in job.factors.items())
    priority = f"priority {job.priority:,}{f' ({parts})' if parts else ''}"
    return (
        f"job {job.job_id} is number {job.place:,} of {job.num_waiting:,} that wait in {job.partition}:"
        f" {priority}; Slurm says {job.reason}"
    )


def _wait_in_words(wait: Wait, alike: WaitBin) -> str:
    """Half of the jobs, and 9 of 10: in all, or from now on."""
    after = "" if wait.waited_s is None else f" longer after {_in_words(wait.waited_s)}"
    behind = "" if wait.num_waiting is None else f" with {wait.num_waiting:,} jobs waiting before them"
    return (
        f"half of the jobs wait up to {_in_words(alike.p50_s)}{after}, 9 of 10 within"
        f" {_in_words(alike.p90_s)}{behind}"
    )


def check_document(check: QueueCheck) -> doc.Document:
    """Coverage and pinball loss beside those of the global quantiles."""
    scores: dict[str, Quantiles | Score] = {
        "coverage": check.online.coverage,
        "pinball": check.online.pinball,
        "online": check.online,
        "frozen": check.frozen,
    }
    for name, score in (("uncorrected", check.uncorrected), ("baseline", check.baseline)):
        scores |= {f"{name}_coverage": score.coverage, f"{name}_pinball": score.pinball}
    counts = {"jobs": check.num_jobs, "jobs_checked": check.num_checked, "fits_frozen": check.num_frozen}
    rows = (
        _score("frozen for a week, as a fit is used", check.frozen),
        _score("learning on with each start", check.online),
        _score("the same, uncorrected", check.uncorrected),
        _score("of all jobs", check.baseline),
    )
    words = (
        f"{check.num_checked:,} of {check.num_jobs:,} jobs checked, the last; {check.num_frozen:,} frozen"
        " fits. Pinball in log minutes. +- is the standard error, if days are independent."
    )
    return doc.Document(
        facts={**counts, **{name: asdict(score) for name, score in scores.items()}},
        blocks=(doc.Table(columns=CHECK_COLUMNS, rows=rows), doc.Lines((words,))),
    )


def what_if_document(it: QueueWhatIf) -> doc.Document:
    """Waits by size, logged and simulated as the cluster is and as it could be; then of one more job."""
    units = "{:,} {}, backfill {}"
    today, then = (units.format(*one) for one in zip(it.units, [it.size_unit] * 2, it.backfill, strict=True))
    waits = [f"{which} {p}" for which in ("Logged", "Today", "What if") for p in ("p50", "p90")]
    by_size = doc.Table(
        columns=doc.columns("Size", ("Jobs", doc.COUNT), *((wait, WAIT) for wait in waits)),
        rows=tuple(
            doc.Row((one.size, one.num_jobs, *_pairs(one.logged_s, one.today_s, one.what_if_s)))
            for one in it.classes
        ),
    )
    by_walltime = doc.Table(
        columns=doc.columns(("Asks for", doc.SHORT_DURATION), *((wait, WAIT) for wait in waits[2:])),
        rows=tuple(doc.Row((one.walltime_s, *_pairs(one.today_s, one.what_if_s))) for one in it.walltimes),
    )
    words = f"Simulated: today {today}; what if {then}. {_fidelity(it.classes[0])}"
    blocks: tuple[doc.Block, ...] = (by_size, doc.Lines((words,)))
    if it.walltimes:
        blocks = (*blocks, by_walltime, doc.Lines((_of_one_more(it),)))
    return doc.Document(facts=asdict(it), blocks=blocks)


def _fidelity(everything: ClassWaits) -> str:
    """Whether the simulation of today has the waits of the log, at the p90 and in log minutes."""
    logged_s, today_s = everything.logged_s.p90, everything.today_s.p90
    apart = abs(math.log1p(today_s / MINUTE_S) - math.log1p(logged_s / MINUTE_S))
    if apart <= math.log(ALIKE_TIMES):
        return "Trust the difference where today is like the log."
    p90 = f"p90 {WAIT.words(today_s)}, logged {WAIT.words(logged_s)}"
    return (
        f"Do not trust the difference: today is not like the log ({p90}), so jobs waited for something else."
    )


def _of_one_more(it: QueueWhatIf) -> str:
    """How the waits came about, and whether asking for the shortest time starts the job sooner."""
    when = "" if it.submit_at is None else f" (what if: {it.num_moments} days at {it.submit_at})"
    first, last = it.walltimes[0], it.walltimes[-1]
    sooner_s = last.what_if_s.p90 - first.what_if_s.p90
    asked, longest = format_duration(first.walltime_s), format_duration(last.walltime_s)
    advice = (
        f"Asking for {asked} starts it no sooner than for {longest}."
        if sooner_s < MINUTE_S
        else f"Asking for {asked}, 9 of 10 start {format_duration(sooner_s)} sooner than for {longest}."
    )
    return f"One more job, submitted alone at moments of the log{when}. {advice}"


def _pairs(*waits: Quantiles) -> tuple[float, ...]:
    return tuple(value for one in waits for value in (one.p50, one.p90))


def basis(alike: WaitBin, size_unit: str) -> str:
    """In words, which jobs a wait was taken from: ``"812 jobs of 4..7 gpus, walltime <=12h"``."""
    return log_basis(
        num_jobs=alike.num_jobs,
        size=alike.size,
        size_unit=size_unit,
        walltime=alike.walltime,
        queue=alike.queue,
    )


def _bins(bins: Sequence[WaitBin]) -> doc.Table:
    keys = [tuple(ANY if name is None else name for name in one.key) for one in bins]
    rows = tuple(
        doc.Row((*key, one.num_jobs, one.p50_s, one.p90_s)) for key, one in zip(keys, bins, strict=True)
    )
    return doc.Table(columns=BIN_COLUMNS, rows=rows)


def _in_words(wait_s: float) -> str:
    return NO_WAIT if wait_s < 1 else format_duration(wait_s)


def _score(name: str, score: Score) -> doc.Row:
    error, pinball = score.coverage_se, score.pinball
    p50 = _share(score.coverage.p50, None if error is None else error.p50)
    p90 = _share(score.coverage.p90, None if error is None else error.p90)
    return doc.Row((name, p50, p90, pinball.p50, pinball.p90))


def _share(share: float, error: float | None) -> str:
    return f"{share:.1%}" if error is None else f"{share:.1%} +- {error:.1%}"


_RATES = doc.Kind("interval of rates", "{:.2g}".format, is_right=False)
COLUMNS = (
    *doc.columns("Machine", ("Watched", doc.SHORT_DURATION), ("Up", doc.SHARE), ("Preemptions", doc.COUNT)),
    *doc.columns(("Per hour, logged", doc.FOUR_DIGITS), ("Per hour, next (p10 .. p90)", _RATES)),
    *doc.columns(("Away, next (p10 .. p90)", doc.INTERVAL), ("First wait (p90)", doc.SHORT_DURATION)),
)
_NOTE = (
    "Next: what recommend draws from, the log corrected by machines of its class in open traces. The setting"
    " spot.history takes the log, or the file that --out writes."
)
_Z90 = 1.2815515655446004


def spot_fit_document(machines: Sequence[FittedMachine]) -> doc.Document:
    """A row for each machine of the log."""
    table = doc.Table(columns=COLUMNS, rows=tuple(doc.Row(_machine_cells(one)) for one in machines))
    return doc.Document(facts={"machines": list(map(_facts, machines))}, blocks=(table, doc.Lines((_NOTE,))))


def _machine_cells(one: FittedMachine) -> tuple[doc.Cell, ...]:
    seen = one.seen
    return (
        one.machine or ANY,
        (seen.up_h + seen.down_h) * HOUR_S,
        1 - seen.share_down,
        seen.num_losses,
        seen.num_losses / seen.up_h if seen.up_h else None,
        _around(one.odds.preemptions_per_h, one.odds.sigma_rate),
        _around(one.odds.outage_h * HOUR_S, one.odds.sigma_outage),
        one.wait_s,
    )


def _around(median: float, sigma: float) -> Interval:
    spread = math.exp(_Z90 * sigma)
    return Interval(p10=median / spread, p50=median, p90=median * spread)


def _facts(one: FittedMachine) -> Mapping[str, object]:
    return {
        "machine": one.machine or None,
        "gpu": one.gpu,
        "num_gpus": one.num_gpus,
        **asdict(one.seen),
        "preemptions_per_h": asdict(_around(one.odds.preemptions_per_h, one.odds.sigma_rate)),
        "reacquire_s": asdict(_around(one.odds.outage_h * HOUR_S, one.odds.sigma_outage)),
        "wait_s": asdict(one.wait_s),
        "assumed_preemptions_per_h": one.assumed.preemptions_per_h,
    }
