"""Python as a caller of the use cases, beside the command line: the functions of ``import advisor``.

Settings come from the same layers as the command line's, ``settings=`` above them all. Notes and progress go
to the logger ``advisor``: warnings at WARNING, notes and steps at INFO.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.core.arguments import check_each, check_kind
from advisor.core.findings import Finding
from advisor.core.values import IterationEstimate, Job, Recommendation, Trace
from advisor.service.listening import Listener, Silence, Step
from advisor.service.traces import TraceRequest

if TYPE_CHECKING:
    from advisor.config.layers import Config
    from advisor.pricing.answer.answering import Offers

__all__ = ["Logged", "predict", "prices", "profile", "recommend"]

Source = str | PathLike[str] | Trace
"""A training script or a saved trace, or a Trace."""

_LOGGER = logging.getLogger("advisor")
# Settings that the functions here take as arguments of their own.
_ARGUMENTS = (
    "cloud.providers", "cloud.regions", "cloud.markets", "cloud.data", "cloud.dataset_gb",
    "profile.scaling",
    "prices.max_age", "prices.offline",
)  # fmt: skip


class Logged(Silence):
    """Hears what use cases have to say through ``logging``."""

    def note(self, message: str) -> None:
        """One record at INFO."""
        _LOGGER.info("%s", _plain(message))

    def warn(self, messages: Iterable[str | Finding]) -> None:
        """One record each, at WARNING."""
        from advisor.report.words import in_names

        for message in messages:
            _LOGGER.warning("%s", _plain(message if isinstance(message, str) else in_names(message)))

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
        """The argument of the functions here, or the setting."""
        return argument.rpartition(".")[2] if argument in _ARGUMENTS else argument


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
        iterations: optimizer steps, on one GPU.
        iterations_per_epoch: for data that does not know its length.
        budget_usd: for the whole job.
        deadline_s: seconds until done, waiting included.
        confidence: probability with which budget and deadline must hold.
        value_of_time_usd_per_h: what an hour until it is done is worth; None for the settings'.
        risk_counts: keep on the frontier what is slower and dearer, but safer.
        gpus: GPUs or families with counts, such as ``A100:8``; none for any.
        vendors: whose GPUs count.
        providers: clouds that count; None for those of the settings.
        regions: with wildcards; None for those of the settings.
        markets: ``on-demand``, ``spot``; None for those of the settings.
        data: where the data set lies: ``s3://BUCKET@REGION``, a region, or ``local``.
        dataset_gb: how large it is.
        scaling: what the script holds when GPUs are added, the batch of one (``weak``) or all (``strong``).
        offline: never touch the network; None for what the settings say.
        policies: files of rules to obey, besides those of the settings.
        project: whose budget it is, for monthly limits and the ledger.
        what_if: changes of the script to judge, by name, such as ``["bf16", "fused"]``; True or ``"all"`` for
            every one, False for none.
        origin_gpu: where a profiler's export was recorded, if it does not say.
        world_size: profile the script as one of so many processes of one GPU each.
        settings: more settings, by dotted name, such as ``{"cloud.max_gpus": 4}``.
        listener: hears notes, warnings and progress; logs them if None.

    Raises:
        InputError: an argument, a setting or the script is wrong.
        NoOfferError: there is nothing to choose from.
        PolicyViolationError: the policy removes every plan.
        AdvisorError: the script, prices or the database cannot be read.
    """
    from advisor.service.advised import keep_recommendation
    from advisor.service.recommending import RecommendRequest, check
    from advisor.service.recommending import recommend as recommended

    request = RecommendRequest(
        trace=_request(source, arguments, origin_gpu=origin_gpu, world_size=world_size),
        job=Job(
            epochs=epochs,
            iterations=iterations,
            iterations_per_epoch=iterations_per_epoch,
            budget_usd=budget_usd,
            deadline_s=deadline_s,
            confidence=confidence,
            value_of_time_usd_per_h=value_of_time_usd_per_h,
            risk_counts=risk_counts,
        ),
        gpus=_texts("gpus", gpus),
        vendors=_texts("vendors", vendors),
        policies=tuple(map(Path, policies)),
        project=project,
        what_if=_changes(what_if),
    )
    hears = listener or Logged()
    check(request, hears)
    given = {"providers": providers, "regions": regions, "markets": markets}
    about_job = {"cloud.data": data, "cloud.dataset_gb": dataset_gb, "profile.scaling": scaling}
    config = _config({**_cloud(given), **about_job, "prices.offline": offline}, settings, hears)
    answer = recommended(request, config, hears)
    if answer.entry_id is not None:
        keep_recommendation(answer, config, project)
        hears.note(f"Recorded as {answer.entry_id}.")
    return answer.recommendation


def predict(
    source: Source,
    arguments: Sequence[str] = (),
    *,
    gpus: Sequence[str] = (),
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
        origin_gpu: where a profiler's export was recorded, if it does not say.
        world_size: profile the script as one of so many processes of one GPU each.
        settings: settings above all layers, by dotted name.
        listener: hears notes, warnings and progress; logs them if None.

    Raises:
        InputError: an argument, a setting or the script is wrong.
        ProfileError: the script yields no iteration.
    """
    from advisor.service.predicting import PredictRequest, check
    from advisor.service.predicting import predict as predicted

    request = PredictRequest(
        trace=_request(source, arguments, origin_gpu=origin_gpu, world_size=world_size),
        gpus=_texts("gpus", gpus),
    )
    check(request)
    hears = listener or Logged()
    answer = predicted(request, _config({}, settings, hears), hears)
    hears.warn((*answer.trace.warnings, *answer.doubts))
    return answer.estimates


def prices(
    gpus: Sequence[str] = (),
    *,
    providers: Sequence[str] | None = None,
    regions: Sequence[str] | None = None,
    markets: Sequence[str] | None = None,
    max_usd_per_h: float | None = None,
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
        max_age: refuse older prices, such as ``30d``.
        order: ``price``, ``gpu-price``, ``age`` or ``place``.
        every_zone: also zones that cost more than the cheapest of their region.
        settings: more settings, by dotted name.
        listener: hears notes, warnings and progress; logs them if None.

    Raises:
        InputError: an argument or a setting is wrong.
        NoOfferError: no offer is within all limits; says which has to give way.
        StaleCatalogError: prices older than ``max_age``.
    """
    from advisor.core.errors import InputError
    from advisor.service.price_list import PriceOrder, PricesRequest, list_prices

    if order not in tuple(PriceOrder):
        raise InputError(f"order must be one of {', '.join(PriceOrder)}, got {order!r}.")
    request = PricesRequest(
        gpus=_texts("gpus", gpus),
        max_usd_per_h=max_usd_per_h,
        order=PriceOrder(order),
        every_zone=every_zone,
    )
    hears = listener or Logged()
    given = {"providers": providers, "regions": regions, "markets": markets}
    config = _config({**_cloud(given), "prices.max_age": max_age}, settings, hears)
    return list_prices(request, config, hears)


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
        listener: hears notes, warnings and progress; logs them if None.

    Raises:
        InputError: there is no such script, backend or interpreter.
        ProfileError: the script yields no iteration.
    """
    from advisor.service.traces import profile_script

    request = _request(script, arguments, pretended_gpu=pretended_gpu, world_size=world_size)
    hears = listener or Logged()
    return profile_script(request, _config({}, settings, hears), hears)


def _request(
    source: Source,
    arguments: Sequence[str],
    *,
    origin_gpu: str | None = None,
    pretended_gpu: str | None = None,
    world_size: int | None = None,
) -> TraceRequest:
    check_kind("source", source, str | PathLike | Trace, "the path of a script or of a saved trace")
    path = source if isinstance(source, Trace) else Path(source)
    return TraceRequest(
        source=path,
        arguments=_texts("arguments", arguments),
        origin_gpu=origin_gpu,
        pretended_gpu=pretended_gpu,
        world_size=world_size,
    )


def _changes(what_if: bool | str | Sequence[str] | None) -> tuple[str, ...] | None:
    if what_if is None or isinstance(what_if, bool):
        return None if what_if is None else ("all",) * what_if
    return (what_if,) if isinstance(what_if, str) else _texts("what_if", what_if)


def _texts(name: str, values: Sequence[str]) -> tuple[str, ...]:
    check_each(name, values, str, "each text by itself, such as ['one', 'two']")
    return tuple(values)


def _cloud(given: Mapping[str, Sequence[str] | None]) -> dict[str, object]:
    return {f"cloud.{name}": values for name, values in given.items()}


def _config(given: Mapping[str, object], settings: Mapping[str, object] | None, hears: Listener) -> Config:
    """All layers, with what was given on top."""
    from advisor.config.layers import ARGUMENT, load_config
    from advisor.report.project import refused_in_words

    named = {name: value for name, value in given.items() if value is not None}
    config = load_config({**(settings or {}), **named}, origin=ARGUMENT)
    hears.warn([*config.warnings, *map(refused_in_words, config.refused)])
    return config


def _plain(message: str) -> str:
    """Texts of others may end up in a terminal."""
    from advisor.report.plain import shown_lines

    return shown_lines(message)
