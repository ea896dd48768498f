"""``advisor serve`` beside the commands whose answers it gives, and how it begins, fails and ends."""

import asyncio
import gc
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import jsonschema
import pytest

from advisor.config.layers import load_config
from advisor.core.errors import InputError, StoreError
from advisor.serve import site as site_module
from advisor.serve.access import Access
from advisor.serve.hosting import Beside, Hosting, host
from advisor.serve.views import Reader, api_document, views_of
from advisor.service.schedule.running import Stop
from advisor.store import schema
from advisor.store.database import open_store
from advisor.store.pulls import save_part
from tests.builders import make_offer
from tests.end_to_end.cli import Shell, assert_plain_error
from tests.jobs import csv_of, make_job
from tests.programs import write_program
from tests.serving import TOKEN, fill, served

SETTINGS = {"cloud.regions": ["us-east-1", "us-central1"], "local.cpu": False}
# Below /api, and the command with the same answer.
COMMANDS = {
    "/runs?since=30d": ("run", "list", "--since", "30d"),
    "/report?since=30d": ("report", "--since", "30d"),
    "/report?since=7d&project=train.py": ("report", "--since", "7d", "--project", "train.py"),
    "/prices?gpu=L4": ("prices", "history", "--gpu", "L4", "--since", "30d"),
    "/queue?cluster=lab": ("queue", "show", "jobs.csv"),
    "/schedules": ("schedule", "list"),
    "/schedules/nightly": ("schedule", "show", "nightly"),
}
ALL = ("/jobs", "/jobs?most=1&project=train.py", "/jobs/one", "/sweeps", *COMMANDS)


@pytest.fixture(scope="module")
def shell(tmp_path_factory):
    """A folder with jobs, runs, prices, a queue's log and two schedules."""
    shell = Shell(folder=tmp_path_factory.mktemp("serve"))
    fill(url_of(shell), at=datetime.now(UTC) - timedelta(days=1))
    at = datetime.now(UTC) - timedelta(days=5)
    offer = make_offer("L4", 2.0, instance_type="g6.xlarge", retrieved_at=at)
    with open_store(url_of(shell)) as store:
        save_part(store, "aws", "all", [offer], (), (), at)
    shell.write("jobs.csv", csv_of([make_job(20 * i, size=1, wait_s=60.0) for i in range(300)]))
    shell.write("grid.yaml", "subjects: [t.json]\n")
    for name, words in (("nightly", ("prices", "refresh")), ("fleet", ("sweep", "grid.yaml"))):
        added = shell.run("schedule", "add", "0 2 * * *", "--name", name, "--", *words)
        assert added.code == 0, added
    return shell


@pytest.fixture(scope="module")
def site(shell):
    cluster = {
        "name": "lab",
        "gpu": "V100-PCIE-32GB",
        "num_gpus": 4,
        "wait_log": str(shell.folder / "jobs.csv"),
    }
    with served(url_of(shell), SETTINGS | {"clusters": [cluster]}) as site:
        yield site


def url_of(shell: Shell) -> str:
    folder = shell.folder / ".local/share/advisor"
    folder.mkdir(parents=True, exist_ok=True)
    return f"sqlite:///{folder}/advisor.db"


def steady(value: Any) -> Any:
    """Without what moves as time goes by."""
    if isinstance(value, dict):
        return {name: steady(one) for name, one in value.items() if name not in ("since", "until")}
    if isinstance(value, list):
        return [steady(one) for one in value]
    return f"{value:.3g}" if isinstance(value, float) else value


@pytest.mark.parametrize("path", COMMANDS)
def test_the_api_answers_what_the_command_prints(shell, site, path):
    printed = shell.run(*COMMANDS[path], "--json")
    status, headers, body = site.get(f"/api{path}")
    assert (status, headers["content-type"]) == (200, "application/json"), body
    assert steady(json.loads(body)) == steady(printed.document)


@pytest.mark.parametrize("path", ALL)
def test_every_answer_is_as_openapi_says(site, path):
    document = json.loads(site.get("/api/openapi.json")[2])
    name = re.sub(r"^/(jobs|schedules)/\w+$", r"/\1/{name}", path.partition("?")[0])
    answers = document["paths"][f"/api{name}"]["get"]["responses"]
    for asked, expected in ((path, 200), (f"{path}{'&' if '?' in path else '?'}none=1", 400)):
        status, _, body = site.get(f"/api{asked}")
        assert status == expected, body
        schema = answers[str(status)]["content"]["application/json"]["schema"]
        jsonschema.validate(json.loads(body), {**schema, "components": document["components"]})
    assert site.get(path)[0] == 200
    assert site.get(path, method="HEAD")[2] == b""


def test_openapi_names_every_view_and_parameter(shell, site):
    document = json.loads(site.get("/api/openapi.json")[2])
    views = views_of(Reader(None))  # type: ignore[arg-type]
    assert document["paths"].keys() == {f"/api{view.path}" for view in views}
    assert document == json.loads(json.dumps(api_document(views))) | {
        "schema_version": document["schema_version"]
    }
    (since,) = (one for one in document["paths"]["/api/runs"]["get"]["parameters"] if one["name"] == "since")
    assert since["schema"]["default"] == "30d"


def test_what_is_not_there_is_404(site):
    for path in ("/jobs/none", "/schedules/none", "/queue?cluster=none", "/none"):
        for prefix in ("", "/api"):
            status, _, body = site.get(f"{prefix}{path}")
            assert status == 404, path
            assert b"raceback" not in body


def test_metrics_are_what_prometheus_reads(site):
    site.get("/api/jobs")
    lines = site.get("/metrics")[2].decode().splitlines()
    assert all(
        line.startswith("# TYPE") or re.fullmatch(r'\w+(\{\w+="[^"]*"(,\w+="[^"]*")*\})? [\d.e+-]+', line)
        for line in lines
    )
    assert "advisor_store_up 1" in lines
    assert any(
        re.match(r'advisor_price_age_seconds\{source="aws",scope="\w+"\} 4\d{5}$', line) for line in lines
    )
    assert any(line.startswith('advisor_requests_total{path="/api/jobs",status="200"} ') for line in lines)


def test_a_store_that_goes_away_is_said_and_comes_back(tmp_path, monkeypatch):
    monkeypatch.setattr(site_module, "FRESH_S", 0.0)
    path, elsewhere = tmp_path / "s.db", tmp_path / "moved.db"
    fill(f"sqlite:///{path}")
    with served(f"sqlite:///{path}") as site:
        assert [site.get(one)[0] for one in ("/healthz", "/jobs", "/api/runs")] == [200, 200, 200]
        path.rename(elsewhere)
        path.with_name("s.db-wal").unlink(missing_ok=True)
        assert [site.get(one)[0] for one in ("/healthz", "/jobs", "/api/runs")] == [503, 503, 503]
        assert "the database is gone" in json.loads(site.get("/api/jobs")[2])["error"]
        assert "advisor_store_up 0" in site.get("/metrics")[2].decode()
        path.write_text("no database")
        assert site.get("/api/jobs")[0] == 503
        assert (
            site.get("/healthz")[2]
            == b'{\n  "schema_version": "2.2.0",\n  "status": "the database cannot be read"\n}'
        )
        path.unlink()
        elsewhere.rename(path)
        assert [site.get(one)[0] for one in ("/healthz", "/jobs", "/api/runs")] == [200, 200, 200]


def test_many_readers_cost_one_and_the_answer_before_is_given_meanwhile():
    """On a clock of the test's own; making waits until it is told."""
    now, made, may = [0.0], [], threading.Event()
    may.set()

    def make() -> bytes:
        assert may.wait(60)
        made.append(now[0])
        return str(len(made)).encode()

    async def ask() -> None:
        answers = site_module.Answers(lambda: now[0])
        assert await asyncio.gather(*(answers.of("a", make) for _ in range(20))) == [b"1"] * 20
        now[0] = site_module.FRESH_S
        may.clear()
        assert await asyncio.gather(*(answers.of("a", make) for _ in range(20))) == [b"1"] * 20
        may.set()
        while await answers.of("a", make) == b"1":
            await asyncio.sleep(0)
        # What is too old is not given any more.
        now[0] = 10 * site_module.FRESH_S
        assert await answers.of("a", make) == b"3"
        for i in range(1000):
            await answers.of(i, make)
        assert len(answers._kept) <= 256

    asyncio.run(ask())


def test_an_old_answer_is_not_given_while_a_new_one_takes_long():
    now, may = [0.0], threading.Event()

    def make() -> bytes:
        assert may.wait(60)
        return str(now[0]).encode()

    async def ask() -> None:
        answers = site_module.Answers(lambda: now[0])
        may.set()
        assert await answers.of("a", make) == b"0.0"
        may.clear()
        now[0] = 2 * site_module.FRESH_S
        assert await answers.of("a", make) == b"0.0"
        now[0] = 3 * site_module.FRESH_S
        waits = asyncio.ensure_future(answers.of("a", make))
        await asyncio.sleep(0)
        may.set()
        assert await waits == b"30.0"

    asyncio.run(ask())


def test_not_more_wait_than_can_be_answered_and_none_at_the_end():
    begun, may = [], threading.Event()

    def make() -> bytes:
        begun.append(1)
        assert may.wait(60)
        return b""

    async def ask() -> None:
        answers = site_module.Answers()
        waiting = [asyncio.ensure_future(answers.of(i, make)) for i in range(32)]
        await asyncio.sleep(0)
        with pytest.raises(site_module.BusyError, match="ask again in a moment"):
            await answers.of("one more", make)
        answers.close()
        assert {type(one) for one in await asyncio.gather(*waiting, return_exceptions=True)} == {
            asyncio.CancelledError
        }

    asyncio.run(ask())
    may.set()
    assert len(begun) <= 2


def test_a_failure_that_nobody_hears_of_is_no_stack_in_the_log():
    told: list[object] = []

    def fail() -> bytes:
        raise StoreError("gone")

    async def ask() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
        answers = site_module.Answers()
        asker = asyncio.ensure_future(answers.of("a", fail))
        await asyncio.sleep(0)
        asker.cancel()
        while answers._making:
            await asyncio.sleep(0)
        del answers
        gc.collect()

    asyncio.run(ask())
    assert told == []


def test_health_does_not_wait_behind_reports(shell, monkeypatch):
    may, num = threading.Event(), threading.Semaphore(0)

    def wait(*_: object) -> None:
        num.release()
        assert may.wait(60)
        raise InputError("enough")

    monkeypatch.setattr(site_module, "read_query", wait)
    with served(url_of(shell)) as site:
        askers = [threading.Thread(target=site.get, args=(path,)) for path in ("/jobs", "/runs")]
        for asker in askers:
            asker.start()
            assert num.acquire(timeout=60)
        try:
            assert [site.get(path)[0] for path in ("/healthz", "/metrics")] == [200, 200]
        finally:
            may.set()
            for asker in askers:
                asker.join()


@pytest.mark.parametrize("begin", ["", "GET /heal", "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\nGET /"])
def test_who_does_not_ask_is_cut_off(shell, monkeypatch, begin):
    monkeypatch.setattr(site_module, "PATIENCE_S", 0.2)
    with served(url_of(shell)) as site:
        assert b"405" not in site.raw(begin.encode())  # whatever is answered, it ends


def test_what_runs_beside_it_ends_it_by_any_failure(shell):
    told: list[BaseException] = []

    def fail() -> None:
        raise RuntimeError("a mistake")

    def run() -> None:
        config = load_config({"store.url": url_of(shell)}, environ={})
        try:
            host(Reader(config), Hosting(port=0), lambda _: None, Beside(fail, lambda: None))
        except RuntimeError as error:
            told.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(60)
    assert [str(error) for error in told] == ["a mistake"]


def test_the_second_signal_reaches_what_runs_beside_it():
    stop = Stop()
    server = site_module.server_of(Reader(None), Access(), stop)  # type: ignore[arg-type]
    server.handle_exit(signal.SIGINT, None)
    assert (stop.is_asked, stop.is_hurried, server.force_exit) == (True, False, False)
    server.handle_exit(signal.SIGINT, None)
    assert (stop.is_hurried, server.force_exit) == (True, True)


def test_nothing_is_written(shell, site):
    """Every page asked for, the store holds what it held."""

    def held() -> object:
        with open_store(url_of(shell)) as store, store.engine.connect() as connection:
            return [connection.execute(one.select()).all() for one in schema.metadata.sorted_tables]

    before = held()
    for path in ALL:
        site.get(path)
    assert held() == before


def test_a_request_starts_no_program(site, monkeypatch):
    """Charts included: their script was made when the service began."""
    started: list[object] = []
    monkeypatch.setattr(subprocess, "Popen", lambda *words, **_: started.append(words))
    for path in ("/jobs/two", "/report?since=29d", "/prices?since=29d"):
        status, _, page = site.get(path)
        assert status == 200
        assert b'class="spec"' in page
    assert started == []


WRONG = [
    (("--address", "192.0.2.1"), "so say who may read"),
    (("--address", "everywhere"), "write an address (127.0.0.1)"),
    (("--address", "203.0.113.9", "--token", "env:T"), "cannot listen on 203.0.113.9 port"),
    (("--token", TOKEN), "--token is env:NAME or file:PATH"),
    (("--token", "env:NOT_SET"), "the variable NOT_SET is not set"),
    (("--token", "env:SHORT"), "at least 16 letters and digits"),
    (("--token", "file:open"), "chmod 600"),
    (("--token", "file:missing"), "cannot read the secret file"),
    (("--proxy", "proxy.example"), "a network (10.0.0.0/24)"),
    (("--proxy", "10.0.0.1", "--user-header", "Host"), "names no header"),
    *(
        (("--proxy", "10.0.0.1", "--user-header", header), "names no header of a user")
        for header in (
            "X-Forwarded-For",
            "Via",
            "Connection",
            "Cookie",
            "Authorization",
            "Accept",
            "Sec-Fetch-Site",
        )
    ),
    (("--name", "gpu.example.org:8321"), "write a host's name alone"),
    (("--name", "https://gpu.example.org"), "write a host's name alone"),
    (("--proxy", "10.0.0.1", "--user-header", "a: b\r\nc"), "names no header"),
]


@pytest.mark.parametrize(("words", "why"), WRONG)
def test_a_wrong_beginning_says_what_to_do(shell, words, why):
    shell.write("open", TOKEN).chmod(0o644)
    answer = shell.run("serve", *words, T=TOKEN, SHORT="abc")
    assert_plain_error(answer, 2, why)
    assert TOKEN not in answer.err


def test_a_port_in_use_and_a_missing_store_are_said(shell, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as other:
        answer = shell.run("serve", "--port", str(other.getsockname()[1]))
    assert_plain_error(answer, 2, "another program listens there. Choose another --port")
    empty = Shell(folder=tmp_path)
    assert_plain_error(empty.run("serve"), 2, "there is no database to show yet")
    assert not (tmp_path / ".local").exists()


def test_without_the_extra_its_name_is_said(shell, monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    monkeypatch.delitem(sys.modules, "advisor.serve.site")
    assert_plain_error(shell.run("serve"), 2, "pip install 'gpu-advisor[serve]'")


def test_it_serves_and_schedules_in_one_process_until_it_is_asked_to_end(tmp_path):
    shell = Shell(folder=tmp_path)
    process = shell.start("serve", "--port", "0", "--schedule", stderr=subprocess.PIPE)
    try:
        assert process.stderr is not None
        lines = [process.stderr.readline(), process.stderr.readline()]
        (address,) = re.findall(r"http://127.0.0.1:(\d+)/", "".join(lines))
        assert any("runs the schedules of" in line for line in lines)
        with socket.create_connection(("127.0.0.1", int(address)), timeout=60) as connection:
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            assert connection.recv(100).startswith(b"HTTP/1.1 200")
        process.send_signal(signal.SIGTERM)
        rest = process.communicate(timeout=60)[1]
    finally:
        process.kill()
    assert process.returncode == 0, rest
    assert "ended" in rest
    assert "Traceback" not in rest


def test_install_writes_a_unit_without_secrets(shell):
    fake = write_program(shell.folder / "bin/systemctl", 'echo "$@" >> "$HOME/calls"')
    shell.write("token", TOKEN).chmod(0o600)
    words = ("--token", "file:token", "--name", "gpu.example", "--schedule", "--install")
    answer = shell.run("serve", *words, PATH=f"{fake.parent}:{os.environ['PATH']}")
    assert answer.code == 0, answer.err
    unit = (shell.folder / ".config/systemd/user/advisor-serve.service").read_text()
    options = f"--token file:{shell.folder}/token --name gpu.example --schedule"
    assert f"-m advisor serve --address 127.0.0.1 --port 8321 {options}\n" in unit
    assert TOKEN not in unit
    assert "--user restart advisor-serve.service" in (shell.folder / "calls").read_text()
