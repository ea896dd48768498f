"""``advisor calibrate``: what this machine's GPU reaches of its data sheet."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from advisor.cli.common import chosen_format
from advisor.cli.shared_options import FormatOption, JsonOption, PythonOption
from advisor.report.printing import Format, print_document


def calibrate(
    source: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="FILE",
            help="Instead: a recording of advisor measure, for the GPU that it is of.",
        ),
    ] = None,
    python: PythonOption = None,
    output: FormatOption = Format.TABLE,
    as_json: JsonOption = False,
) -> None:
    """Measure some fifty kernels in about a minute, and predict this GPU by what it reached from now on."""
    from advisor.cli.common import settings_with
    from advisor.cli.listening import TERMINAL, warn
    from advisor.report.calibration import calibration_document
    from advisor.report.words import sentences
    from advisor.service.kernels import calibrate_gpu

    calibration, path = calibrate_gpu(source, settings_with(profile__python=python), TERMINAL)
    warn(sentences(calibration.warnings))
    print_document(calibration_document(calibration, path), chosen_format(output, as_json))
