"""Logs of spot machines: what they tell, and what is no such log."""

import gzip
import json
import statistics
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core.errors import InputError
from advisor.core.values import Market
from advisor.pricing.spot_odds import spot_odds, start_odds
from advisor.site_files.fitted_files import load_history, write_history
from advisor.site_files.spot_logs import ANY_MACHINE, read_spot_log
from recommender.outcome.spot_history import (
    Stretch,
    Watched,
    joined,
    start_with_history,
    watched,
    with_history,
)

LOG = """\
time,event,machine,zone
2026-03-01T00:00:00,requested,g5.xlarge,a
2026-03-01T01:00:00,started,g5.xlarge,a
2026-03-01T05:00:00,preempted,g5.xlarge,a
2026-03-01T07:00:00,started,g5.xlarge,a
2026-03-01T09:00:00,ended,g5.xlarge,a
2026-03-01T00:00:00,up,g5.xlarge,b
2026-03-01T03:00:00,stopped,g5.xlarge,b
2026-03-01T00:00:00,up,p5.48xlarge,a
2026-03-01T00:30:00,down,p5.48xlarge,a
2026-03-01T02:30:00,ended,p5.48xlarge,a
"""


def read(tmp_path: Path, text: str) -> dict[str, Watched]:
    path = tmp_path / "spot.csv"
    path.write_text(text)
    return dict(read_spot_log(path).machines)


def test_each_machine_is_summed_over_its_zones(tmp_path):
    assert read(tmp_path, LOG) == {
        "g5.xlarge": Watched(up_h=9.0, down_h=3.0, num_losses=1, num_outages=2),
        "p5.48xlarge": Watched(up_h=0.5, down_h=2.0, num_losses=1, num_outages=1),
    }


def test_the_order_of_lines_does_not_matter(tmp_path):
    header, *lines = LOG.splitlines()
    assert read(tmp_path, "\n".join([header, *reversed(lines)])) == read(tmp_path, LOG)


def test_seconds_and_two_columns_will_do(tmp_path):
    log = read(tmp_path, "Time,Event\n0,UP\n3600,down\n7200, up\n9000,up\n")
    assert log == {ANY_MACHINE: Watched(up_h=1.5, down_h=1.0, num_losses=1, num_outages=1)}


@pytest.mark.parametrize(
    "end", ["7200,preempted\n", "7200,preempted\n7200,ended\n", "7200,down\n9000,stopped\n"]
)
def test_a_loss_at_the_end_counts_but_an_outage_of_unknown_length_does_not(tmp_path, end):
    """The hours until then are known, and so is that the machine went away."""
    (seen,) = read(tmp_path, f"time,event\n0,up\n{end}").values()
    down_h = 0.5 if "9000" in end else 0.0
    assert seen == Watched(up_h=2.0, down_h=down_h, num_losses=1, num_outages=int(down_h > 0))


@pytest.mark.parametrize("end", ["7200,up\n", "7200,ended\n", "7200,up\n7200,stopped\n"])
def test_a_log_that_ends_with_a_machine_has_lost_none(tmp_path, end):
    (seen,) = read(tmp_path, f"time,event\n0,up\n{end}").values()
    assert seen == Watched(up_h=2.0)


def test_a_gzipped_log_is_read_as_well(tmp_path):
    path = tmp_path / "spot.csv.gz"
    path.write_bytes(gzip.compress(LOG.encode()))
    assert set(read_spot_log(path).machines) == {"g5.xlarge", "p5.48xlarge"}


def test_lines_that_make_no_sense_are_named(tmp_path):
    text = "time,event\n0,up\nyesterday,down\n7200,asleep\n7300\n"
    with pytest.raises(InputError) as error:
        read(tmp_path, text)
    assert "line 3: time 'yesterday' is no time such as" in str(error.value)
    assert "line 4: event 'asleep' is none of up, available" in str(error.value)
    assert "line 5: 1 fields under 2 columns" in str(error.value)


@pytest.mark.parametrize("text", ["-1", "1e99", "1e12"])
def test_seconds_that_are_no_moment_are_named(tmp_path, text):
    """Was: watched for a hundred digits of hours."""
    with pytest.raises(InputError, match=f"line 3: time '{text}' is not from 0 to"):
        read(tmp_path, f"time,event\n1,up\n{text},down\n")


def test_of_many_faults_five_are_named(tmp_path):
    with pytest.raises(InputError, match="and 15 more lines"):
        read(tmp_path, "time,event\n" + "0,asleep\n" * 20)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "is empty"),
        ("\n\n", "is empty"),
        ("when,what\n0,up\n", "has no column time and event"),
        ("time,state\n0,up\n", "has no column event"),
        ("time,event\n", "watched no machine"),
        ("time,event\n0,up\n", "watched no machine"),
    ],
)
def test_what_tells_nothing_is_refused(tmp_path, text, fault):
    with pytest.raises(InputError, match=fault):
        read(tmp_path, text)


def test_a_folder_and_a_missing_file_are_refused(tmp_path):
    with pytest.raises(InputError, match="it is no file"):
        read_spot_log(tmp_path)
    with pytest.raises(InputError, match=r"cannot read '.*nowhere.csv': no such file or directory\.$"):
        read_spot_log(tmp_path / "nowhere.csv")


def test_what_is_no_text_is_told_without_the_words_of_a_codec(tmp_path):
    path = tmp_path / "spot.csv"
    path.write_bytes(b"time,event\n\xff,up\n")
    with pytest.raises(InputError, match=r": it is no text in UTF-8 \(byte 12\)\.$"):
        read_spot_log(path)


def test_a_machine_was_not_seen_in_the_future(tmp_path):
    path = tmp_path / "spot.csv"
    path.write_text("time,event\n2026-03-01T00:00:00,up\n2026-03-02T11:00:00,down\n2026-03-04,up\n")
    now = datetime(2026, 3, 1, 12, tzinfo=UTC)
    with pytest.raises(InputError) as error:
        read_spot_log(path, now)
    # Less than a day ahead may be a time zone.
    assert str(error.value).splitlines()[1:] == ["  line 4: time '2026-03-04' lies in the future"]
    assert read_spot_log(path, now + timedelta(days=2)) == read_spot_log(path)
    with pytest.raises(InputError, match="in the future"):
        load_history(path, now)


def test_bare_seconds_are_of_no_calendar(tmp_path):
    path = tmp_path / "spot.csv"
    path.write_text("time,event\n99999990000,up\n99999997200,down\n")
    assert read_spot_log(path, datetime(2026, 3, 1, tzinfo=UTC)).machines[ANY_MACHINE].up_h == 2.0


def test_what_is_written_is_read_back(tmp_path):
    path, kept = tmp_path / "spot.csv", tmp_path / "fit.json"
    path.write_text(LOG)
    write_history(kept, read_spot_log(path))
    assert load_history(kept) == load_history(path) == read_spot_log(path)
    assert "preempted" not in kept.read_text()


@given(st.binary(max_size=300) | st.text(max_size=100).map(lambda text: f"time,event\n{text}".encode()))
def test_whatever_a_file_holds_it_is_read_or_refused(content):
    with TemporaryDirectory() as folder:
        path = Path(folder) / "spot.csv"
        path.write_bytes(content)
        with suppress(InputError):
            spot_log = read_spot_log(path)
            assert all(seen.up_h + seen.down_h > 0 for seen in spot_log.machines.values())


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"format": "advisor-queue-waits"}, "is no fit of a log of spot machines"),
        ({"version": 2}, "has version 2, not 1"),
        ({"machines": {"x": {"up_h": -1.0}}}, "up_h"),
        ({"machines": {"x": {"up_h": 0.0}}}, "never watched"),
        ({"machines": 5}, "valid dictionary"),
    ],
)
def test_a_file_that_is_no_fit_is_refused_with_advice(tmp_path, change, fault):
    path, kept = tmp_path / "spot.csv", tmp_path / "fit.json"
    path.write_text(LOG)
    write_history(kept, read_spot_log(path))
    kept.write_text(json.dumps(json.loads(kept.read_text()) | change))
    with pytest.raises(InputError, match=fault) as error:
        load_history(kept)
    assert "advisor spot fit LOG --out FILE" in str(error.value)


STATES = st.lists(
    st.tuples(st.floats(0.01, 100), st.sampled_from([True, False, None])), min_size=2, max_size=30
).map(lambda pairs: [(sum(gap for gap, _ in pairs[: i + 1]), state) for i, (_, state) in enumerate(pairs)])


def test_equal_states_are_one_stretch():
    (stretches_joined,) = joined([(0.0, True), (1.0, True), (3.0, False), (4.0, None)])
    assert stretches_joined == [
        Stretch(start_h=0.0, hours=3.0, is_up=True),
        Stretch(start_h=3.0, hours=1.0, is_up=False),
    ]


def test_nobody_watches_between_an_end_and_the_next_event():
    watches = joined([(0.0, True), (2.0, None), (10.0, False), (11.0, True), (12.0, None)])
    assert [len(watch) for watch in watches] == [1, 2]
    assert sum(s.hours for watch in watches for s in watch) == pytest.approx(4.0)


def test_one_event_alone_watches_nothing():
    assert joined([(0.0, True)]) == []
    assert joined([]) == []


def test_a_state_of_no_time_is_no_stretch():
    (stretches,) = joined([(0.0, True), (2.0, False), (2.0, True), (3.0, None)])
    assert watched(stretches) == Watched(up_h=3.0, down_h=0.0, num_losses=0, num_outages=0)


def test_sums_of_a_watch():
    (stretches,) = joined([(0.0, False), (1.0, True), (5.0, False), (7.0, True), (8.0, None)])
    stretches_joined = watched(stretches)
    assert stretches_joined == Watched(up_h=5.0, down_h=3.0, num_losses=1, num_outages=2)
    assert stretches_joined.share_down == pytest.approx(3 / 8)
    assert stretches_joined + stretches_joined == Watched(up_h=10.0, down_h=6.0, num_losses=2, num_outages=4)


@given(STATES)
def test_no_hour_is_lost_or_counted_twice(states):
    gaps = pairwise(states)
    expected = sum(end - start for (start, state), (end, _) in gaps if state is not None)
    sums = [watched(stretches) for stretches in joined(states)]
    assert sum(s.up_h + s.down_h for s in sums) == pytest.approx(expected)
    for one in sums:
        assert abs(one.num_losses - one.num_outages) <= 1


def test_a_machine_cannot_be_away_for_less_than_no_time():
    with pytest.raises(InputError, match="down_h"):
        Watched(down_h=-1.0)


CLASS = spot_odds("V100-SXM-16GB", 1)
WAIT = start_odds("V100-SXM-16GB", 1, Market.SPOT).wait_s
SEEN = st.builds(
    lambda up, down, losses: Watched(up_h=up, down_h=down, num_losses=losses, num_outages=losses),
    st.floats(0.1, 1e5),
    st.floats(0, 1e4),
    st.integers(0, 1000),
)


def test_a_long_log_is_believed():
    seen = Watched(up_h=1e5, down_h=1e5, num_losses=50_000, num_outages=50_000)
    odds = with_history(CLASS, seen)
    assert odds.preemptions_per_h == pytest.approx(0.5, rel=0.02)
    assert odds.outage_h == pytest.approx(2.0, rel=0.15)
    start = start_with_history(WAIT, CLASS, seen)
    assert start.p_at_once == pytest.approx(0.5, abs=0.01)
    # A moment within outages of 2 hours on average is (1 + their dispersion) hours before the end of its own.
    shares = [(i + 0.5) / 100_000 for i in range(50_000)]
    later_s = statistics.fmean(start.after_s(share) - start.at_once_s for share in shares)
    assert later_s / 3600 == pytest.approx(1 + CLASS.dispersion_down, rel=0.15)


def test_a_log_of_an_hour_changes_little():
    odds = with_history(CLASS, Watched(up_h=1.0))
    assert odds.preemptions_per_h == pytest.approx(CLASS.preemptions_per_h, rel=0.25)
    assert odds.outage_h == CLASS.outage_h
    assert start_with_history(WAIT, CLASS, Watched(up_h=1.0)).p_at_once == pytest.approx(
        WAIT.p_at_once, abs=0.1
    )


@given(SEEN)
def test_the_corrected_rate_lies_between_class_and_log_and_is_no_less_sure(seen):
    odds = with_history(CLASS, seen)
    logged = (seen.num_losses + 0.5) / seen.up_h
    low, high = sorted([logged, CLASS.preemptions_per_h])
    assert low * (1 - 1e-9) <= odds.preemptions_per_h <= high * (1 + 1e-9)
    assert CLASS.drift_rate <= odds.sigma_rate <= (CLASS.sigma_rate**2 + CLASS.drift_rate**2) ** 0.5


@given(SEEN)
def test_a_start_never_waits_for_nothing(seen):
    odds = start_with_history(WAIT, CLASS, seen)
    assert 0 < odds.p_at_once < 1
    assert 0 < odds.p50 <= odds.p90


@given(SEEN, st.floats(1.1, 10))
def test_more_preemptions_in_a_log_never_make_a_machine_surer(seen, factor):
    more = Watched(
        up_h=seen.up_h,
        down_h=seen.down_h,
        num_losses=int(seen.num_losses * factor) + 1,
        num_outages=seen.num_outages,
    )
    assert with_history(CLASS, more).preemptions_per_h >= with_history(CLASS, seen).preemptions_per_h
