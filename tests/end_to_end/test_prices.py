"""``advisor prices``, its commands and ``advisor catalog build``, with clouds that answer over HTTP."""

import dataclasses
import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.clouds import aws_server, gcp_server, gcp_skus
from tests.clouds.aws_server import DENIED, DENIED_JSON, FakeAws
from tests.clouds.aws_world import shared_world, small_world
from tests.clouds.gcp_server import Behaviour
from tests.clouds.gcp_waits import waiting_by
from tests.end_to_end.cli import ALL_REGIONS, Answer, Shell, assert_plain_error
from tests.plugins import install_acme, write_acme_prices
from tests.shared import SHARED, needs_shared
from tests.web import served

DAILY = {"ADVISOR_PRICES__REFRESH": "daily", "ADVISOR_PRICES__REFRESH_WAIT": "2m"}
ENDPOINT = "CLOUDSDK_API_ENDPOINT_OVERRIDES_CLOUDBILLING"


@dataclass
class Clouds:
    """Two clouds and a shell that reaches them."""

    aws: FakeAws
    gcp: Behaviour
    shell: Shell
    environ: dict[str, str] = field(default_factory=dict)

    def run(self, *arguments: str, **environ: str) -> Answer:
        """``advisor ARGUMENTS`` with credentials for both."""
        return self.shell.run(*arguments, **(self.environ | environ))

    @property
    def database(self) -> Path:
        """Where the prices are kept."""
        return self.shell.folder / ".local/share/advisor/advisor.db"


@pytest.fixture
def clouds(tmp_path):
    """A small AWS and a small GCP."""
    with ExitStack() as stack:
        yield clouds_of(stack, tmp_path, small_world(), small_skus())


@pytest.fixture(scope="module")
def pulled(tmp_path_factory):
    """The same after a refresh, for tests that only read."""
    with ExitStack() as stack:
        clouds = clouds_of(stack, tmp_path_factory.mktemp("pulled"), small_world(), small_skus())
        assert clouds.run("prices", "refresh").code == 0
        yield clouds


def clouds_of(stack: ExitStack, folder: Path, world: Any, skus: list[dict[str, Any]]) -> Clouds:
    aws = stack.enter_context(aws_server.running(world))
    behaviour = Behaviour(skus=skus)
    gcp = stack.enter_context(gcp_server.serving(behaviour))
    environ = aws.environment() | {ENDPOINT: gcp.url, "COLUMNS": "160"}
    return Clouds(aws=aws, gcp=behaviour, shell=Shell(folder=folder), environ=environ)


def small_skus(gpu_usd: float = 2.933908) -> list[dict[str, Any]]:
    """All that a2-highgpu-1g costs in one region."""
    core = gcp_skus.sku("core", "A2 Instance Core running in Americas", ("us-central1",), 0.031611)
    ram = gcp_skus.sku(
        "ram", "A2 Instance Ram running in Americas", ("us-central1",), 0.004237, unit="GiBy.h"
    )
    gpu = gcp_skus.sku("gpu", "Nvidia Tesla A100 GPU running in Americas", ("us-central1",), gpu_usd)
    return [core, ram, gpu]


def offers(answer: Answer) -> dict[tuple[str, str, str], float]:
    return {
        (o["instance_type"], o["zone"] or o["region"], o["market"]): o["usd_per_h"]
        for o in answer.document["offers"]
    }


def sources(answer: Answer) -> dict[str, Any]:
    return {source["name"]: source for source in answer.document["sources"]}


# --- Refreshing and reading -------------------------------------------------------------------------


def test_live_prices_take_the_place_of_the_snapshot_where_they_were_pulled(clouds):
    before = offers(clouds.run("prices", "--all", "--json"))
    done = clouds.run("prices", "refresh", "--json")
    assert done.code == 0, done.err
    assert {part["source"] for part in done.document["parts"]} == {"aws", "gcp", "gpuhunt"}
    answer = clouds.run("prices", "--all", "--json")
    live = [o for o in answer.document["offers"] if o["source"].startswith(("AWS", "Cloud Billing"))]
    assert live
    assert all(o["retrieved_at"][:10] == f"{datetime.now(UTC):%Y-%m-%d}" for o in live)
    pulled = {(o["provider"], o["region"], o["market"]) for o in live}
    unpriced = {gap.split(":")[0] for part in done.document["parts"] for gap in part["gaps"]}
    older = [o for o in answer.document["offers"] if o not in live]
    stale = [o for o in older if f"{o['instance_type']} {o['region']} {o['market']}" in unpriced]
    here = [o for o in older if (o["provider"], o["region"], o["market"]) in pulled]
    assert all(offer in stale for offer in here)
    assert all(offer in answer.document["offers"] for offer in live)
    (no_price,) = [warning for warning in answer.document["warnings"] if "could not price" in warning]
    assert f"{len(stale)} stale prices" in no_price
    assert len(offers(answer)) < len(before) + len(live)


def test_the_table_says_where_from_and_when(pulled):
    limits = "--provider aws --region us-east-1 --market spot --sort age"
    answer = pulled.run("prices", *limits.split())
    assert answer.code == 0, answer.err
    lines = answer.out.splitlines()
    first = lines[next(i for i, line in enumerate(lines) if "───" in line) + 1]
    assert f"{datetime.now(UTC):%Y-%m-%d}" in first
    assert "AWS" in first


def test_sources_tell_age_gaps_and_credentials_but_no_secret(pulled):
    answer = pulled.run("prices", "sources", "--json")
    by_name = sources(answer)
    assert by_name["aws"]["is_live"]
    assert by_name["aws"]["offers"] > 0
    assert by_name["aws"]["credentials"] == "found"
    assert not by_name["snapshot"]["is_live"]
    assert by_name["snapshot"]["newest"].startswith("2026-08-03")
    table = pulled.run("prices", "sources")
    for secret in ("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI"):
        for shown_text in (answer, table):
            assert secret not in shown_text.out + shown_text.err
        assert secret.encode() not in pulled.database.read_bytes()


def test_only_the_source_asked_for_is_pulled(clouds):
    answer = clouds.run("prices", "refresh", "--source", "gcp", "--json")
    assert {part["source"] for part in answer.document["parts"]} == {"gcp"}
    assert clouds.aws.calls == []


def test_regions_narrow_what_is_asked(clouds):
    answer = clouds.run("prices", "refresh", "--source", "aws", "--region", "us-east-1", "--json")
    assert answer.code == 0, answer.err
    assert all(part["scope"].startswith("us-east-1") for part in answer.document["parts"])


def test_history_grows_only_when_a_price_changes(clouds):
    for usd in (2.933908, 2.933908, 3.5):
        clouds.gcp.skus = small_skus(usd)
        assert clouds.run("prices", "refresh", "--source", "gcp").code == 0
    command = ("prices", "history", "--gpu", "A100-SXM-40GB", "--provider", "gcp", "--region", "us-central1")
    lines = clouds.run(*command, "--json").document["series"]
    (series,) = [one for one in lines if one["instance_type"] == "a2-highgpu-1g"]
    assert [round(point["usd_per_h"], 4) for point in series["points"]] == [3.6734, 4.2395]
    table = clouds.run(*command)
    assert "a2-highgpu-1g" in table.out
    plot = clouds.run(*command, "--plot")
    assert plot.code == 0, plot.err
    assert "A gcp a2-highgpu-1g us-central1 on-demand, now 4.2395 USD/h" in plot.out
    assert "+-----" in plot.out


def test_check_finds_a_jump(clouds):
    clouds.run("prices", "refresh", "--source", "gcp")
    calm = clouds.run("prices", "check", "--provider", "gcp", "--region", "us-central1", "--json")
    assert not [one for one in calm.document["findings"] if one["doubt"] == "jump"]
    clouds.gcp.skus = small_skus(9.0)
    clouds.run("prices", "refresh", "--source", "gcp")
    answer = clouds.run("prices", "check", "--provider", "gcp", "--region", "us-central1", "--json")
    assert answer.code == 1
    jumps = [one for one in answer.document["findings"] if one["doubt"] == "jump"]
    assert ("a2-highgpu-1g", "us-central1") in {(jump["instance_type"], jump["place"]) for jump in jumps}


def test_a_snapshot_of_live_prices_serves_a_machine_without_a_network(clouds):
    clouds.run("prices", "refresh")
    live = offers(clouds.run("prices", "--all", "--json", "--provider", "gcp", "--region", "us-central1"))
    built = clouds.run("catalog", "build", "--out", "made", "--json")
    assert built.code == 0, built.err
    clouds.database.unlink()
    folder = str(clouds.shell.folder / "made")
    environ = {
        "ADVISOR_PRICES__OPTIONS": f"{{snapshot: {{folder: {folder}}}}}",
        "ADVISOR_PRICES__OFFLINE": "true",
    }
    dated = clouds.run("prices", "--all", "--json", "--provider", "gcp", "--region", "us-central1", **environ)
    key = ("a2-highgpu-1g", "us-central1", "on-demand")
    assert offers(dated)[key] == pytest.approx(live[key], abs=1e-6)
    assert any("not live" in warning for warning in dated.document["warnings"])


def test_recommend_pulls_what_is_due_once_a_day_and_never_offline(clouds, trace):
    command = ("recommend", str(trace), "--iterations", "100", "--json", "--gpu", "A100-SXM-40GB")
    offline = clouds.run(*command, "--offline")
    assert offline.code == 0, offline.err
    assert clouds.aws.calls == []
    assert clouds.gcp.calls == []
    assert not clouds.database.exists()
    first = clouds.run(*command, **DAILY)
    assert first.code == 0, first.err
    assert "prices of aws, gcp" in first.err
    calls = len(clouds.gcp.calls)
    days = {
        option["price_retrieved_at"][:10] for option in first.document["options"]
        if (option["instance_type"], option["region"], option["market"])
        == ("a2-highgpu-1g", "us-central1", "on-demand")
    }  # fmt: skip
    assert days <= {f"{datetime.now(UTC):%Y-%m-%d}"}
    clouds.run(*command, **DAILY)
    assert len(clouds.gcp.calls) == calls


@pytest.fixture
def trace(tmp_path):
    from advisor.formats.trace_files import write_trace
    from tests.builders import make_op, make_trace

    path = tmp_path / "small.json.gz"
    write_trace(make_trace(ops=(make_op("aten::mm", flops=10**12, num_bytes=10**9),)), path)
    return path


# --- Faults -----------------------------------------------------------------------------------------


def test_a_cloud_that_is_down_keeps_its_old_prices_and_the_rest_is_shown(clouds, monkeypatch):
    waiting_by(monkeypatch)
    clouds.run("prices", "refresh")
    held = offers(clouds.run("prices", "--all", "--json"))
    clouds.gcp.always = "500"
    answer = clouds.run("prices", "refresh", "--json")
    assert answer.code == 0, answer.err
    assert "gcp: compute engine not refreshed, older prices are kept" in answer.err
    assert offers(clouds.run("prices", "--all", "--json")) == held
    (gap,) = [
        g for g in sources(clouds.run("prices", "sources", "--json"))["gcp"]["gaps"] if "not refreshed" in g
    ]
    assert gap.startswith("compute engine: not refreshed on ")


def test_a_missing_permission_is_named_and_the_other_market_is_pulled(clouds):
    clouds.aws.fail("GetProducts", DENIED_JSON)
    answer = clouds.run("prices", "refresh", "--source", "aws", "--json")
    assert answer.code == 0, answer.err
    assert "pricing:GetProducts" in answer.err
    by_market = {part["scope"].split()[-1]: part["failure"] for part in answer.document["parts"]}
    assert by_market["spot"] is None
    assert by_market["on-demand"] is not None


def test_nothing_pulled_is_an_error_that_says_who_lacks_what(tmp_path):
    answer = Shell(folder=tmp_path).run(
        "prices", "refresh", "--source", "aws", AWS_EC2_METADATA_DISABLED="true",
        AWS_CONFIG_FILE="/dev/null", AWS_SHARED_CREDENTIALS_FILE="/dev/null",
        AWS_ACCESS_KEY_ID="", AWS_SECRET_ACCESS_KEY="",
    )  # fmt: skip
    assert_plain_error(answer, 1, "no price could be pulled", "credentials")


def test_a_snapshot_cannot_be_refreshed(tmp_path):
    answer = Shell(folder=tmp_path).run("prices", "refresh", "--source", "snapshot")
    assert_plain_error(answer, 2, "snapshot cannot be refreshed")


@pytest.mark.parametrize("command", [("history",), ("check",)])
def test_without_a_refresh_there_is_nothing_to_look_at(tmp_path, command):
    assert_plain_error(Shell(folder=tmp_path).run("prices", *command), 1, "advisor prices refresh")


def test_a_time_longer_than_all_times_is_all_that_is_remembered(clouds):
    answer = clouds.run("prices", "refresh", ADVISOR_STORE__RETENTION="9999999d")
    assert answer.code == 0, answer.err
    since = [clouds.run("prices", "history", "--json", "--since", ago) for ago in ("3650d", "9999999d")]
    assert since[1].code == 0, since[1].err
    assert since[1].document == since[0].document


def test_a_set_offline_refuses_to_refresh(tmp_path):
    answer = Shell(folder=tmp_path).run("prices", "refresh", ADVISOR_PRICES__OFFLINE="true")
    assert_plain_error(answer, 2, "prices.offline is set")


def test_stale_prices_are_an_error_on_request(clouds):
    clouds.run("prices", "refresh")
    limits = "--provider gcp --region us-central1 --gpu A100-SXM-40GB:1 --market on-demand"
    query = ("prices", *limits.split())
    assert clouds.run(*query, "--max-age", "1h").code == 0
    age_by(clouds.database, days=2)
    assert_plain_error(clouds.run(*query, "--max-age", "1d"), 1, "older than 1 d", "prices refresh")


def test_a_clock_that_is_a_day_behind_blames_the_clock_and_pulls_anew(clouds, trace):
    clouds.run("prices", "refresh")
    age_by(clouds.database, days=-1)
    answer = clouds.run("prices", "--json")
    assert any("check the clock" in warning for warning in answer.document["warnings"])
    calls = len(clouds.gcp.calls)
    clouds.run("recommend", str(trace), "--iterations", "100", **DAILY)
    assert len(clouds.gcp.calls) > calls


def age_by(database: Path, days: float) -> None:
    """Makes what is kept so many days older."""
    with sqlite3.connect(database) as connection:
        for table, column in (("offers", "retrieved_at"), ("pulls", "succeeded_at")):
            moved = f"UPDATE {table} SET {column} = datetime({column}, ?)"  # noqa: S608 - names of ours
            connection.execute(moved, (f"{-24 * days} hours",))


def test_a_damaged_database_is_one_line(clouds):
    clouds.database.parent.mkdir(parents=True)
    clouds.database.write_bytes(b"not a database at all" * 1000)
    assert_plain_error(clouds.run("prices"), 1, "advisor.db")


def test_a_damaged_database_keeps_no_recommendation_from_being_made(clouds, trace):
    clouds.database.parent.mkdir(parents=True)
    clouds.database.write_bytes(b"not a database at all" * 1000)
    answer = clouds.run("recommend", str(trace), "--iterations", "100", "--offline")
    assert answer.code == 0, answer.err
    assert "prices that were pulled cannot be read" in answer.err
    assert "prices are not live" in answer.err


def test_two_refreshes_at_once_are_one_and_killed_in_the_middle_the_old_prices_are_whole(clouds):
    clouds.run("prices", "refresh")
    held = offers(clouds.run("prices", "--all", "--json"))
    clouds.gcp.always = "slow"
    clouds.gcp.called.clear()
    command = [sys.executable, "-m", "advisor", "prices", "refresh", "--source", "gcp"]
    home = {"HOME": str(clouds.shell.folder), "XDG_DATA_HOME": str(clouds.shell.folder / ".local/share")}
    first = subprocess.Popen(
        command, env=os.environ | home | clouds.environ, stderr=subprocess.PIPE, text=True
    )
    try:
        assert first.stderr is not None
        assert "pulling prices of gcp" in first.stderr.readline()
        # The cloud was asked; it does not answer before the end of the test.
        assert clouds.gcp.called.wait(timeout=60)
        second = clouds.run("prices", "refresh", "--source", "aws")
        assert_plain_error(second, 1, "refresh of prices", "process ")
    finally:
        first.send_signal(signal.SIGKILL)
        first.wait()
        first.stderr.close()
    assert offers(clouds.run("prices", "--all", "--json")) == held


# --- Capacity ---------------------------------------------------------------------------------------


def test_scores_and_quotas_are_asked_of_aws(tmp_path):
    quotas = {"L-417A185B": 0.0, "L-DB2E81BA": 64.0}
    scores = (("us-east-1", "use1-az1", 3), ("us-east-1", "use1-az2", 9))
    world = dataclasses.replace(small_world(), quotas=quotas, scores=scores)
    with ExitStack() as stack:
        clouds = clouds_of(stack, tmp_path, world, [])
        command = ("prices", "capacity", "p5.48xlarge", "--region", "us-east-1")
        document = clouds.run(*command, "--json").document
        assert {tuple(quota["families"]): quota["num_vcpus"] for quota in document["quotas"]} == {
            ("g", "vt"): 64, ("p",): 0,
        }  # fmt: skip
        assert [score["score"] for score in document["scores"]] == [9, 3]
        assert "0 vCPU" in clouds.run(*command).out
        clouds.aws.fail("GetSpotPlacementScores", DENIED)
        partly = clouds.run(*command, "--json")
        assert partly.code == 0
        assert (partly.document["scores"], len(partly.document["quotas"])) == ([], 2)
        assert "ec2:GetSpotPlacementScores" in partly.err
        clouds.aws.fail("GetServiceQuota", DENIED_JSON)
        assert_plain_error(clouds.run(*command), 1, "servicequotas:GetServiceQuota")
        assert_plain_error(clouds.run(*command, ADVISOR_PRICES__OFFLINE="true"), 2, "prices.offline")
        assert_plain_error(clouds.run(*command[:-1], "us-*"), 2, "names in full")


# --- A plug-in, and the whole of both clouds --------------------------------------------------------


def test_a_strangers_source_is_seen_once_it_is_installed(tmp_path):
    machine = {
        "name": "a8",
        "gpu": "NVIDIA A100-SXM4-80GB",
        "gpus": 8,
        "usd_per_h": 9.6,
        "spot_usd_per_h": 4.1,
    }
    documents = tmp_path / "documents"
    documents.mkdir()
    write_acme_prices(documents, "north", machine, as_of=f"{datetime.now(UTC).isoformat()}")
    site = install_acme(tmp_path / "build")
    shell = Shell(folder=tmp_path, regions=ALL_REGIONS)
    with served(documents) as url:
        environ = {
            "PYTHONPATH": str(site),
            "ADVISOR_PRICES__OPTIONS": f"{{acme: {{url: {url}, regions: [north]}}}}",
        }
        done = shell.run_process("prices", "refresh", "--source", "acme", **environ)
        assert done.code == 0, done.err
    answer = shell.run_process("prices", "--provider", "acme", "--json", **environ)
    assert offers(answer) == {("a8", "north", "on-demand"): 9.6, ("a8", "north", "spot"): 4.1}
    assert sources(shell.run_process("prices", "sources", "--json", **environ))["acme"]["offers"] == 2


@needs_shared
@pytest.mark.shared
@pytest.mark.slow
def test_a_whole_refresh_of_both_clouds_is_right_to_the_cent(tmp_path):
    with ExitStack() as stack:
        skus = [*gcp_skus.skus(), *gcp_skus.planted()]
        clouds = clouds_of(stack, tmp_path, shared_world(SHARED / "prices"), skus)
        clouds.environ["ADVISOR_CLOUD__REGIONS"] = ALL_REGIONS
        done = clouds.run("prices", "refresh", "--source", "aws", "--source", "gcp", "--json")
        assert done.code == 0, done.err
        assert not [part for part in done.document["parts"] if part["failure"]]
        rows = offers(clouds.run("prices", "--all", "--json"))
        assert rows["a2-highgpu-1g", "us-central1", "on-demand"] == pytest.approx(3.673385, abs=1e-6)
        assert rows["a3-highgpu-8g", "us-central1", "on-demand"] == pytest.approx(88.49, abs=0.005)
        assert rows["p5.48xlarge", "us-east-1", "on-demand"] == 55.04
        assert rows["p4d.24xlarge", "us-east-1", "on-demand"] == pytest.approx(21.957642, abs=1e-6)
        gaps = sources(clouds.run("prices", "sources", "--json"))["gcp"]["gaps"]
        assert gaps
