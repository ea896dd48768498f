"""Train from measured kernels: constants, networks and their model card.

    python -m research.training --kernels DIR --fold all --seed 0 --out FOLDER

DIR holds NeuSight's kernel measurements (``KIND.csv.gz``); ``--recording FILE`` adds kernels recorded by
``advisor measure``. Each data set of ``data_sets.py`` has a flag, which may come more than once.
FOLDER gets ``fitted.toml``, ``learned.npz`` and ``learned.json``, the card. ``--network NAME`` trains that
one alone, and takes constants and the others from what ships. ``--steps FILE`` and ``--recorded DIR`` are
whole training steps (``whole_steps.py``), ``--forward DIR`` forward passes of the same file; the
network that learns from them comes last, since what they hold besides is predicted by the others.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from advisor.core.errors import AdvisorError, InputError
from advisor.core.files import write_atomically
from advisor.operators.registry import rows
from advisor.predict.knowledge import (
    CARD,
    CONSTANTS,
    NETWORKS,
    Knowledge,
    LearnedNetwork,
    parsed,
    shipped,
    write_networks,
)
from research.training import data_sets
from research.training.board_steps import day_steps, lambda_steps
from research.training.card import card
from research.training.constants import fit_constants, render
from research.training.fit import fit
from research.training.folds import ALL, chosen
from research.training.forward_passes import read_forwards
from research.training.samples import Samples
from research.training.tables import tables
from research.training.whole_steps import NETWORK, WholeSteps, read_steps, whole_steps


def train(
    samples: Samples,
    seed: int,
    knowledge: Knowledge,
    only: Collection[str],
    whole: WholeSteps | None = None,
    *,
    goes_on: bool = False,
) -> dict[str, LearnedNetwork]:
    """Networks by name; progress goes to standard error.

    Args:
        samples: what they learn from.
        seed: of the start and of the order of batches.
        knowledge: the constants that rates are fractions of.
        only: the networks to train, those of them that have samples.
        whole: training steps, for the network that learns from them.
        goes_on: from the knowledge's networks, in a third of the steps, instead of from random ones.
    """
    networks = {}
    for name, table in sorted(tables(samples, knowledge).items()):
        if name not in only:
            continue
        _say(f"{name}: {len(table.time_s):,} calls")
        _, knobs = rows().network[name]
        networks[name] = fit(
            table,
            seed=seed,
            steps=knobs.steps // 3 if goes_on else knobs.steps,
            units=knobs.units,
            members=knobs.members,
            board_noise=knobs.board_noise,
            say=_say,
            whole=whole if name == NETWORK else None,
            quantile=knobs.quantile,
            start=knowledge.networks[name] if goes_on else None,
        )
    return networks


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    for data_set in data_sets.DATA_SETS:
        parser.add_argument(
            f"--{data_set.flag}", type=Path, action="append", default=[], metavar=data_set.metavar
        )
    parser.add_argument(
        "--fold", default=ALL, help="all, five, unseen-dims, without:GPU or without:ARCHITECTURE"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--network", action="append", default=[], choices=sorted(rows().network), help="train this one alone"
    )
    parser.add_argument("--steps", type=Path, metavar="FILE", help="measured training steps of timm's models")
    parser.add_argument("--recorded", type=Path, metavar="DIR", help="those models, recorded")
    parser.add_argument("--forward", type=Path, metavar="DIR", help="their forward passes, recorded")
    parser.add_argument("--boards", type=Path, metavar="FILE", help="Lambda Labs' steps on many boards")
    parser.add_argument("--day", type=Path, metavar="FOLDER", help="a GPU's day")
    parser.add_argument("--day-traces", type=Path, metavar="DIR", help="where its profiles are kept")
    parser.add_argument(
        "--leave-out",
        action="append",
        default=[],
        metavar="GPU",
        help="a board whose steps are not learned from",
    )
    parser.add_argument("--go-on", action="store_true", help="from the networks that ship, with --network")
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
    used = data_sets.used(measured)
    text = render(
        constants,
        set(measured.gpus.tolist()),
        [data_set for data_set, _ in used],
        {data_set.flag: set(part.gpus.tolist()) for data_set, part in used},
    )
    networks = _networks(options, samples, shipped() if options.network else _fitted(text))
    options.out.mkdir(parents=True, exist_ok=True)
    write_atomically(options.out / CONSTANTS, text.encode())
    write_networks(networks, options.out / NETWORKS)
    text = card(samples, networks, fold=options.fold, seed=options.seed)
    write_atomically(options.out / CARD, text.encode())
    _say(f"wrote {options.out}")


def _fitted(constants: str) -> Knowledge:
    return Knowledge(tables=parsed(constants), networks={})


def _networks(
    options: argparse.Namespace, samples: Samples, knowledge: Knowledge
) -> dict[str, LearnedNetwork]:
    """Those of the knowledge, and what is trained."""
    wanted = set(options.network or rows().network)
    networks = dict(knowledge.networks)
    networks |= train(samples, options.seed, knowledge, wanted - {NETWORK}, goes_on=options.go_on)
    whole = _whole(options, replace(knowledge, networks=networks)) if NETWORK in wanted else None
    return networks | train(
        samples, options.seed, knowledge, wanted & {NETWORK}, whole, goes_on=options.go_on
    )


def _whole(options: argparse.Namespace, knowledge: Knowledge) -> WholeSteps | None:
    if not options.steps or not options.recorded:
        return None
    steps = read_steps(options.steps, options.recorded)
    steps += read_forwards(options.steps, options.forward) if options.forward else []
    seen = [step for step in steps if not step.only_judges]
    seen += lambda_steps(options.boards, options.leave_out) if options.boards else []
    seen += day_steps(options.day, options.day_traces, options.leave_out) if options.day else []
    _say(f"{len(seen)} steps and forward passes of {len({step.model for step in seen})} models")
    return whole_steps(seen, NETWORK, knowledge)


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
