"""Messages, parcels and clocks for tests of deliveries."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from pydantic import TypeAdapter

from advisor.config.delivery_settings import ChannelSettings
from advisor.config.layers import Config, load_config
from advisor.delivery.channel import Channel, File, Html, Message, Parcel, Picture, Secrets
from advisor.delivery.posting import Clock
from advisor.service.delivering import open_channel

NOON = datetime(2026, 11, 23, 12, tzinfo=UTC)
PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256))
HTML = Html(
    text='<p>All is <b>well</b>, Zürich.</p><img src="cid:chart-1" alt="cost">',
    pictures=(Picture(cid="chart-1", png=PNG),),
)
MAIL = {"kind": "smtp", "host": "127.0.0.1", "from": "Advisor <bot@example.org>", "to": ["ann@example.org"]}


def make_message(**changes: Any) -> Message:
    """One with every form."""
    values: dict[str, Any] = {
        "subject": "Week 47: $1,234 of $2,000",
        "text": "All is well, Zürich.\n.a line that begins with a dot",
        "html": lambda: HTML,
        "files": (
            File(suffix=".html", media_type="text/html", make=lambda: "<!doctype html><p>page</p>"),
            File(suffix=".md", media_type="text/markdown", make=lambda: "# Page"),
            File(suffix=".csv", media_type="text/csv", make=lambda: "a,b\n1,2"),
        ),
        "blocks": ({"type": "section", "text": {"type": "plain_text", "text": "All is well"}},),
        "facts": {"usd": 1234.5, "team": "Zürich <!channel>"},
    }
    return Message(**(values | changes))


def make_parcel(**changes: Any) -> Parcel:
    """The message under a key."""
    return Parcel(**({"message": make_message(), "key": "week-47", "at": NOON} | changes))


def channel_of(settings: dict[str, Any], name: str = "team", **environ: str) -> Channel:
    """A channel as the settings describe it."""
    adapter: TypeAdapter[ChannelSettings] = TypeAdapter(ChannelSettings)
    return open_channel(name, adapter.validate_python(settings), Secrets(environ))


def config_of(channels: dict[str, Any], **settings: Any) -> Config:
    """Settings with these channels."""
    flags = {"delivery.channels": channels} | settings
    return load_config(flags, environ={})


@dataclass(slots=True)
class SetClock:
    """Time that passes where somebody sleeps, and no faster."""

    start: datetime = NOON
    passed_s: float = 0.0
    slept: list[float] = field(default_factory=list)

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.passed_s += seconds

    @property
    def clock(self) -> Clock:
        return Clock(
            now=lambda: self.start + timedelta(seconds=self.passed_s),
            monotonic_s=lambda: self.passed_s,
            sleep=self.sleep,
            chance=lambda: 1.0,
        )
