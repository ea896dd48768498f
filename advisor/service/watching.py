"""What watches a command while it runs: a guard of its limits, and a canary of its first steps."""

from __future__ import annotations

import math
import os
import select
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.core.errors import InputError
from advisor.core.limits import MAX_PLANNED_S, MAX_USD
from advisor.core.units import HOUR_S, exact_duration, format_duration, format_usd
from advisor.core.values import Quantiles
from advisor.receipt.guard import Anew, Canary, CanaryVerdict, Expected, Guard, Pace, RunLimits, pace_of

if TYPE_CHECKING:
    from advisor.config.settings import ChoiceSettings
    from advisor.service.listening import Listener
    from advisor.service.plan_facts import Place
    from advisor.store.ledger import LedgerEntry, OfferedOption

LOOK_EVERY_S = 2.0
_ANSWER_WITHIN_S = 300.0
_BY_CANARY = "its canary: steps were slower than predicted"


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchRequest:
    """What to watch a command for; None is no limit."""

    max_usd: float | None = None
    """Of rent, of all its machines."""
    max_s: float | None = None
    """From its start."""
    canary: Canary | None = None
    """What to do where its first steps are slower than predicted."""
    num_nodes: int | None = None
    """Machines that train together and are paid for; None for what Slurm says, else one."""

    @property
    def has_limit(self) -> bool:
        """Whether the command ends at some cost or time."""
        return self.max_usd is not None or self.max_s is not None

    def check(self, listener: Listener, *, has_recommendation: bool) -> None:
        """Refuse what cannot be meant, before anything runs.

        Raises InputError: a limit that is none, or nothing to compare the first steps with.
        """
        named = listener.name_of
        if self.max_usd is not None and not 0 < self.max_usd <= MAX_USD:
            raise InputError(
                f"{named('max_usd')} must be above 0 and at most {MAX_USD:,.0f} US dollars, got"
                f" {self.max_usd:g}."
            )
        if self.max_s is not None and not 0 < self.max_s <= MAX_PLANNED_S:
            raise InputError(
                f"{named('max_s')} must be above 0 and at most {exact_duration(MAX_PLANNED_S)}, got"
                f" {exact_duration(self.max_s)}."
            )
        if self.canary is not None and not has_recommendation:
            raise InputError(
                f"{named('canary')} compares the first steps with a prediction: give"
                f" {named('recommendation')} ID, which `advisor recommend --record` prints."
            )


def expected_of(advised: LedgerEntry | None, place: Place, num_nodes: int) -> Expected:
    """What a recommendation says of a job on the GPUs here, or on those of all its machines.

    Raises InputError: it says nothing of them.
    """
    if advised is None or advised.iteration_s is None:
        raise InputError("nothing was predicted for a step: the first steps are not compared")
    here = None if place.gpu is None else (place.gpu, place.num_gpus or 1)
    # All of its machines take equally long for a step: what one sees is what was predicted of all.
    each = None if here is None else (place.gpu, here[1] * num_nodes)
    if (advised.gpu, advised.num_gpus) not in (here, each):
        found = "no GPU is found here" if here is None else f"this machine has {here[1]} x {here[0]}"
        found += f" on each of {num_nodes} nodes" if here is not None and num_nodes > 1 else ""
        raise InputError(
            f"the recommendation is about {advised.num_gpus} x {advised.gpu}, and {found}: the first steps"
            " are not compared"
        )
    return Expected(
        step_s=advised.iteration_s,
        time_s=advised.time_s,
        cost_usd=advised.cost_usd,
        num_steps=advised.num_iterations,
        usd_per_h=advised.usd_per_h,
    )


def verdict_of(advised: LedgerEntry | None, pace: Pace, choice: ChoiceSettings) -> CanaryVerdict | None:
    """Going on at this pace beside the options of the answer, which nothing is asked about anew.

    The error of a step is wholly that of the same GPU's other options, and of other GPUs' as much as errors
    correlate. What was done so far counts for going on alone. None where steps, price or options are unknown.
    """
    expected = pace.expected
    if advised is None or expected.num_steps is None or expected.usd_per_h is None or not advised.options:
        return None
    left_s = max(0, expected.num_steps - pace.num_steps) * pace.step_s
    left_usd = left_s * expected.usd_per_h / HOUR_S
    hour_usd = choice.value_of_time_usd_per_h
    totals = [
        (total_usd, anew)
        for option in advised.options
        if option.plan_id != advised.plan_id
        and (anew := _anew(option, advised, pace)) is not None
        and (total_usd := _total_usd(anew, option, choice)) < left_usd + hour_usd * left_s / HOUR_S
    ]
    best = min(totals, key=lambda one: one[0], default=None)
    return CanaryVerdict(
        step_s=pace.step_s,
        predicted_s=expected.step_s,
        left_s=left_s,
        left_usd=left_usd,
        better=None if best is None else best[1],
    )


def _anew(option: OfferedOption, advised: LedgerEntry, pace: Pace) -> Anew | None:
    """None of a job that may never end, over the budget or late, or on which nobody knows the work."""
    from recommender.outcome.draws import SHARED_ERROR

    trains = {(one.gpu, one.num_gpus): one.train_p50_s for one in advised.alternatives}
    shared = 1.0 if option.gpu == advised.gpu else SHARED_ERROR
    # Where the time of training is not known apart, all of the time is.
    train_s = trains.get((option.gpu, option.num_gpus), option.time_p50_s)
    more_s = train_s * ((pace.step_s / pace.expected.step_s.p50) ** shared - 1)
    more_usd = more_s * (option.usd_per_h or 0.0) / HOUR_S
    anew = Anew(
        plan_id=option.plan_id,
        time_s=Quantiles(p50=option.time_p50_s + more_s, p90=option.time_p90_s + more_s),
        cost_usd=Quantiles(p50=option.cost_p50_usd + more_usd, p90=option.cost_p90_usd + more_usd),
    )
    is_known = option.usd_per_h is not None and (
        option.num_changes is not None or (option.num_gpus, option.num_nodes) == (advised.num_gpus, 1)
    )
    most_usd, most_s = advised.budget_usd or math.inf, advised.deadline_s or math.inf
    ends = math.isfinite(anew.time_s.p90) and math.isfinite(anew.cost_usd.p90)
    return anew if is_known and ends and anew.cost_usd.p50 <= most_usd and anew.time_s.p50 <= most_s else None


def _total_usd(anew: Anew, option: OfferedOption, choice: ChoiceSettings) -> float:
    from recommender.ranking.value import Worth, changes_usd

    worth = Worth(hour_usd=choice.value_of_time_usd_per_h, change_usd=choice.change_usd)
    waited_usd = worth.hour_usd * anew.time_s.p50 / HOUR_S
    return anew.cost_usd.p50 + waited_usd + changes_usd(option.num_changes or 0, worth)


def words_of_verdict(verdict: CanaryVerdict) -> str:
    """What is better now, in a sentence."""
    going_on = f"going on takes {format_duration(verdict.left_s)} and {format_usd(verdict.left_usd)} more"
    better = verdict.better
    if better is None:
        return f"nothing of the answer is better now: {going_on}"
    time_s, cost_usd = better.time_s, better.cost_usd
    return (
        f"better now: {better.plan_id}, begun anew {format_duration(time_s.p50)} (p90"
        f" {format_duration(time_s.p90)}) and {format_usd(cost_usd.p50)} (p90 {format_usd(cost_usd.p90)});"
        f" {going_on}"
    )


class Watch:
    """Looks at one command again and again; it never raises, and what cannot be judged now is tried again.

    Args:
        grace_s: what a command gets to save a checkpoint.
        usd_per_h: gives the present price of all machines.
        expected: gives what was predicted, once the machine is known; an `InputError` says why nothing was.
        judge: says of a pace what going on takes, and what is better now; None where that is not known.
        folder: in which the command's processes count their steps.
    """

    def __init__(
        self,
        request: WatchRequest,
        *,
        grace_s: float,
        usd_per_h: Callable[[], float | None],
        expected: Callable[[], Expected],
        judge: Callable[[Pace], CanaryVerdict | None] = lambda _: None,
        folder: Path,
        listener: Listener,
    ) -> None:
        limits = RunLimits(max_s=request.max_s, max_usd=request.max_usd, grace_s=grace_s)
        self.guard = Guard(limits=limits, usd_per_h=usd_per_h, say=listener.note)
        self._canary = request.canary
        self.verdict: CanaryVerdict | None = None
        self._expected, self._judge = expected, judge
        self._folder, self._listener = folder, listener
        self._looked_s = 0.0
        self._question: _Question | None = None
        self._failed: set[str] = set()

    def look(self, elapsed_s: float, pid: int) -> None:
        """What `run_command` calls while the command runs."""
        with self._apart("its limits"):
            self.guard.look(elapsed_s, pid)
        with self._apart("an answer at the terminal"):
            self._listen(elapsed_s)
        if self._canary is not None and elapsed_s - self._looked_s >= LOOK_EVERY_S:
            self._looked_s = elapsed_s
            with self._apart("its first steps"):
                self._compare(elapsed_s)

    @contextmanager
    def _apart(self, what: str) -> Iterator[None]:
        """A fault of ours ends no training and nothing else that we watch; each is said once."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 - whatever it is, the command goes on
            if what not in self._failed:
                self._failed.add(what)
                why = f"{type(error).__name__}: {error}"
                # Standard error may be what fails.
                with suppress(OSError, ValueError):
                    self._listener.warn(
                        [f"the command goes on; {what} cannot be read now and will be tried again ({why})"]
                    )

    def _compare(self, elapsed_s: float) -> None:
        from advisor.receipt.receipt_files import read_steps

        try:
            expected = self._expected()
        except InputError as error:
            self._canary = None
            self._listener.note(str(error))
            return
        steps, _ = read_steps(self._folder, elapsed_s)
        pace = None if steps is None else pace_of(expected, steps.step_s, steps.num_steps)
        if pace is None:
            return
        wanted, self._canary = self._canary, None
        self._listener.note(words_of(pace))
        if not pace.is_slower:
            return
        self.verdict = self._judge(pace)
        if self.verdict is not None:
            self._listener.note(words_of_verdict(self.verdict))
        if wanted is Canary.STOP:
            self.guard.stop(elapsed_s, _BY_CANARY)
        elif wanted is Canary.ASK:
            self._question = _Question.at_terminal(elapsed_s)
            if self._question is None:
                self._listener.note("there is no terminal to ask at: the command goes on")

    def _listen(self, elapsed_s: float) -> None:
        """For an answer at the terminal; none within five minutes lets the command go on."""
        if self._question is None:
            return
        answer = self._question.answer()
        if answer is not None or elapsed_s - self._question.asked_s > _ANSWER_WITHIN_S:
            self._question.close()
            self._question = None
            if answer is not None and answer.strip().lower() in ("y", "yes"):
                self.guard.stop(elapsed_s, _BY_CANARY)


def words_of(pace: Pace) -> str:
    """What the first steps show, in a sentence."""
    expected = pace.expected
    off = pace.step_s / expected.step_s.p50 - 1
    than = f"{abs(off):.0%} {'slower' if off > 0 else 'faster'} than predicted"
    text = f"the first {pace.num_steps:,} steps take {format_duration(pace.step_s)} each, {than}"
    if not math.isfinite(expected.step_s.p90):
        # As of nodes whose network was not named.
        return f"{text}: how slow they may be was not known, so nothing follows from it"
    if pace.held:
        return f"{text}: within p10..p90"
    if pace.job_s is None:
        return text
    job = f"{format_duration(pace.job_s)}, not {format_duration(expected.time_s.p50)}"
    if pace.job_usd is not None:
        job += f", and {format_usd(pace.job_usd)}, not {format_usd(expected.cost_usd.p50)}"
    return f"{text}: the job takes {job}"


@dataclass(slots=True)
class _Question:
    """Whether to stop, asked at the terminal; the command keeps its standard input."""

    handle: int
    asked_s: float

    @classmethod
    def at_terminal(cls, asked_s: float) -> _Question | None:
        """Ask; None where there is no terminal."""
        try:
            handle = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY)
        except OSError:
            return None
        os.write(handle, b"Stop the command? [y/N] ")
        return cls(handle, asked_s)

    def answer(self) -> str | None:
        """The line that was typed; None while there is none."""
        if not select.select([self.handle], [], [], 0)[0]:
            return None
        return os.read(self.handle, 1000).decode(errors="replace")

    def close(self) -> None:
        """Ask no more."""
        os.close(self.handle)
