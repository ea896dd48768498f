"""``advisor config``, ``init``, ``trust`` and ``doctor``: this installation."""

from pathlib import Path
from typing import Annotated

import typer

from advisor.cli.common import WholeLines, chosen_format, load_settings, option, settings_with
from advisor.cli.options import FormatOption, JsonOption
from advisor.core.errors import AdvisorError, InputError
from advisor.core.files import write_atomically
from advisor.report.plain import print_lines
from advisor.report.printing import Format, print_document

app = typer.Typer(
    cls=WholeLines, help="Settings and where each comes from.", no_args_is_help=True, rich_markup_mode=None
)


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
def show(output: FormatOption = Format.TABLE, as_json: JsonOption = False) -> None:
    """Print every setting, its value and the layer that set it."""
    from advisor.report.config_tables import settings_document

    print_document(settings_document(settings_with()), chosen_format(output, as_json))


def trust(
    directory: Annotated[Path, typer.Argument(help="Folder of the .advisor.yaml.", metavar="DIR")] = Path(),
    show: Annotated[bool, option("Print the files that are trusted.", "--list")] = False,
    revoke: Annotated[bool, option("Trust this folder's file no longer.", "--revoke")] = False,
    output: FormatOption = Format.TABLE,
    as_json: JsonOption = False,
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

        print_document(trusted_document(), chosen_format(output, as_json))
    elif revoke:
        _revoke(directory)
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


def _revoke(directory: Path) -> None:
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


def doctor(output: FormatOption = Format.TABLE, as_json: JsonOption = False) -> None:
    """Check this installation; exits with 1 if the main job cannot work."""
    from advisor.report.config_tables import checks_document, refused_in_words
    from advisor.service.health import run_checks

    checks = run_checks(load_settings, refused_in_words)
    print_document(checks_document(checks), chosen_format(output, as_json))
    broken = [check.name for check in checks if check.state == "broken"]
    if broken:
        raise AdvisorError(f"not in working order: {', '.join(broken)}.")
