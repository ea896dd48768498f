"""An answer to several channels: keys, names that no channel has, previews, and what the settings hold."""

from pathlib import Path
from typing import Any

import pytest

from advisor.config.layers import Config
from advisor.core.errors import ConfigError, InputError
from advisor.delivery.channel import Message
from advisor.delivery.posting import Delivery, Outcome
from advisor.service.delivering import (
    DeliveryRequest,
    channel_states,
    check_channels,
    deliver,
    key_of_environment,
    previews,
)
from tests.delivery.http_server import HttpServer, Reply, serving
from tests.delivery.parts import SetClock, config_of, make_message
from tests.listening import Heard


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


FILES: dict[str, Any] = {
    "one": {"kind": "file", "path": "one-{date}.md"},
    "two": {"kind": "file", "path": "two.json"},
    "bad": {"kind": "file", "path": "one.md/three.md"},
}


def request(*channels: str, **changes: Any) -> DeliveryRequest:
    return DeliveryRequest(**({"channels": channels, "command": "report", "period": "47"} | changes))


def deliver_with(
    config: Config, message: Message, wanted: DeliveryRequest, listener: Heard, time: SetClock
) -> tuple[Delivery, ...]:
    """Deliver with the settings of a configuration."""
    settings = config.settings
    return deliver(
        message, wanted, settings.delivery, database=settings.store, listener=listener, clock=time.clock
    )


def outcomes(*channels: str, **changes: Any) -> dict[str, Outcome]:
    message = make_message(**changes.pop("message", {}))
    time = SetClock()
    sent = deliver_with(config_of(FILES), message, request(*channels, **changes), Heard(), time)
    return {one.channel: one.outcome for one in sent}


def test_one_that_fails_stops_no_other(tmp_path):
    (tmp_path / "one.md").write_text("a file where a folder should be")
    assert outcomes("bad", "one", "two") == {
        "bad": Outcome.FAILED, "one": Outcome.SENT, "two": Outcome.SENT,
    }  # fmt: skip
    assert (tmp_path / "one-2026-11-23.md").read_text() == "# Page\n"


def test_the_same_answer_goes_once_another_command_period_or_content_again():
    assert outcomes("one") == {"one": Outcome.SENT}
    assert outcomes("one", "two") == {"one": Outcome.SENT_BEFORE, "two": Outcome.SENT}
    for other in ({"command": "recommend"}, {"period": "48"}, {"message": {"text": "more"}}):
        assert outcomes("one", **other) == {"one": Outcome.SENT}


def test_facts_of_the_moment_make_no_other_answer():
    of_moment = frozenset({"until"})

    def sent(until: int, usd: float = 1.0) -> Outcome:
        facts = {"usd": usd, "until": until}
        message = {"text": f"until {until}", "facts": facts, "of_moment": of_moment}
        return outcomes("one", message=message)["one"]

    assert sent(1) is Outcome.SENT
    assert sent(2) is Outcome.SENT_BEFORE
    assert sent(3, usd=2.0) is Outcome.SENT


def test_a_key_of_a_scheduler_counts_whatever_the_answer_says():
    assert outcomes("one", key="weekly@2026-11-23") == {"one": Outcome.SENT}
    assert outcomes("one", key="weekly@2026-11-23", message={"text": "prices moved"}) == {
        "one": Outcome.SENT_BEFORE
    }
    assert key_of_environment({"ADVISOR_DELIVERY_KEY": "x"}) == "x"
    assert key_of_environment({"ADVISOR_DELIVERY_KEY": ""}) is key_of_environment({}) is None


@pytest.mark.parametrize("key", ["a b", "a\r\nX: 1", "../a", "a/b", ".a", "x" * 201, "ä"])
def test_a_key_that_could_leave_its_header_or_folder(key):
    with pytest.raises(InputError, match="ADVISOR_DELIVERY_KEY is"):
        outcomes("one", key=key)


def test_a_name_that_no_channel_has_is_refused_before_anything_is_sent(tmp_path):
    with pytest.raises(ConfigError, match=r"no channel 'onee': there are one, two, bad\. Did you mean 'one'"):
        outcomes("two", "onee")
    assert not (tmp_path / "two.json").exists()
    with pytest.raises(ConfigError, match="none is set up yet"):
        check_channels(("x",), config_of({}).settings.delivery)


def test_a_preview_is_what_is_sent_and_sends_nothing(tmp_path):
    channels, time = config_of(FILES).settings.delivery, SetClock()
    shown = previews(make_message(), request("one"), channels, clock=time.clock)
    assert not (tmp_path / "data").exists()
    assert outcomes("one") == {"one": Outcome.SENT}
    assert shown == {"one": f"one-2026-11-23.md\n\n{Path('one-2026-11-23.md').read_text()}"}
    with pytest.raises(ConfigError, match="one: this answer has no form"):
        previews(make_message(files=()), request("one"), channels)


def test_waiting_is_told_beside_the_step():
    with serving(HttpServer(replies=[Reply(status=503)])) as server:
        heard, time = Heard(), SetClock()
        config = config_of({"hook": {"kind": "webhook", "url": server.url}})
        (sent,) = deliver_with(config, make_message(), request("hook"), heard, time)
    assert (sent.outcome, sent.attempts, time.slept) == (Outcome.SENT, 2, [1.0])
    assert heard.steps == ["sending to hook"]


def test_states_name_secrets_and_never_hold_them(monkeypatch, tmp_path):
    monkeypatch.setenv("SLACK", "https://hooks.slack.test/hunter2")
    secret = tmp_path / "secret"
    secret.write_text("hunter2")
    secret.chmod(0o644)
    config = config_of(
        {
            "slack": {"kind": "slack", "url": "env:SLACK"},
            "hook": {"kind": "webhook", "url": "https://example.org/in", "secret": f"file:{secret}"},
            **FILES,
        }
    )
    outcomes("one")
    states = {state.name: state for state in channel_states(config.settings.delivery, config.settings.store)}
    assert "hunter2" not in repr(states)
    assert states["slack"].secrets == (("env:SLACK", None),)
    ((name, problem),) = states["hook"].secrets
    assert name == f"file:{secret}"
    assert problem is not None
    assert "chmod 600" in problem
    assert states["one"].last is not None
    assert states["two"].last is None
