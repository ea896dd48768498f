"""``advisor calibrate``: what this machine's GPU reaches of its data sheet."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from advisor.cli.common import FormatOption, JsonOption, PythonOption, chosen_format
from advisor.report.printing import Format, print_document

if TYPE_CHECKING:
    from advisor.formats.recording_files import Recording


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
    """Measure some thirty kernels in about a minute, and predict this GPU by what it reached from now on."""
    from advisor.cli.common import warn
    from advisor.core.errors import InputError
    from advisor.formats.recording_files import read_recording
    from advisor.predict.calibration.calibrating import calibrate
    from advisor.predict.calibration.calibration_files import HERE, RECORDED, write_calibration
    from advisor.predict.knowledge import shipped
    from advisor.report.calibration import calibration_document

    if source is not None and python is not None:
        raise InputError(f"{str(source)!r} was measured already: give --python to measure here, or --from.")
    recording = read_recording(source) if source is not None else _measured(python)
    found = calibrate(recording)
    constants = {constant.name: constant.after for constant in found.constants}
    where = HERE if source is None else RECORDED
    networks = shipped().fingerprint
    path = write_calibration(found.gpu, found.source, constants, where=where, networks=networks)
    warn(found.warnings)
    print_document(calibration_document(found, path), chosen_format(output, as_json))


def _measured(python: Path | None) -> Recording:
    from advisor.cli.common import settings_with
    from advisor.cli.measure import counting
    from advisor.measure import calibration_kernels, measure

    config = settings_with(profile__python=python)
    _check_known()
    with tempfile.TemporaryDirectory(prefix="advisor-calibrate-") as folder, counting("measuring") as tell:
        path = Path(folder) / "kernels.jsonl"
        return measure(calibration_kernels(), path, python=config.settings.profile.python, progress=tell)


def _check_known() -> None:
    """Refuse a GPU that the catalog lacks before a minute is spent on it."""
    import os

    from advisor.core.errors import RecordingError
    from advisor.core.gpus import is_known
    from advisor.predict.calibration.calibrating import why_unknown
    from advisor.profile.backends import first_device

    device = first_device(os.environ)
    if device is not None and not is_known(device.name):
        raise RecordingError(why_unknown(device.name))
