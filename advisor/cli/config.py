"""``advisor config``, ``init``, ``trust``, ``doctor``, ``measure``, ``calibrate``: this machine."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from advisor.cli.common import group, load_settings, option, settings_with
from advisor.cli.listening import TERMINAL
from advisor.cli.options import AS_TABLE, OutputOptions, PythonOption
from advisor.core.errors import AdvisorError, InputError
from advisor.core.files import write_atomically
from advisor.report.plain import print_lines
from advisor.report.printing import print_document

app = group("Settings and where each comes from.")


def init(
    project: Annotated[
        bool, option("Write .advisor.yaml here instead of the user's file.", "--project")
    ] = False,
    force: Annotated[bool, option("Overwrite an existing file.", "--force")] = False,
) -> None:
    """Write a first settings file, every line commented out and explained."""
    from advisor.config.layers import PROJECT_FILE, user_file
    from advisor.report.config_tables import template

    path = Path(PROJECT_FILE) if project else user_file()
    if path.exists() and not force:
        raise InputError(f"{str(path)!r} is already there: edit it, or overwrite it with --force.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, template().encode(), private=True)
    except OSError as error:
        raise InputError(f"cannot write {str(path)!r}: {error.strerror}.") from error
    print_lines(f"wrote {path}: uncomment what you want to change")


@app.command("show")
def show(output: OutputOptions = AS_TABLE) -> None:
    """Print every setting, its value and the layer that set it."""
    from advisor.report.config_tables import settings_document

    print_document(settings_document(settings_with()), output.form)


def trust(
    directory: Annotated[Path, typer.Argument(help="Folder of the .advisor.yaml.", metavar="DIR")] = Path(),
    show: Annotated[bool, option("Print the files that are trusted.", "--list")] = False,
    revoke: Annotated[bool, option("Trust this folder's file no longer.", "--revoke")] = False,
    output: OutputOptions = AS_TABLE,
) -> None:
    """Let all of a project's .advisor.yaml count, as long as it stays as it is.

    Without this, a project may set what describes its job and tighten limits. Read the file first: it
    can choose the interpreter of scripts, the database and where prices come from. A change of the file
    ends the trust; files that it names are not watched.
    """
    if show and revoke:
        raise InputError("--list and --revoke contradict each other: leave one out.")
    if show:
        from advisor.report.config_tables import trusted_document

        print_document(trusted_document(), output.form)
    elif revoke:
        from advisor.config.layers import PROJECT_FILE
        from advisor.config.project_layer import forget

        path = directory.absolute() / PROJECT_FILE
        try:
            was_trusted = forget(path)
        except OSError as error:
            raise InputError(f"cannot forget this: {error}.") from error
        if not was_trusted:
            raise InputError(f"{str(path)!r} is not trusted: advisor trust --list shows what is.")
        typer.echo(f"{path} is trusted no longer")
    else:
        _trust(directory)


def _trust(directory: Path) -> None:
    from advisor.config.layers import load_config
    from advisor.config.project_layer import remember
    from advisor.report.config_tables import request_in_words

    # Without the environment, which may trust it already, so that all it will do is shown.
    config = load_config(environ={}, cwd=directory.resolve())
    project = config.project
    if project is None or project.path.parent != directory.resolve():
        nearest = f" The nearest is in {str(project.path.parent)!r}." if project else ""
        raise InputError(f"there is no .advisor.yaml in {str(directory)!r}.{nearest}")
    if project.is_trusted:
        typer.echo(f"{project.path} is trusted already, as it is now")
        return
    try:
        remember(project.path, project.sha256)
    except OSError as error:
        raise InputError(f"cannot remember this: {error}.") from error
    typer.echo(f"trusted {project.path} until it changes")
    for line in config.refused:
        typer.echo(f"  line {line.line}, from now on: {request_in_words(line)}")


def doctor(output: OutputOptions = AS_TABLE) -> None:
    """Check this installation; exits with 1 if the main job cannot work."""
    from advisor.report.config_tables import checks_document, refused_in_words
    from advisor.service.health import run_checks

    checks = run_checks(load_settings, refused_in_words)
    print_document(checks_document(checks), output.form)
    broken = [check.name for check in checks if check.state == "broken"]
    if broken:
        raise AdvisorError(f"not in working order: {', '.join(broken)}.")


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
    output: OutputOptions = AS_TABLE,
) -> None:
    """Measure kernels on this machine's GPU, some 1,700 in about ten minutes, and keep them in a file."""
    from advisor.measure import Extent
    from advisor.report.catalog_tables import recording_document, skipped_lines
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
        TERMINAL.note(line)
    TERMINAL.warn(answer.warnings)
    document = recording_document(answer.recording, out, answer.warnings)
    print_document(document, output.form)


def calibrate(
    source: Annotated[
        Path | None,
        option(
            "Instead: a recording of advisor measure, for the GPU that it is of.", "--from", metavar="FILE"
        ),
    ] = None,
    python: PythonOption = None,
    output: OutputOptions = AS_TABLE,
) -> None:
    """Measure some fifty kernels in about a minute, and predict this GPU by what it reached from now on."""
    from advisor.report.catalog_tables import calibration_document
    from advisor.service.measured_kernels import calibrate_gpu

    calibration, path = calibrate_gpu(source, settings_with(profile__python=python).tracing, TERMINAL)
    TERMINAL.warn(calibration.warnings)
    print_document(calibration_document(calibration, path), output.form)
