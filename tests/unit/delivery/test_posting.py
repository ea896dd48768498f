"""What is tried again and what is said in the end; mail as text, in which nothing ends a header."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from email.parser import BytesParser
from email.policy import SMTP
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as limited
from hypothesis import strategies as st

from advisor.config.delivery_settings import SmtpChannel
from advisor.delivery.channel import Html, Parcel, PermanentError, Secrets, TemporaryError, UncertainError
from advisor.delivery.channels.smtp import mail_bytes, one_line, recipients
from advisor.delivery.posting import LONGEST_WAIT_S, Delivery, Outcome, Post, attempt, wait_s
from advisor.store import outbox
from advisor.store.handle import Store
from advisor.store.outbox import State
from tests.delivery.parts import MAIL, PNG, SetClock, make_message, make_parcel


@dataclass
class Scripted:
    """Does what the test says, one attempt after the other, and then works."""

    script: list[Exception | str] = field(default_factory=list)
    drops_repeats: bool = False
    secrets: Secrets = field(default_factory=lambda: Secrets({"P": "hunter2"}))
    target: str = "x/{date}.md"
    sent: list[Parcel] = field(default_factory=list)

    def preview(self, parcel: Parcel) -> str:  # noqa: ARG002
        return ""

    def send(self, parcel: Parcel, begin: Callable[[], None]) -> str | None:
        self.secrets.read("env:P")
        step = self.script.pop(0) if self.script else None
        if isinstance(step, TemporaryError | PermanentError):
            raise step
        begin()
        if isinstance(step, BaseException):
            raise step
        self.sent.append(parcel)
        return step


def send(channel: Scripted, store: Store, time: SetClock, *, total_s: float = 300) -> Delivery:
    post = Post(store=store, total_s=total_s, clock=time.clock)
    return post.send("team", channel, make_message(), "k")


def state(store: Store) -> State:
    posted = outbox.last_posted(store, "team")
    return posted.state


def test_the_first_attempt_is_enough(store, time):
    delivery = send(Scripted(), store, time)
    assert (delivery.outcome, delivery.attempts, delivery.is_there) == (Outcome.SENT, 1, True)
    assert delivery.target == "x/2026-11-23.md"
    assert time.slept == []


def test_waits_double_up_to_a_minute_until_the_time_is_over(store, time):
    busy: list[Exception | str] = [TemporaryError("busy") for _ in range(20)]
    delivery = send(Scripted(busy), store, time)
    assert (delivery.outcome, delivery.error) == (Outcome.FAILED, "busy")
    assert time.slept == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    assert sum(time.slept) <= 300


@given(st.lists(st.floats(0, 1e6) | st.none(), min_size=1, max_size=30), st.floats(1, 3600), st.floats(0, 1))
def test_no_sleep_leads_beyond_the_end(asked, total_s, chance):
    passed_s = 0.0
    for attempts, asked_s in enumerate(asked, start=1):
        pause_s = wait_s(attempts, asked_s, chance)
        assert pause_s == asked_s if asked_s is not None else 0.5 <= pause_s <= LONGEST_WAIT_S
        if passed_s + pause_s < total_s:
            passed_s += pause_s
    assert passed_s < total_s


def test_what_cannot_work_is_tried_once(store, time):
    channel = Scripted([PermanentError("no such user")])
    assert send(channel, store, time).outcome is Outcome.FAILED
    assert time.slept == []
    assert send(channel, store, time).outcome is Outcome.SENT, "somebody may have mended it"


def test_nobody_knows_and_so_it_is_not_repeated(store, time):
    channel = Scripted([UncertainError("the connection ended")])
    outcomes = [send(channel, store, time).outcome for _ in range(3)]
    assert outcomes == [Outcome.PERHAPS] * 3
    assert channel.sent == []


def test_nobody_knows_and_repeats_do_no_harm(store, time):
    channel = Scripted([UncertainError("ended"), UncertainError("ended")], drops_repeats=True)
    delivery = send(channel, store, time)
    assert (delivery.outcome, delivery.attempts) == (Outcome.SENT, 3)


def test_once_uncertain_a_failure_stays_uncertain(store, time):
    """The first attempt may have arrived, whatever the second one says."""
    channel = Scripted([UncertainError("ended"), PermanentError("gone")], drops_repeats=True)
    assert send(channel, store, time).outcome is Outcome.PERHAPS
    assert send(channel, store, time).outcome is Outcome.SENT


def test_whoever_is_not_reached_is_an_error_though_others_are(store, time):
    delivery = send(Scripted(["refused: bob"]), store, time)
    assert (delivery.outcome, delivery.error, delivery.is_there) == (Outcome.SENT, "refused: bob", False)
    again = send(Scripted(), store, time)
    assert (again.outcome, again.error, again.is_there) == (Outcome.SENT_BEFORE, "refused: bob", False)


@pytest.mark.parametrize(("has_begun", "expected"), [(False, State.FAILED), (True, State.PERHAPS)])
def test_an_interrupt_leaves_what_is_known(store, time, has_begun, expected, monkeypatch):
    def interrupted(channel: Scripted, parcel: Parcel, begin: Callable[[], None], *, within_s: float) -> None:
        if has_begun:
            begin()
        raise KeyboardInterrupt

    monkeypatch.setattr("advisor.delivery.posting.attempt", interrupted)
    with pytest.raises(KeyboardInterrupt):
        send(Scripted(), store, time)
    assert state(store) is expected


def test_what_a_library_raises_is_one_line_without_secrets(store, time):
    delivery = send(Scripted([RuntimeError("a bug with hunter2")]), store, time)
    assert (delivery.outcome, delivery.error) == (Outcome.PERHAPS, "RuntimeError: a bug with ***")


def test_a_secret_that_is_not_there_stops_nobody_else(store, time):
    delivery = send(Scripted(secrets=Secrets({})), store, time)
    assert delivery.outcome is Outcome.FAILED
    assert str(delivery.error).startswith("the variable P is not set")


def test_why_it_waits_is_heard(store, time):
    heard: list[tuple[str, float]] = []
    post = Post(store=store, total_s=300, clock=time.clock, on_retry=lambda *words: heard.append(words))
    post.send("team", Scripted([TemporaryError("busy", wait_s=9.0)]), make_message(), "k")
    assert heard == [("busy", 9.0)]


def test_an_attempt_that_was_given_up_sends_nothing_later():
    """It may wake up long after the next one has sent."""
    go, done = threading.Event(), threading.Event()
    begun: list[str] = []

    class Slow(Scripted):
        def send(self, parcel: Parcel, begin: Callable[[], None]) -> str | None:
            go.wait()
            try:
                return super().send(parcel, begin)
            finally:
                done.set()

    channel = Slow()
    with pytest.raises(TemporaryError, match="no answer within"):
        attempt(channel, make_parcel(), lambda: begun.append("x"), within_s=0.05)
    go.set()
    assert done.wait(30)
    assert (channel.sent, begun) == ([], [])


def settings(**changes: Any) -> SmtpChannel:
    return SmtpChannel.model_validate(MAIL | changes)


def parsed(raw: bytes) -> Any:
    return BytesParser(policy=SMTP).parsebytes(raw)


def test_the_same_parcel_is_the_same_bytes():
    first, second = (mail_bytes(make_parcel(), settings(attach=["html"]), "team") for _ in range(2))
    assert first == second


def test_a_repeat_can_be_seen_by_its_id_and_another_answer_has_another():
    def message_id(channel: str = "team", **changes: Any) -> str:
        return str(parsed(mail_bytes(make_parcel(**changes), settings(), channel))["Message-ID"])

    assert message_id() == message_id(message=make_message(text="other words"))
    assert len({message_id(), message_id(key="week-48"), message_id("others")}) == 3


def test_a_text_alone_has_one_part():
    mail = parsed(mail_bytes(make_parcel(message=make_message(html=None)), settings(), "team"))
    assert (mail.get_content_type(), mail.is_multipart()) == ("text/plain", False)


def test_every_line_is_short_and_of_seven_bits():
    """No server need be asked whether it takes more."""
    long = make_message(text="ä" * 5000, html=lambda: Html(text="<p>" + "€" * 5000), subject="ü" * 300)
    raw = mail_bytes(make_parcel(message=long), settings(attach=["html", "json"]), "team")
    assert raw.isascii()
    assert max(map(len, raw.split(b"\r\n"))) <= 998
    assert b"\n" not in raw.replace(b"\r\n", b"")


def test_a_form_that_an_answer_lacks_cannot_be_attached():
    with pytest.raises(PermanentError, match="no form 'html' to attach"):
        mail_bytes(make_parcel(message=make_message(files=())), settings(attach=["html"]), "team")


def test_everybody_gets_it_once():
    both = settings(to=["Ann <ann@example.org>", "bob@example.org"], cc=["ann@example.org"])
    assert recipients(both) == ("ann@example.org", "bob@example.org")


few_examples = limited(max_examples=40)
hostile = st.text(st.characters(codec="utf-8") | st.sampled_from("\r\n\0\x0b\x85\u2028:=?<>"), max_size=80)


@few_examples
@given(hostile)
def test_no_subject_adds_a_header(text):
    message = make_message(subject=f"{text}\r\nBcc: eve@example.org")
    mail = parsed(mail_bytes(make_parcel(message=message), settings(), "team"))
    assert mail["Bcc"] is None
    assert set(mail.keys()) == {
        "Subject", "From", "To", "Date", "Message-ID", "Auto-Submitted", "Content-Type", "MIME-Version",
    }  # fmt: skip
    assert str(mail["Subject"]).split() == one_line(f"{text} Bcc: eve@example.org").split()


@few_examples
@given(hostile)
def test_no_text_ends_its_part(text):
    """A text may hold lines that look like boundaries and headers."""
    words = f"{text}\n--=_0\nContent-Type: text/html\n\n.\n"
    mail = parsed(mail_bytes(make_parcel(message=make_message(text=words)), settings(), "team"))
    kinds = [part.get_content_type() for part in mail.walk()]
    assert kinds == ["multipart/alternative", "text/plain", "multipart/related", "text/html", "image/png"]
    assert [p.get_content() for p in mail.walk() if p.get_content_type() == "image/png"] == [PNG]


@few_examples
@given(st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Zl", "Zp")), max_size=300))
def test_plain_text_arrives_as_it_was(text):
    mail = parsed(mail_bytes(make_parcel(message=make_message(text=text, html=None)), settings(), "team"))
    assert mail.get_content().rstrip("\r\n") == text


def test_the_hash_of_a_message_covers_all_that_it_says():
    message = make_message()
    changes: list[dict[str, Any]] = [
        {"subject": "x"}, {"text": "x"}, {"blocks": ()}, {"facts": {}},
    ]  # fmt: skip
    hashes = {message.sha256, *(replace(message, **change).sha256 for change in changes)}
    assert len(hashes) == len(changes) + 1
    assert make_message().sha256 == message.sha256
