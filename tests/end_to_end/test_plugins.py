"""The example plug-in, built and installed as a stranger's package, asked over HTTP."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.plugins import EXAMPLE, install_acme, write_acme_prices
from tests.web import served

ASK = """
import dataclasses, json, sys
from advisor.pricing import OfferQuery
from advisor.pricing.sources.protocol import GROUP
from advisor.core.plugins import load, registered

options, query = json.loads(sys.argv[1]), json.loads(sys.argv[2])
source = load(GROUP, "acme")(options)
parts = list(source.offers(OfferQuery(**{name: tuple(values) for name, values in query.items()})))
print(json.dumps({
    "registered": list(registered(GROUP)),
    "ours": list(registered(GROUP, foreign=False)),
    "distribution": registered(GROUP)["acme"].dist.name,
    "is_live": source.capabilities.is_live,
    "credentials": source.credentials(),
    "freshness": source.freshness(),
    "parts": [dataclasses.asdict(part) for part in parts],
}, default=str))
"""
A8 = {"name": "a8", "gpu": "NVIDIA A100-SXM4-80GB", "gpus": 8, "usd_per_h": 9.6, "spot_usd_per_h": 4.1}
B1 = {"name": "b1", "gpu": "B400", "gpus": 1, "usd_per_h": 7}
AS_OF = "2026-11-21T06:00:00+00:00"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Where the example is installed."""
    return install_acme(tmp_path_factory.mktemp("acme"))


@pytest.fixture
def prices(tmp_path):
    """The folder of the cloud's documents, and its URL."""
    with served(tmp_path) as url:
        yield tmp_path, url


def python(site: Path | None, *arguments: str) -> subprocess.CompletedProcess[str]:
    path = {} if site is None else {"PYTHONPATH": str(site)}
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env=kept | path)


def ask(site: Path, options: Mapping[str, Any], **query: Any) -> Any:
    answer = python(site, "-c", ASK, json.dumps(options), json.dumps(query))
    assert answer.returncode == 0, answer.stderr
    assert answer.stderr == ""
    return json.loads(answer.stdout)


def test_an_installed_plugin_is_registered_beside_ours(site, prices):
    reply = ask(site, {"url": prices[1]})
    assert set(reply["registered"]) == {*reply["ours"], "acme"}
    assert reply["distribution"] == "acme-prices"
    assert (reply["is_live"], reply["credentials"], reply["freshness"]) == (True, "not needed", [])


def test_without_the_package_there_is_no_such_source():
    answer = python(None, "-c", ASK, "{}", "{}")
    assert answer.returncode == 1
    assert "nothing named 'acme' is registered under advisor.price_sources" in answer.stderr


def test_its_parts_come_out(site, prices):
    folder, url = prices
    write_acme_prices(folder, "north", A8, B1, as_of=AS_OF)
    write_acme_prices(folder, "south", A8 | {"usd_per_h": 9.0, "spot_usd_per_h": None}, as_of=AS_OF)
    north, south = ask(site, {"url": url})["parts"]
    assert (north["scope"], north["failure"], south["scope"], south["failure"]) == (
        "north",
        None,
        "south",
        None,
    )
    machines = [(o["instance_type"], o["gpu"], o["num_gpus"], o["market"], o["list_usd_per_h"])
                for o in north["offers"]]  # fmt: skip
    assert machines == [
        ("a8", "A100-SXM-80GB", 8, "on-demand", 9.6),
        ("a8", "A100-SXM-80GB", 8, "spot", 4.1),
        ("b1", "B400", 1, "on-demand", 7.0),
    ]
    assert north["gaps"] == ["B400 is not in advisor's catalog"]
    assert [o["list_usd_per_h"] for o in south["offers"]] == [9.0]
    assert {o["retrieved_at"] for o in north["offers"]} == {"2026-11-21 06:00:00+00:00"}


def test_the_query_counts(site, prices):
    folder, url = prices
    for region in ("north", "south"):
        write_acme_prices(folder, region, A8, B1, as_of=AS_OF)
    parts = ask(site, {"url": url}, regions=["nor*"], gpus=["A100-SXM-80GB"])["parts"]
    assert [(part["scope"], len(part["offers"])) for part in parts] == [("north", 2), ("south", 0)]


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        (None, "HTTPError: HTTP Error 404"),
        ("<html>", "JSONDecodeError"),
        ("{}", "KeyError: 'machines'"),
        (
            '{"as_of": "soon", "machines": [{"name": "a", "gpu": "L4", "gpus": 1, "usd_per_h": 1}]}',
            "ValueError",
        ),
        ('{"as_of": "2026-11-21", "machines": [{"name": "a"}]}', "KeyError: 'usd_per_h'"),
        ("[]", "TypeError"),
    ],
)
def test_a_region_in_trouble_fails_alone(site, prices, document, reason):
    folder, url = prices
    write_acme_prices(folder, "south", A8, as_of=AS_OF)
    if document is not None:
        (folder / "north.json").write_text(document)
    north, south = ask(site, {"url": url})["parts"]
    assert north["failure"].startswith(f"no prices of north: {reason}")
    assert north["offers"] == []
    assert (len(south["offers"]), south["failure"]) == (2, None)


def test_nobody_at_the_address(site):
    (part,) = ask(site, {"url": "http://127.0.0.1:9", "regions": ["north"]})["parts"]
    assert part["failure"].startswith("no prices of north: URLError")


def test_an_option_that_it_lacks_is_refused(site):
    answer = python(site, "-c", ASK, '{"ulr": "x"}', "{}")
    assert answer.returncode == 1
    assert "the price source 'acme' has no option 'ulr'. Did you mean 'url'?" in answer.stderr


def test_the_example_is_short_and_whole():
    assert {path.name for path in EXAMPLE.iterdir()} == {"README.md", "acme_prices.py", "pyproject.toml"}
    assert len((EXAMPLE / "acme_prices.py").read_text().splitlines()) < 80


def test_the_readme_shows_a_document_that_the_module_reads(site, prices):
    folder, url = prices
    (document,) = re.findall(r"```\n(.*?)```", (EXAMPLE / "README.md").read_text(), flags=re.DOTALL)
    (folder / "north.json").write_text(document)
    (part,) = ask(site, {"url": url, "regions": ["north"]})["parts"]
    assert len(part["offers"]) == 2
