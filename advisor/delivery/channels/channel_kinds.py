"""Settings of a channel -> the channel."""

from typing import assert_never

from advisor.config import delivery_settings
from advisor.delivery.channel import Channel, Secrets
from advisor.delivery.channels.bucket import S3, Gcs
from advisor.delivery.channels.local import LocalFile, Stdout
from advisor.delivery.channels.smtp import Smtp
from advisor.delivery.channels.webhook import Slack, Webhook


def open_channel(name: str, settings: delivery_settings.ChannelSettings, secrets: Secrets) -> Channel:
    """The channel that settings describe; nothing is read or asked yet."""
    match settings:
        case delivery_settings.FileChannel():
            return LocalFile(settings=settings, secrets=secrets)
        case delivery_settings.StdoutChannel():
            return Stdout(settings=settings, secrets=secrets)
        case delivery_settings.SmtpChannel():
            return Smtp(name=name, settings=settings, secrets=secrets)
        case delivery_settings.SlackChannel():
            return Slack(settings=settings, secrets=secrets)
        case delivery_settings.WebhookChannel():
            return Webhook(settings=settings, secrets=secrets)
        case delivery_settings.S3Channel():
            return S3(settings=settings, secrets=secrets)
        case delivery_settings.GcsChannel():
            return Gcs(settings=settings, secrets=secrets)
        case _:
            assert_never(settings)
