"""``advisor schedule``: commands that run at set times."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from advisor.cli.common import Click, group, option, settings_with
from advisor.cli.listening import TERMINAL
from advisor.cli.options import AS_TABLE, OutputOptions
from advisor.core.errors import DeliveryError, InputError
from advisor.core.values import Scheduler
from advisor.report.plain import print_lines, print_progress, print_text
from advisor.report.printing import print_document
from advisor.schedule.schedulable import schedulable, when_of

if TYPE_CHECKING:
    from advisor.config.delivery_settings import DeliverySettings
    from advisor.config.settings import Settings, StoreSettings
    from advisor.delivery.posting import Delivery
    from advisor.service.schedule.running import Outgoing, Voice


app = group("Commands that run at set times, such as a report each Monday: docs/schedule.md.")


NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="Of a schedule, as list shows it.")]


@app.command("add")
def add(
    context: typer.Context,
    times: Annotated[
        str,
        typer.Argument(
            metavar="TIMES", help="Cron text: minute, hour, day of month, month, day of week: '0 8 * * MON'."
        ),
    ],
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="-- COMMAND", help="What to run, as after advisor: -- prices refresh."),
    ] = None,
    zone: Annotated[str, option("Time zone, such as Europe/Zurich.", "--tz", metavar="ZONE")] = "UTC",
    name: Annotated[
        str | None, option("What to call it; default: after the command.", metavar="NAME")
    ] = None,
    channel: Annotated[
        str | None,
        option("Who gets what it prints; report has a --to of its own.", "--to", metavar="CHANNEL"),
    ] = None,
    when: Annotated[
        str,
        option(
            "Send it always, with exit code 0, with any other, when exit code or recommended option changed,"
            " or once a budget of a report is used so far.",
            metavar="always|ok|fails|changes|over-80%",
        ),
    ] = "always",
    output: OutputOptions = AS_TABLE,
) -> None:
    """Add a schedule. The command will run in this folder, with your settings of then.

    Its words are checked now. Secrets belong into the environment or a settings file.
    """
    from advisor.report.deliveries import added_document
    from advisor.service.schedule.managing import ScheduleRequest, add_schedule

    sent_when, words = when_of(when, tuple(command or ()))
    check_command_line(context.find_root().command, words)
    request = ScheduleRequest(
        cron=times, zone=zone, command=words, folder=Path.cwd(), name=name, channel=channel, when=sent_when
    )
    settings = settings_with().settings
    planned = add_schedule(request, settings.store, settings.delivery, TERMINAL)
    print_document(added_document(planned), output.form)


@app.command("list")
def list_(output: OutputOptions = AS_TABLE) -> None:
    """Show all schedules: when each runs next, by its own clock and in UTC, and how it ended last."""
    from advisor.report.deliveries import schedules_document
    from advisor.service.schedule.managing import planned_schedules

    planned = planned_schedules(settings_with().settings.store)
    print_document(schedules_document(planned), output.form)


@app.command("show")
def show(name: NameArgument, output: OutputOptions = AS_TABLE) -> None:
    """Show one schedule, its last occurrences, and what it wrote last."""
    from advisor.report.deliveries import schedule_document
    from advisor.service.schedule.managing import planned_schedule

    planned = planned_schedule(name, settings_with().settings.store)
    print_document(schedule_document(planned), output.form)


@app.command("remove")
def remove(name: NameArgument) -> None:
    """Forget a schedule and what is known of its occurrences."""
    from advisor.service.schedule.managing import remove_schedule

    remove_schedule(name, settings_with().settings.store)
    print_lines(f"Removed {name}.")


@app.command("run-now")
def run_now(name: NameArgument, output: OutputOptions = AS_TABLE) -> None:
    """Run a schedule at once, deliver its output, and end with its exit code."""
    from advisor.report.deliveries import ran_document
    from advisor.service.schedule.running import run_now as run

    settings = settings_with().settings
    occurrence = run(name, settings.store, settings.schedule, voice_of(settings))
    print_document(ran_document(name, occurrence), output.form)
    if occurrence.exit_code != 0 or occurrence.state != "done":
        raise typer.Exit(occurrence.exit_code or 1)


@app.command("run")
def run(once: Annotated[bool, option("Run what is due now, and end.", "--once")] = False) -> None:
    """Run schedules when they are due, until Ctrl-C or SIGTERM; several such services share the work.

    After a while without any service, the latest time of each schedule is caught up (schedule.catch_up).
    """
    import signal

    from advisor.service.schedule.running import Stop, run_due, serve

    settings = settings_with().settings
    if once:
        run_due(settings.store, settings.schedule, voice_of(settings))
        return
    stop = Stop()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    serve(settings.store, settings.schedule, voice_of(settings), stop)


@app.command("export")
def export(
    scheduler: Annotated[
        Scheduler, option("Who runs it.", "--to", metavar="cron|systemd|github-actions|kubernetes")
    ],
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="Of a schedule, as list shows it.")
    ] = None,
    all_: Annotated[bool, option("All schedules.", "--all")] = False,
    out: Annotated[
        Path | None, option("Where files are written; default: to stdout.", metavar="FOLDER")
    ] = None,
    image: Annotated[
        str | None, option("For kubernetes: an image that holds advisor.", metavar="NAME")
    ] = None,
) -> None:
    """Write schedules for cron, systemd, GitHub Actions or Kubernetes, which run them without the service.

    Secrets are named in the files, never written. A command whose output is delivered is run as
    `schedule run-now`, which needs the same database.
    """
    from advisor.service.schedule.managing import ExportRequest, schedule_files, write_files

    request = ExportRequest(scheduler=scheduler, name=name, is_all=all_, image=image)
    settings = settings_with().settings
    files = schedule_files(
        request, settings.store, settings.schedule, delivery=settings.delivery, report=settings.report
    )
    if out is None:
        print_text("\n".join(f"# ---- {file.name}\n{file.text}" for file in files).rstrip())
    else:
        print_lines(*(f"Wrote {path}" for path in write_files(files, out)))


@app.command("install")
def install() -> None:
    """Run schedules as a service of your own systemd: written, enabled and started.

    `systemctl --user disable --now advisor-schedules` ends it.
    """
    from advisor.service.schedule.managing import install_service

    path = install_service("advisor-schedules", ("schedule", "run"))
    print_lines(
        f"Wrote {path}; systemd runs your schedules from now on.",
        "`loginctl enable-linger` lets it run while you are logged out.",
    )


def voice_of(settings: Settings) -> Voice:
    """Output goes to the channels of the settings, log lines to standard error."""
    from advisor.service.schedule.running import Voice

    return Voice(deliver=sender(settings.delivery, settings.store), log=_log)


def _log(line: str) -> None:
    from datetime import UTC, datetime

    print_progress(f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC  {line}")


def check_command_line(root: Click, words: Sequence[str]) -> None:
    """Refuse what advisor would refuse when the time has come.

    Raises:
        InputError: there is no such command, or it may not be scheduled.
        UsageError: typer's, for an option or a value that the command does not take.
    """
    name = schedulable(words)
    command = root
    for part in name.split():
        command = getattr(command, "commands", {}).get(part)
        if command is None:
            raise InputError(f"this advisor has no command {name!r} yet.")
    context = command.make_context(f"advisor {name}", list(words[len(name.split()) :]))
    # A group parses what stands before its command, and leaves the rest.
    rest = [*getattr(context, "_protected_args", ()), *context.args]
    if rest:
        raise InputError(f"{f'{name} {rest[0]}'!r} cannot be scheduled, or options stand before {rest[0]!r}.")


_CUT_OFF = "a service ended in the middle of sending it"


def sender(delivery: DeliverySettings, database: StoreSettings) -> Callable[[Outgoing], str]:
    """A function that sends to the channels of the settings and returns a few words about it.

    It raises ``DeliveryError`` where the output did not arrive and may arrive later.
    """

    def send(outgoing: Outgoing) -> str:
        from advisor.report.deliveries import output_document
        from advisor.report.writers.mail import message_of
        from advisor.service.delivering import DeliveryRequest, deliver
        from advisor.service.listening import Listener

        subject = f"{outgoing.schedule.name}: {outgoing.ended.outcome}"
        message = message_of(output_document(outgoing.schedule, outgoing.ended), subject)
        request = DeliveryRequest(channels=(outgoing.channel,), command="schedule", key=outgoing.key)
        (sent,) = deliver(message, request, delivery, database=database, listener=Listener())
        return in_words(sent)

    return send


def in_words(delivery: Delivery) -> str:
    """What became of a delivery. Raises DeliveryError: it did not arrive, and may arrive later."""
    from advisor.delivery.posting import Outcome

    name = delivery.channel
    match delivery.outcome:
        case Outcome.SENT if delivery.is_resumed:
            return f"sent to {name}, perhaps twice: {_CUT_OFF}"
        case Outcome.SENT:
            return f"sent to {name}" + (f", but {delivery.error}" if delivery.error else "")
        case Outcome.SENT_BEFORE:
            return f"sent to {name} before"
        case Outcome.PERHAPS:
            return (
                f"perhaps sent to {name}: {delivery.error or 'a service ended in the middle of sending it'}"
            )
        case Outcome.BUSY:
            raise DeliveryError(f"{name}: another process is sending it")
        case _:
            raise DeliveryError(f"{name}: {delivery.error or delivery.outcome}")
