"""Train from measured kernels: constants, networks and their model card.

    python -m training --kernels DIR --fold all --seed 0 --out FOLDER

DIR holds NeuSight's kernel measurements (``KIND.csv.gz``); ``--recording FILE`` adds kernels recorded by
``advisor measure``. Each data set of ``training/data_sets.py`` has a flag, which may come more than once.
FOLDER gets ``fitted.toml``, ``learned.npz`` and ``learned.json``, the card. ``--network NAME`` trains that
one alone, and takes the others from what ships: weights do not depend on each other.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection
from pathlib import Path

from advisor.core.errors import AdvisorError, InputError
from advisor.core.files import write_atomically
from advisor.operators.registry import rows
from advisor.predict.knowledge import CARD, CONSTANTS, NETWORKS, Knowledge, parsed, shipped
from advisor.predict.learned.network import Network
from advisor.predict.learned.weights import write_networks
from training import data_sets
from training.card import card
from training.constants import fit_constants, render
from training.fit import fit
from training.folds import ALL, chosen
from training.samples import Samples
from training.tables import tables


def train(
    samples: Samples, seed: int, knowledge: Knowledge, only: Collection[str] = ()
) -> dict[str, Network]:
    """Networks by name; progress goes to standard error.

    Args:
        samples: what they learn from.
        seed: of the start and of the order of batches.
        knowledge: the constants that rates are fractions of.
        only: the networks to train, by default all that have samples.
    """
    networks = {}
    for name, table in sorted(tables(samples, knowledge).items()):
        if only and name not in only:
            continue
        _say(f"{name}: {len(table.time_s):,} calls")
        _, knobs = rows().network[name]
        networks[name] = fit(
            table,
            seed=seed,
            steps=knobs.steps,
            units=knobs.units,
            board_noise=knobs.board_noise,
            say=_say,
        )
    return networks


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    for data_set in data_sets.DATA_SETS:
        parser.add_argument(
            f"--{data_set.flag}", type=Path, action="append", default=[], metavar=data_set.metavar
        )
    parser.add_argument("--fold", default=ALL, help="all, five, unseen-dims or without:GPU")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--network", action="append", default=[], choices=sorted(rows().network), help="train this one alone"
    )
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER")
    options = parser.parse_args()
    try:
        run(options)
    except (AdvisorError, FileNotFoundError) as error:
        _say(str(error))
        raise SystemExit(2) from error


def run(options: argparse.Namespace) -> None:
    """Read, train, write."""
    if options.out.exists() and not options.out.is_dir():
        raise InputError(f"--out {str(options.out)!r} is a file: name a folder.")
    everything = _read(options)
    samples = chosen(everything, options.fold)
    # One rate each GPU: the mean of both splits. Networks cannot be right on two that contradict each other.
    measured = everything if options.fold == ALL else samples
    constants = fit_constants(measured)
    text = render(
        constants, set(measured.gpus.tolist()), [data_set for data_set, _ in data_sets.used(measured)]
    )
    networks = dict(shipped().networks) if options.network else {}
    networks |= train(samples, options.seed, Knowledge(tables=parsed(text), networks={}), options.network)
    options.out.mkdir(parents=True, exist_ok=True)
    write_atomically(options.out / CONSTANTS, text.encode())
    write_networks(networks, options.out / NETWORKS)
    text = card(samples, networks, fold=options.fold, seed=options.seed)
    write_atomically(options.out / CARD, text.encode())
    _say(f"wrote {options.out}")


def _read(options: argparse.Namespace) -> Samples:
    """All samples of the data sets that were named.

    Raises:
        InputError: there is none.
    """
    parts = [
        data_set.read(path) for data_set in data_sets.DATA_SETS for path in getattr(options, data_set.flag)
    ]
    if not parts:
        flags = ", ".join(f"--{data_set.flag} {data_set.metavar}" for data_set in data_sets.DATA_SETS)
        raise InputError(f"there is nothing to train on: name measurements by {flags}.")
    return Samples.joined(parts)


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


if __name__ == "__main__":
    main()
