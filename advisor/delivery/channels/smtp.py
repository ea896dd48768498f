"""Mail by SMTP: encrypted unless the settings say otherwise, and never sent twice.

The same parcel always makes the same bytes.
"""

import hashlib
import smtplib
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime

from advisor.config.delivery_settings import SmtpChannel
from advisor.delivery.channel import (
    Message,
    Parcel,
    PermanentError,
    Secrets,
    SendingError,
    TemporaryError,
    UncertainError,
    quoted_words,
)

_PORTS = {"starttls": 587, "tls": 465, "none": 25}
_REPLY_S = 20.0
# No server need be asked whether it takes more, and a preview is text.
_SEVEN_BITS = SMTP.clone(cte_type="7bit")
_LOGIN_REFUSED = (530, 534, 535, 538)


@dataclass(frozen=True, slots=True, kw_only=True)
class Smtp:
    """A mail server and who gets the mail."""

    name: str
    settings: SmtpChannel
    secrets: Secrets = field(repr=False)
    drops_repeats: bool = field(default=False, init=False)

    @property
    def target(self) -> str:
        """Who gets it."""
        return ", ".join(recipients(self.settings))

    @property
    def port(self) -> int:
        """Where the server listens."""
        return self.settings.port or _PORTS[self.settings.security]

    def preview(self, parcel: Parcel) -> str:
        """The whole message of RFC 5322, with the line ends of this machine."""
        return mail_bytes(parcel, self.settings, self.name).decode("ascii").replace("\r\n", "\n")

    def send(self, parcel: Parcel, begin: Callable[[], None]) -> str | None:
        """Send it to all whom the server takes; whom it does not is returned."""
        mail = mail_bytes(parcel, self.settings, self.name)
        password = self.secrets.read(self.settings.password) if self.settings.password else None
        if password is not None and not password.isascii():
            raise PermanentError(f"the secret of {self.settings.password} has letters that SMTP cannot take")
        with self._connected() as smtp:
            if password is not None:
                smtp.login(self.settings.user or "", password)
            refused = self._address(smtp)
            begin()
            # Once data is on its way, a connection that ends leaves open what the server made of it.
            try:
                code, words = smtp.data(mail)
            except smtplib.SMTPDataError:
                raise  # the server wants no data at all
            except (smtplib.SMTPException, OSError) as error:
                why = "no answer in time" if isinstance(error, TimeoutError) else "the connection ended"
                raise UncertainError(f"{why} after the mail was sent: perhaps it arrived") from None
            _check((code, words), "the mail")
        return refused

    @contextmanager
    def _connected(self) -> Iterator[smtplib.SMTP]:
        """A connection that is encrypted as the settings say; errors before the data in our words."""
        smtp: smtplib.SMTP | None = None
        try:
            smtp = self._connection()
            yield smtp
        except (smtplib.SMTPException, OSError) as error:
            raise self._in_words(error) from None
        finally:
            if smtp is not None:
                with suppress(smtplib.SMTPException, OSError):
                    # Its answer changes nothing, and may not come.
                    smtp.putcmd("quit")
                smtp.close()

    def _connection(self) -> smtplib.SMTP:
        host, security = self.settings.host, self.settings.security
        if security == "none":
            return smtplib.SMTP(host, self.port, timeout=_REPLY_S)
        context = ssl.create_default_context(cafile=self.settings.ca_file)
        if security == "tls":
            return smtplib.SMTP_SSL(host, self.port, timeout=_REPLY_S, context=context)
        smtp = smtplib.SMTP(host, self.port, timeout=_REPLY_S)
        try:
            smtp.starttls(context=context)
        except BaseException:
            smtp.close()
            raise
        return smtp

    def _address(self, smtp: smtplib.SMTP) -> str | None:
        """Tell the server from whom and to whom; None, or whom it refuses for good."""
        smtp.ehlo_or_helo_if_needed()
        _check(smtp.mail(mailbox(self.settings.sender).addr_spec), "the sender")
        addresses = recipients(self.settings)
        refused = []
        for address in addresses:
            code, words = smtp.rcpt(address)
            if 500 <= code < 600:
                refused.append(f"{address} ({code} {quoted_words(words)})")
            else:
                _check((code, words), address)
        if len(refused) == len(addresses):
            raise PermanentError(f"the server refuses {', '.join(refused)}: check the addresses")
        return f"refused by the server: {', '.join(refused)}" if refused else None

    def _in_words(self, error: smtplib.SMTPException | OSError) -> SendingError:
        place, host = f"{self.settings.host}:{self.port}", self.settings.host
        if isinstance(error, smtplib.SMTPAuthenticationError) and error.smtp_code in _LOGIN_REFUSED:
            return PermanentError(
                f"{host} refuses user {self.settings.user!r} or the secret of {self.settings.password}"
                f" ({error.smtp_code}): check both"
            )
        if isinstance(error, smtplib.SMTPResponseException):
            return _of_code(error.smtp_code, error.smtp_error, "the connection")
        # smtplib raises the root of its errors where user and server know no common way to log in.
        if isinstance(error, smtplib.SMTPNotSupportedError) or type(error) is smtplib.SMTPException:
            return PermanentError(f"{place} does not offer what security or user ask for: check both")
        if isinstance(error, ssl.SSLCertVerificationError):
            return PermanentError(f"{place} shows a certificate that is not trusted: check host and ca_file")
        if isinstance(error, ssl.SSLError):
            return PermanentError(f"{place} does not speak {self.settings.security}: check port and security")
        if isinstance(error, FileNotFoundError):
            return PermanentError(f"there is no file {str(self.settings.ca_file)!r} of ca_file")
        if isinstance(error, TimeoutError):
            return TemporaryError(f"{place} did not answer in time")
        return TemporaryError(f"cannot reach {place}: {quoted_words(str(error)) or type(error).__name__}")


def _check(reply: tuple[int, bytes], what: str) -> None:
    code, words = reply
    if code not in (250, 251, 252):
        raise _of_code(code, words, what)


def _of_code(code: int, words: bytes | str, what: str) -> SendingError:
    said = f"{code} {quoted_words(words)}".strip()
    if 400 <= code < 500:
        return TemporaryError(f"the server puts {what} off: {said}")
    if code == -1:  # what smtplib makes of a reply that is none
        return TemporaryError(f"the server answers {what} with what is no reply of SMTP")
    return PermanentError(f"the server refuses {what}: {said}")


def mail_bytes(parcel: Parcel, settings: SmtpChannel, channel: str) -> bytes:
    """The whole message of RFC 5322, as it goes over the wire.

    Its Message-ID follows from key and channel, so that mail servers and people can see a repeat.

    Raises PermanentError: the message lacks a file that is to be attached.
    """
    message = parcel.message
    label = hashlib.sha256(f"{parcel.key}\n{channel}".encode()).hexdigest()[:32]
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
    for suffix in settings.attach:
        file = message.file(f".{suffix}")
        if file is None:
            raise PermanentError(f"this answer has no form {suffix!r} to attach: leave it out of attach")
        maintype, _, subtype = file.media_type.partition("/")
        mail.add_attachment(
            file.payload, maintype, subtype, filename=f"answer{file.suffix}", params={"charset": "utf-8"}
        )
    # Python would draw them by lot, and a repeat would not be the same bytes.
    multiparts = (part for part in mail.walk() if part.is_multipart())
    for number, part in enumerate(multiparts):
        part.set_boundary(f"=_{label}_{number}")
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
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())


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
