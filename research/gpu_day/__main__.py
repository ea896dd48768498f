"""Command line; see the package."""

from __future__ import annotations

import argparse
import functools
from pathlib import Path

from .condensed import condense
from .parts import PARTS, Day, record

SECONDS = 480.0


def main(arguments: list[str] | None = None) -> None:
    """Record a day, or report on one."""
    parser = argparse.ArgumentParser(prog="research.gpu_day", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    recording = commands.add_parser("record", help="measure on this machine")
    recording.add_argument("--out", type=Path, required=True, metavar="FOLDER")
    recording.add_argument("--seconds", type=float, default=SECONDS, help="all parts together")
    recording.add_argument("--parts", default=",".join(PARTS), help="by name, comma between them")
    recording.add_argument("--backend", choices=("cuda", "cpu"), default="cuda")
    recording.add_argument("--skip-recorded", type=Path, action="append", default=[], metavar="FOLDER",
                           help="go on where another day stopped: leave out what its folder has")  # fmt: skip
    recording.add_argument("--tiny", action="store_true", help="each kind of case at a small size")
    reporting = commands.add_parser("report", help="print what is predicted beside what was measured")
    reporting.add_argument("folders", type=Path, nargs="+", metavar="FOLDER", help="days of one board")
    reporting.add_argument("--out", type=Path, metavar="FILE.md")
    reporting.add_argument("--traces", type=Path, metavar="FOLDER", help="keeps profiles between calls")
    condensing = commands.add_parser("condense", help="write a day that is small enough to commit")
    condensing.add_argument("folders", type=Path, nargs="+", metavar="FOLDER", help="days of one board")
    condensing.add_argument("--out", type=Path, required=True, metavar="FOLDER")
    options = parser.parse_args(arguments)
    if options.command == "record":
        chosen = options.parts.split(",")
        unknown = sorted(set(chosen) - set(PARTS))
        if unknown:
            parser.error(f"no part {unknown[0]!r}: choose from {', '.join(PARTS)}")
        day = Day(
            folder=options.out.absolute(), backend=options.backend, tiny=options.tiny,
            recorded=tuple(each.absolute() for each in options.skip_recorded),
        )  # fmt: skip
        record(day, options.seconds, chosen, functools.partial(print, flush=True))
        return
    if options.command == "condense":
        condense(options.folders, options.out)
        return
    from .report import report

    text = report(options.folders, options.traces)
    if options.out is None:
        print(text)
    else:
        options.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
