"""Where a bucket lies, as moto's S3 says it."""

from __future__ import annotations

from collections.abc import Iterator

import boto3
import pytest
from moto.server import ThreadedMotoServer

from advisor.core.errors import CloudError
from advisor.pricing.sources.aws.account import bucket_region
from advisor.pricing.sources.aws.calls import AwsOptions

OPTIONS = AwsOptions(max_attempts=1, timeout_s=5.0)


@pytest.fixture(scope="module")
def moto_url() -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    url = "http://{}:{}".format(*server.get_host_and_port())
    keys = {"aws_access_key_id": "x", "aws_secret_access_key": "x"}
    client = boto3.client("s3", "us-east-1", endpoint_url=url, **keys)
    client.create_bucket(Bucket="photos")
    for name, region in (("texts", "eu-central-1"), ("old", "EU")):
        client.create_bucket(Bucket=name, CreateBucketConfiguration={"LocationConstraint": region})
    yield url
    server.stop()


@pytest.fixture(autouse=True)
def s3(moto_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "x")
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", moto_url)


@pytest.mark.parametrize(
    ("bucket", "region"), [("photos", "us-east-1"), ("texts", "eu-central-1"), ("old", "eu-west-1")]
)
def test_a_bucket_says_where_it_lies(bucket: str, region: str) -> None:
    assert bucket_region(bucket, OPTIONS) == region


def test_a_bucket_that_is_not_there_is_an_error_in_words() -> None:
    with pytest.raises(CloudError, match="NoSuchBucket"):
        bucket_region("nobodys", OPTIONS)


def test_a_name_that_no_bucket_has_is_an_error_in_words() -> None:
    with pytest.raises(CloudError):
        bucket_region("No such name", OPTIONS)
