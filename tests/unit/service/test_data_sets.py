"""Where a data set lies, as people write it: addresses of buckets, regions, at home."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from advisor.config.layers import ARGUMENT, Config, PricingSettings
from advisor.config.settings import Settings
from advisor.core.errors import CloudError, InputError
from advisor.core.findings.about_answers import DataRegionUnknown
from advisor.core.findings.about_options import Unknown
from advisor.core.values import DataPlace, DataSet
from advisor.pricing.sources.aws import account
from advisor.pricing.sources.aws import aws_calls as calls
from advisor.service.listening import Listener
from advisor.service.recommend.plan_sources import data_set_of, place_of
from tests.findings import said

HERE = ARGUMENT


def pricing(
    origins: Mapping[str, str] | None = None, *, offline: bool = False, **cloud: Any
) -> PricingSettings:
    settings = Settings(cloud=cloud, prices={"offline": offline})
    given = dict.fromkeys((f"cloud.{name}" for name in cloud), HERE)
    return Config(settings=settings, origins=given if origins is None else origins, warnings=()).pricing


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("local", DataPlace(name="local")),
        ("LOCAL", DataPlace(name="local")),
        ("us-east-1", DataPlace(name="us-east-1", provider="aws", region="us-east-1")),
        ("US-Central1", DataPlace(name="US-Central1", provider="gcp", region="us-central1")),
        ("s3://b", DataPlace(name="s3://b", provider="aws")),
        ("s3://b@us-east-1", DataPlace(name="s3://b", provider="aws", region="us-east-1")),
        (
            "gs://b/train/@europe-west4",
            DataPlace(name="gs://b/train/", provider="gcp", region="europe-west4"),
        ),
    ],
)
def test_a_place(text, place):
    assert place_of(text) == place


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("us-est-1", "Did you mean 'us-west-1' or 'us-east-1'"),
        ("s3://b@us-central1", "no region of aws is called 'us-central1'"),
        ("gs://b@us-east-1", "no region of gcp"),
        ("ftp://b", "give s3:// or gs:// with a bucket, @ and its region"),
        ("s3://@us-east-1", "give s3:// or gs:// with a bucket, @ and its region"),
        ("s3://", "no region is called"),
        ("", "no region is called"),
    ],
)
def test_no_place(text, words):
    with pytest.raises(InputError, match=words):
        place_of(text)


def test_an_unknown_size_is_not_included_and_a_warning_says_so():
    data, (warning,) = data_set_of(pricing(), Listener())
    assert (data, warning) == (None, Unknown(what="data-size"))
    assert "are not included" in said([warning])
    assert data_set_of(pricing(dataset_gb=0), Listener()) == (None, ())
    assert data_set_of(pricing(data="us-east-1", dataset_gb=0), Listener()) == (None, ())
    with pytest.raises(InputError, match="not how large it is"):
        data_set_of(pricing(data="us-east-1"), Listener())
    assert data_set_of(pricing(dataset_gb=5), Listener()) == (DataSet(gib=5), (Unknown(what="data-place"),))


@pytest.fixture
def asked(monkeypatch):
    """Buckets that AWS was asked about, with credentials at hand; all but one are in Ohio."""
    questions: list[str] = []

    def region(bucket: str, options: object) -> str:
        questions.append(bucket)
        if bucket == "hers":
            raise CloudError("s3:GetBucketLocation is denied")
        return "us-east-2"

    monkeypatch.setattr(account, "bucket_region", region)
    monkeypatch.setattr(calls, "may_have_credentials", lambda: True)
    return questions


def test_a_bucket_is_looked_up_unless_its_region_is_given(asked):
    place = DataPlace(name="s3://photos/train", provider="aws", region="us-west-2")
    given = data_set_of(pricing(data="s3://photos/train@us-west-2", dataset_gb=5), Listener())
    assert (asked, given) == ([], (DataSet(gib=5, place=place), ()))
    found = data_set_of(pricing(data="s3://photos/train", dataset_gb=5), Listener())
    ohio = replace(place, region="us-east-2")
    assert (asked, found) == (["photos"], (DataSet(gib=5, place=ohio), ()))


def test_a_refusal_is_told_and_the_place_unknown(asked):
    data, warnings = data_set_of(pricing(data="s3://hers", dataset_gb=5), Listener())
    assert data is not None
    assert data.place == DataPlace(name="s3://hers", provider="aws")
    assert "s3:GetBucketLocation is denied" in said(warnings)
    assert isinstance(warnings[-1], DataRegionUnknown)


@pytest.mark.parametrize("case", ["offline", "a file", "gs", "no credentials"])
def test_nobody_is_asked(case, asked, monkeypatch):
    # A file of a stranger must not make our credentials call on his bucket.
    file = dict.fromkeys(("cloud.data", "cloud.dataset_gb"), ".advisor.yaml")
    if case == "no credentials":
        monkeypatch.setattr(calls, "may_have_credentials", lambda: False)
    place = "gs://b" if case == "gs" else "s3://b"
    given = pricing(file if case == "a file" else None, offline=case == "offline", data=place, dataset_gb=5)
    _, (warning,) = data_set_of(given, Listener())
    assert (type(warning), warning.facts["place"], asked) == (DataRegionUnknown, place, [])
