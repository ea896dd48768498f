"""Waits that a log foretells: worked by hand, kept in a file, and checked on real logs."""

import json
import math
import re
from dataclasses import replace
from itertools import islice

import pytest

from advisor.core.errors import InputError
from advisor.core.units import DAY_S
from advisor.report.words import sentence
from advisor.site_files.fitted_files import load_fit, write_fit
from advisor.site_files.job_logs import read_job_log
from recommender.queue.fitted import WaitBin, fit, warnings_of
from recommender.queue.grids import level_index, to_log_minutes
from recommender.queue.scoring import check
from recommender.queue.waits import (
    ALL,
    FEWEST_JOBS,
    LEVEL_EDGES,
    RECENT_S,
    WIDER_BIN_JOBS,
    WINDOW_JOBS,
    JobLog,
    OwnJobs,
    Waits,
    replay,
    size_bin,
    walltime_bin,
)
from tests.jobs import csv_of, job_log, make_job
from tests.shared import SHARED, needs_shared

HOUR_S = 3600.0
HOUR = to_log_minutes(HOUR_S)
P50, P90 = level_index(0.5), level_index(0.9)


@pytest.mark.parametrize(
    ("size", "name"),
    [(0, "0"), (0.46, "<1"), (1, "1"), (2, "2..3"), (3, "2..3"), (4, "4..7"), (1023, "512..1023")],
)
def test_sizes_by_powers_of_two(size, name):
    assert size_bin(size) == name


@pytest.mark.parametrize(
    ("walltime_s", "name"),
    [(-1, "none"), (0, "<=10m"), (600, "<=10m"), (601, "<=1h"), (43200, "<=12h"), (1e9, ">7d")],
)
def test_walltimes_as_queues_limit_them(walltime_s, name):
    assert walltime_bin(walltime_s) == name


def known_waits(count=200):
    """Jobs ten minutes apart that waited a minute each."""
    waits = Waits()
    list(replay([make_job(10 * i) for i in range(count)], waits))
    waits.advance(make_job(10 * count).submit_s)
    return waits


def foreseen(waits, now_s):
    expected = waits.expect(ALL)
    assert expected is not None
    return waits.reading(now_s).of(expected)


def test_a_wait_is_judged_by_what_was_expected_at_its_submission():
    """A hundred users submit when a minute is the rule; when most start, an hour is. All were missed."""
    waits = known_waits(60)
    for i in range(100):
        waits.submit(make_job(1_000 + i / 10, wait_s=HOUR_S, user=f"u{i}"))
    waits.advance(make_job(1_100).submit_s)
    assert waits.reading(make_job(1_100).submit_s).places[level_index(0.7)] > level_index(0.99)


def test_ten_odd_waits_move_a_forecast_by_little():
    """The ten jobs of one morning used to be all that the correction knew."""
    waits = known_waits()
    now_s = make_job(2_000).submit_s
    calm = foreseen(waits, now_s)
    for i in range(10):
        waits.submit(make_job(2_000 + 30 * i, wait_s=100 * HOUR_S))
    waits.advance(make_job(20_000).submit_s)
    moved = foreseen(waits, make_job(20_000).submit_s)
    assert moved[P50] == pytest.approx(calm[P50], abs=0.1)
    assert moved[P90] < to_log_minutes(HOUR_S)


def test_a_burst_moves_a_forecast_as_one_job_does():
    alone, burst = known_waits(), known_waits()
    alone.submit(make_job(2_000, wait_s=HOUR_S))
    for i in range(200):
        burst.submit(make_job(2_000 + i / 60, wait_s=HOUR_S - i))
    now_s = make_job(3_000).submit_s
    for waits in (alone, burst):
        waits.advance(now_s)
    assert foreseen(burst, now_s) == pytest.approx(foreseen(alone, now_s))


def test_a_jam_is_seen_before_it_is_over():
    """Thirty jobs of thirty users wait for three days, where a minute was the rule."""
    jobs = [make_job(60 * i) for i in range(300)]
    jam = [make_job(60 * 300 - i, wait_s=math.inf, user=f"u{i}") for i in range(30)]
    end = make_job(60 * 300 + 3 * 24 * 60, wait_s=0.0, user="last")
    calm, jammed = fit(job_log([*jobs, end])), fit(job_log([*jobs, *jam, end]))
    assert (calm.num_waiting, jammed.num_waiting) == (0, 30)
    assert (calm.first_submit_s, calm.last_submit_s) == (jobs[0].submit_s, end.submit_s)
    assert calm.bins[0].p90_s == pytest.approx(60, rel=0.1)
    p95 = level_index(0.95)
    assert calm.bins[0].waits_s[p95] == pytest.approx(60, rel=0.1)
    assert 0.5 * HOUR_S < jammed.bins[0].waits_s[p95] < 72.5 * HOUR_S
    assert jammed.offset_p90 >= calm.offset_p90


def expected_after(num_alike: int, **of_them) -> list[float] | None:
    """For a job of size 4, queue a: that many jobs alike, which waited long, and 100 others that did not."""
    waits = Waits()
    jobs = [make_job(i, size=1, walltime_s=1e6, queue="z", wait_s=0.0, user=f"o{i}") for i in range(100)]
    jobs += [make_job(i, wait_s=HOUR_S, user=f"a{i}", **of_them) for i in range(num_alike)]
    list(replay(jobs, waits))
    waits.advance(max(job.start_s for job in jobs))
    return waits.expect(("4..7", "<=1h", "a"))


@pytest.mark.parametrize(
    ("of_them", "num_bins"),
    [
        ({"size": 4, "walltime_s": HOUR_S, "queue": "a"}, 3),
        ({"size": 5, "walltime_s": 0.9 * HOUR_S, "queue": "b"}, 2),
        ({"size": 7, "walltime_s": -1, "queue": "b"}, 1),
    ],
)
def test_each_bin_has_the_weight_of_its_jobs_and_the_wider_one_that_of_forty(of_them, num_bins):
    """20 alike of 120: the median of all is no wait; each narrower bin comes a third closer to an hour."""
    expected = expected_after(20, **of_them)
    assert expected is not None
    wider_share = WIDER_BIN_JOBS / (20 + WIDER_BIN_JOBS)
    assert expected[P50] == pytest.approx((1 - wider_share**num_bins) * HOUR)


def test_below_ten_jobs_a_bin_does_not_count():
    alike = {"size": 4, "walltime_s": HOUR_S, "queue": "a"}
    few, enough = expected_after(FEWEST_JOBS - 1, **alike), expected_after(FEWEST_JOBS, **alike)
    assert few is not None
    assert enough is not None
    assert few[P50] == 0 < enough[P50]


def test_nothing_is_expected_of_nine_jobs():
    waits = Waits()
    for i in range(9):
        assert waits.submit(make_job(10 * i)).grid is None
    waits.submit(make_job(100))
    assert waits.submit(make_job(200)).grid is not None


def test_only_the_last_8000_waits_count():
    waits = Waits()
    jobs = [make_job(10 * i, wait_s=HOUR_S if i < WINDOW_JOBS else 0.0) for i in range(2 * WINDOW_JOBS)]
    list(replay(jobs, waits))
    waits.advance(jobs[-1].start_s)
    assert dict(waits.bins()) == dict.fromkeys(dict(waits.bins()), WINDOW_JOBS)
    expected = waits.expect(ALL)
    assert expected is not None
    assert expected[P90] == 0


@pytest.fixture(scope="module")
def fitted():
    jobs = [
        make_job(10 * i, size=size, queue=queue, walltime_s=walltime_s, wait_s=60.0 * size)
        for i in range(60)
        for size, queue, walltime_s in ((1, "a", HOUR_S), (4, "a", HOUR_S), (4, "b", 10 * HOUR_S))
    ]
    return fit(job_log(jobs))


@pytest.mark.parametrize(
    ("asked", "key", "num_jobs"),
    [
        ({"size": 4, "walltime_s": HOUR_S, "queue": "a"}, ("4..7", "<=1h", "a"), 60),
        ({"size": 4, "walltime_s": HOUR_S}, ("4..7", "<=1h", None), 60),
        ({"size": 4, "queue": "b"}, ("4..7", None, "b"), 60),
        ({"size": 4, "walltime_s": HOUR_S, "queue": "b"}, ("4..7", "<=1h", None), 60),
        ({"size": 4, "walltime_s": 1e7, "queue": "b"}, ("4..7", None, None), 120),
        ({"size": 5}, ("4..7", None, None), 120),
        ({"size": 64}, (None, None, None), 180),
    ],
)
def test_a_question_is_answered_by_the_narrowest_bin(fitted, asked, key, num_jobs):
    bin_used = fitted.of(**asked)
    assert (bin_used.key, bin_used.num_jobs) == (key, num_jobs)


def test_an_unknown_queue_is_refused_with_the_nearest(fitted):
    renamed = replace(fitted, queues=("gpu-long", "gpu-short"))
    with pytest.raises(InputError, match=r"no queue 'gpu-shrt'.*Did you mean 'gpu-short'.*gpu-long"):
        renamed.of(size=1, queue="gpu-shrt")


STEP_S = 300.0


@pytest.fixture(scope="module")
def crowded():
    """Eleven jobs come at once each hour, and each waits five minutes for each one before it."""
    jobs = [
        make_job(60 * i + j / 100, wait_s=math.inf if i == 500 else STEP_S * j, user=f"u{j}")
        for i in range(501)
        for j in range(5 if i == 500 else 11)
    ]
    return fit(job_log(jobs))


def test_a_job_waits_longer_the_more_wait_before_it(crowded):
    """The first of them found none waiting, and the fourth to ninth 3 to 8, so they waited 3 to 8 steps."""
    usual, alone, behind = (crowded.of(size=1, num_waiting=count) for count in (None, 0, 5))
    assert alone.p50_s < 1.5 * STEP_S < usual.p50_s < behind.p50_s
    assert 4.5 * STEP_S < behind.p50_s < 7 * STEP_S
    assert alone.p90_s < behind.p90_s
    assert crowded.of(size=1, num_waiting=8) == crowded.of(size=1, num_waiting=3)


@pytest.fixture(scope="module")
def two_users():
    """Jobs that come in turn: one of two users waits for ten minutes, the other for five hours."""
    users = [("quick", 600.0), ("slow", 5 * HOUR_S)]
    return job_log(
        make_job(30 * i, wait_s=wait_s, user=user) for i in range(300) for user, wait_s in (users[i % 2],)
    )


def test_a_user_s_next_job_waits_as_their_last_ones_did(two_users):
    quick, slow = (fit(two_users, user).of(size=1, num_waiting=5) for user in ("quick", "slow"))
    assert quick.p50_s < HOUR_S < 4 * HOUR_S < slow.p50_s
    assert quick.p90_s < slow.p90_s
    assert quick.key == slow.key


@pytest.mark.parametrize("user", [None, "", "nobody"])
def test_of_a_user_whom_the_log_does_not_know_nothing_is_believed(two_users, user):
    assert fit(two_users, user) == fit(two_users)


def test_the_file_of_a_fit_tells_of_no_user(two_users, tmp_path):
    write_fit(tmp_path / "fit.json", fit(two_users, "slow"))
    assert "slow" not in (tmp_path / "fit.json").read_text()


def test_an_own_job_that_waits_tells_before_it_starts():
    """A hundred jobs of others started within minutes; the one of this user waits for a day."""
    grid = [to_log_minutes(60.0 * minute) for minute in range(1, 16)]
    own = OwnJobs()
    assert (own.class_of("", 0.0), own.class_of("me", 0.0)) == (None, 0)
    own.enter("me", 0, 0.0, grid)
    own.enter("me", 1, 60.0, grid)
    young, old = (own.class_of("me", now_s) for now_s in (1.0, DAY_S))
    assert 0 < young < old == 1 + len(LEVEL_EDGES)
    own.start("me", 0, DAY_S)
    own.start("me", 1, DAY_S)
    assert own.class_of("me", DAY_S + RECENT_S) == old
    assert own.class_of("me", DAY_S + RECENT_S + 1) == 0


def test_the_log_of_the_last_hour_knows_how_many_wait(crowded):
    assert crowded.waiting == {"gpu": 5}
    assert crowded.waiting_now("gpu", crowded.end_s + HOUR_S) == 5
    assert crowded.waiting_now("other", crowded.end_s) == 0
    assert crowded.waiting_now(None, crowded.end_s) == 5
    # Of several queues nobody knows which one is meant: those of another one would count.
    assert replace(crowded, queues=("cpu", "gpu")).waiting_now(None, crowded.end_s) is None
    assert crowded.waiting_now("gpu", crowded.end_s + HOUR_S + 1) is None
    assert crowded.waiting_now("gpu", crowded.end_s - 1) is None


def test_what_has_waited_waits_on_as_those_that_waited_so_long(crowded):
    """Waits of 0 to 10 steps alike: after 5 of them half of the jobs wait 2.5 more, none 6."""
    left = crowded.of(size=1, waited_s=5 * STEP_S)
    assert left.p50_s == pytest.approx(2.5 * STEP_S, rel=0.2)
    assert left.p90_s < 6 * STEP_S
    assert crowded.of(size=1, waited_s=1000 * STEP_S).p50_s > 0


def test_doubts_are_told(fitted):
    assert warnings_of(fitted, fitted.of(size=4), 4) == ()
    (rare,) = warnings_of(fitted, fitted.of(size=64), 64)
    assert "fewer than 10 jobs of this size" in sentence(rare)
    (unit,) = warnings_of(replace(fitted, size_unit="cores"), fitted.of(size=4), 4)
    assert "counts cores, not GPUs" in sentence(unit)


@pytest.mark.parametrize(("longer", "times"), [(1.0, "9.4"), (60.0, "9.3"), (1 / 60, None)])
def test_a_surge_at_the_end_of_a_log_is_said(longer, times):
    """Of waits, not of minutes counted from one; of seconds it is none."""
    waits_min = [1 + i % 10 for i in range(400)] + [60 + i % 40 for i in range(40)]
    surging = fit(job_log(make_job(30 * i, wait_s=60 * longer * wait) for i, wait in enumerate(waits_min)))
    found = [sentence(surge) for surge in warnings_of(surging, surging.of(size=1), 1)]
    said = [] if times is None else [f"the jobs of this log wait {times} times as long as before"]
    assert [re.search(r"the jobs.*before", text)[0] for text in found] == said


def test_a_fit_comes_back_from_its_file_as_it_was(fitted, tmp_path):
    write_fit(tmp_path / "fit.json", fitted)
    assert load_fit(tmp_path / "fit.json") == fitted


def test_a_log_is_fitted_at_once(tmp_path):
    jobs = [make_job(10 * i) for i in range(50)]
    path = tmp_path / "log.csv"
    path.write_text(csv_of(jobs))
    assert load_fit(path) == fit(read_job_log(path)) == fit(job_log(jobs))


def test_too_few_jobs_are_refused():
    with pytest.raises(InputError, match="9 jobs that started: quantiles need at least 10"):
        fit(job_log([make_job(i) for i in range(9)]))
    with pytest.raises(InputError, match="almost all of one burst"):
        fit(job_log([make_job(i / 60) for i in range(50)]))
    with pytest.raises(InputError, match="needs at least 134 jobs"):
        check(job_log([make_job(10 * i) for i in range(100)]))
    assert check(job_log([make_job(10 * i) for i in range(134)])).num_checked >= WIDER_BIN_JOBS


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"format": "advisor-trace"}, "no fit of queue waits"),
        ({"version": 1}, "has version 1, not 3"),
        ({"num_jobs": "many"}, "integer"),
        ({"bins": []}, "lacks the bin of all jobs"),
        ({"bins": [{"size": "1"}]}, "required"),
        ({"levels": [0.5, 0.9]}, "no quantiles"),
        ({"backlog_levels": [[0.5]] * 5}, "no levels"),
        ({"backlog_levels": []}, "no levels"),
        *((text, "") for text in ("{", "{}", '{"format": "advisor-queue-waits"}', "{" * 100_000)),
    ],
)
def test_a_foreign_or_damaged_fit_is_refused(fitted, tmp_path, change, words):
    path = tmp_path / "fit.json"
    write_fit(path, fitted)
    whole = json.loads(path.read_text())
    path.write_text(change if isinstance(change, str) else json.dumps(whole | change))
    with pytest.raises(InputError, match=f"(?s){words}.*advisor queue fit"):
        load_fit(path)


def test_a_fit_that_cannot_be_written_is_told(fitted, tmp_path):
    with pytest.raises(InputError, match="cannot write"):
        write_fit(tmp_path / "none" / "fit.json", fitted)


def test_a_fit_holds_no_rows_of_the_log(fitted, tmp_path):
    write_fit(tmp_path / "fit.json", fitted)
    stored = json.loads((tmp_path / "fit.json").read_text())
    assert set(stored["bins"][0]) == set(WaitBin.__slots__)
    assert min(one["num_jobs"] for one in stored["bins"]) >= FEWEST_JOBS


def thinned(name: str, keep: int) -> JobLog:
    """Every job of one user in ``keep``, so that bursts stay whole."""
    log = read_job_log(SHARED / "traces" / f"{name}.csv.gz")
    users = sorted({job.user for job in log.jobs})
    kept = set(islice(users, 0, None, keep))
    return replace(log, jobs=tuple(job for job in log.jobs if job.user in kept))


@needs_shared
def test_a_thinned_log_is_foreseen_too():
    """A third of KTH's users: fewer jobs, wider errors."""
    forecast = check(thinned("kth_sp2_1996", 3))
    for score in (forecast.online, forecast.frozen):
        assert score.coverage_se is not None
        assert score.coverage.p90 == pytest.approx(0.9, abs=0.04 + 2 * score.coverage_se.p90)
        assert score.tails.p99 >= 0.97
