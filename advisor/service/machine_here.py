"""Where a command runs: what is given, then what GPUs and metadata service say, then where it was sent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from advisor.service.ran_on import Place

if TYPE_CHECKING:
    from advisor.config.settings import RunSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineHere:
    """A machine that a command runs on.

    Attributes:
        zone: as offers have it; None if not known.
        share: of the machine's GPUs that the command got, which is its share of the price.
    """

    place: Place
    zone: str | None
    share: float


def machine_here(
    given: Place, sent_to: Place | None, environment: Mapping[str, str], settings: RunSettings
) -> MachineHere:
    """Look around on this machine.

    Args:
        given: what the caller says, which wins.
        sent_to: where a recommendation sent the job: says what nobody sees, on the GPU that it names.
        environment: of the command.
        settings: whether the metadata service may be asked.
    """
    from advisor.core.devices import detect_devices
    from advisor.receipt.command import gpus_seen
    from advisor.receipt.instance import this_instance

    seen = this_instance(settings.metadata_url) if settings.metadata else None
    gpus = gpus_seen(detect_devices(), environment)
    here = Place(
        provider=None if seen is None else seen.provider,
        gpu=None if gpus is None else gpus.name,
        num_gpus=None if gpus is None else gpus.num_visible,
        market=None if seen is None else seen.market,
        instance_type=None if seen is None else seen.instance_type,
        region=None if seen is None else seen.region,
    )
    place = given.or_else(here)
    if sent_to is not None and sent_to.gpu == place.gpu:
        # A container may not reach the metadata service. On another GPU it went elsewhere.
        place = place.or_else(sent_to)
    return MachineHere(
        place=place,
        zone=None if seen is None or place.region != seen.region else seen.zone,
        share=1.0 if gpus is None else gpus.num_visible / gpus.num_all,
    )
