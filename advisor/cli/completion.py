"""Names that the shell completes, read from the shipped catalogs alone: no settings, no network, no numpy.

Letter case does not count, as wherever a name is given. Trouble completes nothing: the shell would print it
in the middle of the line that is being typed.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator

import typer


def gpu_names(incomplete: str) -> list[str]:
    """GPUs and families of the catalog."""
    return _beginning(incomplete, _gpus)


def vendor_names(incomplete: str) -> list[str]:
    """Makers of the catalog's GPUs."""
    return _beginning(incomplete, _vendors)


def provider_names(incomplete: str) -> list[str]:
    """Clouds with a shipped price."""
    return _beginning(incomplete, lambda: (provider for provider, _ in _places()))


def region_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """Regions with a shipped price, of the clouds that were named before."""
    named = ctx.params.get("provider") or ()
    clouds = {name.lower() for name in ([named] if isinstance(named, str) else named)}

    def regions() -> Iterator[str]:
        return (region for cloud, region in _places() if not clouds or cloud in clouds)

    return _beginning(incomplete, regions)


def change_names(incomplete: str) -> list[str]:
    """Changes of a script that `--what-if` takes."""
    from advisor.core.changes import ALL, CHANGE_NAMES

    return _beginning(incomplete, lambda: (ALL, *CHANGE_NAMES))


def split_names(incomplete: str) -> list[str]:
    """Ways to divide a model, without their numbers."""
    from advisor.core.changes import SPLIT_NAMES

    return _beginning(incomplete, lambda: (name.removesuffix("N") for name in SPLIT_NAMES))


def backend_names(incomplete: str) -> list[str]:
    """What ``--backend`` takes."""
    return _beginning(incomplete, lambda: ("auto", "cuda", "fake", "cpu"))


def _beginning(incomplete: str, names: Callable[[], Iterable[str]]) -> list[str]:
    start, rest = incomplete.lower(), slice(len(incomplete), None)
    try:
        matching = dict.fromkeys(name for name in names() if name.lower().startswith(start))
    except Exception:  # noqa: BLE001 - see above
        return []
    # typer drops what does not begin as it was typed, and any case will do.
    return [incomplete + name[rest] for name in matching]


def _gpus() -> Iterator[str]:
    from advisor.core.gpus import family_names, load_gpus

    yield from load_gpus()
    yield from family_names()


def _vendors() -> Iterator[str]:
    from advisor.core.gpus import load_gpus

    yield from (spec.vendor.lower() for spec in load_gpus().values())


def _places() -> Iterator[tuple[str, str]]:
    """Provider and region of each shipped price; the parser of prices would check every cell."""
    from advisor.core.gpus import catalog_path

    for path in sorted(catalog_path("prices/aws.csv").parent.glob("*.csv")):
        with path.open(newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                yield row["provider"], row["region"]
