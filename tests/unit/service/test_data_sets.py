"""Where a data set lies, as people write it: addresses of buckets, regions, at home."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from pydantic import ValidationError

from advisor.config.layers import ARGUMENT, Config, PricingSettings
from advisor.config.settings import InputSettings, RateSettings, Settings
from advisor.core.errors import CloudError, InputError
from advisor.core.findings.about_answers import DataRegionUnknown
from advisor.core.findings.about_options import Unknown
from advisor.core.values import DataPlace, DataSet, Trace
from advisor.predict.loading import input_work
from advisor.pricing.sources.aws import account
from advisor.pricing.sources.aws import aws_calls as calls
from advisor.pricing.storage_rates import RateKind, charge, load_rates
from advisor.service.listening import Listener
from advisor.service.recommend.plan_sources import data_set_of, place_of, rates_of
from advisor.service.traces import with_input
from tests.builders import make_trace
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


def test_a_rate_of_the_settings_goes_before_the_catalog():
    entry = {"provider": "AWS", "region": "us-*", "kind": "block-storage", "usd": 0.05}
    rates = rates_of([RateSettings.model_validate(entry)])
    cost = charge(rates, RateKind.BLOCK_STORAGE, "aws", "us-east-1", gib=100)
    assert (cost.usd, cost.stand_in, cost.rate.source) == (5.0, None, "rates of the settings, entry 1")
    assert charge(rates, RateKind.BLOCK_STORAGE, "aws", "eu-west-1", gib=100).usd == pytest.approx(8.8)


def test_a_provider_that_nobody_knows_can_be_free():
    entry = {"provider": "lambda", "kind": "egress-internet", "usd": 0}
    rates = rates_of([RateSettings.model_validate(entry)])
    assert charge(rates, RateKind.EGRESS_INTERNET, "lambda", "us-west-1", gib=100).usd == 0
    assert charge(rates_of(()), RateKind.EGRESS_INTERNET, "lambda", "us-west-1", gib=100).usd == 15.0
    assert rates_of(()) == load_rates()


@pytest.mark.parametrize("change", [{"usd": -1}, {"kind": "tape"}, {"provider": ""}, {"per": "GB"}])
def test_a_rate_that_cannot_be_meant(change):
    entry = {"provider": "lambda", "kind": "egress-internet", "usd": 0} | change
    with pytest.raises(ValidationError):
        RateSettings.model_validate(entry)


MEASURED = make_trace(data_loading_s=2.0, loader_cpu_s_per_sample=0.02, num_workers=8)


def fed(trace: Trace = MEASURED, **settings: object) -> tuple[float, float, int | None]:
    """CPU seconds and seconds of waiting of one iteration, and its workers."""
    work = input_work(with_input(trace, InputSettings(**settings), Listener()))
    assert work is not None
    return work.cpu_s.p50, work.wait_s, work.num_workers


def test_without_settings_the_trace_stays_as_it_is():
    assert with_input(MEASURED, InputSettings(), Listener()) == MEASURED
    old = make_trace(data_loading_s=2.0)
    assert with_input(old, InputSettings(), Listener()) == old


def test_given_seconds_replace_measured_ones_and_their_waits():
    assert fed(loader_s_per_sample=0.1) == (pytest.approx(6.4), 0.0, 8)


def test_no_seconds_at_all_are_none_to_load():
    trace = with_input(MEASURED, InputSettings(loader_s_per_sample=0), Listener())
    assert input_work(trace) is None


def test_faster_vcpus_shorten_the_work_and_not_the_wait():
    assert fed(vcpu_speed=2) == (pytest.approx(0.64), pytest.approx(0.72), 8)
    assert fed(make_trace(data_loading_s=2.0), vcpu_speed=0.5)[0] == pytest.approx(4.0)


def test_workers_are_as_many_as_is_said():
    assert fed(num_workers=3)[2] == 3


def test_seconds_of_a_sample_need_a_number_of_samples():
    unknown = replace(MEASURED, batch_size=None)
    with pytest.raises(InputError, match="loader_s_per_sample is of one sample"):
        with_input(unknown, InputSettings(loader_s_per_sample=0.1), Listener())
