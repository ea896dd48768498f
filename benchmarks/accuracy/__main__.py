"""Measured iterations and operators beside predicted ones, and beside what others predicted of them.

    python -m benchmarks.accuracy --end-to-end ../shared/measurements/end_to_end.csv --json out.json

The file has the columns gpu, model, mode (train or inf), seq_len, batch_size, measured_ms, and any number of
other predictors as NAME_ms. Configurations of the models lie beside it in model_configs (or --configs DIR).
Every part that is given is run. Needs torch and transformers: pip install 'gpu-advisor[frameworks]'.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from advisor.core.errors import AdvisorError, InputError
from advisor.core.files import write_atomically

INTERRUPTED = 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.accuracy",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--end-to-end", type=Path, required=True, metavar="FILE.csv", help="measured iterations")
    add("--configs", type=Path, metavar="DIR", help="MODEL.json of each model")
    add("--kernels", type=Path, metavar="DIR", help="measured operators, one KIND.csv.gz each")
    add("--op-traces", type=Path, metavar="DIR", help="operators of whole models: label noise, scaling")
    add("--third-party", type=Path, metavar="DIR", help="published training throughput")
    add("--leave-one-out", type=Path, metavar="DIR", help="one knowledge folder a GPU, trained without it")
    add("--unseen-dims", type=Path, metavar="DIR", help="a knowledge trained with --fold unseen-dims")
    add("--fitted", type=Path, metavar="DIR", help="measurements of attention and recurrent layers")
    add(
        "--knowledge",
        type=Path,
        nargs="+",
        default=[],
        metavar="DIR",
        help="one a seed, else what is shipped",
    )
    add("--json", type=Path, metavar="OUT", help="write everything as JSON")
    add("--report", type=Path, metavar="DIR", help="write report.md and charts")
    return parser


def main(arguments: Sequence[str] | None = None) -> None:
    """Read, evaluate, print and write; a user's mistake is a message and an exit code."""
    options = _parser().parse_args(arguments)
    try:
        _evaluate(options, shlex.join(sys.argv[1:] if arguments is None else arguments))
    except AdvisorError as error:
        sys.stdout.flush()
        print(f"error: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        print("interrupted: there is no result", file=sys.stderr)
        sys.exit(INTERRUPTED)


def _evaluate(options: argparse.Namespace, command: str) -> None:
    from benchmarks.accuracy.run import Inputs, run, tell
    from benchmarks.accuracy.tables import all_tables

    inputs = Inputs(
        end_to_end=options.end_to_end,
        configs=options.configs or options.end_to_end.parent / "model_configs",
        kernels=options.kernels,
        op_traces=options.op_traces,
        third_party=options.third_party,
        leave_one_out=options.leave_one_out,
        unseen_dims=options.unseen_dims,
        fitted=options.fitted,
        knowledge=tuple(options.knowledge),
    )
    if options.json and not options.json.parent.is_dir():
        raise InputError(f"no folder {str(options.json.parent)!r} to write to: make it, or choose another.")
    today = datetime.now(UTC).date().isoformat()
    results = run(inputs, command=f"python -m benchmarks.accuracy {command}", date=today, say=tell)
    print("\n\n".join(f"## {title}\n\n{text}" for title, text in all_tables(results)))
    try:
        if options.json:
            document = json.dumps(results.to_json(), indent=1, allow_nan=False)
            write_atomically(options.json, document.encode())
        if options.report:
            from benchmarks.accuracy.report import write_report

            write_report(results, options.report)
    except OSError as error:
        raise InputError(f"cannot write: {error}. Choose another place.") from error


if __name__ == "__main__":
    main()
