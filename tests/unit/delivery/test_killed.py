"""kill -9 in the middle of a send: whoever sends next sends once, or says that it may have been sent."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from advisor.delivery.channels import local
from advisor.delivery.posting import Clock, Delivery, Outcome, Post
from advisor.store.database import open_store
from tests.delivery import http_server, mail_server
from tests.delivery.http_server import HttpServer, Reply, Request
from tests.delivery.mail_server import PASSWORD, USER, MailServer
from tests.delivery.parts import MAIL, channel_of, make_message
from tests.waiting import wait_for

pytestmark = pytest.mark.filterwarnings("ignore:Requiring AUTH while not requiring TLS:UserWarning")
# Not forked from us: our threads and servers are not theirs.
SERVED = multiprocessing.get_context("forkserver")
SERVED.set_forkserver_preload([__name__])
WAIT_S = 30


def post(url: str, settings: dict[str, Any], environ: dict[str, str]) -> Delivery:
    """What `advisor ... --to` does, without the command line."""
    with open_store(url) as store:
        channel = channel_of(settings, **environ)
        return Post(store=store, total_s=300, clock=Clock()).send("team", channel, make_message(), "week-47")


def post_in_child(there: Connection, url: str, settings: dict[str, Any], environ: dict[str, str]) -> None:
    there.send("up")
    there.send(post(url, settings, environ).outcome)


def post_at_once(there: Connection, gate: Any, *arguments: Any) -> None:
    there.send("up")
    gate.wait(WAIT_S)
    there.send(post(*arguments).outcome)


def write_never(*_: Any, **__: Any) -> None:
    Path("stopped").touch()
    threading.Event().wait()


def post_and_stop_at_the_file(there: Connection, folder: str, *arguments: Any) -> None:
    local.write_atomically = write_never  # type: ignore[attr-defined]
    os.chdir(folder)
    post_in_child(there, *arguments)


def killed(work: Callable[..., None], reached: Callable[[], bool], *arguments: Any) -> None:
    """Start a process, kill it when it has come so far."""
    here, there = SERVED.Pipe()
    process = SERVED.Process(target=work, args=(there, *arguments))
    process.start()
    there.close()
    assert here.poll(WAIT_S)
    wait_for(reached, WAIT_S)
    process.kill()
    process.join(WAIT_S)
    assert process.exitcode == -signal.SIGKILL


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path}/advisor.db"


@pytest.fixture
def mail():
    with mail_server.serving() as server:
        yield server


def settings_of(mail: MailServer) -> dict[str, Any]:
    login = {"user": USER, "password": "env:P", "security": "none", "port": mail.port}
    return MAIL | login


@pytest.mark.parametrize(("command", "num_kills"), [("EHLO", 1), ("MAIL", 1), ("RCPT", 3)])
def test_before_the_data_the_next_one_sends_it_once(mail, url, command, num_kills):
    for _ in range(num_kills):
        mail.stop_at, mail.asked[:] = command, []
        killed(post_in_child, lambda: command in mail.asked, url, settings_of(mail), {"P": PASSWORD})
    mail.stop_at = ""
    sent = [post(url, settings_of(mail), {"P": PASSWORD}).outcome for _ in range(2)]
    assert sent == [Outcome.SENT, Outcome.SENT_BEFORE]
    assert len(mail.taken) == 1


def test_after_the_data_it_may_have_been_sent_and_is_not_repeated(mail, url):
    mail.stop_at = "DATA"
    killed(post_in_child, lambda: bool(mail.taken), url, settings_of(mail), {"P": PASSWORD})
    mail.stop_at = ""
    for _ in range(3):
        delivery = post(url, settings_of(mail), {"P": PASSWORD})
        assert (delivery.outcome, delivery.is_there) == (Outcome.PERHAPS, False)
    assert len(mail.taken) == 1
    (message_id,) = {mail["Message-ID"] for mail in mail.mails}
    assert message_id.endswith("@example.org>")


class Receiver:
    """A webhook that keeps each key once, and stops before it answers."""

    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}
        self.stops = True

    def take(self, request: Request) -> Reply:
        self.kept.setdefault(request.headers["Idempotency-Key"], request.body)
        return Reply(hangs=self.stops)


def test_a_webhook_that_knows_repeats_gets_it_again_and_keeps_it_once(url):
    receiver = Receiver()
    with http_server.serving(HttpServer(rule=receiver.take)) as server:
        settings = {"kind": "webhook", "url": server.url}
        for number in range(3):
            killed(post_in_child, lambda n=number: len(server.requests) > n, url, settings, {})
        receiver.stops = False
        delivery = post(url, settings, {})
        assert (delivery.outcome, delivery.is_resumed) == (Outcome.SENT, True)
        assert post(url, settings, {}).outcome is Outcome.SENT_BEFORE
        assert len({request.body for request in server.requests}) == len(receiver.kept) == 1


def test_slack_is_left_alone_after_its_body_was_on_the_way(url):
    with http_server.serving(HttpServer(rule=lambda _: Reply(hangs=True))) as server:
        settings, environ = {"kind": "slack", "url": "env:U"}, {"U": server.url}
        killed(post_in_child, lambda: bool(server.requests), url, settings, environ)
        assert post(url, settings, environ).outcome is Outcome.PERHAPS
        assert len(server.requests) == 1


def test_a_file_is_written_whole_by_the_next_one(tmp_path, url):
    settings = {"kind": "file", "path": str(tmp_path / "{date}.md")}
    stopped = tmp_path / "stopped"
    killed(post_and_stop_at_the_file, stopped.exists, str(tmp_path), url, settings, {})
    delivery = post(url, settings, {})
    assert (delivery.outcome, delivery.is_resumed) == (Outcome.SENT, True)
    (written,) = tmp_path.glob("*.md")
    assert written.read_text() == "# Page\n"


def test_of_two_processes_at_once_one_sends(mail, url):
    """The other one says who is at it, and later that it was sent."""
    mail.stop_at = "RCPT"
    here, there = SERVED.Pipe()
    process = SERVED.Process(target=post_in_child, args=(there, url, settings_of(mail), {"P": PASSWORD}))
    process.start()
    assert here.poll(WAIT_S)
    wait_for(lambda: "RCPT" in mail.asked, WAIT_S)
    assert post(url, settings_of(mail), {"P": PASSWORD}).outcome is Outcome.BUSY
    process.kill()
    process.join(WAIT_S)
    mail.stop_at = ""
    assert post(url, settings_of(mail), {"P": PASSWORD}).outcome is Outcome.SENT
    assert len(mail.taken) == 1


def test_of_many_that_begin_at_one_moment_one_sends(url):
    """Slack cannot tell repeats: the outbox has to."""
    gate = SERVED.Event()
    with http_server.serving() as server:
        arguments = url, {"kind": "slack", "url": "env:U"}, {"U": server.url}
        pipes = [SERVED.Pipe() for _ in range(6)]
        children = [SERVED.Process(target=post_at_once, args=(there, gate, *arguments)) for _, there in pipes]
        for child in children:
            child.start()
        assert all(here.poll(WAIT_S) and here.recv() == "up" for here, _ in pipes)
        gate.set()
        outcomes = sorted(here.recv() for here, _ in pipes if here.poll(WAIT_S))
        for child in children:
            child.join(WAIT_S)
        assert len(server.requests) == outcomes.count(Outcome.SENT) == 1
        assert set(outcomes) <= {Outcome.SENT, Outcome.SENT_BEFORE, Outcome.BUSY}
        assert len(outcomes) == 6
