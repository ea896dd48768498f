"""An answer to the channels of the settings: each gets it once, and one that fails stops no other."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, assert_never

from advisor.core.errors import ConfigError, InputError, did_you_mean
from advisor.core.units import format_duration
from advisor.service.listening import Listener, Step
from advisor.store.database import existing_store, open_store

if TYPE_CHECKING:
    from advisor.config.delivery_settings import ChannelSettings, DeliverySettings
    from advisor.config.settings import StoreSettings
    from advisor.delivery.channel import Channel, Message, Secrets
    from advisor.delivery.posting import Clock, Delivery
    from advisor.store.outbox import Posted

# It stands in headers and in names of files.
_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@+=-]{0,199}")
_SHOWN_APART = {"kind", "url", "path", "to", "cc", "password", "secret"}


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryRequest:
    """Where an answer goes, and as which it counts."""

    channels: tuple[str, ...]
    """Names of the settings."""
    command: str
    """What was asked, such as ``recommend``."""
    period: str = ""
    """Of the answer, such as a day: one of the same content is sent again in the next."""
    key: str | None = None
    """A scheduler's, or another of the caller's; None: of command, period and content."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelState:
    """A channel of the settings."""

    name: str
    kind: str
    target: str
    settings: tuple[tuple[str, str], ...]
    """By name, as text, without what stands elsewhere here."""
    secrets: tuple[tuple[str, str | None], ...]
    """Where each is kept, and why it cannot be read, if so."""
    last: Posted | None
    """What changed last of its deliveries."""


def key_of_environment(environ: Mapping[str, str] | None = None) -> str | None:
    """The key that a scheduler gives by ``ADVISOR_DELIVERY_KEY``. Raises InputError: it cannot be one."""
    from advisor.config.layers import DELIVERY_KEY_VARIABLE

    key = (os.environ if environ is None else environ).get(DELIVERY_KEY_VARIABLE) or None
    if key is not None:
        _check_key(key)
    return key


def check_channels(names: tuple[str, ...], delivery: DeliverySettings) -> None:
    """Refuse names that no channel has, before long work begins.

    Raises ConfigError: there is no such channel.
    """
    known = delivery.channels
    there_are = f"there are {', '.join(known)}" if known else "none is set up yet (docs/delivery.md)"
    for name in names:
        if name not in known:
            raise ConfigError(f"there is no channel {name!r}: {there_are}.{did_you_mean(name, known)}")


def deliver(
    message: Message,
    request: DeliveryRequest,
    delivery: DeliverySettings,
    *,
    database: StoreSettings,
    listener: Listener,
    clock: Clock | None = None,
) -> tuple[Delivery, ...]:
    """Send a message to each channel, one after the other.

    Returns:
        What became of it, for each channel.

    Raises:
        ConfigError: there is no such channel.
        InputError: the key cannot be one.
        StoreError: the database that knows what was sent cannot be read or written.
    """
    from advisor.delivery.posting import Clock, Post

    check_channels(request.channels, delivery)
    key = _key(message, request)
    deliveries = []
    with open_store(database.url) as store:
        for name, channel in _channels(request.channels, delivery).items():
            with listener.step(f"sending to {name}") as step:
                post = Post(
                    store=store,
                    total_s=delivery.give_up_after,
                    clock=clock or Clock(),
                    on_retry=_telling(step),
                )
                deliveries.append(post.send(name, channel, message, key))
    return tuple(deliveries)


def previews(
    message: Message, request: DeliveryRequest, delivery: DeliverySettings, *, clock: Clock | None = None
) -> dict[str, str]:
    """What `deliver` would send now, by channel; nothing is sent, and no secret is read.

    Raises:
        ConfigError: there is no such channel, or it wants a form that this answer does not have.
        InputError: the key cannot be one.
    """
    from advisor.delivery.channel import Parcel, SendingError
    from advisor.delivery.posting import Clock

    check_channels(request.channels, delivery)
    parcel = Parcel(message=message, key=_key(message, request), at=(clock or Clock()).now())
    shown = {}
    for name, channel in _channels(request.channels, delivery).items():
        try:
            shown[name] = channel.preview(parcel)
        except SendingError as error:
            raise ConfigError(f"{name}: {error}.") from None
    return shown


def channel_states(delivery: DeliverySettings, database: StoreSettings) -> tuple[ChannelState, ...]:
    """Every channel of the settings, and what became of its last delivery."""
    from advisor.store.outbox import last_posted

    with existing_store(database.url) as store:
        return tuple(
            _state(name, settings, last_posted(store, name) if store else None)
            for name, settings in delivery.channels.items()
        )


def _channels(names: tuple[str, ...], delivery: DeliverySettings) -> dict[str, Channel]:
    from advisor.delivery.channel import Secrets

    known = delivery.channels
    return {name: open_channel(name, known[name], Secrets(os.environ)) for name in names}


def _key(message: Message, request: DeliveryRequest) -> str:
    if request.key is None:
        parts = json.dumps([request.command, request.period, message.sha256])
        return hashlib.sha256(parts.encode()).hexdigest()[:32]
    _check_key(request.key)
    return request.key


def _check_key(key: str) -> None:
    if not _KEY.fullmatch(key):
        raise InputError(
            f"ADVISOR_DELIVERY_KEY is {key[:50]!r}: it may have 200 letters, digits and ._:@+=- at most, the"
            " first of them a letter or digit."
        )


def _telling(step: Step) -> Callable[[str, float], None]:
    return lambda why, wait_s: step.update(f"{why}; again in {format_duration(wait_s)}")


def _state(name: str, settings: ChannelSettings, last: Posted | None) -> ChannelState:
    from advisor.config.delivery_settings import SECRET_FORMS
    from advisor.delivery.channel import Secrets

    secrets = Secrets(os.environ)
    values = settings.model_dump(mode="json", by_alias=True)
    texts = {
        key: ", ".join(map(str, value)) if isinstance(value, list) else str(value)
        for key, value in values.items()
        if value not in (None, [])
    }
    references = [text for text in texts.values() if text.startswith(SECRET_FORMS)]
    return ChannelState(
        name=name,
        kind=settings.kind,
        target=open_channel(name, settings, secrets).target,
        settings=tuple((key, text) for key, text in texts.items() if key not in _SHOWN_APART),
        secrets=tuple((reference, _problem(secrets, reference)) for reference in references),
        last=last,
    )


def _problem(secrets: Secrets, reference: str) -> str | None:
    from advisor.delivery.channel import SecretError

    try:
        secrets.read(reference)
    except SecretError as error:
        return str(error)
    return None


def open_channel(name: str, settings: ChannelSettings, secrets: Secrets) -> Channel:
    """The channel that settings describe; nothing is read or asked yet."""
    from advisor.config import delivery_settings as kinds
    from advisor.delivery.channels.bucket import S3, Gcs
    from advisor.delivery.channels.local import LocalFile, Stdout
    from advisor.delivery.channels.smtp import Smtp
    from advisor.delivery.channels.webhook import Slack, Webhook

    match settings:
        case kinds.FileChannel():
            return LocalFile(settings=settings, secrets=secrets)
        case kinds.StdoutChannel():
            return Stdout(settings=settings, secrets=secrets)
        case kinds.SmtpChannel():
            return Smtp(name=name, settings=settings, secrets=secrets)
        case kinds.SlackChannel():
            return Slack(settings=settings, secrets=secrets)
        case kinds.WebhookChannel():
            return Webhook(settings=settings, secrets=secrets)
        case kinds.S3Channel():
            return S3(settings=settings, secrets=secrets)
        case kinds.GcsChannel():
            return Gcs(settings=settings, secrets=secrets)
        case _:
            assert_never(settings)
