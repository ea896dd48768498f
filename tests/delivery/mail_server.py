# ruff: noqa: ARG002, N802 - names and arguments are those of aiosmtpd
"""A real mail server on this machine: STARTTLS, a login, and answers as a test wants them."""

import asyncio
import ipaddress
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.message import EmailMessage
from email.parser import BytesParser
from email.policy import SMTP as POLICY
from functools import cache
from pathlib import Path
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, Session

USER, PASSWORD = "me", "hunter2-is-long"
STOPS = ("EHLO", "MAIL", "RCPT", "DATA")
"""Commands at which the server may fall silent; DATA: it has the whole mail, and keeps it."""


@dataclass(slots=True)
class MailServer:
    """What it took, and how it answers next.

    Attributes:
        replies: for the next commands of a name, such as ``{"RCPT": ["451 later"]}``; then it takes them.
        stop_at: a command that it never answers.
        resets_at: a command at which it drops the connection.
    """

    replies: dict[str, list[str]] = field(default_factory=dict)
    stop_at: str = ""
    resets_at: str = ""
    port: int = 0
    taken: list[bytes] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    recipients: list[list[str]] = field(default_factory=list)

    @property
    def mails(self) -> list[EmailMessage]:
        return [BytesParser(policy=POLICY).parsebytes(raw) for raw in self.taken]  # type: ignore[misc]

    async def answer(self, server: SMTP, command: str) -> str | None:
        """The reply of a test's own; None for the usual one."""
        self.asked.append(command)
        if command == self.stop_at:
            await asyncio.Event().wait()
        if command == self.resets_at:
            # Lingering for no time sends a reset instead of an end.
            raw = server.transport.get_extra_info("socket")
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            server.transport.abort()
            await asyncio.Event().wait()
        waiting = self.replies.get(command)
        return waiting.pop(0) if waiting else None

    async def handle_EHLO(
        self, server: SMTP, session: Session, envelope: Envelope, hostname: str, responses: list[str]
    ) -> list[str]:
        session.host_name = hostname
        await self.answer(server, "EHLO")
        return responses

    async def handle_MAIL(
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        envelope.mail_from = address
        return await self.answer(server, "MAIL") or "250 OK"

    async def handle_RCPT(
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        reply = await self.answer(server, "RCPT") or "250 OK"
        if reply.startswith("2"):
            envelope.rcpt_tos.append(address)
        return reply

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        waiting = self.replies.get("DATA")
        if not waiting or waiting[0].startswith("2"):
            self.taken.append(bytes(envelope.original_content or b""))
            self.recipients.append(list(envelope.rcpt_tos))
        return await self.answer(server, "DATA") or "250 OK"


@contextmanager
def serving(
    mail: MailServer | None = None, *, certificate: Path | None = None, needs_login: bool = True
) -> Iterator[MailServer]:
    """The server while it runs; with a certificate it offers STARTTLS, and wants it before the login."""
    mail = mail or MailServer()
    arguments: dict[str, Any] = {}
    if needs_login:
        arguments = {
            "authenticator": _log_in,
            "auth_required": True,
            "auth_require_tls": certificate is not None,
        }
    if certificate is not None:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificate)
        arguments |= {"tls_context": context, "require_starttls": True}
    controller = Controller(mail, hostname="127.0.0.1", port=free_port(), **arguments)
    controller.start()
    mail.port = controller.port
    try:
        yield mail
    finally:
        controller.stop()


def _log_in(server: SMTP, session: Session, envelope: Envelope, mechanism: str, data: Any) -> AuthResult:
    is_known = (data.login, data.password) == (USER.encode(), PASSWORD.encode())
    return AuthResult(success=is_known, handled=False)


def free_port() -> int:
    """One that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@cache
def _certificate() -> bytes:
    """A key and a certificate of this machine, which signs itself."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    built = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return private + built.public_bytes(pem)


def write_certificate(folder: Path) -> Path:
    """A file with key and certificate."""
    path = folder / "server.pem"
    path.write_bytes(_certificate())
    return path
