"""What was profiled for the published runs, and where its traces lie.

``python -m research.training_runs.recipes --measurements DIR`` records what ``tests/training_run_traces``
lacks, some ten seconds of a core each. Remove the traces of a script that has changed before.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from advisor.core.values import Trace
from advisor.formats.trace_files import read_trace, write_trace
from advisor.profile import profile

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "research" / "run_scripts"
TRACES = ROOT / "tests" / "training_run_traces"
SOURCES = TRACES / "sources.json"
# Traces of sharded models tell of other numbers of ranks.
_WORLD = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """A script of ``run_scripts`` and its arguments; equal ones share a trace."""

    script: str
    arguments: tuple[str, ...]
    world_size: int = _WORLD

    @property
    def name(self) -> str:
        """Of its trace, such as ``mpt-width-768-heads-12``."""
        words = (argument.removeprefix("--") for argument in self.arguments)
        return "-".join((self.script.removesuffix("_script.py"), *words))

    def profiled(self) -> Trace:
        """The trace, recorded anew.

        Raises:
            ProfileError: it cannot be profiled here.
        """
        trace = profile(SCRIPTS / self.script, self.arguments, world_size=self.world_size)
        return replace(trace, script=self.script, versions={})


@cache
def recorded(recipe: Recipe) -> Trace:
    """Its recorded trace.

    Raises:
        TraceError: there is none.
    """
    return read_trace(_path(recipe))


def digests() -> dict[str, str]:
    """Of the scripts as they are now."""
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(SCRIPTS.glob("*_script.py"))
    }


def _path(recipe: Recipe) -> Path:
    return TRACES / f"{recipe.name}.json.gz"


def main() -> None:
    """Record what is missing."""
    from research.training_runs.rows import all_runs

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--measurements", type=Path, required=True)
    runs = all_runs(parser.parse_args().measurements)
    for recipe in dict.fromkeys(run.recipe for run in runs):
        if not _path(recipe).exists():
            write_trace(recipe.profiled(), _path(recipe))
            print(recipe.name, flush=True)
    SOURCES.write_text(json.dumps(digests(), indent=1) + "\n")


if __name__ == "__main__":
    main()
