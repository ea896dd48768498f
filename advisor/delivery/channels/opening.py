"""Settings of a channel -> the channel; what it needs is imported when one of its kind is opened."""

from __future__ import annotations

from typing import assert_never

from advisor.config.delivery_settings import (
    ChannelSettings,
    FileChannel,
    GcsChannel,
    S3Channel,
    SlackChannel,
    SmtpChannel,
    StdoutChannel,
    WebhookChannel,
)
from advisor.delivery.channel import Channel
from advisor.delivery.secret_values import Secrets


def open_channel(name: str, settings: ChannelSettings, secrets: Secrets) -> Channel:
    """The channel that settings describe; nothing is read or asked yet."""
    match settings:
        case FileChannel():
            from advisor.delivery.channels.local import LocalFile

            return LocalFile(settings=settings, secrets=secrets)
        case StdoutChannel():
            from advisor.delivery.channels.local import Stdout

            return Stdout(settings=settings, secrets=secrets)
        case SmtpChannel():
            from advisor.delivery.channels.smtp import Smtp

            return Smtp(name=name, settings=settings, secrets=secrets)
        case SlackChannel():
            from advisor.delivery.channels.slack import Slack

            return Slack(settings=settings, secrets=secrets)
        case WebhookChannel():
            from advisor.delivery.channels.webhook import Webhook

            return Webhook(settings=settings, secrets=secrets)
        case S3Channel():
            from advisor.delivery.channels.s3 import S3

            return S3(settings=settings, secrets=secrets)
        case GcsChannel():
            from advisor.delivery.channels.gcs import Gcs

            return Gcs(settings=settings, secrets=secrets)
        case _:
            assert_never(settings)
