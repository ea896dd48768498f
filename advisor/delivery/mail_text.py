"""A message as mail: the same bytes for the same parcel, whoever makes them and whenever."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime

from advisor.config.delivery_settings import SmtpChannel
from advisor.delivery.channel import Parcel, PermanentError
from advisor.delivery.message import Message

# No server need be asked whether it takes more, and a preview is text.
_SEVEN_BITS = SMTP.clone(cte_type="7bit")


def mail_bytes(parcel: Parcel, settings: SmtpChannel, channel: str) -> bytes:
    """The whole message of RFC 5322, as it goes over the wire.

    Its Message-ID follows from key and channel, so that mail servers and people can see a repeat.

    Raises:
        PermanentError: the message lacks a file that is to be attached.
    """
    message, label = parcel.message, _digest(parcel.key, channel)
    mail = EmailMessage(policy=_SEVEN_BITS)
    mail["Subject"] = one_line(message.subject)
    mail["From"] = settings.sender
    mail["To"] = ", ".join(settings.to)
    if settings.cc:
        mail["Cc"] = ", ".join(settings.cc)
    mail["Date"] = format_datetime(parcel.at)
    mail["Message-ID"] = f"<{label}@{mailbox(settings.sender).domain}>"
    # Who is on holiday need not tell a program.
    mail["Auto-Submitted"] = "auto-generated"
    _fill(mail, message)
    _attach(mail, message, settings.attach)
    _name_boundaries(mail, label)
    return mail.as_bytes()


def mailbox(text: str) -> Address:
    """The address of ``Ann Lee <ann@example.org>``; the settings have checked that it is one."""
    address: Address = SMTP.header_factory("To", text).addresses[0]
    return address


def recipients(settings: SmtpChannel) -> tuple[str, ...]:
    """Who gets the mail, each once."""
    return tuple(dict.fromkeys(mailbox(text).addr_spec for text in (*settings.to, *settings.cc)))


def one_line(text: str) -> str:
    r"""A text that can stand in a header: nothing in it ends a line.

    >>> one_line("cost\r\nBcc: eve@example.org")
    'cost Bcc: eve@example.org'
    """
    plain = "".join(letter if letter.isprintable() else " " for letter in text)
    return " ".join(plain.split())


def _fill(mail: EmailMessage, message: Message) -> None:
    """Plain text first: readers take the last form that they can show."""
    mail.set_content(message.text)
    if message.html is None:
        return
    html = message.html()
    mail.add_alternative(html.text, subtype="html")
    part = mail.get_payload(1)
    assert isinstance(part, EmailMessage)  # noqa: S101 - by what was just added
    for picture in html.pictures:
        part.add_related(
            picture.png,
            "image",
            "png",
            cid=f"<{picture.cid}>",
            disposition="inline",
            filename=f"{picture.cid}.png",
        )


def _attach(mail: EmailMessage, message: Message, suffixes: Sequence[str]) -> None:
    for suffix in suffixes:
        file = message.file(f".{suffix}")
        if file is None:
            raise PermanentError(f"this answer has no form {suffix!r} to attach: leave it out of attach")
        maintype, _, subtype = file.media_type.partition("/")
        mail.add_attachment(
            file.payload, maintype, subtype, filename=f"answer{file.suffix}", params={"charset": "utf-8"}
        )


def _name_boundaries(mail: EmailMessage, label: str) -> None:
    """Python would draw them by lot, and a repeat would not be the same bytes."""
    multiparts = (part for part in mail.walk() if part.is_multipart())
    for number, part in enumerate(multiparts):
        part.set_boundary(f"=_{label}_{number}")


def _digest(*texts: str) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:32]
