"""An incoming webhook of Slack, whose address is a secret; it cannot tell repeats."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from advisor.config.delivery_settings import SlackChannel
from advisor.delivery.channel import Parcel
from advisor.delivery.channels.http_calls import USER_AGENT, post
from advisor.delivery.channels.webhook import request_text
from advisor.delivery.message import JSON_TYPE
from advisor.delivery.secret_values import Secrets

_HEADERS: Mapping[str, str] = {"User-Agent": USER_AGENT, "Content-Type": JSON_TYPE}


@dataclass(frozen=True, slots=True, kw_only=True)
class Slack:
    """A channel of Slack."""

    settings: SlackChannel
    secrets: Secrets = field(repr=False)
    drops_repeats: bool = field(default=False, init=False)

    @property
    def target(self) -> str:
        """Where the address is kept."""
        return self.settings.url

    def preview(self, parcel: Parcel) -> str:
        """Our headers and the body."""
        return request_text(self.target, _HEADERS, _body(parcel))

    def send(self, parcel: Parcel, begin: Callable[[], None]) -> None:
        """POST it."""
        url = self.secrets.read(self.settings.url)
        post(url, _body(parcel), _HEADERS, begin=begin, drops_repeats=False)


def _body(parcel: Parcel) -> bytes:
    """The blocks, and the subject for notifications, where blocks do not show."""
    body = {"text": _escaped(parcel.message.subject), "blocks": parcel.message.blocks}
    return json.dumps(body, indent=2).encode("ascii")


def _escaped(text: str) -> str:
    """Escape names such as ``<!channel>``, which would notify people."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
