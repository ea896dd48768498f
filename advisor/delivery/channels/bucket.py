"""What buckets have in common: an object is written on the condition that there is none."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

from advisor.config.delivery_settings import GcsChannel, S3Channel
from advisor.delivery import channel
from advisor.delivery.channel import Secrets
from advisor.delivery.channels.http_calls import check, in_words
from advisor.delivery.channels.local import file_of, preview_of

if TYPE_CHECKING:
    from botocore.client import BaseClient
    from botocore.exceptions import BotoCoreError, ClientError
    from requests import Session


KEY_NAME = "advisor-delivery-key"
"""Metadata of an object: whose it is."""
IS_THERE = 412
"""The status that says that there is an object already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """A place in a bucket."""

    settings: S3Channel | GcsChannel
    secrets: Secrets = field(repr=False)
    drops_repeats: bool = field(default=True, init=False)

    @property
    def target(self) -> str:
        """Bucket and name, with what it has in braces."""
        return self.settings.url

    def preview(self, parcel: channel.Parcel) -> str:
        """Where it is written, and the content."""
        return preview_of(parcel, self.target)

    def check_ours(self, key: str | None, parcel: channel.Parcel) -> None:
        """Refuse to take another answer's object for ours. Raises PermanentError: it is another's."""
        if key != parcel.key:
            raise channel.PermanentError(
                f"another object is at {parcel.fill(self.target)}, and nothing is overwritten:"
                " put {key} into the name"
            )


_CONNECT_S, _READ_S = 10.0, 20.0
# 409: another process writes the same object at this moment.
_TEMPORARY = (409, 429, 500, 502, 503, 504)


@dataclass(frozen=True, slots=True, kw_only=True)
class S3(Bucket):
    """A place in a bucket."""

    settings: S3Channel

    def send(self, parcel: channel.Parcel, begin: Callable[[], None]) -> None:
        """Put it there, unless it is there."""
        from botocore.exceptions import BotoCoreError, ClientError

        parts, file = urlsplit(parcel.fill(self.target)), file_of(parcel, self.target)
        place = {"Bucket": parts.netloc, "Key": parts.path.lstrip("/")}
        try:
            client = self._client()
            begin()
            try:
                client.put_object(
                    **place,
                    Body=file.payload,
                    ContentType=f"{file.media_type}; charset=utf-8",
                    Metadata={KEY_NAME: parcel.key},
                    IfNoneMatch="*",
                )
            except ClientError as error:
                if _status(error) != IS_THERE:
                    raise
                self.check_ours(client.head_object(**place)["Metadata"].get(KEY_NAME), parcel)
        except ClientError as error:
            raise _refused(error) from None
        except BotoCoreError as error:
            raise _in_words(error) from None

    def _client(self) -> BaseClient:
        import boto3
        from botocore.config import Config

        # Attempts are ours to count.
        config = Config(connect_timeout=_CONNECT_S, read_timeout=_READ_S, retries={"total_max_attempts": 1})
        return boto3.Session().client("s3", region_name=self.settings.region, config=config)


def _status(error: ClientError) -> int:
    return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def _refused(error: ClientError) -> channel.SendingError:
    status, fault = _status(error), error.response.get("Error", {})
    said = f"{fault.get('Code', status)} {channel.quoted_words(str(fault.get('Message', '')))}".strip()
    if status in _TEMPORARY:
        return channel.TemporaryError(f"AWS answers {said}")
    return channel.PermanentError(f"AWS refuses it: {said}; s3:PutObject and s3:GetObject are needed")


def _in_words(error: BotoCoreError) -> channel.SendingError:
    from botocore.exceptions import (
        ConnectTimeoutError,
        EndpointConnectionError,
        HTTPClientError,
        NoCredentialsError,
        SSLError,
    )

    if isinstance(error, NoCredentialsError):
        return channel.PermanentError("there are no credentials of AWS: aws configure, or AWS_PROFILE")
    if isinstance(error, EndpointConnectionError | ConnectTimeoutError):
        return channel.TemporaryError("cannot reach AWS: check the network and the proxy")
    if isinstance(error, HTTPClientError) and not isinstance(error, SSLError):
        return channel.UncertainError("the connection to AWS ended after it was sent: perhaps it arrived")
    return channel.PermanentError(f"AWS cannot be asked: {channel.quoted_words(str(error))}")


# As Google's own libraries have it: a server that stands in for theirs, and wants no login.
EMULATOR_VARIABLE = "STORAGE_EMULATOR_HOST"
_GOOGLE = "https://storage.googleapis.com"
_SCOPE = "https://www.googleapis.com/auth/devstorage.read_write"
_LOG_IN = "gcloud auth application-default login"
_TIMEOUT_S = (10.0, 20.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gcs(Bucket):
    """A place in a bucket."""

    def send(self, parcel: channel.Parcel, begin: Callable[[], None]) -> None:
        """Put it there, unless it is there."""
        import requests
        from google.auth.exceptions import RefreshError, TransportError

        file = file_of(parcel, self.target)
        session, server = _session()
        try:
            begin()
            self._put(session, server, file, parcel)
        except RefreshError:
            raise channel.PermanentError(f"Google refuses the login: {_LOG_IN}") from None
        except (TransportError, requests.RequestException) as error:
            # Of a login that failed on its way nothing is known either: an object is written once anyway.
            cause = error if isinstance(error, requests.RequestException) else requests.ConnectionError()
            raise in_words(cause) from None

    def _put(self, session: Session, server: str, file: channel.File, parcel: channel.Parcel) -> None:
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


def _multipart(file: channel.File, name: str, key: str) -> tuple[bytes, str]:
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
        raise channel.PermanentError(f"there are no credentials of Google: {_LOG_IN}") from None
    except TransportError:
        raise channel.TemporaryError(
            "cannot reach Google to log in: check the network and the proxy"
        ) from None
    return session, _GOOGLE
