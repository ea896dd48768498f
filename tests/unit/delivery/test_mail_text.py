"""Mail as text: nothing in it ends a header, and the same parcel is the same bytes."""

from dataclasses import replace
from email.parser import BytesParser
from email.policy import SMTP
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as limited
from hypothesis import strategies as st

from advisor.config.delivery_settings import SmtpChannel
from advisor.delivery.channel import Html, PermanentError
from advisor.delivery.channels.smtp import mail_bytes, one_line, recipients
from tests.delivery.parts import MAIL, PNG, make_message, make_parcel


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
