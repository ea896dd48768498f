"""Webhooks over a real server: exactly the preview, and each trouble in one line of the right kind."""

import hashlib
import hmac
import json
from typing import Any

import pytest

from advisor.delivery.channel import Channel, PermanentError, SendingError, TemporaryError, UncertainError
from advisor.delivery.posting import Outcome, Post, attempt
from advisor.store.handle import Store
from tests.delivery.http_server import HttpServer, Reply, Request, serving
from tests.delivery.mail_server import free_port
from tests.delivery.parts import SetClock, channel_of, make_message, make_parcel

SECRET = "a-secret-that-signs"
# What requests and http.client add to our own headers.
OF_TRANSPORT = {"Host", "Content-Length", "Accept", "Accept-Encoding", "Connection"}


@pytest.fixture
def server():
    with serving() as running:
        yield running


def hook(server: HttpServer, **changes: Any) -> Channel:
    return channel_of({"kind": "webhook", "url": f"{server.url}/in"} | changes, HOOK_SECRET=SECRET)


def slack(server: HttpServer) -> Channel:
    return channel_of(
        {"kind": "slack", "url": "env:SLACK"}, SLACK=f"{server.url}/services/T0/B0/secret-token"
    )


def preview_of(request: Request, address: str) -> str:
    """A request as a preview shows it."""
    ours = {name: value for name, value in request.headers.items() if name not in OF_TRANSPORT}
    head = [f"POST {address}", *(f"{name}: {value}" for name, value in ours.items()), ""]
    return "\n".join([*head, request.body.decode()])


def fault_of(channel: Channel, kind: type[SendingError], *, within_s: float = 10.0) -> Any:
    with pytest.raises(SendingError) as caught:
        attempt(channel, make_parcel(), lambda: None, within_s=within_s)
    assert type(caught.value) is kind, caught.value
    assert "secret-token" not in str(caught.value)
    assert "\n" not in str(caught.value)
    return caught.value


def test_a_webhook_gets_exactly_the_preview(server):
    channel = hook(server)
    channel.send(make_parcel(), lambda: None)
    (request,) = server.requests
    assert preview_of(request, f"{server.url}/in") == channel.preview(make_parcel())
    body = json.loads(request.body)
    assert (body["key"], body["subject"]) == ("week-47", make_message().subject)
    assert body["facts"] == make_message().facts
    assert request.headers["Idempotency-Key"] == "week-47"


def test_slack_gets_exactly_the_preview_and_the_preview_not_the_address(server):
    channel = slack(server)
    channel.send(make_parcel(message=make_message(subject="<!channel> & all")), lambda: None)
    (request,) = server.requests
    assert request.path == "/services/T0/B0/secret-token"
    shown = channel.preview(make_parcel(message=make_message(subject="<!channel> & all")))
    assert preview_of(request, "env:SLACK") == shown
    assert json.loads(request.body)["text"] == "&lt;!channel&gt; &amp; all"


def test_a_signature_that_the_receiver_can_check(server):
    channel = hook(server, secret="env:HOOK_SECRET")
    channel.send(make_parcel(), lambda: None)
    (request,) = server.requests
    expected = hmac.new(SECRET.encode(), request.body, hashlib.sha256).hexdigest()
    assert request.headers["X-Advisor-Signature-256"] == f"sha256={expected}"
    assert preview_of(request, f"{server.url}/in").replace(expected, "***") == channel.preview(make_parcel())


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_what_passes_is_temporary_for_a_webhook(server, status):
    server.replies = [Reply(status=status, body=b"token=hunter22 is busy")]
    assert str(fault_of(hook(server), TemporaryError)) == f"the server answers {status} token=*** is busy"


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (429, TemporaryError),
        (500, TemporaryError),
        (503, TemporaryError),
        (502, UncertainError),
        (504, UncertainError),
    ],
)
def test_a_gateway_that_lost_sight_leaves_slack_uncertain(server, status, kind):
    server.replies = [Reply(status=status)]
    fault_of(slack(server), kind)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 413])
def test_what_stays_is_permanent(server, status):
    server.replies = [Reply(status=status, body=b"invalid_blocks")]
    assert str(fault_of(slack(server), PermanentError)) == f"the server refuses it: {status} invalid_blocks"


def test_a_redirect_is_not_followed(server):
    server.replies = [Reply(status=307, headers={"Location": f"{server.url}/elsewhere"})]
    assert "which is not followed" in str(fault_of(hook(server), PermanentError))
    assert len(server.requests) == 1


def test_a_login_of_netrc_is_not_sent(server, tmp_path, monkeypatch):
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login me password hunter22\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    hook(server).send(make_parcel(), lambda: None)
    assert "Authorization" not in server.requests[0].headers


@pytest.mark.parametrize("make", [hook, slack])
def test_no_answer_is_uncertain(server, make):
    server.replies = [Reply(hangs=True)]
    fault_of(make(server), UncertainError, within_s=0.3)


@pytest.mark.parametrize("make", [hook, slack])
def test_a_reset_after_the_body_is_uncertain(server, make):
    server.replies = [Reply(resets=True)]
    assert "the connection ended after it was sent" in str(fault_of(make(server), UncertainError))


def test_nobody_listens():
    channel = channel_of({"kind": "webhook", "url": f"http://127.0.0.1:{free_port()}/x"})
    assert "cannot reach the server" in str(fault_of(channel, TemporaryError))


def test_an_address_that_is_none():
    channel = channel_of({"kind": "slack", "url": "env:SLACK"}, SLACK="ftp://secret-token/")
    assert "no address that can be asked" in str(fault_of(channel, PermanentError))


@pytest.mark.parametrize(
    ("value", "least_s", "most_s"),
    [("7", 7, 7), ("Wed, 21 Oct 2099 07:28:00 GMT", 1e8, 1e10), ("Wed, 21 Oct 2015 07:28:00 GMT", 0, 0)],
)
def test_how_long_the_server_asks_us_to_wait(server, value, least_s, most_s):
    server.replies = [Reply(status=429, headers={"Retry-After": value})]
    error = fault_of(hook(server), TemporaryError)
    assert least_s <= error.wait_s <= most_s


def test_a_time_that_is_none_asks_for_nothing(server):
    server.replies = [Reply(status=429, headers={"Retry-After": "soon"})]
    assert fault_of(hook(server), TemporaryError).wait_s is None


def send(server: HttpServer, channel: Channel, store: Store, time: SetClock) -> tuple[Outcome, int]:
    post = Post(store=store, total_s=300, clock=time.clock)
    delivery = post.send("team", channel, make_message(), "week-47")
    return delivery.outcome, delivery.attempts


def test_a_busy_server_is_waited_for_as_long_as_it_asks(server, store, time):
    server.replies = [Reply(status=429, headers={"Retry-After": "40"}), Reply(status=500)]
    assert send(server, slack(server), store, time) == (Outcome.SENT, 3)
    assert time.slept == [40.0, 2.0]


def test_one_that_asks_for_too_long_is_given_up(server, store, time):
    server.replies = [Reply(status=429, headers={"Retry-After": "3600"})]
    assert send(server, slack(server), store, time) == (Outcome.FAILED, 1)
    assert time.slept == []
    assert send(server, slack(server), store, time) == (Outcome.SENT, 2), (
        "what was not sent may be sent later"
    )


def test_a_lost_answer_is_repeated_only_where_the_receiver_drops_repeats(server, store, time):
    server.replies = [Reply(resets=True)]
    assert send(server, hook(server), store, time) == (Outcome.SENT, 2)
    assert [request.headers["Idempotency-Key"] for request in server.requests] == ["week-47"] * 2
    assert server.requests[0].body == server.requests[1].body


def test_elsewhere_it_is_not(server, store, time):
    server.replies = [Reply(resets=True)]
    channel = hook(server, knows_repeats=False)
    assert send(server, channel, store, time) == (Outcome.PERHAPS, 1)
    assert send(server, channel, store, time) == (Outcome.PERHAPS, 1)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "url", ["http://169.254.169.254/x", "http://0xA9FEA9FE/", "https://a.org/\nX: 1", "ftp://a.org/"]
)
def test_an_address_that_is_kept_elsewhere_is_checked_when_it_is_read(url):
    channel = channel_of({"kind": "webhook", "url": "env:HOOK"}, HOOK=url)
    error = fault_of(channel, PermanentError)
    assert url not in str(error)


def test_a_name_that_leads_to_a_machines_own_services_gets_nothing(server, monkeypatch):
    """What a name leads to is seen on the connection itself: asked before, it could lead elsewhere later."""
    monkeypatch.setattr(
        "advisor.delivery.channels.guarded.is_link_local", lambda address: address.startswith("127.")
    )
    error = fault_of(hook(server, url=server.url.replace("127.0.0.1", "localhost") + "/in"), PermanentError)
    assert "a machine's own services" in str(error)
    assert not server.requests
