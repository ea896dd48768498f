"""What a schedule needs of the command line: its words are parsed, and its output is sent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from advisor.cli.help import Click
from advisor.core.errors import DeliveryError, InputError
from advisor.schedule.schedulable import schedulable

if TYPE_CHECKING:
    from collections.abc import Callable

    from advisor.config.delivery_settings import DeliverySettings
    from advisor.config.settings import StoreSettings
    from advisor.delivery.posting import Delivery
    from advisor.service.schedule.running import Outgoing


def check_command_line(root: Click, words: Sequence[str]) -> None:
    """Refuse what advisor would refuse when the time has come.

    Args:
        root: advisor's own command, as typer made it.
        words: what follows ``advisor``.

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
        from advisor.service.listening import Silence

        subject = f"{outgoing.schedule.name}: {outgoing.ended.outcome}"
        message = message_of(output_document(outgoing.schedule, outgoing.ended), subject)
        request = DeliveryRequest(channels=(outgoing.channel,), command="schedule", key=outgoing.key)
        (sent,) = deliver(message, request, delivery, database=database, listener=Silence())
        return in_words(sent)

    return send


def in_words(delivery: Delivery) -> str:
    """What became of a delivery.

    Raises:
        DeliveryError: it did not arrive, and may arrive later.
    """
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
