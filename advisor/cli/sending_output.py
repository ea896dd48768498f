"""What a scheduled command wrote, to a channel of the settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.core.errors import DeliveryError

if TYPE_CHECKING:
    from collections.abc import Callable

    from advisor.config.delivery_settings import DeliverySettings
    from advisor.config.settings import StoreSettings
    from advisor.delivery.posting import Delivery
    from advisor.service.schedule.running import Outgoing


_CUT_OFF = "a service ended in the middle of sending it"


def sender(delivery: DeliverySettings, database: StoreSettings) -> Callable[[Outgoing], str]:
    """A function that sends to the channels of the settings and returns a few words about it.

    It raises ``DeliveryError`` where the output did not arrive and may arrive later.
    """

    def send(outgoing: Outgoing) -> str:
        from advisor.report.mail import message_of
        from advisor.report.schedules import output_document
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
