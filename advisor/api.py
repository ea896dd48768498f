"""Python as a caller of the use cases, beside the command line: the functions of ``import advisor``.

Settings come from the same layers as the command line's, ``settings=`` above them all. Notes and progress go
to the logger ``advisor``: warnings at WARNING, notes and steps at INFO.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from reprlib import repr as shortened
from types import NoneType, UnionType
from typing import TYPE_CHECKING, get_args

from advisor.core.changes import parse_split
from advisor.core.errors import InputError
from advisor.core.findings import Finding
from advisor.core.values import Confirmation, IterationEstimate, Job, PriceOrder, Recommendation, Trace
from advisor.report.plain import shown_lines
from advisor.service.listening import Listener, Step
from advisor.service.traces import TraceRequest, profile_script

if TYPE_CHECKING:
    from advisor.config.layers import Config
    from advisor.pricing.answers import Offers
    from advisor.service.predicting import PredictAnswer, PredictRequest
    from recommender.comparison import PlanComparison

__all__ = ["Logged", "compare", "confirm", "predict", "prices", "profile", "recommend"]


Source = str | PathLike[str] | Trace
"""A training script or a saved trace, or a Trace."""


def recommend(
    source: Source,
    arguments: Sequence[str] = (),
    *,
    epochs: float | None = None,
    iterations: int | None = None,
    iterations_per_epoch: int | None = None,
    budget_usd: float | None = None,
    deadline_s: float | None = None,
    confidence: float = 0.9,
    value_of_time_usd_per_h: float | None = None,
    risk_counts: bool = False,
    gpus: Sequence[str] = (),
    vendors: Sequence[str] = ("nvidia",),
    num_nodes: int | None = None,
    max_nodes: int | None = None,
    providers: Sequence[str] | None = None,
    regions: Sequence[str] | None = None,
    markets: Sequence[str] | None = None,
    data: str | None = None,
    dataset_gb: float | None = None,
    scaling: str | None = None,
    offline: bool | None = None,
    policies: Sequence[str | PathLike[str]] = (),
    project: str = "",
    what_if: bool | str | Sequence[str] | None = False,
    suppose: Sequence[str] = (),
    origin_gpu: str | None = None,
    world_size: int | None = None,
    settings: Mapping[str, object] | None = None,
    listener: Listener | None = None,
) -> Recommendation:
    """Rank where to run a training script, as ``advisor recommend`` does.

    Args:
        source: a training script, a saved trace, or what `profile` returned.
        arguments: of the script.
        epochs: how many to train; or ``iterations``.
        iterations: optimizer steps, of as many GPUs as it was profiled for.
        iterations_per_epoch: for data that does not know its length; counted likewise.
        budget_usd: for the whole job.
        deadline_s: seconds until done, waiting included.
        confidence: probability with which budget and deadline must hold.
        value_of_time_usd_per_h: what an hour until it is done is worth; None for the settings'.
        risk_counts: keep on the frontier what is slower and dearer, but safer.
        gpus: GPUs or families with counts, such as ``A100:8``; none for any.
        vendors: whose GPUs count.
        num_nodes: machines that train together, exactly so many; None for any within ``max_nodes``.
        max_nodes: machines that train together at most; None for what the settings say.
        providers: clouds that count; None for those of the settings.
        regions: with wildcards; None for those of the settings.
        markets: ``on-demand``, ``spot``; None for those of the settings.
        data: where the data set lies: ``s3://BUCKET@REGION``, a region, or ``local``.
        dataset_gb: how large it is.
        scaling: what GPUs hold: the batch of one (``weak``), of all (``strong``), the step (``unshared``).
        offline: never touch the network; None for what the settings say.
        policies: files of rules to obey, besides those of the settings.
        project: whose budget it is, for monthly limits and the ledger.
        suppose: a script that divides its model, such as ``["zero-3"]`` or ``["tensor-8", "pipeline-2"]``.
        what_if: changes of the script to judge, by name, such as ``["bf16", "fused"]``; True or ``"all"`` for
            every one, False for none.
        origin_gpu: where a profiler's export was recorded, if it does not say.
        world_size: profile the script as one of so many processes of one GPU each.
        settings: more settings, by dotted name, such as ``{"cloud.max_gpus": 4}``.
        listener: receives notes, warnings and progress; logs them if None.

    Raises:
        InputError: an argument, a setting or the script is wrong.
        NoOfferError: there is nothing to choose from.
        PolicyViolationError: the policy removes every plan.
        AdvisorError: the script, prices or the database cannot be read.
    """
    from advisor.service.recommend.ledger_entries import keep_recommendation
    from advisor.service.recommend.recommending import RecommendRequest, check
    from advisor.service.recommend.recommending import recommend as recommended

    request = RecommendRequest(
        trace=request_of(source, arguments, origin_gpu=origin_gpu, world_size=world_size),
        job=Job(
            epochs=epochs,
            iterations=iterations,
            iterations_per_epoch=iterations_per_epoch,
            budget_usd=budget_usd,
            deadline_s=deadline_s,
            confidence=confidence,
            value_of_time_usd_per_h=value_of_time_usd_per_h,
            risk_counts=risk_counts,
            split=parse_split(texts("suppose", suppose)),
        ),
        gpus=texts("gpus", gpus),
        vendors=texts("vendors", vendors),
        policies=tuple(map(Path, policies)),
        project=project,
        num_nodes=num_nodes,
        what_if=changes(what_if),
    )
    hears = listener or Logged()
    check(request, hears)
    given = {
        "cloud.providers": providers,
        "cloud.regions": regions,
        "cloud.markets": markets,
        "cloud.max_nodes": max_nodes,
        "cloud.data": data,
        "cloud.dataset_gb": dataset_gb,
        "profile.scaling": scaling,
        "prices.offline": offline,
    }
    config = config_of(given, settings, hears)
    answer = recommended(request, config, hears)
    if answer.entry_id is not None:
        keep_recommendation(answer, config.settings.store, project)
        hears.note(f"Recorded as {answer.entry_id}.")
    return answer.recommendation


def compare(
    source: Source,
    a: str,
    b: str,
    arguments: Sequence[str] = (),
    *,
    epochs: float | None = None,
    iterations: int | None = None,
    budget_usd: float | None = None,
    deadline_s: float | None = None,
    value_of_time_usd_per_h: float | None = None,
    policies: Sequence[str | PathLike[str]] = (),
    settings: Mapping[str, object] | None = None,
    listener: Listener | None = None,
) -> PlanComparison:
    """Two plans for a job side by side, as ``advisor compare`` shows them.

    Args:
        source: a training script, a saved trace, or what `profile` returned.
        a: an id of a plan, or words that one machine has, such as ``p4d.24xlarge spot`` or ``L4:4``.
        b: the same of the other.
        arguments: of the script.
        epochs: how many to train; or ``iterations``.
        iterations: optimizer steps, of as many GPUs as it was profiled for.
        budget_usd: for the whole job.
        deadline_s: seconds until done, waiting included.
        value_of_time_usd_per_h: what an hour until it is done is worth; None for the settings'.
        policies: files of rules to obey, besides those of the settings.
        settings: settings above all layers, by dotted name.
        listener: receives notes, warnings and progress; logs them if None.

    Raises:
        InputError: an argument, a name, a setting or the script is wrong.
        AdvisorError: the script, prices or the database cannot be read.
    """
    from advisor.service.recommend import comparing
    from advisor.service.recommend.recommending import RecommendRequest

    job = Job(
        epochs=epochs,
        iterations=iterations,
        budget_usd=budget_usd,
        deadline_s=deadline_s,
        value_of_time_usd_per_h=value_of_time_usd_per_h,
    )
    trace, hears = request_of(source, arguments), listener or Logged()
    request = RecommendRequest(trace=trace, job=job, policies=tuple(map(Path, policies)))
    answer = comparing.compare(a, b, request, config_of({}, settings, hears), hears)
    hears.warn(answer.warnings)
    return answer.comparison


def predict(
    source: Source,
    arguments: Sequence[str] = (),
    *,
    gpus: Sequence[str] = (),
    suppose: Sequence[str] = (),
    origin_gpu: str | None = None,
    world_size: int | None = None,
    settings: Mapping[str, object] | None = None,
    listener: Listener | None = None,
) -> tuple[IterationEstimate, ...]:
    """Predict time per iteration and memory of a script, the fastest GPU first, as ``advisor predict`` does.

    Args:
        source: a training script, a saved trace, or what `profile` returned.
        arguments: of the script.
        gpus: GPUs or families with counts, such as ``A100:8``; none for all of NVIDIA's in the catalog.
        suppose: a script that divides its model, as of `recommend`.
        origin_gpu: where a profiler's export was recorded, if it does not say.
        world_size: profile the script as one of so many processes of one GPU each.
        settings: settings above all layers, by dotted name.
        listener: receives notes, warnings and progress; logs them if None.

    Raises:
        InputError: an argument, a setting or the script is wrong.
        ProfileError: the script yields no iteration.
    """
    from advisor.service.predicting import PredictRequest

    request = PredictRequest(
        trace=request_of(source, arguments, origin_gpu=origin_gpu, world_size=world_size),
        gpus=texts("gpus", gpus),
        split=parse_split(texts("suppose", suppose)),
    )
    return _predicted(request, settings, listener).estimates


def confirm(
    script: str | PathLike[str],
    arguments: Sequence[str] = (),
    *,
    gpu: str,
    world_size: int | None = None,
    settings: Mapping[str, object] | None = None,
    listener: Listener | None = None,
) -> Confirmation:
    """Profile a script with the largest batch that fits a GPU, as ``advisor predict --confirm`` does.

    Args:
        script: as it is; it takes its batch as an argument.
        arguments: of the script.
        gpu: whose memory decides, such as ``L4``, or so many as ``A100-SXM-80GB:8``.
        world_size: profile it as one of so many processes of one GPU each.
        settings: settings above all layers, by dotted name.
        listener: receives notes, warnings and progress; logs them if None.

    Raises:
        InputError: more than one kind or number of GPUs, nothing fits, or no argument sets the batch.
        ProfileError: the script yields no iteration, at first or with that batch.
    """
    from advisor.service.predicting import PredictRequest

    check_kind("gpu", gpu, str, "the name of one, such as 'L4'")
    trace = request_of(script, arguments, world_size=world_size)
    request = PredictRequest(trace=trace, gpus=(gpu,), confirm=True)
    confirmed = _predicted(request, settings, listener).confirmed
    assert confirmed is not None  # noqa: S101 - it was asked for
    return confirmed


def _predicted(
    request: PredictRequest, settings: Mapping[str, object] | None, listener: Listener | None
) -> PredictAnswer:
    from advisor.service.predicting import check, predict

    check(request)
    hears = listener or Logged()
    answer = predict(request, config_of({}, settings, hears), hears)
    hears.warn((*answer.trace.warnings, *answer.doubts))
    return answer


def prices(
    gpus: Sequence[str] = (),
    *,
    providers: Sequence[str] | None = None,
    regions: Sequence[str] | None = None,
    markets: Sequence[str] | None = None,
    max_usd_per_h: float | None = None,
    min_memory_gib: float | None = None,
    min_vcpus: int | None = None,
    min_host_memory_gib: float | None = None,
    max_age: str | None = None,
    order: str = "price",
    every_zone: bool = False,
    settings: Mapping[str, object] | None = None,
    listener: Listener | None = None,
) -> Offers:
    """List what is for rent, at your contracts' prices, as ``advisor prices`` does.

    Args:
        gpus: GPUs or families with counts, such as ``A100:8``; none for any.
        providers: clouds that count; None for those of the settings.
        regions: with wildcards; None for those of the settings.
        markets: ``on-demand``, ``spot``; None for those of the settings.
        max_usd_per_h: of the whole machine.
        min_memory_gib: of one GPU.
        min_vcpus: of the whole machine.
        min_host_memory_gib: of the whole machine, beside its GPUs.
        max_age: refuse older prices, such as ``30d``.
        order: ``price``, ``gpu-price``, ``age`` or ``place``.
        every_zone: also zones that cost more than the cheapest of their region.
        settings: more settings, by dotted name.
        listener: receives notes, warnings and progress; logs them if None.

    Raises:
        InputError: an argument or a setting is wrong.
        NoOfferError: no offer is within all limits; says which has to give way.
        StaleCatalogError: prices older than ``max_age``.
    """
    from advisor.service.prices.offers import PricesRequest, list_prices

    if order not in tuple(PriceOrder):
        raise InputError(f"order must be one of {', '.join(PriceOrder)}, got {order!r}.")
    request = PricesRequest(
        gpus=texts("gpus", gpus),
        max_usd_per_h=max_usd_per_h,
        min_memory_gib=min_memory_gib,
        min_vcpus=min_vcpus,
        min_host_memory_gib=min_host_memory_gib,
        order=PriceOrder(order),
        every_zone=every_zone,
    )
    hears = listener or Logged()
    given = {
        "cloud.providers": providers,
        "cloud.regions": regions,
        "cloud.markets": markets,
        "prices.max_age": max_age,
    }
    config = config_of(given, settings, hears)
    return list_prices(request, config.pricing, hears)


def profile(
    script: str | PathLike[str],
    arguments: Sequence[str] = (),
    *,
    pretended_gpu: str | None = None,
    world_size: int | None = None,
    settings: Mapping[str, object] | None = None,
    listener: Listener | None = None,
) -> Trace:
    """Run a script until one steady iteration is known, as ``advisor profile`` does.

    Args:
        script: as it is; it sees ``arguments`` as its own.
        arguments: of the script.
        pretended_gpu: the GPU that the script sees.
        world_size: profile it as one of so many processes of one GPU each.
        settings: settings above all layers, by dotted name, such as ``{"profile.timeout": "10m"}``.
        listener: receives notes, warnings and progress; logs them if None.

    Raises:
        InputError: there is no such script, backend or interpreter.
        ProfileError: the script yields no iteration.
    """
    request = request_of(script, arguments, pretended_gpu=pretended_gpu, world_size=world_size)
    hears = listener or Logged()
    return profile_script(request, config_of({}, settings, hears).settings.profile, hears)


# What callers in Python give, as the requests and settings of the use cases.


def request_of(
    source: Source,
    arguments: Sequence[str],
    *,
    origin_gpu: str | None = None,
    pretended_gpu: str | None = None,
    world_size: int | None = None,
) -> TraceRequest:
    """What is to be profiled or read."""
    check_kind("source", source, str | PathLike | Trace, "the path of a script or of a saved trace")
    check_kind("origin_gpu", origin_gpu, str | None, "the name of one, such as 'L4'")
    check_kind("pretended_gpu", pretended_gpu, str | None, "the name of one, such as 'L4'")
    path = source if isinstance(source, Trace) else Path(source)
    return TraceRequest(
        source=path,
        arguments=texts("arguments", arguments),
        origin_gpu=origin_gpu,
        pretended_gpu=pretended_gpu,
        world_size=world_size,
    )


def changes(what_if: bool | str | Sequence[str] | None) -> tuple[str, ...] | None:
    """Names of the changes to judge, ``all`` for True; none for False, and None stays None."""
    if what_if is None or isinstance(what_if, bool):
        return None if what_if is None else ("all",) * what_if
    return (what_if,) if isinstance(what_if, str) else texts("what_if", what_if)


def texts(name: str, values: Sequence[str]) -> tuple[str, ...]:
    """Several texts. Raises InputError: it is none, or one by itself, whose letters would count as texts."""
    advice = "each text by itself, such as ['one', 'two']"
    if not isinstance(values, Collection) or isinstance(values, str | bytes | Mapping):
        raise InputError(f"{name} must be a list, got {shortened(values)}: {advice}.")
    for value in values:
        check_kind(f"each of {name}", value, str, advice)
    return tuple(values)


def config_of(given: Mapping[str, object], settings: Mapping[str, object] | None, hears: Listener) -> Config:
    """All layers, with what was given on top."""
    from advisor.config.layers import ARGUMENT, load_config
    from advisor.report.config_tables import refused_in_words

    named = {name: value for name, value in given.items() if value is not None}
    config = load_config({**(settings or {}), **named}, origin=ARGUMENT)
    hears.warn([*config.warnings, *map(refused_in_words, config.refused)])
    return config


def check_kind(name: str, value: object, kind: type | UnionType, advice: str) -> None:
    """Refuse a value of another kind.

    Args:
        kind: what it must be.
        advice: where to get one, a sentence without its full stop.

    Raises InputError: it is something else.
    """
    if not isinstance(value, kind):
        kinds = get_args(kind) or (kind,)
        wanted = " or ".join("None" if one is NoneType else one.__name__ for one in kinds)
        raise InputError(f"{name} must be of type {wanted}, got {shortened(value)}: {advice}.")


# What Python shows of answers: HTML in notebooks, and messages through ``logging``.


def html_of(value: object) -> str | None:
    """HTML of a value that has a form of its own in a notebook; None leaves it to the notebook."""
    # Late, for numpy.
    from recommender.comparison import PlanComparison

    match value:
        case Recommendation():
            from advisor.report.recommendation import notebook_document
            from advisor.report.writers.html import to_html

            return to_html(notebook_document(value))
        case PlanComparison():
            from advisor.report.document import Document
            from advisor.report.plan_comparison import comparison_blocks
            from advisor.report.writers.html import to_html

            return to_html(Document(facts={}, blocks=comparison_blocks(value)))
        case Trace():
            from advisor.report.document import Document, warnings_of
            from advisor.report.estimates import trace_table
            from advisor.report.words import in_names
            from advisor.report.writers.html import to_html

            table = trace_table(value, caption=value.script)
            return to_html(
                Document(facts={}, blocks=(table, *warnings_of(list(map(in_names, value.warnings)))))
            )
        case _:
            return None


_LOGGER = logging.getLogger("advisor")
# Settings that the functions of ``advisor.api`` take as arguments of their own.
_ARGUMENTS = (
    "cloud.providers", "cloud.regions", "cloud.markets", "cloud.max_nodes", "cloud.data", "cloud.dataset_gb",
    "profile.scaling",
    "prices.max_age", "prices.offline",
)  # fmt: skip


class Logged(Listener):
    """Receives what use cases have to say through ``logging``."""

    def note(self, message: str) -> None:
        """One record at INFO."""
        _LOGGER.info("%s", shown_lines(message))

    def warn(self, messages: Iterable[str | Finding]) -> None:
        """One record each, at WARNING."""
        from advisor.report.words import in_names

        for message in messages:
            _LOGGER.warning("%s", shown_lines(message if isinstance(message, str) else in_names(message)))

    @contextmanager
    def step(self, name: str, *, limit_s: float | None = None, at_once: bool = False) -> Iterator[Step]:
        """One record as the step begins, at INFO."""
        self.note(name)
        with super().step(name, limit_s=limit_s, at_once=at_once) as step:
            yield step

    @contextmanager
    def count(self, name: str) -> Iterator[Callable[[int, int], None]]:
        """One record as the step begins, at INFO."""
        self.note(name)
        with super().count(name) as count:
            yield count

    def name_of(self, argument: str) -> str:
        """The argument of those functions, or the setting."""
        return argument.rpartition(".")[2] if argument in _ARGUMENTS else argument
