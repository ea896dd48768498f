"""An object in a bucket of Google Cloud, written on the condition that there is none."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

from advisor.delivery.channel import Parcel, PermanentError, TemporaryError
from advisor.delivery.channels.bucket import IS_THERE, KEY_NAME, Bucket
from advisor.delivery.channels.http_calls import check, in_words
from advisor.delivery.channels.local import file_of
from advisor.delivery.message import File

if TYPE_CHECKING:
    from requests import Session

# As Google's own libraries have it: a server that stands in for theirs, and wants no login.
EMULATOR_VARIABLE = "STORAGE_EMULATOR_HOST"
_GOOGLE = "https://storage.googleapis.com"
_SCOPE = "https://www.googleapis.com/auth/devstorage.read_write"
_LOG_IN = "gcloud auth application-default login"
_TIMEOUT_S = (10.0, 20.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gcs(Bucket):
    """A place in a bucket."""

    def send(self, parcel: Parcel, begin: Callable[[], None]) -> None:
        """Put it there, unless it is there."""
        import requests
        from google.auth.exceptions import RefreshError, TransportError

        file = file_of(parcel, self.target)
        session, server = _session()
        try:
            begin()
            self._put(session, server, file, parcel)
        except RefreshError:
            raise PermanentError(f"Google refuses the login: {_LOG_IN}") from None
        except (TransportError, requests.RequestException) as error:
            # Of a login that failed on its way nothing is known either: an object is written once anyway.
            cause = error if isinstance(error, requests.RequestException) else requests.ConnectionError()
            raise in_words(cause) from None

    def _put(self, session: Session, server: str, file: File, parcel: Parcel) -> None:
        parts = urlsplit(parcel.fill(self.target))
        bucket, name = parts.netloc, parts.path.lstrip("/")
        body, content_type = _multipart(file, name, parcel.key)
        with session.post(
            f"{server}/upload/storage/v1/b/{bucket}/o",
            params={"uploadType": "multipart", "ifGenerationMatch": "0"},
            data=body,
            headers={"Content-Type": content_type},
            timeout=_TIMEOUT_S,
            allow_redirects=False,
            stream=True,
        ) as reply:
            if reply.status_code != IS_THERE:
                check(reply, drops_repeats=True)
                return
        # An object that is there is ours, or the name was taken.
        url = f"{server}/storage/v1/b/{bucket}/o/{quote(name, safe='')}"
        with session.get(url, timeout=_TIMEOUT_S, allow_redirects=False) as reply:
            check(reply, drops_repeats=True)
            self.check_ours(reply.json().get("metadata", {}).get(KEY_NAME), parcel)


def _multipart(file: File, name: str, key: str) -> tuple[bytes, str]:
    """The object with its metadata, as the JSON API takes both at once."""
    media_type = f"{file.media_type}; charset=utf-8"
    about = json.dumps({"name": name, "contentType": media_type, "metadata": {KEY_NAME: key}})
    # No text of ours holds the key between two line ends.
    boundary = f"advisor_{key.encode().hex()}"[:70]
    head = f"--{boundary}\r\nContent-Type: application/json; charset=UTF-8\r\n\r\n{about}\r\n"
    head += f"--{boundary}\r\nContent-Type: {media_type}\r\n\r\n"
    body = head.encode() + file.payload + f"\r\n--{boundary}--\r\n".encode()
    return body, f"multipart/related; boundary={boundary}"


def _session() -> tuple[Session, str]:
    """A session with Google's own credentials, and the server."""
    import requests

    if server := os.environ.get(EMULATOR_VARIABLE):
        return requests.Session(), server.rstrip("/") if "://" in server else f"http://{server}"
    import google.auth
    from google.auth.exceptions import DefaultCredentialsError, TransportError
    from google.auth.transport.requests import AuthorizedSession

    try:
        credentials, _ = google.auth.default(scopes=[_SCOPE])
        session: Session = AuthorizedSession(credentials, max_refresh_attempts=1)
    except DefaultCredentialsError:
        raise PermanentError(f"there are no credentials of Google: {_LOG_IN}") from None
    except TransportError:
        raise TemporaryError("cannot reach Google to log in: check the network and the proxy") from None
    return session, _GOOGLE
