"""``advisor measure`` and ``calibrate``: kernels on this machine's GPU."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

from advisor.cli.common import chosen_format, option, settings_with
from advisor.cli.listening import TERMINAL, note, warn
from advisor.cli.options import FormatOption, JsonOption, PythonOption
from advisor.core.errors import InputError
from advisor.report.printing import Format, print_document

QuickOption = Annotated[bool, option("About a minute: some 170 kernels.", "--quick")]
FullOption = Annotated[bool, option("Up to an hour: some 7,800 kernels.", "--full")]


class Backend(StrEnum):
    """Where kernels are measured."""

    CUDA = "cuda"
    CPU = "cpu"


OnlyOption = Annotated[
    str | None,
    option(
        "These alone, such as gemm,conv; of gemm, bmm, conv, rnn, attention, norm, softmax, loss,"
        " elementwise, reduction, pooling, embedding, optimizer, transfer.",
        metavar="FAMILIES",
    ),
]


def measure(
    quick: QuickOption = False,
    full: FullOption = False,
    only: OnlyOption = None,
    out: Annotated[Path, option("The recording; one that was cut short is continued.")] = Path(
        "kernels.jsonl"
    ),
    backend: Annotated[
        Backend, option("cpu tries it out: such times predict nothing.", case_sensitive=False)
    ] = Backend.CUDA,
    python: PythonOption = None,
    output: FormatOption = Format.TABLE,
    as_json: JsonOption = False,
) -> None:
    """Measure kernels on this machine's GPU, some 1,700 in about ten minutes, and keep them in a file."""
    from advisor.measure import Extent
    from advisor.report.catalog_tables import recording_document, skipped_lines
    from advisor.report.words import sentences
    from advisor.service.measured_kernels import MeasureRequest, measure_kernels

    if quick and full:
        raise InputError("give either --quick or --full.")
    request = MeasureRequest(
        extent=Extent.QUICK if quick else Extent.FULL if full else Extent.DEFAULT,
        families=None if only is None else tuple(word.strip() for word in only.split(",")),
        out=out,
        backend=backend,
    )
    config = settings_with(profile__python=python)
    answer = measure_kernels(request, config.settings.profile.python, TERMINAL)
    for line in skipped_lines(answer.recording):
        note(line)
    warn(sentences(answer.warnings))
    document = recording_document(answer.recording, out, answer.warnings)
    print_document(document, chosen_format(output, as_json))


def calibrate(
    source: Annotated[
        Path | None,
        option(
            "Instead: a recording of advisor measure, for the GPU that it is of.", "--from", metavar="FILE"
        ),
    ] = None,
    python: PythonOption = None,
    output: FormatOption = Format.TABLE,
    as_json: JsonOption = False,
) -> None:
    """Measure some fifty kernels in about a minute, and predict this GPU by what it reached from now on."""
    from advisor.report.catalog_tables import calibration_document
    from advisor.report.words import sentences
    from advisor.service.measured_kernels import calibrate_gpu

    calibration, path = calibrate_gpu(source, settings_with(profile__python=python).tracing, TERMINAL)
    warn(sentences(calibration.warnings))
    print_document(calibration_document(calibration, path), chosen_format(output, as_json))
