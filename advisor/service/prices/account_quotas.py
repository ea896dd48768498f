"""What the user's own accounts may start: read where live prices are pulled by them, and kept in a file.

The file lies beside the database, not in it: a team shares prices, and each of its people has an account.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from advisor.core.deadlines import completed
from advisor.core.errors import CloudError, InputError
from advisor.core.files import write_atomically
from advisor.core.findings import Finding, quoted
from advisor.service.listening import Listener
from advisor.service.prices.book import PriceBook
from advisor.store.database import folder_of
from advisor.store.handle import Store

if TYPE_CHECKING:
    from advisor.config.settings import PriceSettings, StoreSettings
    from advisor.pricing.sources.aws.account import PlacementScore, VcpuQuota


_NUM_THREADS = 8
Limits = Mapping[tuple[str, str, str], int]
"""By provider, region and the quota's name there."""


def read_account_quotas(book: PriceBook, sources: Collection[str], store: Store) -> tuple[str, ...]:
    """Ask the accounts of the price sources ``aws`` and ``gcp``, and keep what they say.

    Returns:
        A line for each account that could not be asked; what was known of it stays.
    """
    before, _ = known_quotas(book.settings.store)
    limits, problems = dict(before), []
    for name, ask in (("aws", _of_aws), ("gcp", _of_gcp)):
        if name not in sources:
            continue
        try:
            read = ask(book, store)
        except CloudError as error:
            problems.append(str(error))
        else:
            limits = {key: limit for key, limit in limits.items() if key[0] != name} | read
    if limits != before or not problems:
        rows = [[*key, limit] for key, limit in sorted(limits.items())]
        document = {"read_on": datetime.now(UTC).date().isoformat(), "limits": rows}
        write_atomically(_path(book.settings.store), json.dumps(document).encode(), private=True)
    return tuple(problems)


def known_quotas(settings: StoreSettings) -> tuple[Limits, str]:
    """What was read last, and on which day; nothing and "" where the file is missing or not ours."""
    try:
        document = json.loads(_path(settings).read_bytes())
        limits = {(str(p), str(r), str(q)): int(limit) for p, r, q, limit in document["limits"]}
        return limits, date.fromisoformat(document["read_on"]).isoformat()
    except (OSError, ValueError, TypeError, KeyError):
        return {}, ""


def _path(settings: StoreSettings) -> Path:
    return folder_of(settings.url) / "quotas.json"


def _of_aws(book: PriceBook, store: Store) -> dict[tuple[str, str, str], int]:
    """Of the regions whose prices the account has shown; a refusal in one is a refusal in all."""
    from advisor.pricing.sources.aws.account import vcpu_quotas
    from advisor.pricing.sources.aws.aws_calls import read_options
    from advisor.store.pulls import pulls

    options = read_options(book.settings.prices.options.get("aws", {}))
    regions = sorted({pull.place[1] for pull in pulls(store, "aws") if pull.place is not None})
    jobs = [partial(vcpu_quotas, region, options=options) for region in regions]
    return {
        ("aws", quota.region, quota.code): quota.num_vcpus
        for quotas in completed(jobs, num_threads=_NUM_THREADS, name="quotas")
        for quota in quotas
    }


def _of_gcp(book: PriceBook, store: Store) -> dict[tuple[str, str, str], int]:  # noqa: ARG001
    from advisor.pricing.sources.gcp.client import has_login
    from advisor.pricing.sources.gcp.gcp_source import endpoint, project_quotas

    if not (has_login() or endpoint()):  # an API key opens the price list, and no project
        return {}
    return {("gcp", *key): limit for key, limit in project_quotas().items()}


T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """Scores by zone, quotas by region, and what could not be asked."""

    scores: tuple[PlacementScore, ...]
    quotas: tuple[VcpuQuota, ...]
    warnings: tuple[Finding, ...]


def ask_capacity(
    instance_types: tuple[str, ...],
    regions: tuple[str, ...],
    settings: PriceSettings,
    listener: Listener,
    *,
    num_nodes: int,
) -> Capacity:
    """Ask AWS whether it would start so many machines at once: any of the types, in these regions.

    Raises:
        InputError: ``prices.offline`` is set, or a region is no name.
        ConfigError: ``prices.options.aws`` is wrong.
        CloudError: nothing at all could be asked.
    """
    from advisor.pricing.sources.aws.account import placement_scores, vcpu_quotas
    from advisor.pricing.sources.aws.aws_calls import read_options

    if settings.offline:
        raise InputError("prices.offline is set: AWS cannot be asked without a network.")
    if wild := [region for region in regions if "*" in region or not region]:
        raise InputError(
            f"{listener.name_of('cloud.regions')} takes names in full, such as us-east-1, not {wild[0]!r}."
        )
    options = read_options(settings.options.get("aws", {}))
    problems: list[str] = []

    def asked(ask: Callable[[], tuple[T, ...]]) -> tuple[T, ...]:
        try:
            return ask()
        except CloudError as error:
            problems.append(str(error))
            return ()

    scores = asked(
        lambda: placement_scores(instance_types, num_instances=num_nodes, regions=regions, options=options)
    )
    quotas = [quota for region in regions for quota in asked(partial(vcpu_quotas, region, options=options))]
    if not scores and not quotas and problems:
        raise CloudError("; ".join(dict.fromkeys(problems)))
    return Capacity(scores=scores, quotas=tuple(quotas), warnings=tuple(map(quoted, dict.fromkeys(problems))))
