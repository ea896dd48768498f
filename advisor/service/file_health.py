"""What ``advisor doctor`` finds in the files that the settings name: rates, job logs, policies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from advisor.core.errors import AdvisorError
from advisor.service.checks import Check
from advisor.service.listening import Silence

if TYPE_CHECKING:
    from pathlib import Path

    from advisor.config.settings import ClusterSettings, PriceSettings


def rates(settings: PriceSettings) -> Check:
    """Own rates, of all files that the patterns name."""
    from advisor.pricing.sources.custom import custom_source
    from advisor.pricing.sources.protocol import OfferQuery

    options = settings.options.get("custom", {})
    parts = list(custom_source(options).offers(OfferQuery()))
    if not parts:
        return Check(name="rates", state="ok", detail="no rates of your own")
    counts = ", ".join(f"{len(part.offers)} in {part.scope}" for part in parts)
    return Check(name="rates", state="ok", detail=counts)


def clusters(settings: Sequence[ClusterSettings]) -> Check:
    """Clusters, with the job logs of their waits."""
    from advisor.service.recommend.own_machines import cluster_machine

    good, faults = [], []
    for cluster in settings:
        try:
            machine = cluster_machine(cluster, Silence())
        except AdvisorError as error:
            faults.append(str(error) if cluster.name in str(error) else f"{cluster.name!r}: {error}")
            continue
        waits = f", waits from {cluster.wait_log}" if cluster.wait_log is not None else ""
        good.append(f"{machine.name}: {machine.num_gpus} x {machine.gpu}{waits}")
    return _check("clusters", faults, good)


def policies(files: Sequence[Path]) -> Check:
    """Policy files, each fault with its place."""
    from advisor.site_files.policy_files import check_policies

    checked = check_policies(files)
    return _check("policies", list(map(str, checked.faults)), list(map(str, files)))


def _check(name: str, faults: Sequence[str], good: Sequence[str]) -> Check:
    if faults:
        return Check(name=name, state="broken", detail="\n".join(faults))
    return Check(name=name, state="ok", detail="\n".join(good) or "none in the settings")
