"""A fleet of jobs, each with its arguments and limits: what to take for all of them, and what moved.

Each combination is an answer of `advisor recommend`, made by a process of its own: one that fails takes
nobody with it. An answer is kept under a hash of what it rests on, so another run computes what changed.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import shlex
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, fields
from functools import cache
from itertools import pairwise
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from advisor import __version__
from advisor.core import processes
from advisor.core.errors import InputError, did_you_mean
from advisor.core.files import write_atomically
from advisor.core.redaction import redact
from advisor.formats.foreign_files import read_json, read_plain
from advisor.formats.user_files import fault_in_words, read_yaml
from advisor.service.listening import Listener
from advisor.service.prices.live import source_states

if TYPE_CHECKING:
    from advisor.config.layers import PricingSettings

ADVICE = "docs/sweep.md shows how a grid is written."
MOST_COMBINATIONS = 100_000
OPTIONS = (
    "epochs", "iterations", "budget", "deadline", "confidence", "gpu", "provider", "region", "market",
    "max-nodes", "policy", "dataset-gb", "suppose", "value-of-time",
)  # fmt: skip
_WITHIN_S = 1800.0
_MOST_WORDS = 500
# Exit codes of answers: the policy leaves nothing, nothing is feasible.
_ANSWERS = (3, 4)
_MOST_BYTES = 50_000_000

Value = str | int | float


class Grid(BaseModel):
    """What a grid file holds: all combinations of its lists are asked.

    Attributes:
        subjects: scripts and saved traces, with wildcards, relative to the file.
        arguments: of scripts, each entry a command line.
        options: of `recommend` by name, each with the values to try; a list as a value repeats the option.
    """

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    subjects: Annotated[tuple[str, ...], Field(min_length=1)]
    arguments: Annotated[tuple[str, ...], Field(min_length=1)] = ("",)
    options: Mapping[str, Annotated[tuple[Value | tuple[Value, ...], ...], Field(min_length=1)]] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One combination.

    Attributes:
        subject: a script or a saved trace.
        options: words of the command line.
    """

    subject: str
    arguments: str
    options: tuple[str, ...]

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
class Advice:
    """What was recommended for a job; all but ``error`` None where nothing was.

    Attributes:
        plan: id of the option to take.
        step_s: the median of its iteration.
        error: why nothing was recommended.
        is_final: whether that is an answer, such as that nothing is feasible; others are asked for again.
    """

    plan: str | None = None
    gpu: str | None = None
    num_gpus: int | None = None
    usd_per_h: float | None = None
    step_s: float | None = None
    time_p50_s: float | None = None
    time_p90_s: float | None = None
    cost_p50_usd: float | None = None
    cost_p90_usd: float | None = None
    error: str | None = None
    is_final: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """A job, its advice, and that of the last sweep; None where it had none.

    Attributes:
        is_new: whether the advice was computed now.
    """

    job: Job
    advice: Advice
    before: Advice | None
    is_new: bool

    @property
    def moved(self) -> str | None:
        """Why the advice is not as before: by what changed of the plan; None where it is the same."""
        now, then = self.advice, self.before
        if then is None or (now.plan, now.error) == (then.plan, then.error):
            return None
        if now.plan is None or then.plan is None:
            return "is possible now" if then.plan is None else "is no longer possible"
        if now.step_s != then.step_s and now.gpu == then.gpu:
            return "prediction"
        return "price" if now.usd_per_h != then.usd_per_h else "rules or limits"


def read_grid(path: Path) -> tuple[Job, ...]:
    """All combinations of a grid file.

    Raises:
        InputError: it is no grid, names files that are not there, or means too many combinations.
    """
    value = read_yaml(path, kind="grid", advice=ADVICE)
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
    return tuple(_jobs(subjects, grid))


def _files(folder: Path, pattern: str) -> list[str]:
    found = sorted(str(one) for one in folder.glob(pattern) if one.is_file())
    if not found:
        raise InputError(f"no file is called {pattern!r} in {folder}: subjects are scripts and saved traces.")
    return found


def _jobs(subjects: Iterable[str], grid: Grid) -> Iterator[Job]:
    choices = [[(name, value) for value in values] for name, values in grid.options.items()]
    for subject, arguments, options in itertools.product(
        subjects, grid.arguments, itertools.product(*choices)
    ):
        words = []
        for name, value in options:
            for one in value if isinstance(value, tuple) else (value,):
                words += [f"--{name}", str(one)]
        yield Job(subject=subject, arguments=arguments, options=tuple(words))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """How a sweep is made.

    Attributes:
        folder: keeps what was computed; it can be deleted at any time.
        num_workers: processes at once.
        world: what all answers rest on besides their own files: version, settings, prices.
    """

    folder: Path
    num_workers: int
    offline: bool
    world: str

    def sweep(self, jobs: Sequence[Job], listener: Listener) -> tuple[Swept, ...]:
        """The advice for each job, computed where it is not kept.

        Raises:
            InputError: the folder cannot be written.
        """
        # Many jobs are about one file, which is read once.
        digest_of = cache(_digest_of)
        keys = [self._key(job, digest_of) for job in jobs]
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            before = self._last()
            with listener.count("sweeping") as told, ThreadPoolExecutor(self.num_workers) as pool:
                swept = []
                for one in pool.map(lambda job, key: self._one(job, key, before), jobs, keys):
                    swept.append(one)
                    told(len(swept), len(jobs))
            last = {job.digest: key for job, key in zip(jobs, keys, strict=True)}
            write_atomically(self.folder / "last.json", json.dumps(before | last).encode())
        except OSError as error:
            raise InputError(f"cannot keep answers in {self.folder}: {error.strerror or error}.") from error
        return tuple(swept)

    def _key(self, job: Job, digest_of: Callable[[Path], str]) -> str:
        """A name for what an answer rests on, but for data and packages that a script reads."""
        policies = [digest_of(Path(value)) for flag, value in pairwise(job.options) if flag == "--policy"]
        files = digest_of(Path(job.subject)), policies
        whole = [self.world, self.offline, *files, job.arguments, job.options]
        return hashlib.sha256(json.dumps(whole).encode()).hexdigest()

    def _last(self) -> dict[str, str]:
        """Keys of the answers of earlier sweeps, by job."""
        known = _read(self.folder / "last.json")
        return {name: key for name, key in known.items() if isinstance(key, str)}

    def _one(self, job: Job, key: str, before: Mapping[str, str]) -> Swept:
        kept = self._kept(key)
        advice = kept or _asked(job, offline=self.offline)
        if kept is None and (advice.error is None or advice.is_final):
            write_atomically(self.folder / f"{key}.json", json.dumps(asdict(advice)).encode())
        last = before.get(job.digest)
        return Swept(
            job=job, advice=advice, before=None if last is None else self._kept(last), is_new=kept is None
        )

    def _kept(self, key: str) -> Advice | None:
        """What an earlier sweep computed; a damaged file is computed again."""
        facts = _read(self.folder / f"{key}.json") if key.isalnum() else {}
        return Advice(**facts) if {*facts} == {one.name for one in fields(Advice)} else None


def _read(path: Path) -> dict[str, Any]:
    try:
        value = read_json(read_plain(path, most_bytes=_MOST_BYTES))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def world_of(pricing: PricingSettings, settings: str) -> str:
    """Version, settings and the moments of prices, as text.

    Args:
        pricing: whose sources are looked at.
        settings: all of them, as text.

    Raises:
        AdvisorError: sources of prices cannot be read.
    """
    states, _ = source_states(pricing)
    return f"{__version__} {settings} {states!r}"


def _digest_of(path: Path) -> str:
    """Of a file; of a script, of all Python beside and below it, which it may import."""
    files = sorted(path.parent.rglob("*.py")) if path.suffix == ".py" else [path]
    digest = hashlib.sha256()
    for file in files:
        try:
            payload = file.read_bytes()
        except OSError as error:
            raise InputError(f"cannot read {str(file)!r}: {error.strerror or error}.") from error
        digest.update(f"{file.relative_to(path.parent)} {len(payload)} ".encode(errors="replace") + payload)
    return digest.hexdigest()


def _asked(job: Job, *, offline: bool) -> Advice:
    """What `advisor recommend` says of a job."""
    words = [job.subject, *job.options, "--json", "--no-record", *(("--offline",) if offline else ())]
    if job.arguments:
        words += ["--", *shlex.split(job.arguments)]
    try:
        done = processes.run((*processes.ADVISOR, "recommend", *words), timeout_s=_WITHIN_S)
    except (OSError, subprocess.SubprocessError) as error:
        return Advice(error=f"no answer: {type(error).__name__}", is_final=False)
    try:
        answer = json.loads(done.stdout)
        option = next(one for one in answer["options"] if one["id"] == answer["recommended"])
    except (ValueError, KeyError, StopIteration):
        said = done.stderr.decode(errors="replace").splitlines()
        lines = [line for line in said if line.startswith("error: ")]
        why = redact(" ".join(lines).removeprefix("error: ") or f"exit code {done.returncode}")
        return Advice(error=why[:_MOST_WORDS], is_final=done.returncode in _ANSWERS)
    return Advice(
        plan=option["id"],
        gpu=option["gpu"],
        num_gpus=option["num_gpus"],
        usd_per_h=option["usd_per_h"],
        step_s=option["iteration_s"]["p50"],
        time_p50_s=option["time_s"]["p50"],
        time_p90_s=option["time_s"]["p90"],
        cost_p50_usd=option["cost_usd"]["p50"],
        cost_p90_usd=option["cost_usd"]["p90"],
    )
