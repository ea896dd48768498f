"""``--to``, ``--preview`` and ``advisor deliver`` as a person types them, against servers of this machine."""

import json
from datetime import UTC, datetime, timedelta
from email.parser import Parser
from email.policy import SMTP

import pytest

from advisor.formats.trace_files import write_trace
from tests.builders import make_trace
from tests.delivery import http_server, mail_server
from tests.delivery.http_server import Reply
from tests.delivery.mail_server import PASSWORD, USER
from tests.end_to_end.cli import Shell, assert_plain_error

pytestmark = pytest.mark.filterwarnings("ignore:Requiring AUTH while not requiring TLS:UserWarning")
RECOMMEND = (
    "recommend",
    "t.json.gz",
    "--epochs",
    "1",
    "--provider",
    "aws",
    "--region",
    "us-east-1",
    "--top",
    "3",
)
SETTINGS = """
delivery:
  channels:
    mail:
      {{kind: smtp, host: 127.0.0.1, port: {port}, security: none, user: {user}, password: env:SMTP_PASSWORD,
       from: bot@example.org, to: [ann@example.org]}}
    hook: {{kind: webhook, url: "{url}/in"}}
    file: {{kind: file, path: "out/{{date}}.md"}}
  give_up_after: 2s
"""


@pytest.fixture
def mail():
    with mail_server.serving() as server:
        yield server


@pytest.fixture
def hook():
    with http_server.serving() as server:
        yield server


@pytest.fixture
def shell(tmp_path, mail, hook):
    """A folder with a trace and three channels."""
    shell = Shell(folder=tmp_path)
    write_trace(make_trace(), tmp_path / "t.json.gz")
    shell.write(".config/advisor/config.yaml", SETTINGS.format(port=mail.port, user=USER, url=hook.url))
    return shell


def test_a_recommendation_goes_to_each_channel_once(shell, mail, hook):
    to = ("--to", "mail", "--to", "hook", "--to", "file", "--to", "mail")
    key = {"ADVISOR_DELIVERY_KEY": "weekly-47", "SMTP_PASSWORD": PASSWORD}
    first = shell.run(*RECOMMEND, *to, "--json", **key)
    assert first.code == 0, first.err
    assert [(one["channel"], one["outcome"]) for one in first.document["deliveries"]] == [
        ("mail", "sent"), ("hook", "sent"), ("file", "sent"),
    ]  # fmt: skip
    again = shell.run(*RECOMMEND, *to, **key)
    assert again.code == 0, again.err
    assert again.out.count("sent before") == 3
    (body,) = [json.loads(request.body) for request in hook.requests]
    (got,) = mail.mails
    assert got["Subject"] == body["subject"]
    assert body["facts"]["recommended"]
    kinds = [part.get_content_type() for part in got.walk()]
    assert kinds == ["multipart/alternative", "text/plain", "multipart/related", "text/html", "image/png"]
    (page,) = (shell.folder / ".config/advisor/out").glob("*.md")
    assert "| recommended |" in page.read_text()
    assert PASSWORD not in first.out + first.err + again.out + again.err


def test_a_channel_that_was_down_gets_the_report_and_the_others_no_second(shell, mail, hook):
    ended = ("--start", f"{datetime.now(UTC) - timedelta(hours=2):%Y-%m-%dT%H:%M}", "--duration", "1h")
    entered = shell.run(
        "run", "record", "--provider", "aws", "--gpu", "A10G", "--market", "on-demand", *ended, "--cost", "3"
    )
    assert entered.code == 0, entered.err
    hook.rule = lambda _: Reply(status=404)
    to = ("report", "--to", "mail", "--to", "hook")
    assert shell.run(*to, SMTP_PASSWORD=PASSWORD).code == 1
    hook.rule = lambda _: Reply()
    again = shell.run(*to, "--json", SMTP_PASSWORD=PASSWORD)
    assert [(one["channel"], one["outcome"]) for one in again.document["deliveries"]] == [
        ("mail", "sent-before"), ("hook", "sent"),
    ]  # fmt: skip
    assert len(mail.mails) == 1


def test_a_recommendation_that_is_recorded_twice_is_sent_once(shell, hook):
    for _ in range(2):
        answer = shell.run(*RECOMMEND, "--record", "--to", "hook")
        assert answer.code == 0, answer.err
    assert len(hook.requests) == 1


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--out", "report.html"), "--out writes the report to a file and --to sends it"),
        (("--format", "focus"), "a channel chooses its own form: leave --format focus out"),
    ],
)
def test_a_report_is_sent_or_written(shell, flags, words):
    assert_plain_error(shell.run("report", "--to", "file", *flags), 2, words)


def test_a_preview_is_what_arrives(shell, mail):
    key = {"ADVISOR_DELIVERY_KEY": "weekly-47"}
    shown = shell.run(*RECOMMEND, "--to", "mail", "--preview", **key)
    assert shown.code == 0, shown.err
    assert mail.taken == []
    sent = shell.run(*RECOMMEND, "--to", "mail", SMTP_PASSWORD=PASSWORD, **key)
    assert sent.code == 0, sent.err
    parts = [Parser(policy=SMTP).parsestr(shown.out), mail.mails[0]]
    for part in parts:
        del part["Date"]
    assert parts[0].as_bytes() == parts[1].as_bytes()


def test_what_fails_is_a_line_and_others_get_it(shell, hook, mail):
    hook.rule = lambda _: Reply(status=404, body=b"no such hook")
    answer = shell.run("deliver", "test", "mail", "hook", "file", SMTP_PASSWORD="wrong-and-long")
    assert_plain_error(
        answer, 1,
        "error: mail: not sent: 127.0.0.1 refuses user 'me' or the secret of env:SMTP_PASSWORD (535)",
        "error: hook: not sent: the server refuses it: 404 no such hook",
        "error: 2 of 3 channels did not surely get it: mail, hook.",
    )  # fmt: skip
    assert "wrong-and-long" not in answer.out + answer.err
    assert mail.taken == []


def test_a_lost_answer_is_said_to_be_perhaps_and_is_not_repeated(shell, mail):
    mail.resets_at = "DATA"
    key = {"ADVISOR_DELIVERY_KEY": "weekly-47", "SMTP_PASSWORD": PASSWORD}
    for _ in range(2):
        answer = shell.run(*RECOMMEND, "--to", "mail", **key)
        assert_plain_error(
            answer, 1, "error: mail: perhaps sent: the connection ended after the mail was sent"
        )
        assert "another ADVISOR_DELIVERY_KEY" in answer.err
    assert len(mail.taken) == 1


def test_an_answer_is_sent_though_nothing_is_feasible(shell, hook):
    answer = shell.run(*RECOMMEND, "--budget", "0.0001", "--to", "hook")
    assert answer.code == 4, answer.err
    assert json.loads(hook.requests[0].body)["subject"].endswith("nothing is feasible")


def test_uses_that_cannot_be_meant(shell):
    assert_plain_error(shell.run(*RECOMMEND, "--preview"), 2, "add --to CHANNEL")
    assert_plain_error(shell.run(*RECOMMEND, "--to", "mial"), 2, "no channel 'mial'", "Did you mean 'mail'?")
    assert_plain_error(shell.run("deliver", "test", "x"), 2, "there is no channel 'x'")
    assert_plain_error(
        shell.run(*RECOMMEND, "--to", "file", ADVISOR_DELIVERY_KEY="a b"), 2, "ADVISOR_DELIVERY_KEY is 'a b'"
    )


def test_the_list_says_where_secrets_are_and_how_the_last_delivery_went(shell):
    assert shell.run("deliver", "test", "file").code == 0
    answer = shell.run("deliver", "list", "--json")
    channels = {one["name"]: one for one in answer.document["channels"]}
    assert channels["mail"]["secrets"][0]["name"] == "env:SMTP_PASSWORD"
    assert "is not set" in channels["mail"]["secrets"][0]["problem"]
    assert channels["file"]["last"]["state"] == "sent"
    shown = shell.run("deliver", "list")
    assert "mail (smtp)" in shown.out
    assert "can be read" in shell.run("deliver", "list", SMTP_PASSWORD=PASSWORD).out
    assert PASSWORD not in shell.run("config", "show", SMTP_PASSWORD=PASSWORD).out


def test_a_project_neither_adds_nor_changes_a_channel(shell, hook, tmp_path):
    """It would have answers sent to its own server, with a signature by the user's secret."""
    shell.write(
        ".advisor.yaml",
        'delivery: {channels: {hook: {kind: webhook, url: "http://127.0.0.1:9/"}, own: {kind: stdout}}}',
    )
    answer = shell.run("deliver", "test", "hook")
    assert answer.code == 0, answer.err
    assert len(hook.requests) == 1
    assert "delivery.channels" in answer.err
    assert_plain_error(shell.run("deliver", "test", "own"), 2, "there is no channel 'own'")
