"""Mail over a real server: exactly the preview, and each trouble in one line of the right kind."""

import socket
import threading
from typing import Any

import pytest

from advisor.delivery.channel import Channel, PermanentError, SendingError, TemporaryError, UncertainError
from advisor.delivery.posting import Outcome, Post, attempt
from tests.delivery.mail_server import PASSWORD, USER, MailServer, free_port, serving, write_certificate
from tests.delivery.parts import HTML, MAIL, PNG, channel_of, make_message, make_parcel

# On loopback nobody listens in.
pytestmark = pytest.mark.filterwarnings("ignore:Requiring AUTH while not requiring TLS:UserWarning")
LOGIN = {"user": USER, "password": "env:SMTP_PASSWORD"}


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    return write_certificate(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def plain():
    """A server of this machine without encryption, which a login over loopback may use."""
    with serving() as server:
        yield server


def mail_to(server: MailServer, password: str = PASSWORD, **changes: Any) -> Channel:
    settings = MAIL | {"port": server.port, "security": "none"} | LOGIN | changes
    return channel_of(settings, SMTP_PASSWORD=password)


def fault_of(channel: Channel, kind: type[SendingError], *, within_s: float = 10.0) -> str:
    with pytest.raises(SendingError) as caught:
        attempt(channel, make_parcel(), lambda: None, within_s=within_s)
    assert type(caught.value) is kind, caught.value
    words = str(caught.value)
    assert PASSWORD not in words
    assert "\n" not in words
    return words


def test_starttls_a_login_and_exactly_the_preview(certificate):
    with serving(certificate=certificate) as server:
        channel = mail_to(server, security="starttls", ca_file=str(certificate), attach=["html", "csv"])
        channel.send(make_parcel(), lambda: None)
        (taken,) = server.taken
        assert taken == channel.preview(make_parcel()).replace("\n", "\r\n").encode()
        assert server.recipients == [["ann@example.org"]]


def test_a_mail_program_reads_text_html_picture_and_files(plain):
    cc = ["Bob Müller <bob@example.org>", "ann@example.org"]
    mail_to(plain, cc=cc, attach=["html"]).send(make_parcel(), lambda: None)
    (mail,) = plain.mails
    assert plain.recipients == [["ann@example.org", "bob@example.org"]]
    assert mail["Subject"] == make_message().subject
    assert mail["From"] == "Advisor <bot@example.org>"
    assert mail["Cc"] == "Bob Müller <bob@example.org>, ann@example.org"
    assert mail["Date"].datetime == make_parcel().at
    assert mail.get_content_type() == "multipart/mixed"
    body, page = mail.iter_parts()
    assert body.get_content_type() == "multipart/alternative"
    text, related = body.iter_parts()
    assert text.get_content_type() == "text/plain"
    assert text.get_content().splitlines() == make_message().text.splitlines()
    assert related.get_content_type() == "multipart/related"
    html, picture = related.iter_parts()
    assert html.get_content().strip() == HTML.text
    assert picture.get_content() == PNG
    assert (picture["Content-ID"], picture.get_content_disposition()) == ("<chart-1>", "inline")
    assert page.get_filename() == "answer.html"
    assert page.get_content().encode() == make_message().files[0].payload


def test_without_encryption_nothing_is_sent_where_it_was_asked_for(plain):
    """Who takes STARTTLS off the server's list must not get the password."""
    words = fault_of(mail_to(plain, security="starttls"), PermanentError)
    assert "does not offer what security or user ask for" in words
    assert plain.asked.count("EHLO") == 1
    assert plain.taken == []


def test_a_certificate_that_nobody_trusts(certificate):
    with serving(certificate=certificate) as server:
        assert "a certificate that is not trusted" in fault_of(
            mail_to(server, security="starttls"), PermanentError
        )


def test_no_tls_where_it_should_begin(plain):
    assert "does not speak tls" in fault_of(mail_to(plain, security="tls"), PermanentError)


def test_a_wrong_password(plain):
    words = fault_of(mail_to(plain, password="wrong-and-long"), PermanentError)
    assert words == "127.0.0.1 refuses user 'me' or the secret of env:SMTP_PASSWORD (535): check both"


def test_a_password_that_is_not_there():
    channel = channel_of(MAIL | LOGIN | {"port": 1})
    assert fault_of(channel, PermanentError).startswith("the variable SMTP_PASSWORD is not set")


@pytest.mark.parametrize(
    ("command", "reply", "kind", "words"),
    [
        ("RCPT", "451 4.7.1 greylisted", TemporaryError, "puts ann@example.org off: 451 4.7.1 greylisted"),
        ("RCPT", "450 busy", TemporaryError, "450 busy"),
        ("RCPT", "550 no such user", PermanentError, "refuses ann@example.org (550 no such user)"),
        ("MAIL", "550 not you", PermanentError, "refuses the sender: 550 not you"),
        ("MAIL", "421 going down", TemporaryError, "421 going down"),
        ("DATA", "452 disk full", TemporaryError, "puts the mail off: 452 disk full"),
        ("DATA", "554 spam, password=hunter22", PermanentError, "the mail: 554 spam, password=***"),
    ],
)
def test_what_the_server_says(plain, command, reply, kind, words):
    plain.replies[command] = [reply]
    assert words in fault_of(mail_to(plain), kind)
    assert plain.taken == []


def test_nobody_listens():
    channel = channel_of(MAIL | {"port": free_port(), "security": "none"})
    assert "cannot reach 127.0.0.1:" in fault_of(channel, TemporaryError)


@pytest.mark.parametrize("command", ["EHLO", "MAIL", "RCPT"])
def test_silence_before_the_data_is_temporary(plain, command):
    plain.stop_at = command
    assert "no answer within" in fault_of(mail_to(plain), TemporaryError, within_s=0.3)


def test_silence_after_the_data_is_uncertain(plain):
    plain.stop_at = "DATA"
    fault_of(mail_to(plain), UncertainError, within_s=0.5)
    assert len(plain.taken) == 1


def test_a_reset_after_the_data_is_uncertain(plain):
    plain.resets_at = "DATA"
    assert "the connection ended after the mail was sent: perhaps it arrived" in fault_of(
        mail_to(plain), UncertainError
    )
    assert len(plain.taken) == 1


def test_a_reset_before_the_data_is_temporary(plain):
    plain.resets_at = "RCPT"
    fault_of(mail_to(plain), TemporaryError)


def test_what_drips_keeps_nobody():
    """A byte now and then meets no timeout of a socket."""
    stopped = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def drip() -> None:
            listener.settimeout(60)
            connection, _ = listener.accept()
            with connection:
                while not stopped.wait(0.02):
                    connection.sendall(b"2")

        thread = threading.Thread(target=drip)
        thread.start()
        channel = channel_of(MAIL | {"port": listener.getsockname()[1], "security": "none"})
        try:
            fault_of(channel, TemporaryError, within_s=0.3)
        finally:
            stopped.set()
            thread.join()


def test_one_recipient_who_is_refused_keeps_the_mail_from_nobody(plain):
    plain.replies["RCPT"] = ["250 OK", "550 left us"]
    problem = mail_to(plain, to=["ann@example.org", "old@example.org"]).send(make_parcel(), lambda: None)
    assert problem == "refused by the server: old@example.org (550 left us)"
    assert plain.recipients == [["ann@example.org"]]


def test_greylisting_is_waited_for_and_the_mail_sent_once(plain, store, time):
    plain.replies["RCPT"] = ["451 later", "451 later"]
    post = Post(store=store, total_s=300, clock=time.clock)
    delivery = post.send("team", mail_to(plain), make_message(), "week-47")
    assert (delivery.outcome, delivery.attempts, time.slept) == (Outcome.SENT, 3, [1.0, 2.0])
    again = post.send("team", mail_to(plain), make_message(), "week-47")
    assert again.outcome is Outcome.SENT_BEFORE
    assert len(plain.taken) == 1


def test_after_a_reset_behind_the_data_nothing_is_repeated(plain, store, time):
    plain.resets_at = "DATA"
    post = Post(store=store, total_s=300, clock=time.clock)
    first = post.send("team", mail_to(plain), make_message(), "week-47")
    plain.resets_at = ""
    second = post.send("team", mail_to(plain), make_message(), "week-47")
    assert (first.outcome, second.outcome, time.slept) == (Outcome.PERHAPS, Outcome.PERHAPS, [])
    assert len(plain.taken) == 1
