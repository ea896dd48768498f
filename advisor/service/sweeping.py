"""A fleet of jobs, each with its arguments and limits: what to take for all of them, and what moved.

Each combination is an answer of `advisor recommend`. It is kept under a hash of what it rests on, so another
run computes what changed. Where answers are computed: `advisor.service.sweep_engines`.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import platform
import shlex
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib import metadata
from itertools import pairwise
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

import advisor
import recommender
from advisor.core.errors import InputError, did_you_mean
from advisor.core.files import write_atomically
from advisor.core.redaction import redact
from advisor.formats.foreign_files import read_json, read_plain
from advisor.formats.user_files import at_home, fault_in_words, read_document
from advisor.service.listening import Listener
from advisor.service.prices.live import source_states

if TYPE_CHECKING:
    from advisor.config.layers import PricingSettings
    from advisor.config.settings import PolicySettings

ADVICE = "docs/sweep.md shows how a grid is written."
MOST_COMBINATIONS = 100_000
OPTIONS = (
    "epochs", "iterations", "budget", "deadline", "confidence", "gpu", "provider", "region", "market",
    "max-nodes", "policy", "dataset-gb", "suppose", "value-of-time",
)  # fmt: skip
WAITS_S = (1, 2, 4, 8, 15, 30, 60)
"""Between tries of what may be away for a minute or two: a database, a folder of another machine."""
_MOST_WORDS = 500
# Exit codes of answers: the policy leaves nothing, nothing is feasible.
_ANSWERS = (3, 4)
_MOST_BYTES = 50_000_000

Value = str | int | float


class Grid(BaseModel):
    """What a grid file holds: all combinations of its lists are asked."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    subjects: Annotated[tuple[str, ...], Field(min_length=1)]
    """Scripts and saved traces, with wildcards, relative to the file."""
    arguments: Annotated[tuple[str, ...], Field(min_length=1)] = ("",)
    """Of scripts, each entry a command line."""
    options: Mapping[str, Annotated[tuple[Value | tuple[Value, ...], ...], Field(min_length=1)]] = {}
    """Of `recommend` by name, each with the values to try; a list as a value repeats the option."""
    runs_per_month: Mapping[str, Annotated[float, Field(gt=0, le=100_000, allow_inf_nan=False)]] = {}
    """By pattern of the subject's name, the first that fits; 1 without any."""
    monthly_budget_usd: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """For all jobs together."""
    commitments: Mapping[Annotated[int, Field(gt=0)], Annotated[float, Field(gt=0, lt=1)]] = {}
    """Discounts off the price on demand, by months that one commits for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepJob:
    """One combination."""

    subject: str
    """A script or a saved trace."""
    arguments: str
    options: tuple[str, ...]
    """Words of the command line."""

    @property
    def name(self) -> str:
        """As a person would type it."""
        script = ("--", *shlex.split(self.arguments)) if self.arguments else ()
        return shlex.join((self.subject, *self.options, *script))

    @property
    def digest(self) -> str:
        """Stands for the name in files: arguments may hold secrets."""
        return hashlib.sha256(self.name.encode(errors="replace")).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A machine that a job could take; times and costs are medians and 90 % quantiles of one run."""

    plan: str
    gpu: str
    num_gpus: int
    instance_type: str | None
    num_nodes: int
    market: str
    usd_per_h: float | None
    """None for one's own machine of unknown cost; its costs lack that."""
    step_s: float
    time_p50_s: float
    time_p90_s: float
    cost_p50_usd: float
    cost_p90_usd: float
    held_s: float
    """The time without the wait for the machine."""
    counted_usd: float
    """The cost where machines are compared: that of a guessed price at its p90."""
    work_usd: float
    """What must be done to the script first, once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """What was recommended for a job."""

    take: Choice | None = None
    """None where nothing was recommended."""
    frontier: tuple[Choice, ...] = ()
    """Machines of which none is both cheaper and faster than another."""
    script: str = ""
    """As the profile calls it."""
    batch_size: int | None = None
    error: str | None = None
    """Why nothing was recommended."""
    is_final: bool = True
    """Whether that is an answer, such as that nothing is feasible; others are asked for again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepBasis:
    """What all answers rest on besides their own files; digests, since settings may hold secrets."""

    versions: str
    """Of advisor, Python and NumPy."""
    settings: str
    """With the policies that they name."""
    prices: str
    """How many of which source, and from when."""

    def differs(self, other: SweepBasis) -> str | None:
        """The first difference in words; None without any."""
        if self.versions != other.versions:
            return f"it has {other.versions}, and here is {self.versions}"
        if self.settings != other.settings:
            return "its settings or policies differ from those here"
        return "its prices differ from those here" if self.prices != other.prices else None


# What changed of what an answer rests on -> why the advice moved.
_CAUSES = {
    "prices": "price",
    "versions": "prediction",
    "files": "prediction",
    "policies": "policy",
    "settings": "policy",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """Advice, and digests of what it rests on: those of the world, ``files`` and ``policies``."""

    advice: Advice
    rests_on: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """A job, its advice, and that of the last sweep; None where it had none."""

    job: SweepJob
    advice: Advice
    before: Advice | None
    is_new: bool
    """Whether the advice was computed now."""
    causes: tuple[str, ...] = ()
    """What of that on which the advice rests changed since."""

    @property
    def moved(self) -> str | None:
        """Why advice is not as before: price, prediction, policy; None where it is, or has no answer."""
        now, then = self.advice, self.before
        if then is None or not now.is_final or (_plan(now), now.error) == (_plan(then), then.error):
            return None
        why = " and ".join(dict.fromkeys(_CAUSES[one] for one in _CAUSES if one in self.causes))
        if now.take is None or then.take is None:
            return f"is {'no longer possible' if now.take is None else 'possible now'}: {why}"
        return why


def _plan(advice: Advice) -> str | None:
    return None if advice.take is None else advice.take.plan


def read_grid(path: Path) -> tuple[Grid, tuple[SweepJob, ...]]:
    """A grid file and all its combinations.

    Raises InputError: it is no grid, names files that are not there, or means too many combinations.
    """
    value = read_document(path, kind="grid", advice=ADVICE).value
    try:
        # Lists of YAML are tuples of ours.
        grid = Grid.model_validate(value, strict=False)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"][:2])) or "the file"
        raise InputError(f"{str(path)!r} is no grid: {where}: {fault_in_words(first)} {ADVICE}") from None
    for name in grid.options:
        if name not in OPTIONS:
            raise InputError(
                f"{str(path)!r}: a sweep has no option {name!r}.{did_you_mean(name, OPTIONS)} There are"
                f" {', '.join(OPTIONS)}."
            )
    subjects = [one for pattern in grid.subjects for one in _files(path.parent, pattern)]
    num = len(subjects) * len(grid.arguments) * prod(map(len, grid.options.values()))
    if num > MOST_COMBINATIONS:
        raise InputError(
            f"{str(path)!r} means {num:,} combinations: at most {MOST_COMBINATIONS:,}. Leave some values out."
        )
    return grid, tuple(_jobs(subjects, grid))


def _files(folder: Path, pattern: str) -> list[str]:
    found = sorted(str(one) for one in folder.glob(pattern) if one.is_file())
    if not found:
        raise InputError(f"no file is called {pattern!r} in {folder}: subjects are scripts and saved traces.")
    return found


def _jobs(subjects: Iterable[str], grid: Grid) -> Iterator[SweepJob]:
    choices = [[(name, value) for value in values] for name, values in grid.options.items()]
    for subject, arguments, options in itertools.product(
        subjects, grid.arguments, itertools.product(*choices)
    ):
        words = []
        for name, value in options:
            for one in value if isinstance(value, tuple) else (value,):
                words += [f"--{name}", str(one)]
        yield SweepJob(subject=subject, arguments=arguments, options=tuple(words))


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A job for a process that answers, here or on another machine with the same files."""

    job: SweepJob
    key: str
    """That its answer is kept under."""
    world: SweepBasis
    folder: str
    """That paths of the job are relative to."""
    offline: bool


Engine = Callable[[Sequence[Request]], Iterable[tuple[str, Advice]]]
"""Answers requests in any order, each once: key and advice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """How a sweep is made."""

    folder: Path
    """Keeps what was computed; it can be deleted at any time."""
    engine: Engine
    offline: bool
    world: SweepBasis

    def sweep(self, jobs: Sequence[SweepJob], listener: Listener) -> tuple[Swept, ...]:
        """The advice for each job, computed where it is not kept.

        Raises:
            InputError: the folder cannot be written.
            AdvisorError: the engine gave up.
        """
        # Many jobs are about one file, which is read once.
        digest_of = cache(_digest_of)
        bases = {job: rests_on(job, self.world, digest_of) for job in jobs}
        keys = {job: key_of(job, bases[job]) for job in jobs}
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            before = {
                name: key for name, key in _read(self.folder / "last.json").items() if isinstance(key, str)
            }
            then = {job: self._kept(before.get(job.digest, "")) for job in jobs}
            known = {key: kept.advice for key in keys.values() if (kept := self._kept(key))}
            missing = {key: job for job, key in keys.items() if key not in known}
            known |= self._computed(missing, bases, listener)
            last = {job.digest: key for job, key in keys.items() if known[key].is_final}
            self.write("last.json", json.dumps(before | last).encode())
        except OSError as error:
            raise InputError(f"cannot keep answers in {self.folder}: {error.strerror or error}.") from error
        return tuple(
            Swept(
                job=job,
                advice=known[keys[job]],
                before=None if old is None else old.advice,
                is_new=keys[job] in missing,
                causes=tuple(
                    name for name, one in bases[job].items() if old and old.rests_on.get(name) != one
                ),
            )
            for job, old in ((job, then[job]) for job in jobs)
        )

    def _computed(
        self, missing: Mapping[str, SweepJob], bases: Mapping[SweepJob, Mapping[str, str]], listener: Listener
    ) -> dict[str, Advice]:
        here = str(Path.cwd())
        requests = [
            Request(job=job, key=key, world=self.world, folder=here, offline=self.offline)
            for key, job in missing.items()
        ]
        found: dict[str, Advice] = {}
        with listener.count("sweeping") as told:
            for key, advice in self.engine(requests) if requests else ():
                found[key] = advice
                if advice.is_final:
                    kept = {"advice": asdict(advice), "rests_on": bases[missing[key]]}
                    self.write(f"{key}.json", json.dumps(kept).encode())
                told(len(found), len(requests))
        return found

    def write(self, name: str, payload: bytes) -> None:
        """A file in the folder, which may be away for a minute, as another machine's, or full.

        Raises OSError: it cannot be written for two minutes.
        """
        for wait_s in (*WAITS_S, None):
            try:
                write_atomically(self.folder / name, payload)
                return
            except OSError:
                if wait_s is None:
                    raise
                time.sleep(wait_s)

    def _kept(self, key: str) -> Kept | None:
        """What an earlier sweep computed; a damaged file is computed again."""
        facts = _read(self.folder / f"{key}.json") if key.isalnum() else {}
        try:
            return Kept(advice=advice_from(facts["advice"]), rests_on=dict(facts["rests_on"]))
        except (KeyError, TypeError, ValueError):
            return None


def advice_from(facts: Mapping[str, Any]) -> Advice:
    """What ``asdict`` made of advice.

    Raises:
        TypeError: it is no advice.
        KeyError: the same.
    """
    take = facts["take"]
    frontier = tuple(Choice(**one) for one in facts["frontier"])
    return Advice(**{**facts, "take": take and Choice(**take), "frontier": frontier})


def rests_on(
    job: SweepJob, world: SweepBasis, digest_of: Callable[[Path], str] | None = None
) -> dict[str, str]:
    """Digests of what an answer rests on, but for data and packages that a script reads.

    Raises InputError: a file cannot be read.
    """
    digest_of = digest_of or _digest_of
    policies = [digest_of(Path(value)) for flag, value in pairwise(job.options) if flag == "--policy"]
    return asdict(world) | {"files": digest_of(Path(job.subject)), "policies": "".join(policies)}


def key_of(job: SweepJob, base: Mapping[str, str]) -> str:
    """A name for an answer."""
    return digest([base, job.arguments, job.options])


def digest(value: object) -> str:
    """A SHA-256 of what can be written as JSON."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def _read(path: Path) -> dict[str, Any]:
    try:
        value = read_json(read_plain(path, most_bytes=_MOST_BYTES))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def world_of(pricing: PricingSettings, policy: PolicySettings, settings: str) -> SweepBasis:
    """What answers rest on, on this machine and now.

    Raises AdvisorError: sources of prices cannot be read.
    """
    states, _ = source_states(pricing)
    policies = [_digest_of(at_home(path)) for path in policy.files]
    return SweepBasis(versions=versions(), settings=digest([settings, policies]), prices=digest(repr(states)))


@cache
def versions() -> str:
    """Of advisor, Python and NumPy, as text; two checkouts with the same number differ by their code."""
    code = hashlib.sha256()
    for folder in (Path(advisor.__file__).parent, Path(recommender.__file__).parent):
        for file in sorted(folder.rglob("*.py")):
            code.update(file.read_bytes())
    numpy, python = metadata.version("numpy"), platform.python_version()
    return f"advisor {advisor.__version__} ({code.hexdigest()[:8]}), Python {python}, NumPy {numpy}"


def _digest_of(path: Path) -> str:
    """Of a file; of a script, of all Python beside and below it, which it may import."""
    files = sorted(path.parent.rglob("*.py")) if path.suffix == ".py" else [path]
    # Scripts of one folder differ by their names alone.
    digest = hashlib.sha256(f"{path.name} ".encode(errors="replace"))
    for file in files:
        try:
            payload = file.read_bytes()
        except OSError as error:
            raise InputError(f"cannot read {str(file)!r}: {error.strerror or error}.") from error
        digest.update(f"{file.relative_to(path.parent)} {len(payload)} ".encode(errors="replace") + payload)
    return digest.hexdigest()


def words_of(request: Request) -> list[str]:
    """The command line that answers a request."""
    job = request.job
    words = ["recommend", job.subject, *job.options, "--json", "--no-record"]
    words += ["--offline"] * request.offline
    return words + (["--", *shlex.split(job.arguments)] if job.arguments else [])


def advice_of(code: int, out: str, err: str) -> Advice:
    """What a command line said: its exit code and what it printed."""
    try:
        answer = json.loads(out)
        options = {one["id"]: one for one in answer["options"]}
        take = _choice(options[answer["recommended"]])
    except (ValueError, KeyError):
        lines = [line for line in err.splitlines() if line.startswith("error: ")]
        why = redact(" ".join(lines).removeprefix("error: ") or f"exit code {code}")
        return Advice(error=why[:_MOST_WORDS], is_final=code in _ANSWERS)
    return Advice(
        take=take,
        frontier=tuple(_choice(options[one]) for one in answer["frontier"]),
        script=answer["job"]["script"],
        batch_size=answer["job"]["batch_size"],
    )


def _choice(option: Mapping[str, Any]) -> Choice:
    names = ("gpu", "num_gpus", "instance_type", "num_nodes", "market", "usd_per_h", "counted_usd")
    wait_s = option["wait_s"]["p50"] if option["wait_s"] else 0.0
    return Choice(
        plan=option["id"],
        step_s=option["iteration_s"]["p50"],
        time_p50_s=option["time_s"]["p50"],
        time_p90_s=option["time_s"]["p90"],
        cost_p50_usd=option["cost_usd"]["p50"],
        cost_p90_usd=option["cost_usd"]["p90"],
        held_s=max(option["time_s"]["p50"] - wait_s, option["train_s"]["p50"]),
        work_usd=option["work"]["usd"],
        **{name: option[name] for name in names},
    )
