"""What one run of the harness found, and its JSON document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from benchmarks.accuracy.kernels import KernelErrors
from benchmarks.accuracy.scaling import Scaled, errors_by_weight
from benchmarks.accuracy.summary import OURS, coverage, error_of
from research.published import Score
from research.speedups import SpeedUp

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """Parts that were not asked for are empty."""

    command: str
    """As typed."""
    date: str
    """The day of the run."""
    hashes: Mapping[str, Mapping[str, str]]
    """File -> SHA-256, by knowledge."""
    evaluated: str
    """What ``end_to_end`` is of, in words."""
    end_to_end: Mapping[str, Any]
    """``rows``, ``by_knowledge`` and ``summary``."""
    shipped: Mapping[str, Any] = field(default_factory=dict)
    """The same of what ships, where something else was evaluated."""
    kernels: Sequence[KernelErrors] = ()
    """Of single operators, the mean over seeds."""
    unseen_dims: Sequence[KernelErrors] = ()
    """Of operators whose shapes were held out of the training."""
    scaled: Sequence[Scaled] = ()
    """Iterations of one GPU made from operators of another, of all seeds."""
    scaled_clean: Sequence[Scaled] = ()
    """Those between iterations with clean labels."""
    left_out: Mapping[str, Any]
    """By GPU, ``unseen`` and perhaps ``calibrated``."""
    throughput: Sequence[Score] = ()
    speed_ups: Sequence[SpeedUp] = ()
    fitted: Sequence[KernelErrors] = ()
    """Of attention and recurrent layers, whose formulas have few constants."""

    def to_json(self) -> dict[str, Any]:
        """The documented contract: ``rows`` and ``summary``, and what else was asked for."""
        return {
            "schema_version": SCHEMA_VERSION,
            "command": self.command,
            "date": self.date,
            "knowledge": self.hashes,
            **self.end_to_end,
            "shipped": self.shipped.get("summary", {}),
            "kernels": [asdict(errors) for errors in self.kernels],
            "unseen_dims": [asdict(errors) for errors in self.unseen_dims],
            "scaling": {
                name: {f"{weight:g}": error for weight, error in errors_by_weight(pairs).items()}
                for name, pairs in (("all", self.scaled), ("clean", self.scaled_clean))
                if pairs
            },
            "left_out": self.left_out,
            "fitted": [asdict(errors) for errors in self.fitted],
            "throughput": [_figures(score) for score in self.throughput],
            "speed_ups": [asdict(pair) | {"error": pair.error} for pair in self.speed_ups],
        }

    def to_publish(self) -> dict[str, Any]:
        """The document without what others measured: of rows only how far our predictions are off."""
        document = self.to_json() | {"evaluated": self.evaluated}
        document["rows"] = [_errors(row) for row in self.end_to_end["rows"]]
        document["shipped_rows"] = [_errors(row) for row in self.shipped.get("rows", ())]
        document["left_out"] = {
            gpu: {
                state: scores | {"rows": [_errors(row) for row in scores["rows"]]}
                for state, scores in states.items()
            }
            for gpu, states in self.left_out.items()
        }
        return document


def _errors(row: Mapping[str, Any]) -> dict[str, Any]:
    keys = ("knowledge", "gpu", "model", "mode", "seq_len", "batch_size", "label")
    ours = {"error": error_of(row, OURS), "covered": coverage([row]) == 1}
    return {key: row[key] for key in keys if key in row} | ours


def _figures(score: Score) -> dict[str, Any]:
    figures = asdict(score) | {"error": score.error}
    del figures["case"]["build"], figures["case"]["seconds"]  # functions
    return figures
