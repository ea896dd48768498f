"""Files that anybody may download: read within a time and a size, and why one cannot be had in one line."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from advisor.core.deadlines import LateError, within
from advisor.core.units import MB, format_duration
from advisor.pricing.sources.replies import Allowance, LongReplyError, read_whole

if TYPE_CHECKING:
    from requests import Response

FILE_WITHIN_S = 30.0
"""For a whole file that is read at once, connecting included."""
# One of a price file holds two kilobytes.
_LINE_BYTES = MB
_CONNECT_S = 5.0
_READ_S = 10.0
_CHUNK_BYTES = 2**18
_MOVED = "it may have moved: update advisor and its packages, or look at the proxy"
_BY_STATUS = {403: f"lets nobody have the file (403): {_MOVED}", 404: f"has no such file (404): {_MOVED}"}


class PublicFileError(Exception):
    """A file could not be had; the text says why and what to do, and repeats nothing that the server said."""


def download(url: str, allowance: Allowance, *, within_s: float = FILE_WITHIN_S) -> bytes:
    """A whole file.

    Args:
        url: where it is; redirects are not followed.
        allowance: how much its source may still send.
        within_s: for all of it.

    Raises:
        PublicFileError: it cannot be had, is too long or too late.
    """

    def read() -> bytes:
        with _opened(url) as reply:
            return read_whole(reply.raw, allowance, within_s=within_s, unpacks=True)

    try:
        return within(within_s, read)
    except Exception as error:  # noqa: BLE001 - whatever the network does
        raise PublicFileError(_in_words(error, url)) from None


def lines_of(url: str, *, within_s: float, most_bytes: int) -> Iterator[bytes]:
    """The lines of a file while it comes, so that its size takes no memory.

    Args:
        url: as above.
        within_s: for all of it.
        most_bytes: a file that holds more is given up.

    Raises:
        PublicFileError: as above, also in the middle of the file, or it does not end with the end of a line.
    """
    end_s = monotonic() + within_s
    try:
        with within(min(within_s, FILE_WITHIN_S), partial(_opened, url)) as reply:
            yield from _lines(_chunks(reply, end_s, within_s, most_bytes))
    except PublicFileError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever the network does
        raise PublicFileError(_in_words(error, url)) from None


def _chunks(reply: Response, end_s: float, within_s: float, most_bytes: int) -> Iterator[bytes]:
    num_bytes = 0
    while chunk := reply.raw.read1(_CHUNK_BYTES, decode_content=True):
        num_bytes += len(chunk)
        if num_bytes > most_bytes:
            raise LongReplyError(most_bytes)
        if monotonic() > end_s:
            raise LateError(within_s)
        yield chunk


def _lines(chunks: Iterator[bytes]) -> Iterator[bytes]:
    rest = b""
    for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        yield from lines
        if len(rest) > _LINE_BYTES:
            raise LongReplyError(_LINE_BYTES)
    if rest:
        raise EOFError


def _opened(url: str) -> Response:
    """The reply, its body unread.

    Raises:
        PublicFileError: it is none of a file.
        requests.RequestException: there is none.
    """
    import requests

    reply = requests.get(url, stream=True, allow_redirects=False, timeout=(_CONNECT_S, _READ_S))
    if reply.status_code == 200:
        return reply
    reply.close()
    host, status = urlsplit(url).hostname, reply.status_code
    if reply.is_redirect:
        raise PublicFileError(f"{host} sends to another address ({status}), which is not followed")
    other = f"answered with the error {status}: try again later"
    raise PublicFileError(f"{host} {_BY_STATUS.get(status, other)}")


def _in_words(error: Exception, url: str) -> str:
    import requests

    if isinstance(error, PublicFileError):
        return str(error)
    host = urlsplit(url).hostname or "the address"
    if isinstance(error, LateError):
        return f"{host} did not send the file within {format_duration(error.limit_s)}: try again later"
    if isinstance(error, LongReplyError):
        return f"{host} sent {error}, which no true file holds: check the proxy"
    if isinstance(error, requests.Timeout):
        return f"{host} did not answer in time: try again later"
    if _is_unknown_name(error):
        return f"the name {host} cannot be looked up: no network, or no name server"
    if isinstance(error, requests.exceptions.ProxyError | requests.exceptions.SSLError):
        return f"no safe way to {host}: check the proxy and the certificates of this machine"
    if isinstance(error, requests.ConnectionError):
        return f"cannot reach {host}: check the network, the proxy and the firewall"
    if isinstance(error, requests.RequestException):
        return f"{host} is no address that can be asked"
    return f"the file of {host} was cut off on its way: try again"


def _is_unknown_name(error: Exception) -> bool:
    from urllib3.exceptions import NameResolutionError

    reasons = (getattr(argument, "reason", None) for argument in error.args)
    return any(isinstance(reason, NameResolutionError) for reason in reasons)
