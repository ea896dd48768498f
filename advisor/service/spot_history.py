"""How often spot machines go away, by one's own log of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.core.values import Market

if TYPE_CHECKING:
    from advisor.core.values import StartWait
    from advisor.pricing.spot import SpotOdds
    from advisor.service.listening import Listener
    from recommender.availability.series import Watched


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedMachine:
    """One machine of a log: what was seen, what is assumed of its class, and what both say.

    Attributes:
        machine: instance type; ``""`` in a log that names none.
        gpu: in it; None where no catalog knows the machine: then it counts as one new GPU.
    """

    machine: str
    gpu: str | None
    num_gpus: int
    seen: Watched
    assumed: SpotOdds
    odds: SpotOdds
    wait_s: StartWait


def fit_spot(log: Path, out: Path | None, listener: Listener) -> tuple[FittedMachine, ...]:
    """Rates of each machine of a log, kept in ``out`` if it is given: no rows of the log.

    Raises:
        InputError: the log cannot be read or watched nothing, or the file cannot be written.
    """
    from advisor.service.prices.live import now
    from advisor.site_files.fitted_files import write_history
    from advisor.site_files.spot_logs import read_spot_log

    with listener.step(f"reading {log.name}"):
        history = read_spot_log(log, now())
    if out is not None:
        write_history(out, history)
        listener.note(f"wrote {str(out)!r}")
    return tuple(_fitted(machine, seen) for machine, seen in history.machines.items())


def _fitted(machine: str, seen: Watched) -> FittedMachine:
    from advisor.pricing.spot import spot_odds, start_odds
    from recommender.availability.series import start_with_history, with_history

    gpu, num_gpus = _gpus_of(machine)
    assumed = spot_odds(gpu or "", num_gpus)
    wait_s = start_odds(gpu or "", num_gpus, Market.SPOT).wait_s
    return FittedMachine(
        machine=machine,
        gpu=gpu,
        num_gpus=num_gpus,
        seen=seen,
        assumed=assumed,
        odds=with_history(assumed, seen),
        wait_s=start_with_history(wait_s, assumed, seen),
    )


def _gpus_of(machine: str) -> tuple[str | None, int]:
    from advisor.pricing.instance_types import load_instances

    for (_, name), instance in load_instances().items():
        if name == machine:
            return instance.gpu, instance.num_gpus
    return None, 1
