"""What ``advisor doctor`` looks at; each check is a function that answers with one Check."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from advisor.core import processes
from advisor.core.errors import AdvisorError, CatalogError
from advisor.core.gpus import is_known, load_gpus, resolve_gpu
from advisor.core.redaction import named_without_secrets
from advisor.service.listening import Listener
from advisor.service.recommend.own_machines import cluster_machine
from advisor.store.database import existing_store

if TYPE_CHECKING:
    from advisor.config.layers import Config, PricingSettings
    from advisor.config.project_layer import Refused
    from advisor.config.settings import ClusterSettings, PriceSettings, ProfileSettings, StoreSettings

# Scripts find torch in the user's own folders, too, which count when all that is needed is imported.
_TORCH_QUERY = """
import importlib.metadata, os, site, sys
sys.path[:0] = filter(os.path.isabs, os.environ.get("PYTHONPATH", "").split(os.pathsep))
sys.path += [site.getusersitepackages()] if sys.prefix == sys.base_prefix else []
print(importlib.metadata.version("torch"))
"""
TIMEOUT_S = 30.0

State = Literal["ok", "note", "broken"]
Found = tuple[State, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One part of the installation; ``note`` works but could be better."""

    name: str
    state: State
    detail: str


def run_checks(load: Callable[[], Config], in_words: Callable[[Refused], str]) -> list[Check]:
    """All checks, in the order of the way through the house.

    Args:
        load: reads the settings; where they are broken, that is a check of its own.
        in_words: a line of the project's file that does not count.
    """
    checks: dict[str, Callable[[], Found]] = {
        "python": lambda: ("ok", f"{sys.version.split()[0]} at {sys.executable}"),
        "settings": lambda: _settings(load(), in_words),
        "native": _native,
        "catalog": lambda: ("ok", f"{len(load_gpus())} GPUs"),
        "store": lambda: _store(load().settings.store),
        "rates": lambda: _rates(load().settings.prices),
        "prices": lambda: _prices(load().pricing),
        "rules": lambda: _rules(load().pricing),
        "clusters": lambda: _clusters(load().settings.clusters),
        "policies": lambda: _policies(load().settings.policy.files),
        "torch": lambda: _torch(load().settings.profile),
        "gpu": _gpu,
        "calibration": _calibration,
    }
    return [_made(name, check) for name, check in checks.items()]


def _made(name: str, check: Callable[[], Found]) -> Check:
    try:
        state, detail = check()
    except AdvisorError as error:
        state, detail = "broken", str(error)
    return Check(name=name, state=state, detail=detail)


def _settings(config: Config, in_words: Callable[[Refused], str]) -> Found:
    from advisor.config.layers import user_file

    files = [str(path) for path in [user_file()] if path.is_file()]
    files += [str(config.project.path)] if config.project else []
    notes = [*config.warnings, *map(in_words, config.refused), *exposed_passwords(config)]
    if notes:
        return "note", "; ".join(notes)
    return "ok", ", ".join(files) or "defaults only; advisor init writes a first file"


def exposed_passwords(config: Config) -> list[str]:
    """A note for each file with a password that others on this machine may read."""
    from advisor.config.settings import json_values

    values = json_values(config.settings).items()
    secret = {
        Path(config.origins.get(name, ""))
        for name, value in values
        if named_without_secrets(name, value) != value
    }
    exposed = sorted(path for path in secret if path.is_file() and path.stat().st_mode & 0o044)
    return [f"{path} holds a password that others may read: chmod 600 {path}" for path in exposed]


def _native() -> Found:
    from advisor.native import COMPILED, WHY_NOT_COMPILED

    if COMPILED:
        return "ok", "compiled module loaded"
    advice = "install a C++ compiler, then gpu-advisor again"
    return "note", f"Python reference in use, right but slow ({WHY_NOT_COMPILED}): {advice}"


def _prices(pricing: PricingSettings) -> Found:
    from advisor.pricing.answers import load_offers
    from advisor.pricing.sources.protocol import OfferQuery
    from advisor.service.prices.book import PriceBook
    from advisor.service.prices.daily import current_answers
    from advisor.service.prices.live import now

    answers = current_answers(PriceBook(settings=pricing), OfferQuery(), Listener(), may_refresh=False)
    offers = load_offers(OfferQuery(), now=now(), answers=answers)
    newest = max(offer.retrieved_at for offer in offers.offers)
    state: State = "note" if offers.warnings else "ok"
    return state, f"{len(offers.offers)} offers, newest of {newest:%Y-%m-%d}"


def _rules(pricing: PricingSettings) -> Found:
    """Contracts and quotas, which change nothing where they are misspelt."""
    from advisor.service.prices.book import PriceBook
    from advisor.service.prices.offers import idle_in_words

    idle = idle_in_words(PriceBook(settings=pricing))
    if idle:
        return "note", "; ".join(idle)
    return "ok", f"{len(pricing.contracts)} contracts and {len(pricing.quotas)} quotas"


def _store(settings: StoreSettings) -> Found:
    with existing_store(settings.url) as store:
        if store is None:
            return "ok", "no database yet: advisor prices refresh makes it"
        return "ok", f"{store.place} can be read and written"


def _torch(settings: ProfileSettings) -> Found:
    from advisor.profile.environment import candidates

    pythons = candidates(settings.python, os.environ)
    for python in pythons:
        version = _torch_version(python)
        if version:
            return "ok", f"{version} in {python}"
    places = " and ".join(map(str, pythons))
    advice = "activate the script's environment, or name one in profile.python. Saved traces work without."
    return "note", f"none in {places}: {advice}"


def _torch_version(python: Path) -> str | None:
    try:
        answer = processes.run(processes.isolated(python, "-c", _TORCH_QUERY), timeout_s=TIMEOUT_S)
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout.decode(errors="replace").strip() if answer.returncode == 0 else None


def _gpu() -> Found:
    from advisor.core.devices import detect_devices

    devices = detect_devices()
    if not devices:
        return "ok", "none here: scripts are profiled without one"
    unknown = [device.name for device in devices if not is_known(device.name)]
    if unknown:
        return "note", f"not in the catalog, so left out: {', '.join(unknown)}"
    return "ok", ", ".join(resolve_gpu(d.name).name for d in devices)


def _calibration() -> Found:
    """Every stored one counts for predictions, whether its GPU is here or not."""
    from advisor.core.devices import detect_devices
    from advisor.predict.knowledge import calibrated_gpus

    fine: list[str] = []
    notes: list[str] = []
    damaged: list[str] = []
    for gpu in calibrated_gpus():
        try:
            is_fine, text = _stored_calibration(gpu)
            (fine if is_fine else notes).append(text)
        except CatalogError as error:
            damaged.append(str(error))
    names = {device.name for device in detect_devices() if is_known(device.name)}
    here = sorted(resolve_gpu(name).name for name in names)
    missing = [gpu for gpu in here if gpu not in calibrated_gpus()]
    if missing:
        notes.append(f"none for {', '.join(missing)}: advisor calibrate takes about a minute")
    if not here and not fine:
        fine.append("no GPU of the catalog here to calibrate")
    state: State = "broken" if damaged else "note" if notes else "ok"
    return state, "; ".join([*damaged, *notes, *fine])


def _stored_calibration(gpu: str) -> tuple[bool, str]:
    """Whether all of it counts, and what to tell of it. Raises CatalogError: its file is damaged."""
    from advisor.predict.constants import constants_for
    from advisor.predict.knowledge import calibration_path, read_calibration

    table = read_calibration(gpu) or {}
    if gpu not in load_gpus():
        return False, f"{gpu} is not in the catalog, so {str(calibration_path(gpu))!r} is not used: delete it"
    text = f"{gpu} {table['source']}"
    if constants_for(load_gpus()[gpu]).is_share_outdated:
        text = f"{text}, with networks of another version, so not all counts: run advisor calibrate again"
        return False, text
    return True, text


def _rates(settings: PriceSettings) -> Found:
    from advisor.pricing.sources.custom import custom_source
    from advisor.pricing.sources.protocol import OfferQuery

    options = settings.options.get("custom", {})
    parts = list(custom_source(options).offers(OfferQuery()))
    if not parts:
        return "ok", "no rates of your own"
    return "ok", ", ".join(f"{len(part.offers)} in {part.scope}" for part in parts)


def _clusters(settings: Sequence[ClusterSettings]) -> Found:
    good, faults = [], []
    for cluster in settings:
        try:
            machine = cluster_machine(cluster, Listener())
        except AdvisorError as error:
            faults.append(str(error) if cluster.name in str(error) else f"{cluster.name!r}: {error}")
            continue
        waits = f", waits from {cluster.wait_log}" if cluster.wait_log is not None else ""
        good.append(f"{machine.name}: {machine.num_gpus} x {machine.gpu}{waits}")
    return _faults_or(faults, good)


def _policies(files: Sequence[Path]) -> Found:
    from advisor.site_files.policy_files import check_policies

    checked = check_policies(files)
    return _faults_or(list(map(str, checked.faults)), list(map(str, files)))


def _faults_or(faults: Sequence[str], good: Sequence[str]) -> Found:
    if faults:
        return "broken", "\n".join(faults)
    return "ok", "\n".join(good) or "none in the settings"
