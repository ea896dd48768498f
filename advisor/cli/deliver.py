"""``advisor deliver list / test``: the channels that ``--to`` knows."""

from __future__ import annotations

from typing import Annotated

import typer

from advisor.cli.common import chosen_format
from advisor.cli.delivering import PreviewOption
from advisor.cli.help_lines import WholeLines
from advisor.cli.shared_options import FormatOption, JsonOption
from advisor.report.printing import Format, print_document

app = typer.Typer(
    cls=WholeLines,
    help="Channels that answers are sent to with --to: docs/delivery.md.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.command("list")
def list_(output: FormatOption = Format.TABLE, as_json: JsonOption = False) -> None:
    """Show every channel, where its secrets are kept, and what became of its last delivery."""
    from advisor.cli.common import settings_with
    from advisor.report.deliveries import channels_document
    from advisor.service.delivering import channel_states

    settings = settings_with().settings
    states = channel_states(settings.delivery, settings.store)
    print_document(channels_document(states), chosen_format(output, as_json))


@app.command("test")
def try_out(
    channels: Annotated[list[str], typer.Argument(help="Names of the settings.", metavar="CHANNEL...")],
    preview: PreviewOption = False,
    output: FormatOption = Format.TABLE,
    as_json: JsonOption = False,
) -> None:
    """Send a short message to channels, each time anew. Exits with 1 if it does not reach one of them."""
    from advisor.cli.common import settings_with
    from advisor.cli.delivering import check_delivered, outlet
    from advisor.report.deliveries import trial_document
    from advisor.report.mail import message_of
    from advisor.service.live import now
    from advisor.store.ledger import new_id

    config = settings_with()
    out = outlet("deliver test", channels, preview=preview)
    out.check(config)
    message = message_of(trial_document(now()), "A test of advisor's delivery")
    # Whoever tests twice wants two messages.
    check_delivered(out.send(message, chosen_format(output, as_json), config, key=f"test-{new_id()}"))
