"""Defaults in seconds, and the edges of what a setting takes."""

import math
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import ValidationError

from advisor.config.setting_kinds import SettingsSection, _kinds
from advisor.config.settings import Settings, setting_names
from advisor.core.values import Market
from recommender.outcome.spot import SpotTerms

LAB = {"name": "lab", "gpu": "T4", "num_gpus": 8}


def valid(section: str, **values: Any) -> Any:
    return getattr(Settings.model_validate({section: values}), section)


def test_durations_are_seconds_inside():
    settings = Settings()
    assert (settings.profile.timeout, settings.cloud.startup) == (300, 300)
    spot = settings.spot
    assert (spot.checkpoint_interval, spot.checkpoint, spot.restart) == (1800, 60, 360)
    assert settings.prices.max_age is None


def test_the_spot_defaults_are_those_of_the_recommender():
    spot, terms = Settings().spot, SpotTerms()
    assert (spot.preemptions_per_h, spot.reacquire, spot.history) == (None, None, None)
    assert terms.checkpoint_interval_h is not None
    pairs = [
        (spot.checkpoint_interval, terms.checkpoint_interval_h),
        (spot.checkpoint, terms.checkpoint_h),
        (spot.restart, terms.restart_h),
    ]
    for seconds, hours in pairs:
        assert seconds == pytest.approx(hours * 3600)


def test_what_counts_by_default():
    cloud = Settings().cloud
    assert cloud.providers == ("*",)
    assert cloud.regions == ("*",)
    assert cloud.markets == (Market.ON_DEMAND, Market.SPOT)
    assert (cloud.max_gpus, Settings().local.num_gpus, Settings().clusters) == (8, 1, ())


@pytest.mark.parametrize(
    ("section", "name", "value", "expected"),
    [
        ("local", "num_gpus", 1, 1),
        ("local", "num_gpus", 4096, 4096),
        ("local", "usd_per_gpu_h", 0, 0),
        ("local", "usd_per_gpu_h", None, None),
        ("spot", "preemptions_per_h", 0, 0),
        ("spot", "preemptions_per_h", 60, 60),
        ("spot", "checkpoint_interval", None, None),
        ("spot", "checkpoint", "0s", 0),
        ("cloud", "startup", "0s", 0),
        ("cloud", "providers", [], ()),
        ("prices", "max_age", "0d", 0),
        ("cloud", "boot_disk_gb", 0, 0),
        ("cloud", "result_gb", 0.5, 0.5),
        ("cloud", "download_gbit_per_s", 100, 100),
    ],
)
def test_values_at_the_edge_are_taken(section, name, value, expected):
    taken = getattr(valid(section, **{name: value}), name)
    assert taken == expected


@pytest.mark.parametrize(
    ("section", "name", "value"),
    [
        ("local", "num_gpus", 0),
        ("local", "num_gpus", 4097),
        ("local", "num_gpus", 1.5),
        ("cloud", "startup", "300"),
        ("cloud", "startup", "-5m"),
        ("spot", "preemptions_per_h", -1),
        ("spot", "preemptions_per_h", 60.1),
        ("profile", "timeout", "0s"),
        ("profile", "timeout", None),
        ("cloud", "boot_disk_gb", -1),
        ("cloud", "download_gbit_per_s", 0),
    ],
)
def test_values_beyond_the_edge_are_refused(section, name, value):
    with pytest.raises(ValidationError):
        Settings.model_validate({section: {name: value}})


@pytest.mark.parametrize("change", [{"name": ""}, {"gpu": ""}, {"num_gpus": 0}, {"name": "local"}])
def test_a_cluster_needs_a_name_a_gpu_and_a_count(change):
    with pytest.raises(ValidationError):
        Settings.model_validate({"clusters": [LAB | change]})


@pytest.mark.parametrize("missing", LAB)
def test_a_cluster_has_no_defaults_for_what_it_is(missing):
    values = {key: value for key, value in LAB.items() if key != missing}
    with pytest.raises(ValidationError, match=missing):
        Settings.model_validate({"clusters": [values]})


def test_one_cluster_may_have_several_gpus_but_each_once():
    settings = Settings.model_validate({"clusters": [LAB, LAB | {"gpu": "A100"}, LAB | {"name": "other"}]})
    assert len(settings.clusters) == 3
    with pytest.raises(ValidationError, match="lab"):
        Settings.model_validate({"clusters": [LAB, LAB | {"num_gpus": 4}]})
    with pytest.raises(ValidationError, match="'lab' has T4 twice"):
        Settings.model_validate({"clusters": [LAB | {"gpu": "T4"}, LAB | {"gpu": "Tesla T4"}]})


def test_a_gpu_that_nobody_knows_is_left_to_those_who_need_it():
    Settings.model_validate({"clusters": [LAB | {"gpu": "Voodoo 5"}, LAB | {"gpu": "Voodoo 6"}]})


@pytest.mark.parametrize(
    ("waits", "words"),
    [
        ({"wait_p50": "2h", "wait_p90": "1h"}, "wait_p90 must not be below wait_p50"),
        ({"wait_p50": "2h"}, "give both"),
        ({"wait_p90": "2h"}, "give both"),
        ({"wait_p50": "0s"}, "give both"),
        ({"wait_log": "log.csv", "wait_p50": "1h", "wait_p90": "2h"}, "not all three"),
        ({"queue": "fast"}, "queue chooses jobs of a wait_log"),
        ({"timezone": "Europe/Berlin"}, "timezone is that of a wait_log"),
    ],
)
def test_a_cluster_has_one_whole_wait(waits, words):
    with pytest.raises(ValidationError, match=words):
        Settings.model_validate({"clusters": [LAB | waits]})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("provider", ""),
        ("discount", 1),
        ("discount", -0.1),
        ("commitment_discount", 1),
        ("coverage", 1.1),
        ("coverage", -0.1),
        ("markets", ["free"]),
        ("until", "next year"),
        ("percent", 10),
    ],
)
def test_a_contract_within_reason(name, value):
    with pytest.raises(ValidationError, match=name):
        Settings.model_validate({"contracts": [{"provider": "aws", name: value}]})


def test_a_contract_without_figures_changes_nothing_and_names_no_spot():
    (rule,) = Settings.model_validate({"contracts": [{"provider": "aws"}]}).contracts
    assert (rule.discount, rule.commitment_discount, rule.coverage, rule.until) == (0, 0, 1, None)
    assert rule.markets == (Market.ON_DEMAND,)
    assert (rule.instance_types, rule.regions) == (("*",), ("*",))


def test_settings_do_not_change_once_made():
    with pytest.raises(ValidationError, match="frozen"):
        Settings().cloud.max_gpus = 2


def test_settings_survive_a_round_trip_through_text():
    values = {
        "cloud": {"startup": "90s", "markets": ["spot"]},
        "spot": {"checkpoint_interval": None},
        "clusters": [LAB | {"wait_p50": "3h", "wait_p90": "1d6h"}],
        "contracts": [{"provider": "gcp", "discount": 0.2, "until": "2027-01-31"}],
    }
    settings = Settings.model_validate(values)
    assert Settings.model_validate(settings.model_dump(mode="json")) == settings


def test_names_are_dotted_and_clusters_are_one():
    names = setting_names()
    assert len(set(names)) == len(names)
    assert {"clusters", "cloud.max_gpus", "spot.reacquire", "prices.max_age"} <= set(names)
    assert "contracts" in names
    assert not any(name.startswith(("clusters.", "contracts.")) for name in names)


NO_NUMBERS = (
    *(True, False, -0.0, math.nan, math.inf, -math.inf),
    *(1e308, 2**70, 10**400, "nan", "1:1:1:1", "1e999999999"),
)


def _sections(model: type[SettingsSection] = SettingsSection) -> Iterator[type[SettingsSection]]:
    for child in model.__subclasses__():
        yield child
        yield from _sections(child)


@pytest.mark.parametrize("value", NO_NUMBERS, ids=lambda value: repr(value)[:20])
def test_no_setting_takes_what_is_no_number_that_can_be_meant(value):
    """Whatever the section: each field alone, so that a new one is tested as well."""
    num_tried = 0
    for section in set(_sections()):
        for name, field in section.model_fields.items():
            if not {int, float} & set(_kinds(field.annotation)) or bool in set(_kinds(field.annotation)):
                continue
            num_tried += 1
            with pytest.raises(ValidationError) as caught:
                section.model_validate({name: value})
            assert any(name in str(error) for error in caught.value.errors()), (section, name)
    assert num_tried > 30
