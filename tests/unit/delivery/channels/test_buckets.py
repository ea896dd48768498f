"""Objects in buckets are written once, files of this machine whole or not at all."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from advisor.delivery.channel import Channel, PermanentError, SendingError, TemporaryError, UncertainError
from advisor.delivery.posting import Outcome, Post, attempt
from tests.delivery.http_server import HttpServer, Reply, Request, serving
from tests.delivery.mail_server import free_port
from tests.delivery.parts import channel_of, make_message, make_parcel

NAME = "reports/2026-11-23.html"
PAGE = make_message().files[0].payload


def fault_of(channel: Channel, kind: type[SendingError], **changes: Any) -> str:
    with pytest.raises(SendingError) as caught:
        attempt(channel, make_parcel(**changes), lambda: None, within_s=20)
    assert type(caught.value) is kind, caught.value
    return str(caught.value)


# --- AWS --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def moto_url():
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def aws(moto_url, monkeypatch):
    """A client of an account with one empty bucket."""
    import boto3

    variables = {
        "AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s", "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL_S3": moto_url,
    }  # fmt: skip
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    client = boto3.Session().client("s3")
    client.create_bucket(Bucket="team")
    yield client
    for item in client.list_objects_v2(Bucket="team").get("Contents", []):
        client.delete_object(Bucket="team", Key=item["Key"])


def s3() -> Any:
    return channel_of({"kind": "s3", "url": "s3://team/reports/{date}.html"})


def test_an_object_is_what_the_preview_shows(aws):
    s3().send(make_parcel(), lambda: None)
    got = aws.get_object(Bucket="team", Key=NAME)
    body = got["Body"].read()
    assert body == PAGE
    assert s3().preview(make_parcel()) == f"s3://team/{NAME}\n\n{body.decode()}"
    assert got["ContentType"] == "text/html; charset=utf-8"


def test_the_same_answer_again_changes_nothing_and_is_no_error(aws):
    s3().send(make_parcel(), lambda: None)
    first = aws.head_object(Bucket="team", Key=NAME)
    s3().send(make_parcel(), lambda: None)
    assert aws.head_object(Bucket="team", Key=NAME)["LastModified"] == first["LastModified"]


def test_another_answers_object_is_neither_overwritten_nor_taken_for_ours(aws):
    aws.put_object(Bucket="team", Key=NAME, Body=b"theirs")
    words = fault_of(s3(), PermanentError)
    assert words.startswith(f"another object is at s3://team/{NAME}, and nothing is overwritten")
    assert aws.get_object(Bucket="team", Key=NAME)["Body"].read() == b"theirs"


def test_a_bucket_that_is_not_there(aws):
    channel = channel_of({"kind": "s3", "url": "s3://nobody-has-it/{date}.html"})
    assert "NoSuchBucket" in fault_of(channel, PermanentError)


def test_no_credentials(aws, monkeypatch):
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    assert "no credentials of AWS" in fault_of(s3(), PermanentError)


def test_aws_is_away_or_ends_the_connection(aws, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", f"http://127.0.0.1:{free_port()}")
    assert "cannot reach AWS" in fault_of(s3(), TemporaryError)


def test_a_send_that_was_cut_off_is_taken_up_and_found_there(aws, store, time):
    """The first process died after the object was written."""
    post = Post(store=store, total_s=60, clock=time.clock)

    class Dies(type(s3())):  # type: ignore[misc]
        def send(self, parcel: Any, begin: Any) -> None:
            super().send(parcel, begin)
            raise UncertainError("the connection ended")

    dying = Dies(settings=s3().settings, secrets=s3().secrets)
    first = replace(post, total_s=0.5).send("team", dying, make_message(), "k")
    assert first.outcome is Outcome.PERHAPS
    second = post.send("team", s3(), make_message(), "k")
    assert (second.outcome, second.is_resumed) == (Outcome.SENT, True)


# --- Google -----------------------------------------------------------------------------------------


class Bucket:
    """Uploads with a condition, and what is known of an object."""

    def __init__(self) -> None:
        self.objects: dict[str, tuple[dict[str, Any], bytes]] = {}

    def answer(self, request: Request) -> Reply:
        parts = urlsplit(request.path)
        if request.method == "POST" and parts.path == "/upload/storage/v1/b/team/o":
            assert parse_qs(parts.query) == {"uploadType": ["multipart"], "ifGenerationMatch": ["0"]}
            about, media = self._parts(request)
            if about["name"] in self.objects:
                return Reply(status=412, body=b'{"error": {"code": 412}}')
            self.objects[about["name"]] = about, media
            return Reply(body=json.dumps(about).encode())
        name = unquote(parts.path.removeprefix("/storage/v1/b/team/o/"))
        if request.method == "GET" and name in self.objects:
            return Reply(body=json.dumps(self.objects[name][0]).encode())
        return Reply(status=404, body=b"no such bucket")

    def _parts(self, request: Request) -> tuple[dict[str, Any], bytes]:
        from email.parser import BytesParser
        from email.policy import HTTP

        head = f"Content-Type: {request.headers['Content-Type']}\r\n\r\n".encode()
        whole: Any = BytesParser(policy=HTTP).parsebytes(head + request.body)
        about, media = whole.iter_parts()
        return json.loads(about.get_payload()), media.get_payload(decode=True)


@pytest.fixture
def google(monkeypatch):
    bucket = Bucket()
    with serving(HttpServer(rule=bucket.answer)) as server:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", server.url)
        yield bucket, server


def gcs(bucket: str = "team") -> Channel:
    return channel_of({"kind": "gcs", "url": f"gs://{bucket}/reports/{{date}}.html"})


def test_an_object_of_google_is_what_the_preview_shows(google):
    gcs().send(make_parcel(), lambda: None)
    about, media = google[0].objects[NAME]
    assert media == PAGE
    assert gcs().preview(make_parcel()) == f"gs://team/{NAME}\n\n{media.decode()}"
    assert about["contentType"] == "text/html; charset=utf-8"


def test_it_is_written_once(google):
    for _ in range(2):
        gcs().send(make_parcel(), lambda: None)
    assert [request.method for request in google[1].requests] == ["POST", "POST", "GET"]
    assert "another object is at" in fault_of(gcs(), PermanentError, key="week-48")


def test_troubles_of_google(google, monkeypatch):
    _, server = google
    assert "404 no such bucket" in fault_of(gcs("nobody"), PermanentError)
    server.replies = [Reply(status=503)]
    fault_of(gcs(), TemporaryError)
    server.replies = [Reply(resets=True)]
    fault_of(gcs(), UncertainError)
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", f"127.0.0.1:{free_port()}")
    assert "cannot reach the server" in fault_of(gcs(), TemporaryError)


def test_an_answer_that_was_lost_is_asked_for_again(google, store, time):
    bucket, server = google
    server.replies = [Reply(resets=True)]
    post = Post(store=store, total_s=60, clock=time.clock)
    assert post.send("team", gcs(), make_message(), "week-47").outcome is Outcome.SENT
    assert list(bucket.objects) == [NAME]


def test_nobody_is_logged_in(monkeypatch, tmp_path):
    for name in ("STORAGE_EMULATOR_HOST", "GOOGLE_APPLICATION_CREDENTIALS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    assert "no credentials of Google" in fault_of(gcs(), PermanentError)


def file_at(path: Path) -> Channel:
    return channel_of({"kind": "file", "path": str(path)})


@pytest.mark.parametrize("suffix", [".html", ".md", ".csv", ".json", ".txt"])
def test_the_ending_says_what_is_written(tmp_path, suffix):
    channel = file_at(tmp_path / "new" / ("{date}-{key}" + suffix))
    channel.send(make_parcel(), lambda: None)
    path = tmp_path / "new" / f"2026-11-23-week-47{suffix}"
    assert channel.preview(make_parcel()) == f"{path}\n\n{path.read_text()}"


def test_a_file_of_before_is_replaced_and_nothing_else_left(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    file_at(path).send(make_parcel(message=make_message(text="new")), lambda: None)
    assert path.read_text() == "new\n"
    assert list(tmp_path.iterdir()) == [path]


def test_a_form_that_an_answer_lacks(tmp_path):
    parcel = make_parcel(message=make_message(files=()))
    for act in (lambda c: c.preview(parcel), lambda c: c.send(parcel, lambda: None)):
        with pytest.raises(PermanentError, match=r"no form '\.html'"):
            act(file_at(tmp_path / "a.html"))


def test_a_place_where_nothing_can_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(PermanentError, match="cannot write"):
        file_at(tmp_path / "file" / "a.txt").send(make_parcel(), lambda: None)


@pytest.mark.parametrize("form", ["txt", "json", "md"])
def test_standard_output_shows_the_preview(capsys, form):
    channel = channel_of({"kind": "stdout", "format": form})
    channel.send(make_parcel(), lambda: None)
    assert capsys.readouterr().out == channel.preview(make_parcel())
