"""Options and commands that send answers to channels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import typer

from advisor.cli.common import group, option, settings_with
from advisor.cli.listening import TERMINAL
from advisor.cli.options import AS_TABLE, OutputOptions
from advisor.core.errors import DeliveryError, InputError
from advisor.report.plain import print_message, print_text
from advisor.report.printing import Format, print_document

if TYPE_CHECKING:
    from advisor.config.delivery_settings import DeliverySettings
    from advisor.config.settings import Settings, StoreSettings
    from advisor.delivery.channel import Message
    from advisor.delivery.posting import Delivery
    from advisor.report.document import Document


ToOption = Annotated[
    list[str] | None,
    option(
        "Send the answer to this channel of the settings instead of printing it. Repeatable.",
        "--to",
        metavar="CHANNEL",
    ),
]
PreviewOption = Annotated[
    bool, option("Print exactly what --to would send, without secrets, and send nothing.", "--preview")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlet:
    """Where the answer of a command goes."""

    command: str
    """Such as ``recommend``."""
    channels: tuple[str, ...]
    """Names of the settings; none for the terminal."""
    is_preview: bool
    settings: DeliverySettings
    database: StoreSettings

    def hand_out(
        self,
        document: Document,
        output: Format,
        *,
        subject: str,
        warnings: Sequence[str] = (),
        asked: str = "",
    ) -> tuple[Delivery, ...]:
        """Print a document, or send it and say what went where, or show what would be sent.

        Args:
            output: how it is printed, or else the table of what went where.
            warnings: for anyone who reads the answer without standard error.
            asked: what tells this question from another one whose answer has the same facts.
        """
        from advisor.report.document import warnings_of

        whole = replace(document, blocks=(*document.blocks, *warnings_of(warnings)))
        if not self.channels:
            # Markdown is mostly read in a comment or a page, to which standard error does not go.
            print_document(whole if output is Format.MARKDOWN else document, output)
            return ()
        from advisor.report.writers.mail import message_of

        return self.send(message_of(whole, subject), output, asked=asked)

    def send(
        self, message: Message, output: Format, *, asked: str = "", key: str | None = None
    ) -> tuple[Delivery, ...]:
        """Send a message and say what went where, or show what would be sent."""
        from advisor.report.deliveries import deliveries_document, failures_in_words
        from advisor.service.delivering import DeliveryRequest, deliver, key_of_environment, previews
        from advisor.service.prices.live import now

        request = DeliveryRequest(
            channels=self.channels,
            command=self.command,
            period=f"{now():%Y-%m-%d} {asked}".rstrip(),
            key=key or key_of_environment(),
        )
        if self.is_preview:
            for channel, text in previews(message, request, self.settings).items():
                TERMINAL.note(f"what {channel} would get:")
                print_text(text.removesuffix("\n"))
            return ()
        deliveries = deliver(message, request, self.settings, database=self.database, listener=TERMINAL)
        print_document(deliveries_document(deliveries), output)
        for line in failures_in_words(deliveries):
            print_message("error", line)
        return deliveries


def outlet(command: str, to: list[str] | None, settings: Settings, *, preview: bool) -> Outlet:
    """Where two options say that the answer of a command goes; a channel named twice gets it once.

    Raises:
        InputError: a preview of nothing, or ``ADVISOR_DELIVERY_KEY`` cannot be a key.
        ConfigError: there is no such channel.
    """
    channels = tuple(dict.fromkeys(to or ()))
    if preview and not channels:
        raise InputError("--preview shows what --to would send: add --to CHANNEL.")
    if channels:
        from advisor.service.delivering import check_channels, key_of_environment

        check_channels(channels, settings.delivery)
        key_of_environment()
    return Outlet(
        command=command,
        channels=channels,
        is_preview=preview,
        settings=settings.delivery,
        database=settings.store,
    )


def check_delivered(deliveries: Sequence[Delivery]) -> None:
    """End with an error if an answer did not surely reach everybody; channels are reported before.

    Raises DeliveryError: how many channels it did not reach.
    """
    lost = [one for one in deliveries if not one.is_there]
    if lost:
        names = ", ".join(one.channel for one in lost)
        raise DeliveryError(f"{len(lost)} of {len(deliveries)} channels did not surely get it: {names}.")


app = group("Channels that answers are sent to with --to: docs/delivery.md.")


@app.command("list")
def list_(output: OutputOptions = AS_TABLE) -> None:
    """Show every channel, where its secrets are kept, and what became of its last delivery."""
    from advisor.report.deliveries import channels_document
    from advisor.service.delivering import channel_states

    settings = settings_with().settings
    states = channel_states(settings.delivery, settings.store)
    print_document(channels_document(states), output.form)


@app.command("test")
def try_out(
    channels: Annotated[list[str], typer.Argument(help="Names of the settings.", metavar="CHANNEL...")],
    preview: PreviewOption = False,
    output: OutputOptions = AS_TABLE,
) -> None:
    """Send a short message to channels, each time anew. Exits with 1 if it does not reach one of them."""
    from advisor.report.deliveries import trial_document
    from advisor.report.writers.mail import message_of
    from advisor.service.prices.live import now
    from advisor.store.ledger import new_id

    out = outlet("deliver test", channels, settings_with().settings, preview=preview)
    message = message_of(trial_document(now()), "A test of advisor's delivery")
    # Anyone who tests twice wants two messages.
    check_delivered(out.send(message, output.form, key=f"test-{new_id()}"))
