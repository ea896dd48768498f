"""Logs of spot machines: what they tell, and what is no such log."""

import gzip
import json
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core.errors import InputError
from advisor.site_files.fitted_files import load_history, write_history
from advisor.site_files.spot_logs import ANY_MACHINE, read_spot_log
from recommender.outcome.spot_history import Watched

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
