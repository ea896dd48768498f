"""Records timm's models as they were measured, for whole steps, which ``training/whole_steps.py`` reads.

    python -m research.timm_recording --figures timm_benchmarks.csv.gz --out DIR [--most N] [--forward]

One process has torch, timm and the fake GPU loaded and forks for each model, since loading them takes longer
than most models: some seconds each. Models are taken in the order of a hash of their names, so any number of
them is a fair sample; what DIR has already is kept. ``--forward`` records forward passes alone, as they were
measured in inference (``research/training/forward_passes.py``).
"""

from __future__ import annotations

import argparse
import hashlib
import os
import signal
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType

from advisor.formats.trace_files import write_trace
from advisor.payload import child
from advisor.payload.protocol import ScriptJob
from advisor.profile import pretend
from advisor.profile.attempt import AttemptJob, written
from advisor.profile.recording import read_recording, trace_of
from research.training.forward_passes import RELEASES, forward_rows, is_compiled
from research.training.whole_steps import LAYOUTS, Row, is_used, rows_that

SCRIPT = Path(__file__).with_name("timm_script.py")
FORWARD_SCRIPT = Path(__file__).with_name("timm_forward_script.py")
# Larger models take minutes each.
_MOST_MILLIONS = 120.0
_TIMEOUT_S = 300


def training_rows(figures: Path) -> list[Row]:
    """A step of each model."""
    return [row for row in rows_that(is_used, figures, "steps") if row["memory_format"] == LAYOUTS[0]]


def smallest_passes(figures: Path) -> list[Row]:
    """A forward pass of each model, of the smallest images that today's release measured in eager mode."""
    rows = [
        row
        for row in forward_rows(figures)
        if row["framework_version"] == RELEASES[-1] and not is_compiled(row)
    ]
    rows.sort(key=lambda row: int(row["image_size"]), reverse=True)
    return list({row["model"]: row for row in rows}.values())


def models(rows: Iterable[Row]) -> list[tuple[str, int, int]]:
    """Name, batch and side of each measured model, in the order of a hash of its name."""
    small = [row for row in rows if float(row["params_millions"]) <= _MOST_MILLIONS]
    small.sort(key=lambda row: hashlib.sha256(row["model"].encode()).hexdigest())
    return [(row["model"], int(row["batch_size"]), int(row["image_size"])) for row in small]


class _Server:
    """A process with everything loaded, which forks for each model."""

    def __init__(self, folder: Path, script: Path) -> None:
        self._folder, self._script = folder, script
        child.load_payload("protocol")
        backend = child.load_payload("backend")
        session = backend.start_session(self._job("nothing", 0, 0))
        backend.start_session = lambda _: session  # type: ignore[attr-defined]
        import timm

        self.known = set(timm.list_models())
        self._run: ModuleType = child.load_payload("run")

    def _job(self, model: str, batch: int, side: int) -> ScriptJob:
        here = self._folder / model
        here.mkdir()
        arguments = (model, str(batch), str(side))
        return written(
            AttemptJob(
                script=str(self._script), arguments=arguments, backend="fake", gpu=pretend("RTX-3090")
            ),
            here,
        )

    def record(self, model: str, batch: int, side: int, target: Path) -> bool:
        """Whether the model could be built and run."""
        job = self._job(model, batch, side)
        pid = os.fork()
        if not pid:
            signal.alarm(_TIMEOUT_S)
            self._run.run(job)
            os._exit(1)
        os.waitpid(pid, 0)
        recording = read_recording(Path(job["result"]))
        if recording is None or recording["status"] != "ok":
            return False
        write_trace(trace_of(recording, self._script.name, tuple(job["arguments"]), None), target)
        return True


def main() -> None:
    """Record what is missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--figures", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    parser.add_argument("--most", type=int, default=10_000, metavar="N", help="models that DIR is to hold")
    parser.add_argument("--forward", action="store_true", help="forward passes alone")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    rows = (smallest_passes if options.forward else training_rows)(options.figures)
    with tempfile.TemporaryDirectory() as folder:
        server = _Server(Path(folder), FORWARD_SCRIPT if options.forward else SCRIPT)
        for line in _recorded(server, models(rows), options.out, options.most):
            print(line, file=sys.stderr, flush=True)


def _recorded(server: _Server, asked: list[tuple[str, int, int]], out: Path, most: int) -> Iterator[str]:
    for model, batch, side in asked:
        target = out / f"{model}.json.gz"
        if target.exists() or model not in server.known:
            continue
        if len(list(out.glob("*.json.gz"))) >= most:
            return
        yield f"{model}: {'recorded' if server.record(model, batch, side, target) else 'cannot be run'}"


if __name__ == "__main__":
    main()
