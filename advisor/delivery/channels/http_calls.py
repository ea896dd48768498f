"""One POST or PUT by HTTP, and what became of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from advisor.core.addresses import LINK_LOCAL
from advisor.delivery import channel

if TYPE_CHECKING:
    from requests import RequestException, Response

USER_AGENT = "gpu-advisor"
_CONNECT_S, _READ_S = 10.0, 20.0
_MOST_OF_A_REPLY = 2_000
_TEMPORARY = (429, 500, 502, 503, 504)
# A gateway says so when it lost sight of the server behind it.
_LOST_SIGHT = (502, 504)


def post(
    url: str, body: bytes, headers: Mapping[str, str], *, begin: Callable[[], None], drops_repeats: bool
) -> None:
    """POST a body and check that it was accepted; no redirect is followed.

    Raises SendingError: it was not accepted, or that is unknown.
    """
    import requests

    from advisor.delivery.channels.guarded import LinkLocalError, guarded_session

    begin()
    try:
        with (
            guarded_session() as session,
            session.post(
                url,
                data=body,
                headers=dict(headers),
                timeout=(_CONNECT_S, _READ_S),
                allow_redirects=False,
                stream=True,
                # No login of ``~/.netrc``, which requests would add.
                auth=lambda request: request,
            ) as reply,
        ):
            check(reply, drops_repeats=drops_repeats)
    except LinkLocalError:
        raise channel.PermanentError(LINK_LOCAL) from None
    except requests.RequestException as error:
        raise in_words(error) from None


def check(reply: Response, *, drops_repeats: bool) -> None:
    """Raise what a status means; of a success nothing else is read.

    Raises SendingError: of the kind that the status calls for.
    """
    import requests

    status = reply.status_code
    if 200 <= status < 300:
        return
    if 300 <= status < 400:
        raise channel.PermanentError(f"the server sends to another address ({status}), which is not followed")
    beginning = b""
    with suppress(requests.RequestException):  # the status says enough
        beginning = next(iter(reply.iter_content(_MOST_OF_A_REPLY)), b"")
    said = f"{status} {channel.quoted_words(beginning)}".strip()
    if status in _LOST_SIGHT and not drops_repeats:
        raise channel.UncertainError(f"a gateway lost sight of the server ({said}): perhaps it arrived")
    if status in _TEMPORARY:
        raise channel.TemporaryError(
            f"the server answers {said}", _retry_after_s(reply.headers.get("Retry-After"))
        )
    raise channel.PermanentError(f"the server refuses it: {said}")


def in_words(error: RequestException) -> channel.SendingError:
    """What an exception of requests says about the body: not sent, or unknown."""
    import requests
    from urllib3.exceptions import ConnectTimeoutError, NewConnectionError, ProxyError

    reason = error.args[0] if error.args else None
    reason = getattr(reason, "reason", reason)
    if isinstance(error, requests.exceptions.SSLError):
        return channel.PermanentError(
            "no safe connection to the server: check its certificate and the address"
        )
    if isinstance(reason, NewConnectionError | ProxyError):
        return channel.TemporaryError("cannot reach the server: check the address, the network and the proxy")
    if isinstance(reason, ConnectTimeoutError):
        return channel.TemporaryError("the server did not take the connection in time")
    if isinstance(error, requests.ConnectionError | requests.Timeout):
        why = "no answer in time" if isinstance(error, requests.Timeout) else "the connection ended"
        return channel.UncertainError(f"{why} after it was sent: perhaps it arrived")
    if isinstance(error, requests.exceptions.InvalidURL | requests.exceptions.InvalidSchema):
        return channel.PermanentError("this is no address that can be asked: check the url")
    return channel.UncertainError("the reply cannot be read: perhaps it arrived")


def _retry_after_s(value: str | None) -> float | None:
    """Seconds, or a date, as RFC 9110 has it; None for what is neither."""
    from email.utils import parsedate_to_datetime

    if value is None:
        return None
    if value.strip().isdecimal():
        return float(value)
    try:
        at = parsedate_to_datetime(value)
    except ValueError:
        return None
    return max((at.replace(tzinfo=at.tzinfo or UTC) - datetime.now(UTC)).total_seconds(), 0.0)
