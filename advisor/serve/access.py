"""Who may read: a bearer token, a reverse proxy that names its user, or programs of this machine."""

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address

Headers = Iterable[tuple[bytes, bytes]]
MOST_HEADER_BYTES = 16_384
LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
HOST_NAME = re.compile(r"\[[0-9a-f:.]+\]|[a-z0-9._-]+")
_HOST = re.compile(rf"(?P<name>{HOST_NAME.pattern})(?::\d{{1,5}})?", re.ASCII)
_FORWARDED = re.compile(rb"forwarded|x-forwarded-.*|x-real-ip|via")


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request is not answered."""

    status: int
    why: str


WHO = Refusal(401, "give the token: Authorization: Bearer TOKEN, or as the password of a browser's dialog")


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Who is let in. Of a token only a digest is kept, so it reaches no log."""

    token_sha256: bytes | None = field(default=None, repr=False)
    """None without a token."""
    proxies: tuple[IPv4Network | IPv6Network, ...] = ()
    """Addresses whose `user_header` is believed."""
    user_header: str = "x-forwarded-user"
    """In lower case."""
    hosts: frozenset[str] = LOOPBACK
    """Names under which the service is known, in lower case."""

    @property
    def is_open(self) -> bool:
        """Whether everybody who reaches it is let in."""
        return self.token_sha256 is None and not self.proxies

    def why_not_host(self, headers: Headers) -> Refusal | None:
        """What is wrong with the name by which it was called; a page elsewhere may have chosen it."""
        names = [value.decode("latin-1").lower() for name, value in headers if name == b"host"]
        match = _HOST.fullmatch(names[0]) if len(names) == 1 else None
        if match is None or match["name"].rstrip(".") not in self.hosts:
            return Refusal(421, "this service does not go by this name: docs/serve.md")
        return None

    def why_not(self, headers: Headers, peer: str) -> Refusal | None:
        """None for who may read.

        Args:
            headers: their names in lower case.
        """
        given = [value for name, value in headers if name == b"authorization"]
        users = [value for name, value in headers if name == self.user_header.encode()]
        if len(given) > 1 or len(users) > 1:
            return Refusal(400, "a header that says who asks is given twice")
        if self.is_open:
            # Anyone who puts a proxy before it has to say who may read.
            is_direct = not any(_FORWARDED.fullmatch(name) for name, _ in headers)
            return (
                None if is_direct else Refusal(401, "behind a proxy it must know who may read: docs/serve.md")
            )
        if self.proxies and users and users[0].strip() and self._is_proxy(peer):
            return None
        return None if given and self._is_token(given[0]) else WHO

    def _is_proxy(self, peer: str) -> bool:
        try:
            address = ip_address(peer)
        except ValueError:
            return False
        if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
            address = address.ipv4_mapped
        return any(address in network for network in self.proxies)

    def _is_token(self, header: bytes) -> bool:
        """In constant time, whatever is given."""
        kind, _, value = header.partition(b" ")
        token = value.strip()
        if kind.lower() == b"basic":
            # What browsers ask for: any user, and the token as password.
            try:
                token = base64.b64decode(token, validate=True).partition(b":")[2]
            except binascii.Error:
                token = b""
        elif kind.lower() != b"bearer":
            token = b""
        expected = self.token_sha256 or b""
        return hmac.compare_digest(hashlib.sha256(token).digest(), expected)
