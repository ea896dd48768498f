"""Fresh prices without an account, as a person types it: gpuhunt's catalogs behind HTTP."""

import shutil
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest

from advisor.formats.trace_files import write_trace
from advisor.pricing.refresh import under_way
from advisor.store.database import open_store
from tests.builders import make_op, make_trace
from tests.clouds.hostile_server import Handler, attacking
from tests.end_to_end.cli import ALL_REGIONS, Answer, Shell, assert_plain_error
from tests.gpuhunt_catalogs import item, publish
from tests.web import served

NOBODY = {
    "AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": "/dev/null",
    "AWS_SHARED_CREDENTIALS_FILE": "/dev/null", "AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "",
    "AWS_PROFILE": "", "GOOGLE_APPLICATION_CREDENTIALS": "/dev/null/none",
    "CLOUDSDK_API_ENDPOINT_OVERRIDES_CLOUDBILLING": "", "COLUMNS": "200",
}  # fmt: skip
TODAY = datetime.now(UTC)
L4 = {"gpu_name": "L4", "gpu_memory": 24.0}
H100 = {"gpu_name": "H100", "gpu_memory": 80.0, "gpu_count": 8}
AWS = {"provider": "aws", "location": "us-east-1"}
ROWS = {
    "aws": [
        item("p5.48xlarge", 55.04, **AWS, **H100),
        item("g6.xlarge", 0.8048, **AWS, **L4),
        item("g6.xlarge", 0.31, spot=True, **AWS, **L4),
    ],
    "gcp": [item("g2-standard-4", 0.7, provider="gcp", location="us-central1-a", **L4)],
    "lambdalabs": [item("gpu_8x_h100_sxm5", 23.9, **H100), item("gpu_1x_x9", gpu_name="X9")],
    "runpod": [item("NVIDIA L4", 0.4, provider="runpod", location="CA", **L4)],
}
# gpuhunt leaves files to the garbage collector, which then complains.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@dataclass
class Public:
    """A shell of somebody without any account, and what is published for everybody."""

    shell: Shell
    root: Path
    url: str

    def run(self, *arguments: str, **environ: str) -> Answer:
        """``advisor ARGUMENTS``."""
        return self.shell.run(*arguments, **(NOBODY | {"GPUHUNT_CATALOG_URL": self.url} | environ))

    @property
    def database(self) -> Path:
        """Where prices are kept."""
        return self.shell.folder / ".local/share/advisor/advisor.db"

    def fill(self, day: datetime = TODAY) -> None:
        """A catalog of each provider, of a day."""
        version = f"{day:%Y%m%d}-3"
        for provider, rows in ROWS.items():
            publish(self.root, provider, version, *rows)

    def offers(self, *arguments: str, **environ: str) -> dict[tuple[str, str, str], dict[str, Any]]:
        """Of ``advisor prices``, by provider, machine and market."""
        answer = self.run("prices", "--json", *arguments, **environ)
        assert answer.code == 0, answer.err
        return {(o["provider"], o["instance_type"], o["market"]): o for o in answer.document["offers"]}


@pytest.fixture
def public(tmp_path):
    root = tmp_path / "bucket"
    root.mkdir()
    with served(root) as url:
        service = Public(shell=Shell(folder=tmp_path), root=root, url=url)
        service.fill()
        yield service


@pytest.fixture
def trace(tmp_path):
    path = tmp_path / "small.json.gz"
    write_trace(make_trace(ops=(make_op("aten::mm", flops=10**15, num_bytes=10**9),)), path)
    return str(path)


def test_a_refresh_needs_no_account(public):
    answer = public.run("prices", "refresh", "--json")
    assert answer.code == 0, answer.err
    assert "no credentials found for aws, gcp: refreshing the sources that need none" in answer.err
    assert "not refreshed" not in answer.err
    parts = {(part["source"], part["scope"]): part["failure"] for part in answer.document["parts"]}
    assert parts == {("gpuhunt", "aws"): None, ("gpuhunt", "gcp"): None}
    rows = public.offers("--provider", "aws", "--region", "us-east-1", "--gpu", "L4:1")
    price = rows["aws", "g6.xlarge", "on-demand"]
    assert price["usd_per_h"] == 0.8048
    assert str(price["source"]).startswith("gpuhunt ")
    assert str(price["source"]).endswith(f"catalog {TODAY:%Y%m%d}-3")
    assert str(price["retrieved_at"]).startswith(f"{TODAY:%Y-%m-%d}")
    assert str(rows["aws", "g6.xlarge", "spot"]["source"]).endswith("cheapest zone")


def test_what_is_not_in_a_public_list_keeps_its_older_price(public):
    before = public.offers("--region", "us-east-1", "--market", "on-demand")
    public.run("prices", "refresh")
    after = public.offers("--region", "us-east-1", "--market", "on-demand")
    assert after.keys() == before.keys()
    changed = {key for key, offer in after.items() if offer["source"] != before[key]["source"]}
    assert changed == {("aws", "p5.48xlarge", "on-demand"), ("aws", "g6.xlarge", "on-demand")}


def test_sources_say_who_needs_no_credentials_and_how_old_each_is(public):
    public.run("prices", "refresh", "--region", "us-east-1")
    by_name = {one["name"]: one for one in public.run("prices", "sources", "--json").document["sources"]}
    names = list(by_name)
    assert names.index("aws") < names.index("gpuhunt") < names.index("snapshot")
    assert {name: one["credentials"] for name, one in by_name.items()} == {
        "custom": "not needed", "aws": "missing", "gcp": "missing",
        "gpuhunt": "not needed", "snapshot": "not needed",
    }  # fmt: skip
    assert by_name["gpuhunt"]["providers"] == ["aws", "gcp"]
    assert by_name["gpuhunt"]["newest"][:10] == f"{TODAY:%Y-%m-%d}"
    assert "not needed" in public.run("prices", "sources").out


# --- Other providers: one setting ---------------------------------------------------------------------


def test_one_setting_adds_a_provider(public):
    public.shell = replace(public.shell, regions=ALL_REGIONS)
    public.shell.write(".config/advisor/config.yaml", "cloud: {providers: [aws, gcp, lambda]}")
    answer = public.run("prices", "refresh", "--json")
    assert answer.code == 0, answer.err
    assert {part["scope"] for part in answer.document["parts"]} >= {"aws", "gcp", "lambda"}
    rows = public.offers("--gpu", "H100:8")
    price = rows["lambda", "gpu_8x_h100_sxm5", "on-demand"]
    assert (price["gpu"], price["usd_per_h"], price["minimum_billed_s"]) == ("H100-SXM-80GB", 23.9, 60.0)
    sources = public.run("prices", "sources", "--json").document["sources"]
    (gaps,) = [one["gaps"] for one in sources if one["name"] == "gpuhunt"]
    assert any("lambda X9 24 GB is not in the catalog, so no time can be predicted" in gap for gap in gaps)
    assert not [key for key in public.offers(ADVISOR_CLOUD__PROVIDERS="[aws, gcp]") if key[0] == "lambda"]


def test_a_provider_named_on_the_command_line_is_pulled_by_the_recommendation(public, trace):
    command = ("recommend", trace, "--iterations", "1000", "--json", "--provider", "lambda")
    answer = public.run(*command, **DAILY, ADVISOR_CLOUD__REGIONS=ALL_REGIONS)
    assert answer.code == 0, answer.err
    (option,) = [one for one in answer.document["options"] if one["provider"] == "lambda"]
    assert option["instance_type"] == "gpu_8x_h100_sxm5"
    assert option["price_retrieved_at"][:10] == f"{TODAY:%Y-%m-%d}"


def test_a_strangers_host_is_marked_wherever_it_is_shown(public, trace):
    everybody = {"ADVISOR_CLOUD__PROVIDERS": "[runpod]", "ADVISOR_CLOUD__REGIONS": ALL_REGIONS}
    public.run("prices", "refresh", **everybody)
    price = public.offers(**everybody)["runpod", "NVIDIA L4", "on-demand"]
    assert str(price["source"]).endswith("community host")
    answer = public.run("recommend", trace, "--iterations", "1000", "--json", "--offline", **everybody)
    (option,) = [one for one in answer.document["options"] if one["provider"] == "runpod"]
    assert any("community host: a third party's machine" in warning for warning in option["reasons"])


@pytest.mark.parametrize("name", ["lamda", "lambdalabs"])
def test_a_provider_that_nobody_knows_is_refused_with_near_names(public, name):
    answer = public.run("prices", ADVISOR_CLOUD__PROVIDERS=f"[aws, {name}]")
    assert_plain_error(answer, 2, f"there are no prices of provider {name!r}", "Did you mean 'lambda'?")
    assert "Known are aws, gcp; by name also azure, cloudrift, crusoe, daytona, digitalocean" in answer.err


def test_a_provider_that_was_not_pulled_yet_is_known(public):
    words = "there are no prices of provider 'lambda' yet: name it in the setting cloud.providers"
    assert_plain_error(public.run("prices", "--provider", "lambda"), 2, words)
    beside = public.run("prices", "--provider", "lambda", "--provider", "aws")
    assert (beside.code, words in beside.err) == (0, True)
    public.run("prices", "refresh")
    assert_plain_error(public.run("prices", "--provider", "lambda"), 2, words)


def test_a_project_that_nobody_trusts_adds_no_provider(public):
    public.shell.write(".advisor.yaml", "cloud: {providers: [aws, lambda]}")
    answer = public.run("prices", "refresh", "--json")
    assert "lambda" not in {part["scope"] for part in answer.document["parts"]}
    asked = public.run("prices")
    assert asked.code == 0, asked.err
    assert "'lambda'" in asked.err
    assert "a project that you do not trust adds no provider" in asked.err
    trusted = public.run("prices", "refresh", "--json", ADVISOR_TRUST_PROJECT="1")
    assert "lambda" in {part["scope"] for part in trusted.document["parts"]}


@pytest.mark.parametrize(
    "settings", ["prices: {options: {gpuhunt: {url: http://127.0.0.1:9}}}", "prices: {sources: [gpuhunt]}"]
)
def test_a_project_cannot_say_where_prices_are(public, settings):
    public.shell.write(".advisor.yaml", settings)
    answer = public.run("prices", "refresh", "--json", ADVISOR_PRICES__OPTIONS="{}")
    failures = [part["failure"] for part in answer.document["parts"] if part["source"] == "gpuhunt"]
    assert failures == [None, None]
    assert ".advisor.yaml" in answer.err


# --- The pull of a day --------------------------------------------------------------------------------

DAILY = {"ADVISOR_PRICES__REFRESH": "daily", "ADVISOR_PRICES__REFRESH_WAIT": "2m"}


@dataclass
class Counted:
    """Serves a folder, counts what it is asked, and stalls in the middle of the files of one provider."""

    root: Path
    stalls: str = "nobody"
    asked: list[str] = field(default_factory=list)

    def __call__(self, call: Handler) -> None:
        self.asked.append(call.path)
        body = (self.root / call.path[1:]).read_bytes()
        if f"/{self.stalls}/" not in call.path:
            return call.reply(body)
        call.head(Content_Length=str(len(body)))
        call.wfile.write(body[: len(body) // 2])
        call.wfile.flush()
        call.server.stopped.wait()
        return None


def days_of(answer: Answer) -> dict[str, set[str]]:
    """Days of the prices of the options, by provider."""
    assert answer.code == 0, answer.err
    days: dict[str, set[str]] = {}
    for option in answer.document["options"]:
        days.setdefault(option["provider"], set()).add(option["price_retrieved_at"][:10])
    return days


def until_pulled(public: Public) -> None:
    """Waits for the process that pulls, which has outlived its command."""
    deadline_s = monotonic() + 100
    with open_store(f"sqlite:///{public.database}") as store:
        while under_way(store, ["gpuhunt"]):
            assert monotonic() < deadline_s
            sleep(0.05)


def test_the_first_command_of_a_day_pulls_and_no_other(public, trace):
    command = ("recommend", trace, "--iterations", "1000", "--json", "--gpu", "L4:1")
    asked = Counted(public.root)
    with attacking(asked) as url:
        there = DAILY | {"GPUHUNT_CATALOG_URL": url}
        first = public.run(*command, **there)
        num_asked = len(asked.asked)
        second = public.run(*command, **there)
        third = public.run("prices", **there)
    assert f"{TODAY:%Y-%m-%d}" in days_of(first)["aws"]
    (line,) = [line for line in first.err.splitlines() if "pulled" in line]
    assert line == "note: pulled 4 prices of gpuhunt"
    assert num_asked == len(asked.asked) == 4
    assert days_of(second) == days_of(first)
    assert "pulled" not in second.err + third.err


@pytest.mark.parametrize(
    "command", ["prices", "compare TRACE g6.xlarge p5.48xlarge --iterations 9", "recommend TRACE --epochs 1"]
)
def test_each_command_that_needs_prices_pulls(public, trace, command):
    words = command.replace("TRACE", trace).split()
    assert "note: pulled 4 prices of gpuhunt" in public.run(*words, **DAILY).err


@pytest.mark.parametrize(
    ("setting", "value"), [("REFRESH", "auto"), ("REFRESH", "never"), ("OFFLINE", "true")]
)
def test_what_forbids_a_pull_opens_no_socket_and_starts_nothing(public, trace, setting, value):
    """The variable CI is set in all tests, and `auto` obeys it."""
    with hearing("socket.connect", "socket.getaddrinfo", "subprocess.Popen", "os.posix_spawn") as heard:
        answer = public.run("recommend", trace, "--iterations", "1000", **DAILY | {
            f"ADVISOR_PRICES__{setting}": value
        })  # fmt: skip
    assert answer.code == 0, answer.err
    assert heard == []
    assert not public.database.exists()
    (line,) = [line for line in answer.err.splitlines() if "not live" in line]
    assert "days old" in line
    assert line.endswith("; `advisor prices refresh` pulls newer ones and needs no account")


def test_a_network_that_stalls_holds_nothing_up_and_makes_nothing_look_fresh(public, trace):
    command = ("recommend", trace, "--iterations", "1000", "--json", "--gpu", "L4:1")
    asked = Counted(public.root, stalls="aws")
    with attacking(asked) as url:
        there = DAILY | {
            "GPUHUNT_CATALOG_URL": url, "ADVISOR_PRICES__REFRESH_WAIT": "1s",
            "ADVISOR_PRICES__REFRESH_WITHIN": "20s",
        }  # fmt: skip
        first = public.run(*command, **there)
        assert "gpuhunt did not answer within 1 s: the pull goes on for the next command" in first.err
        second = public.run(*command, **there)
        assert "did not answer" not in second.err, "it waits no second time"
        until_pulled(public)
        third = public.run(*command, **there)
    today = f"{TODAY:%Y-%m-%d}"
    for answer in (first, second, third):
        assert all(day < today for day in days_of(answer)["aws"])
        assert "not live: " in answer.err
    assert today in days_of(third)["gcp"], "what came goes into the next answer"
    assert len(asked.asked) == 3, "one pull: of aws a version that stalls, of gcp both files"


def test_a_pull_outlives_its_command(public):
    later = DAILY | {"ADVISOR_PRICES__REFRESH_WAIT": "0s", "GPUHUNT_CATALOG_URL": public.url}
    assert public.shell.run_process("prices", **NOBODY | later).code == 0
    until_pulled(public)
    assert public.offers()["aws", "g6.xlarge", "on-demand"]["usd_per_h"] == 0.8048


@pytest.mark.parametrize("url", ["http://127.0.0.1:9", "http://nothing.invalid"])
def test_a_network_that_refuses_costs_one_line_and_is_remembered(public, url):
    first = public.run("prices", GPUHUNT_CATALOG_URL=url, **DAILY)
    (line,) = [line for line in first.err.splitlines() if "not refreshed" in line]
    assert "gpuhunt: " in line
    assert "(and 1 more: `advisor prices sources`)" in line
    with hearing("subprocess.Popen", "os.posix_spawn") as heard:
        second = public.run("prices", GPUHUNT_CATALOG_URL=url, **DAILY)
    assert (second.code, heard) == (0, [])
    assert "not refreshed" not in second.err


def test_two_commands_at_once_pull_once(public):
    asked = Counted(public.root)
    with attacking(asked) as url, ThreadPoolExecutor() as threads:
        there = NOBODY | DAILY | {"GPUHUNT_CATALOG_URL": url}
        running = [threads.submit(public.shell.run_process, "prices", "--json", **there) for _ in range(2)]
        assert [one.result().code for one in running] == [0, 0]
    assert len(asked.asked) == 4


_HEARD: list[tuple[tuple[str, ...], list[str]]] = []


@cache
def _hook() -> None:
    """Python removes no hook: one serves all tests."""

    def hear(event: str, _: object) -> None:
        for names, heard in _HEARD:
            if event in names:
                heard.append(event)

    sys.addaudithook(hear)


@contextmanager
def hearing(*names: str) -> Iterator[list[str]]:
    """Events of Python meanwhile."""
    _hook()
    heard: list[str] = []
    _HEARD.append((names, heard))
    try:
        yield heard
    finally:
        _HEARD.clear()


# --- Trouble ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("trouble", "words"),
    [
        (lambda root: shutil.rmtree(root / "aws"), "has no such file (404)"),
        (lambda root: (root / "aws/version").write_text("soon"), "which names no day"),
        (
            lambda root: [path.write_bytes(b"PK\x03\x04") for path in root.glob("aws/*/catalog.zip")],
            "its archive cannot be unpacked",
        ),
    ],
)
def test_trouble_is_one_line_and_older_prices_stay_as_old_as_they_are(public, trouble, words):
    public.fill(TODAY - timedelta(days=3))
    public.run("prices", "refresh")
    held = public.offers()
    assert callable(trouble)
    trouble(public.root)
    answer = public.run("prices", "refresh")
    assert answer.code == 0, "gcp came"
    (line,) = [line for line in answer.err.splitlines() if "not refreshed" in line]
    assert "gpuhunt: aws not refreshed, older prices are kept: gpuhunt's catalog of aws: " in line
    assert words in line
    assert public.offers() == held


def test_without_a_network_nothing_changes_and_each_source_says_why(public):
    answer = public.run("prices", "refresh", GPUHUNT_CATALOG_URL="http://nothing.invalid")
    lines = [line for line in answer.err.splitlines() if "not refreshed" in line]
    assert len(lines) == 2
    assert all("the name nothing.invalid cannot be looked up: no network" in line for line in lines)
    assert_plain_error(answer, 1, "no price could be pulled, and stored prices are unchanged")


def test_a_provider_that_cannot_be_pulled_is_told_beside_what_there_is(public, trace):
    everybody = {"GPUHUNT_CATALOG_URL": "http://127.0.0.1:9"} | DAILY
    command = ("recommend", trace, "--iterations", "1000")
    alone = public.run(*command, "--provider", "lambda", **everybody)
    assert "not refreshed" in alone.err
    assert_plain_error(alone, 2, "there are no prices of provider 'lambda' yet")
    others = public.run(*command, "--provider", "aws", "--provider", "lambda", **everybody)
    assert others.code == 0, others.err
