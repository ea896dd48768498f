"""Waits as tables, in words and as JSON."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from advisor.core.findings import Finding
from advisor.core.values import Quantiles
from advisor.report.logs import basis, check_document, wait_document, what_if_document
from advisor.report.logs import queue_fit_document as fit_document
from advisor.report.printing import Format, text_of
from advisor.service.queue_waits import Wait
from advisor.service.queue_what_ifs import ClassWaits, QueueWhatIf
from recommender.queue.fitted import WaitBin, WaitQuantiles
from recommender.queue.scoring import QueueCheck, Score, Tails
from tests.findings import texts
from tests.unit.report.printed import json_of, on_screen

SCORE = Score(
    coverage=Quantiles(p50=0.512, p90=0.899),
    coverage_se=Quantiles(p50=0.031, p90=0.012),
    tails=Tails(p10=0.11, p99=0.985),
    pinball=Quantiles(p50=0.244, p90=0.152),
)
OTHER = Score(
    coverage=Quantiles(p50=0.4, p90=0.8),
    coverage_se=None,
    tails=Tails(p10=0.2, p99=0.9),
    pinball=Quantiles(p50=1.0, p90=2.0),
)
CHECK = QueueCheck(
    num_jobs=6203,
    num_checked=1861,
    num_frozen=16,
    online=SCORE,
    frozen=replace(SCORE, coverage=Quantiles(p50=0.45, p90=0.875)),
    uncorrected=OTHER,
    baseline=OTHER,
)
ALIKE = WaitBin(
    size="4..7",
    walltime="<=12h",
    queue="gpu",
    num_jobs=1812,
    p50_s=90.0,
    p90_s=7200.0,
    waits_s=(90.0, 7200.0),
)
ANYONE = WaitBin(
    size=None, walltime=None, queue=None, num_jobs=8000, p50_s=0.0, p90_s=60.0, waits_s=(0.0, 60.0)
)


def fitted(*bins: WaitBin) -> WaitQuantiles:
    return WaitQuantiles(
        size_unit="gpus",
        num_jobs=9000,
        num_waiting=12,
        left_out={"never started": 3},
        queues=("gpu",),
        first_submit_s=0.0,
        last_submit_s=1e6,
        offset_p50=0.0,
        offset_p90=0.5,
        levels=(0.5, 0.9),
        waiting={"gpu": 12},
        end_s=1e6,
        backlog_levels=(),
        bins=bins,
    )


def wait_of(
    alike: WaitBin,
    *,
    size_unit: str = "gpus",
    warnings: Sequence[Finding] = (),
    num_waiting: int | None = None,
    waited_s: float | None = None,
) -> Wait:
    return Wait(
        alike=alike, size_unit=size_unit, num_waiting=num_waiting, waited_s=waited_s, warnings=tuple(warnings)
    )


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ({}, "half of the jobs wait up to 2 min, 9 of 10 within 2 h"),
        ({"waited_s": 3600.0}, "half of the jobs wait up to 2 min longer after 1 h, 9 of 10 within 2 h"),
        (
            {"num_waiting": 1200},
            "half of the jobs wait up to 2 min, 9 of 10 within 2 h with 1,200 jobs waiting before them",
        ),
    ],
)
def test_the_state_of_a_queue_in_words(state, words):
    assert on_screen(wait_document(wait_of(ALIKE, **state)), 80).startswith(f"{words} (1,812 jobs")


@pytest.mark.parametrize(
    ("alike", "words"),
    [(ALIKE, "1,812 jobs of 4..7 gpus, walltime <=12h, queue 'gpu'"), (ANYONE, "8,000 jobs of any kind")],
)
def test_which_jobs_a_wait_is_from(alike, words):
    assert basis(alike, "gpus") == words


def test_a_wait_as_json_and_csv():
    document = json_of(wait_document(wait_of(ANYONE, size_unit="nodes", warnings=texts("mind this"))))
    assert document["wait_s"] == {"p50": 0.0, "p90": 60.0}
    assert document["based_on"] == {"size": None, "walltime": None, "queue": None}
    assert (document["jobs"], document["size_unit"], document["warnings"]) == (8000, "nodes", ["mind this"])
    assert text_of(wait_document(wait_of(ALIKE)), Format.CSV).splitlines() == [
        "Size,Walltime,Queue,Jobs,Wait p50,Wait p90",
        '4..7,<=12h,gpu,"1,812",2 min,2.0 h',
    ]


def test_a_fit_has_a_row_for_every_bin_and_is_whole_as_json():
    document = fit_document(fitted(ANYONE, ALIKE))
    assert text_of(document, Format.MARKDOWN).splitlines()[2:] == [
        "| any | any | any | 8,000 | 0 s | 1 min |",
        "| 4..7 | <=12h | gpu | 1,812 | 2 min | 2.0 h |",
    ]
    facts = json_of(document)
    assert (facts["left_out"], facts["bins"][1]["p90_s"]) == ({"never started": 3}, 7200.0)


def test_a_check_beside_its_baseline():
    rows = text_of(check_document(CHECK), Format.CSV).splitlines()[1:]
    assert rows[0].endswith(",45.0% +- 3.1%,87.5% +- 1.2%,0.244,0.152")
    assert rows[1].endswith(",51.2% +- 3.1%,89.9% +- 1.2%,0.244,0.152")
    assert rows[2].endswith(",40.0%,80.0%,1.000,2.000")
    assert rows[3] == "of all jobs,40.0%,80.0%,1.000,2.000"
    document = json_of(check_document(CHECK))
    assert (document["jobs"], document["jobs_checked"], document["fits_frozen"]) == (6203, 1861, 16)
    assert document["coverage"] == document["online"]["coverage"] == {"p50": 0.512, "p90": 0.899}
    assert document["pinball"] == {"p50": 0.244, "p90": 0.152}
    assert document["baseline_pinball"] == {"p50": 1.0, "p90": 2.0}
    assert document["frozen"] == {
        "coverage": {"p50": 0.45, "p90": 0.875},
        "coverage_se": {"p50": 0.031, "p90": 0.012},
        "tails": {"p10": 0.11, "p99": 0.985},
        "pinball": {"p50": 0.244, "p90": 0.152},
    }


@pytest.mark.parametrize(
    ("logged_s", "today_s", "words"),
    [
        (36_000.0, 21_600.0, "Trust the difference where today is like the log."),
        (0.0, 59.0, "Trust the difference"),
        (
            144_000.0,
            3_180.0,
            "Do not trust the difference: today is not like the log (p90 53 min, logged 40 h)",
        ),
        (60.0, 600.0, "Do not trust"),
    ],
)
def test_a_simulation_that_is_not_like_its_log_says_so(logged_s, today_s, words):
    logged, today = (Quantiles(p50=0.0, p90=p90_s) for p90_s in (logged_s, today_s))
    whole = ClassWaits(size="any", num_jobs=3, logged_s=logged, today_s=today, what_if_s=today)
    it = QueueWhatIf(
        size_unit="gpus",
        num_jobs=3,
        units=(8, 16),
        backfill=("easy", "easy"),
        classes=(whole,),
        walltimes=(),
        num_moments=0,
        submit_at=None,
    )
    (said,) = what_if_document(it).blocks[-1].lines
    assert words in said
