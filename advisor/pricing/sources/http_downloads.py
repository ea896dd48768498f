"""Downloads limited in size and time, and why one failed in one line."""

from __future__ import annotations

import threading
from time import monotonic
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from advisor.core.deadlines import LateError, left_s, within
from advisor.core.units import MB, format_duration

if TYPE_CHECKING:
    from urllib3.response import BaseHTTPResponse

REPLY_BYTES = 32 * MB
"""Most that one reply may hold, unpacked: pages of the clouds hold 8 MB at most."""
PULL_BYTES = 512 * MB
"""Most that one source may send in a pull: ninety days of spot prices of all regions are a third of that."""
_CHUNK_BYTES = 65536


class LongReplyError(ValueError):
    """A reply, or all replies of a pull, hold more than anything true could."""

    def __init__(self, most_bytes: int) -> None:
        super().__init__(f"more than {most_bytes // MB} MB")
        self.most_bytes = most_bytes


class Allowance:
    """How much a source may still send in a pull; its threads share it."""

    def __init__(self, most_bytes: int = PULL_BYTES) -> None:
        self._most_bytes = self._left_bytes = most_bytes
        self._lock = threading.Lock()

    def take(self, num_bytes: int) -> None:
        """Count what came. Raises LongReplyError: it is more than was left."""
        with self._lock:
            self._left_bytes -= num_bytes
            if self._left_bytes < 0:
                raise LongReplyError(self._most_bytes)


def read_whole(
    raw: BaseHTTPResponse, allowance: Allowance, *, within_s: float, unpacks: bool = False
) -> bytes:
    """The body of a reply that urllib3 has not read; closed unless it was read to its end. ``unpacks`` gzip.

    Raises LongReplyError, LateError: too much, or not whole within ``within_s``, nor while the call lasts.
    """
    end_s = monotonic() + min(within_s, left_s())
    body = bytearray()
    try:
        # read1 returns what there is: read would wait for a whole chunk.
        while chunk := raw.read1(_CHUNK_BYTES, decode_content=unpacks):
            body += chunk
            if len(body) > REPLY_BYTES:
                raise LongReplyError(REPLY_BYTES)
            allowance.take(len(chunk))
            if monotonic() > end_s:
                raise LateError(within_s)
    except BaseException:
        raw.close()
        raise
    return bytes(body)


FILE_WITHIN_S = 30.0
"""For a whole file that is read at once, connecting included."""
_CONNECT_S = 5.0
_READ_S = 10.0
_MOVED = "it may have moved: update advisor and its packages, or look at the proxy"
_BY_STATUS = {403: f"refuses access to the file (403): {_MOVED}", 404: f"has no such file (404): {_MOVED}"}


class PublicFileError(Exception):
    """A file could not be had; the text says why and what to do, and repeats nothing that the server said."""


def download(url: str, allowance: Allowance, *, within_s: float = FILE_WITHIN_S) -> bytes:
    """A whole file, within what its source may still send; redirects are not followed.

    Raises PublicFileError: it cannot be had, is too long or too late.
    """
    import requests

    def read() -> bytes:
        limits = (_CONNECT_S, _READ_S)
        with requests.get(url, stream=True, allow_redirects=False, timeout=limits) as reply:
            if reply.status_code == 200:
                return read_whole(reply.raw, allowance, within_s=within_s, unpacks=True)
            host, status = urlsplit(url).hostname, reply.status_code
            if reply.is_redirect:
                raise PublicFileError(f"{host} sends to another address ({status}), which is not followed")
            other = f"answered with the error {status}: try again later"
            raise PublicFileError(f"{host} {_BY_STATUS.get(status, other)}")

    try:
        return within(within_s, read)
    except Exception as error:  # noqa: BLE001 - whatever the network does
        raise PublicFileError(_in_words(error, url)) from None


def _in_words(error: Exception, url: str) -> str:
    import requests
    from urllib3.exceptions import NameResolutionError

    if isinstance(error, PublicFileError):
        return str(error)
    host = urlsplit(url).hostname or "the address"
    if isinstance(error, LateError):
        return f"{host} did not send the file within {format_duration(error.limit_s)}: try again later"
    if isinstance(error, LongReplyError):
        return f"{host} sent {error}, which no true file holds: check the proxy"
    if isinstance(error, requests.Timeout):
        return f"{host} did not answer in time: try again later"
    if any(isinstance(getattr(one, "reason", None), NameResolutionError) for one in error.args):
        return f"the name {host} cannot be looked up: no network, or no name server"
    if isinstance(error, requests.exceptions.ProxyError | requests.exceptions.SSLError):
        return f"no safe way to {host}: check the proxy and the certificates of this machine"
    if isinstance(error, requests.ConnectionError):
        return f"cannot reach {host}: check the network, the proxy and the firewall"
    if isinstance(error, requests.RequestException):
        return f"{host} is no address that can be asked"
    return f"the file of {host} was cut off on its way: try again"
