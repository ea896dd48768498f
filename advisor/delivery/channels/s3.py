"""An object in a bucket of AWS, written on the condition that there is none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from advisor.config.delivery_settings import S3Channel
from advisor.delivery.channel import (
    Parcel,
    PermanentError,
    SendingError,
    TemporaryError,
    UncertainError,
    quoted_words,
)
from advisor.delivery.channels.bucket import IS_THERE, KEY_NAME, Bucket
from advisor.delivery.channels.local import file_of

if TYPE_CHECKING:
    from botocore.client import BaseClient
    from botocore.exceptions import BotoCoreError, ClientError

_CONNECT_S, _READ_S = 10.0, 20.0
# 409: another process writes the same object at this moment.
_TEMPORARY = (409, 429, 500, 502, 503, 504)


@dataclass(frozen=True, slots=True, kw_only=True)
class S3(Bucket):
    """A place in a bucket."""

    settings: S3Channel

    def send(self, parcel: Parcel, begin: Callable[[], None]) -> None:
        """Put it there, unless it is there."""
        from botocore.exceptions import BotoCoreError, ClientError

        parts, file = urlsplit(parcel.fill(self.target)), file_of(parcel, self.target)
        place = {"Bucket": parts.netloc, "Key": parts.path.lstrip("/")}
        try:
            client = self._client()
            begin()
            client.put_object(
                **place,
                Body=file.payload,
                ContentType=f"{file.media_type}; charset=utf-8",
                Metadata={KEY_NAME: parcel.key},
                IfNoneMatch="*",
            )
        except ClientError as error:
            if _status(error) != IS_THERE:
                raise _refused(error) from None
            self._check_object(client, place, parcel)
        except BotoCoreError as error:
            raise _in_words(error) from None

    def _client(self) -> BaseClient:
        import boto3
        from botocore.config import Config

        # Attempts are ours to count.
        config = Config(connect_timeout=_CONNECT_S, read_timeout=_READ_S, retries={"total_max_attempts": 1})
        return boto3.Session().client("s3", region_name=self.settings.region, config=config)

    def _check_object(self, client: BaseClient, place: dict[str, str], parcel: Parcel) -> None:
        """An object that is there is ours, or the name was taken."""
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            metadata = client.head_object(**place)["Metadata"]
        except ClientError as error:
            raise _refused(error) from None
        except BotoCoreError as error:
            raise _in_words(error) from None
        self.check_ours(metadata.get(KEY_NAME), parcel)


def _status(error: ClientError) -> int:
    return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def _refused(error: ClientError) -> SendingError:
    status, fault = _status(error), error.response.get("Error", {})
    said = f"{fault.get('Code', status)} {quoted_words(str(fault.get('Message', '')))}".strip()
    if status in _TEMPORARY:
        return TemporaryError(f"AWS answers {said}")
    return PermanentError(f"AWS refuses it: {said}; s3:PutObject and s3:GetObject are needed")


def _in_words(error: BotoCoreError) -> SendingError:
    from botocore.exceptions import (
        ConnectTimeoutError,
        EndpointConnectionError,
        HTTPClientError,
        NoCredentialsError,
        SSLError,
    )

    if isinstance(error, NoCredentialsError):
        return PermanentError("there are no credentials of AWS: aws configure, or AWS_PROFILE")
    if isinstance(error, EndpointConnectionError | ConnectTimeoutError):
        return TemporaryError("cannot reach AWS: check the network and the proxy")
    if isinstance(error, HTTPClientError) and not isinstance(error, SSLError):
        return UncertainError("the connection to AWS ended after it was sent: perhaps it arrived")
    return PermanentError(f"AWS cannot be asked: {quoted_words(str(error))}")
