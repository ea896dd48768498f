"""``advisor prices history`` and ``check`` over a database of two sources, one of them at rest for long."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from advisor.core.values import Market
from advisor.store.database import open_store
from advisor.store.pulls import save_part
from tests.builders import make_offer
from tests.end_to_end.cli import Shell, assert_plain_error

FLAGS = ("--provider", "aws", "--market", "spot")


@pytest.fixture
def shell(tmp_path):
    """``aws`` tells 2.0 since 200 days; ``gpuhunt`` tells 1.0 since 50 and 1.1 since 10."""
    for source, days, usd_per_h in (("aws", 200, 2.0), ("gpuhunt", 50, 1.0), ("gpuhunt", 10, 1.1)):
        remember(tmp_path, source, days, usd_per_h)
    return Shell(folder=tmp_path)


def remember(
    folder: Path, source: str, days: float, usd_per_h: float, *, scope: str = "all", **changes: Any
) -> None:
    """A source is asked so many days ago."""
    at = datetime.now(UTC) - timedelta(days=days)
    facts = {"instance_type": "g6.xlarge", "market": Market.SPOT, "zone": "use1-az1", "retrieved_at": at}
    offer = make_offer("L4", usd_per_h, **(facts | changes))
    store = open_store(f"sqlite:///{folder / 'prices.db'}")
    assert store is not None
    with store:
        save_part(store, source, scope, [offer], (), (), at)


def environ(shell: Shell) -> dict[str, str]:
    return {"ADVISOR_STORE__URL": f"sqlite:///{shell.folder / 'prices.db'}", "COLUMNS": "200"}


def test_sources_are_apart_and_a_price_at_rest_is_in_every_window(shell):
    answer = shell.run("prices", "history", *FLAGS, "--since", "90d", "--json", **environ(shell))
    assert answer.code == 0, answer.err
    series = {one["source"]: one for one in answer.document["series"]}
    prices = {source: [p["usd_per_h"] for p in one["points"]] for source, one in series.items()}
    assert prices == {"aws": [2.0], "gpuhunt": [1.0, 1.1]}
    assert {source: one["median_usd_per_h"] for source, one in series.items()} == {"aws": 2.0, "gpuhunt": 1.0}
    begin = datetime.fromisoformat(series["aws"]["points"][0]["observed_at"])
    assert timedelta(days=89) < datetime.now(UTC) - begin < timedelta(days=91)


def test_a_table_and_a_plot_name_the_source(shell):
    table = shell.run("prices", "history", *FLAGS, "--since", "5d", **environ(shell))
    assert table.code == 0, table.err
    rows = [line for line in table.out.splitlines() if "g6.xlarge" in line]
    assert len(rows) == 2
    assert ["gpuhunt" in row for row in rows] == [False, True]
    plot = shell.run("prices", "history", *FLAGS, "--since", "5d", "--plot", **environ(shell))
    assert "now 1.1000 USD/h (gpuhunt)" in plot.out
    assert "now 2.0000 USD/h (aws)" in plot.out


def test_sources_that_differ_are_no_jump(shell):
    remember(shell.folder, "aws", 1, 2.1)
    answer = shell.run("prices", "check", "--provider", "aws", "--json", **environ(shell))
    assert answer.code in (0, 1), answer.err
    assert "jump" not in {one["doubt"] for one in answer.document["findings"]}
    remember(shell.folder, "aws", 0, 4.2)
    answer = shell.run("prices", "check", "--provider", "aws", "--json", **environ(shell))
    assert [one["doubt"] for one in answer.document["findings"]].count("jump") == 1


@pytest.mark.parametrize(
    ("asked", "machines"),
    [
        ("L4", {"g6.xlarge", "g6.48xlarge"}),
        ("L4:8", {"g6.48xlarge"}),
        ("L4:1", {"g6.xlarge"}),
        ("L4:1..8", {"g6.xlarge", "g6.48xlarge"}),
    ],
)
def test_the_number_of_gpus_asked_for_counts(shell, asked, machines):
    remember(shell.folder, "aws", 3, 9.0, scope="large", instance_type="g6.48xlarge", num_gpus=8)
    answer = shell.run("prices", "history", *FLAGS, "--gpu", asked, "--json", **environ(shell))
    assert {one["instance_type"] for one in answer.document["series"]} == machines, answer.err
    assert "left out" not in answer.err


def test_a_size_that_is_not_remembered_is_no_offer(shell):
    answer = shell.run("prices", "history", *FLAGS, "--gpu", "L4:8", **environ(shell))
    assert_plain_error(answer, 1, "no prices of these are remembered")


def test_machines_of_unknown_size_are_left_out_aloud(shell):
    remember(shell.folder, "aws", 3, 9.0, scope="odd", instance_type="g6.odd")
    remember(shell.folder, "aws", 2, 8.0, scope="odd", instance_type="g6.xlarge", zone="use1-az2")
    command = ("prices", "history", *FLAGS, "--json")
    counted = shell.run(*command, "--gpu", "L4:1", **environ(shell))
    assert "g6.odd: no longer offered" in counted.err
    assert {one["instance_type"] for one in counted.document["series"]} == {"g6.xlarge"}
    every = shell.run(*command, "--gpu", "L4", **environ(shell))
    assert {one["instance_type"] for one in every.document["series"]} == {"g6.xlarge", "g6.odd"}


def test_check_looks_at_the_sizes_asked_for(shell):
    for days, usd_per_h in ((2, 1.0), (1, 9.0)):
        changes = {"instance_type": "g6.48xlarge", "num_gpus": 8}
        remember(shell.folder, "aws", days, usd_per_h, scope="large", **changes)
    doubts = {
        asked: [
            (one["doubt"], one["instance_type"])
            for one in shell.run("prices", "check", "--gpu", asked, "--json", **environ(shell)).document[
                "findings"
            ]
        ]
        for asked in ("L4:8", "L4:1")
    }
    assert ("jump", "g6.48xlarge") in doubts["L4:8"]
    assert "g6.48xlarge" not in {machine for _, machine in doubts["L4:1"]}
