"""What is fitted to collectives: made-up times whose constants are known, and the published ones."""

from __future__ import annotations

import math
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from advisor.core.fabrics import linked
from advisor.core.gpus import load_gpus
from advisor.core.values import Z90, Layout, Link, Network
from advisor.predict.exchange.collective_time import collective_constants, constants_from, group_of, law_of
from research.training import fit_collectives
from research.training.collective_fit import Fit, fit_of, weights_of
from research.training.collective_page import page, rendered
from research.training.collective_parameters import NETWORK_LATENCY_SIGMA, parameters
from research.training.collective_tables import (
    UNKNOWN_NETWORK,
    MeasuredCollective,
    read_collectives,
    read_judges,
)
from research.training.judge_collectives import (
    RANKS,
    SIZES,
    SOURCES,
    TOPOLOGIES,
    Trial,
    coverage,
    judged,
    spread_of,
)
from tests.shared import SHARED, needs_shared

MEASURED = SHARED / "measurements"
BOARDS = {
    "A100-SXM-80GB": linked(load_gpus()["A100-SXM-80GB"], None),
    "H100-SXM-80GB": linked(load_gpus()["H100-SXM-80GB"], None),
    "L40S": linked(load_gpus()["L40S"], Link.PCIE),
}
TRUE = Fit(
    values={name: each.start for name, each in parameters(frozenset({"Ampere", "Hopper", "Ada"})).items()}
    | {"efficiency": 0.6, "launch_s": 9e-6, "pace of Hopper": 0.8, "own share": 0.3}
)


def made_up(noise: float = 0.0, sources: tuple[str, ...] = ("ours",)) -> list[MeasuredCollective]:
    rng = np.random.default_rng(0)
    rows = []
    for source in sources:
        for board, fabric in BOARDS.items():
            for num_gpus in (2, 4, 8):
                for kind in ("all_reduce", "all_gather"):
                    layout = Layout(gpus_per_node=num_gpus, fabric=fabric)
                    group = group_of(kind, layout, load_gpus()[board])
                    law = law_of(group, TRUE.constants())
                    for num_bytes in np.geomspace(1e3, 1e9, 8):
                        time_s = law.time(num_bytes).seconds * float(np.exp(noise * rng.standard_normal()))
                        row = MeasuredCollective(
                            source=source, board=board, group=group, num_bytes=num_bytes, time_s=time_s
                        )
                        rows.append(row)
    return rows


def test_times_come_back() -> None:
    rows = made_up()
    fit = fit_of(rows)
    assert np.abs(fit.off(rows)).max() < 0.05
    assert fit.values["launch_s"] * fit.values["pace of Hopper"] == pytest.approx(9e-6 * 0.8, rel=0.1)
    reached = fit.constants().links[Link.NVSWITCH].efficiency
    assert reached == pytest.approx(0.6, rel=0.05)


def test_one_wild_row_changes_little() -> None:
    rows = made_up()
    wild = [replace(rows[0], time_s=30 * rows[0].time_s), *rows[1:]]
    assert np.median(np.abs(fit_of(wild).off(rows))) < 0.02


def test_what_no_row_tells_stays_where_it_starts() -> None:
    values = fit_of(made_up()).values
    assert values["stream"] == pytest.approx(2e9)
    assert values["efficiency of infiniband"] == pytest.approx(1.0)


def test_a_long_table_weighs_as_much_as_a_short_one() -> None:
    rows = made_up()
    short, long = rows[0], [row for row in rows if row.setting != rows[0].setting][:8]
    weights = weights_of([short, *long])
    assert weights[0] == pytest.approx(weights[1:].sum())


def test_trials_judge_rows_that_their_fits_did_not_see(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[set[int]] = []

    def remembering(rows: list[MeasuredCollective]) -> Fit:
        seen.append({id(row) for row in rows})
        return TRUE

    monkeypatch.setattr("research.training.judge_collectives.fit_of", remembering)
    rows = made_up(sources=("ours", "theirs"))
    rows[0] = replace(rows[0], fits=False)
    trials = list(judged(rows))
    assert [trial.name for trial in trials] == [SIZES, RANKS, SOURCES, SOURCES, *[TOPOLOGIES] * 3]
    for trial, fitted in zip(trials, seen, strict=True):
        assert trial.rows
        assert not fitted & {id(row) for row in trial.rows}
        assert id(rows[0]) not in fitted
        assert len(fitted) + len(trial.rows) in (len(rows), len(rows) - 1)


def test_answers_are_as_wide_as_errors() -> None:
    """Noise of a fifth in each row, which no fit can know, is the spread; four fifths lie inside."""
    rows = made_up(noise=0.2, sources=("ours", "theirs"))
    trials = [Trial(name=name, fit=TRUE, rows=rows, off=TRUE.off(rows)) for name in (SOURCES, TOPOLOGIES)]
    unknown = replace(rows[0].group, num_nodes=2)
    far = [replace(row, group=unknown, time_s=100.0) for row in rows[:20]]
    assert far[0].topology == UNKNOWN_NETWORK
    spread = spread_of([*trials, Trial(name=TOPOLOGIES, fit=TRUE, rows=far, off=TRUE.off(far))])
    assert spread.latency == pytest.approx(0.2, rel=0.25)
    assert spread.roads[Link.NVSWITCH.value] == pytest.approx(0.2, rel=0.25)
    assert 0.7 < coverage(trials, spread) < 0.9
    assert spread.unknown_network == pytest.approx(np.quantile(np.abs(TRUE.off(far)), 0.8) / Z90, rel=0.1)
    assert spread.network_latency == NETWORK_LATENCY_SIGMA


def test_a_board_with_one_layout_says_as_much_of_the_width_as_one_with_three() -> None:
    """Three boards take the expected time, in three layouts each; two others, in one, take 3.7 times that."""
    plain = [row for row in made_up() if row.board == "H100-SXM-80GB"]
    good = [replace(row, board=name) for name in "abc" for row in plain]
    pairs = [row for row in plain if row.group.num_gpus == 2]
    bad = [replace(row, board=name, time_s=math.exp(1.3) * row.time_s) for name in "de" for row in pairs]
    trials = [
        Trial(name=SOURCES, fit=TRUE, rows=good, off=TRUE.off(good)),
        Trial(name=TOPOLOGIES, fit=TRUE, rows=[*good, *bad], off=TRUE.off([*good, *bad])),
        Trial(name=TOPOLOGIES, fit=TRUE, rows=(far := _far(plain)), off=TRUE.off(far)),
    ]
    assert spread_of(trials).roads[Link.NVSWITCH.value] == pytest.approx(1.3 / Z90, rel=1e-3)
    few = [trials[0], replace(trials[1], rows=good, off=TRUE.off(good)), trials[2]]
    assert spread_of(few).roads[Link.NVSWITCH.value] == pytest.approx(0.13)


def _far(rows: list[MeasuredCollective]) -> list[MeasuredCollective]:
    return [replace(row, group=replace(row.group, num_nodes=2)) for row in rows[:3]]


def test_what_is_written_is_read() -> None:
    rows = made_up(noise=0.1, sources=("ours", "theirs"))
    trial = Trial(name=SOURCES, fit=TRUE, rows=rows, off=TRUE.off(rows))
    far = [replace(row, group=replace(row.group, num_nodes=2)) for row in rows[:3]]
    left_out = [Trial(name=TOPOLOGIES, fit=TRUE, rows=own, off=TRUE.off(own)) for own in (rows, far)]
    spread = spread_of([trial, *left_out])
    written = constants_from(tomllib.loads(rendered(TRUE, spread)))
    wanted = TRUE.constants(spread)
    assert written.launch_s == pytest.approx(wanted.launch_s, rel=1e-3)
    assert written.links[Link.HOST].sigma == pytest.approx(wanted.links[Link.HOST].sigma, rel=1e-3)
    assert written.networks[Network.TCP].stream_bytes_per_s == pytest.approx(2e9)
    assert written.in_switch == wanted.in_switch
    text = page(
        TRUE, spread, [trial, *left_out, replace(trial, name=SIZES), replace(trial, name=RANKS)], rows
    )
    assert "| **another host** | 288 |" in text
    for topology in ("nvswitch, Ampere", "unknown network", "stas00: pcie, Ada"):
        assert f"| {topology} |" in text


@pytest.fixture(scope="module")
def published() -> list[MeasuredCollective]:
    """All rows but those that only judge by their licence."""
    return read_collectives(MEASURED / "tensor_cores", MEASURED / "published")


@needs_shared
def test_sizes_that_were_held_out_are_12_percent_off_at_most(published: list[MeasuredCollective]) -> None:
    """Of two boards, which all kinds of tables have; all are in research/docs/accuracy/collectives.md."""
    trial = next(judged([row for row in published if row.board in ("A100-SXM-80GB", "L40S")]))
    assert len(trial.rows) > 100
    assert np.median(np.abs(np.expm1(trial.off))) < 0.12


@needs_shared
def test_what_ships_is_12_percent_off_at_most_where_it_was_fitted(
    published: list[MeasuredCollective],
) -> None:
    rows = [row for row in published if row.fits and not row.in_one_process]
    seconds = [law_of(row.group, collective_constants()).time(row.num_bytes).seconds for row in rows]
    assert len({row.topology for row in rows}) > 10
    assert np.median(np.abs(np.array(seconds) / [row.time_s for row in rows] - 1)) < 0.12


@needs_shared
def test_hosts_that_nobody_fitted_to_lie_inside() -> None:
    """stas00 only judges: four fifths of its rows between the tenth and ninetieth percentile, or more."""
    rows = read_judges(MEASURED / "published")
    shipped = [law_of(row.group, collective_constants()).time(row.num_bytes) for row in rows]
    logs = np.log([time.seconds / row.time_s for time, row in zip(shipped, rows, strict=True)])
    assert np.median(np.abs(np.expm1(logs))) < 0.25
    assert np.mean(np.abs(logs) < Z90 * np.array([time.sigma for time in shipped])) > 0.74


def test_a_missing_folder_is_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    nowhere, out = str(tmp_path / "nowhere"), tmp_path / "collectives.toml"
    arguments = ["--tensor-cores", nowhere, "--published", nowhere, "--out", str(out)]
    monkeypatch.setattr("sys.argv", ["fit_collectives", *arguments])
    with pytest.raises(SystemExit) as caught:
        fit_collectives.main()
    assert caught.value.code == 2
    assert "name the folders of measurements" in capsys.readouterr().err
    assert not out.exists()
