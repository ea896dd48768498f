"""Bars of estimates: one a GPU, the fastest first, what does not fit apart."""

from advisor.core.values import Interval
from advisor.report.document import Tone
from advisor.report.estimates import iterations_chart
from tests.builders import make_estimate

SLOW = make_estimate("T4", iteration_s=Interval(p10=1.0, p50=2.0, p90=3.0))
FAST = make_estimate("L4", num_gpus=2, iteration_s=Interval(p10=0.5, p50=1.0, p90=1.5))
SMALL = make_estimate("V100", iteration_s=Interval(p10=1.0, p50=1.5, p90=2.0), memory_limit_bytes=1)
UNSURE = make_estimate("A100", iteration_s=Interval(p10=0.1, p50=0.2, p90=0.3), memory_bytes=None)


def test_the_fastest_comes_first_whether_it_fits_or_not():
    (chart,) = iterations_chart([SLOW, SMALL, FAST, UNSURE])
    assert chart.bars == ("1 x A100", "2 x L4", "1 x V100", "1 x T4")
    assert [(one.label, one.points) for one in chart.series] == [
        ("fits in memory", ((1, 1.0), (3, 2.0))),
        ("unknown whether it fits in memory", ((0, 0.2),)),
        ("does not fit in memory", ((2, 1.5),)),
    ]
    assert [one.tone for one in chart.series] == [None, Tone.DOUBTFUL, Tone.FAINT]


def test_an_interval_is_an_error_bar_and_a_hover_text():
    (chart,) = iterations_chart([SLOW])
    (detail,) = chart.series[0].details
    assert detail.y_range == (1.0, 3.0)
    assert detail.label == "1 x T4\n1 s .. 2 s .. 3 s\nfits in memory"


def test_no_estimate_has_no_chart():
    assert list(iterations_chart([])) == []
