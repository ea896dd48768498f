"""``advisor prices history`` and ``check`` over a database of two sources, one of them at rest for long."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from advisor.store import open_store
from advisor.store.prices import save_part
from advisor.types import Market
from tests.builders import make_offer
from tests.end_to_end.cli import Shell

FLAGS = ("--provider", "aws", "--market", "spot")


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """``aws`` tells 2.0 since 200 days; ``gpuhunt`` tells 1.0 since 50 and 1.1 since 10."""
    for source, days, usd_per_h in (("aws", 200, 2.0), ("gpuhunt", 50, 1.0), ("gpuhunt", 10, 1.1)):
        remember(tmp_path, source, days, usd_per_h)
    return Shell(folder=tmp_path)


def remember(folder: Path, source: str, days: float, usd_per_h: float) -> None:
    """A source is asked so many days ago."""
    at = datetime.now(UTC) - timedelta(days=days)
    offer = make_offer(
        "L4", usd_per_h, instance_type="g6.xlarge", market=Market.SPOT, zone="use1-az1", retrieved_at=at
    )
    store = open_store(f"sqlite:///{folder / 'prices.db'}")
    assert store is not None
    with store:
        save_part(store, source, "all", [offer], (), (), at)


def environ(shell: Shell) -> dict[str, str]:
    return {"ADVISOR_STORE__URL": f"sqlite:///{shell.folder / 'prices.db'}", "COLUMNS": "200"}


def test_sources_are_apart_and_a_price_at_rest_is_in_every_window(shell: Shell) -> None:
    answer = shell.run("prices", "history", *FLAGS, "--since", "90d", "--json", **environ(shell))
    assert answer.code == 0, answer.err
    found = {one["source"]: one for one in answer.document["series"]}
    prices = {source: [p["usd_per_h"] for p in one["points"]] for source, one in found.items()}
    assert prices == {"aws": [2.0], "gpuhunt": [1.0, 1.1]}
    assert {source: one["median_usd_per_h"] for source, one in found.items()} == {"aws": 2.0, "gpuhunt": 1.0}
    begin = datetime.fromisoformat(found["aws"]["points"][0]["observed_at"])
    assert timedelta(days=89) < datetime.now(UTC) - begin < timedelta(days=91)


def test_a_table_and_a_plot_name_the_source(shell: Shell) -> None:
    table = shell.run("prices", "history", *FLAGS, "--since", "5d", **environ(shell))
    assert table.code == 0, table.err
    rows = [line for line in table.out.splitlines() if "g6.xlarge" in line]
    assert len(rows) == 2
    assert ["gpuhunt" in row for row in rows] == [False, True]
    plot = shell.run("prices", "history", *FLAGS, "--since", "5d", "--plot", **environ(shell))
    assert "now 1.1000 USD/h (gpuhunt)" in plot.out
    assert "now 2.0000 USD/h (aws)" in plot.out


def test_sources_that_differ_are_no_jump(shell: Shell) -> None:
    remember(shell.folder, "aws", 1, 2.1)
    answer = shell.run("prices", "check", "--provider", "aws", "--json", **environ(shell))
    assert answer.code in (0, 1), answer.err
    assert "jump" not in {one["doubt"] for one in answer.document["findings"]}
    remember(shell.folder, "aws", 0, 4.2)
    answer = shell.run("prices", "check", "--provider", "aws", "--json", **environ(shell))
    assert [one["doubt"] for one in answer.document["findings"]].count("jump") == 1
