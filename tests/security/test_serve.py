"""Attacks on ``advisor serve``, by the bytes that an attacker would send."""

import base64
import json
import subprocess
import sys

import pytest

from advisor.serve.views import Reader, api_document, views_of
from tests.pages import EVIL
from tests.serving import TOKEN, fill, served

GOOD = f"Authorization: Bearer {TOKEN}"
SECURE = {
    "cache-control": "private, no-store", "x-content-type-options": "nosniff", "x-frame-options": "DENY",
    "referrer-policy": "no-referrer", "cross-origin-resource-policy": "same-origin",
}  # fmt: skip


def basic(password: str) -> str:
    return f"Authorization: Basic {base64.b64encode(f'me:{password}'.encode()).decode()}"


# What is wrong, the first line of the request, further lines, the status. Host is ours if none is given.
ATTACKS = {
    # Tokens.
    "no token": ("GET /jobs", "", 401),
    "an empty token": ("GET /jobs", "Authorization: Bearer ", 401),
    "another token": ("GET /jobs", "Authorization: Bearer 0123456789abcdef-of-a-tesT", 401),
    "a beginning of the token": ("GET /jobs", f"Authorization: Bearer {TOKEN[:-1]}", 401),
    "the token and more": ("GET /jobs", f"{GOOD}x", 401),
    "the token of another kind": ("GET /jobs", f"Authorization: Digest {TOKEN}", 401),
    "the token as a name": ("GET /jobs", f"Authorization: {TOKEN}", 401),
    "the token in a cookie": ("GET /jobs", f"Cookie: token={TOKEN}", 401),
    "the token in the address": (f"GET /jobs?token={TOKEN}", "", 401),
    "a wrong password": ("GET /jobs", basic("secret"), 401),
    "no base64": ("GET /jobs", "Authorization: Basic %%%", 401),
    "a password that is no text": ("GET /jobs", "Authorization: Basic Ov//", 401),
    "two headers": ("GET /jobs", f"Authorization: Bearer x\r\n{GOOD}", 400),
    "a token of 10 kB": ("GET /jobs", f"Authorization: Bearer {'a' * 10_000}", 401),
    "a token of 100 kB": ("GET /jobs", f"Authorization: Bearer {'a' * 100_000}", 431),
    "an API without a token": ("GET /api/jobs", "", 401),
    "metrics without a token": ("GET /metrics", "", 401),
    "OpenAPI without a token": ("GET /api/openapi.json", "", 401),
    # Who a proxy would name, from an address that is none.
    "a forged user": ("GET /jobs", "X-Forwarded-User: root", 401),
    "a forged user and address": ("GET /jobs", "X-Forwarded-User: root\r\nX-Forwarded-For: 10.1.2.3", 401),
    "a forged client": ("GET /jobs", "Forwarded: for=10.1.2.3\r\nX-Real-IP: 10.1.2.3", 401),
    "two forged users": ("GET /jobs", f"X-Forwarded-User: a\r\nX-Forwarded-User: b\r\n{GOOD}", 400),
    # Names of the host.
    "another host": ("GET /jobs", f"Host: evil.example\r\n{GOOD}", 421),
    "a host that ends like ours": ("GET /jobs", f"Host: 127.0.0.1.evil.example\r\n{GOOD}", 421),
    "a host with a user": ("GET /jobs", f"Host: localhost@evil.example\r\n{GOOD}", 421),
    "a host with markup": ("GET /jobs", f"Host: <script>alert(1)</script>\r\n{GOOD}", 421),
    "no host": ("GET /jobs", f"Host: \r\n{GOOD}", 421),
    "two hosts": ("GET /jobs", f"Host: localhost\r\nHost: evil.example\r\n{GOOD}", 400),
    "a poisoned host": ("GET /", f"X-Forwarded-Host: evil.example\r\n{GOOD}", 302),
    "an address of another site": ("GET http://evil.example/jobs", GOOD, 404),
    # Paths.
    "a path upwards": ("GET /../../../etc/passwd", GOOD, 404),
    "a hidden path upwards": ("GET /%2e%2e/%2e%2e/etc/passwd", GOOD, 404),
    "a path upwards below jobs": ("GET /jobs/..%2f..%2fetc%2fpasswd", GOOD, 404),
    "a NUL in a path": ("GET /jobs/one%00.html", GOOD, 404),
    "bytes that are no text": ("GET /jobs/%ff%fe", GOOD, 404),
    "SQL": ("GET /jobs/one'%20OR%20'1'='1", GOOD, 404),
    "markup in a path": ("GET /jobs/%3Cscript%3Ewindow.pwned=1%3C%2Fscript%3E", GOOD, 404),
    "two slashes, to another site": ("GET //evil.example/", GOOD, 404),
    "a line break in a path": ("GET /%0d%0aSet-Cookie:%20a=b", GOOD, 404),
    # Queries.
    "markup in a query": ("GET /jobs?project=%3Cimg%20src=x%20onerror=pwned%3E", GOOD, 200),
    "a name that no query has": ("GET /jobs?%3Cscript%3E=1", GOOD, 400),
    "a line break in a query": ("GET /jobs?project=a%0d%0aSet-Cookie:%20a=b", GOOD, 400),
    "a NUL in a query": ("GET /jobs?project=%00", GOOD, 400),
    "a parameter twice": ("GET /jobs?project=a&project=b", GOOD, 400),
    "too many": ("GET /jobs?most=1000000000", GOOD, 400),
    "a number that is none": ("GET /jobs?most=1e308", GOOD, 400),
    "for ever": ("GET /runs?since=99999999d", GOOD, 400),
    "a file instead of a cluster": ("GET /queue?cluster=/etc/passwd", GOOD, 404),
    "a long query": (f"GET /jobs?project={'a' * 3000}", GOOD, 414),
    "a long path": (f"GET /{'a' * 3000}", GOOD, 414),
    "many parameters": (f"GET /jobs?{'&'.join(f'a{i}=1' for i in range(250))}", GOOD, 400),
    # Methods and requests that are none.
    "POST": ("POST /jobs", f"{GOOD}\r\nContent-Length: 0", 405),
    "PUT": ("PUT /api/jobs/one", f"{GOOD}\r\nContent-Length: 0", 405),
    "DELETE": ("DELETE /api/jobs/one", GOOD, 405),
    "OPTIONS": ("OPTIONS /jobs", "Origin: https://evil.example", 405),
    "TRACE": ("TRACE /jobs", GOOD, 405),
    "another method by a header": ("GET /jobs", f"X-HTTP-Method-Override: DELETE\r\n{GOOD}", 200),
    "another address by a header": ("GET /jobs/none", f"X-Original-URL: /jobs\r\n{GOOD}", 404),
    "another origin": ("GET /api/jobs", f"Origin: https://evil.example\r\n{GOOD}", 200),
    "an image of another site": (
        "GET /report", f"Sec-Fetch-Site: cross-site\r\nSec-Fetch-Dest: image\r\n{GOOD}", 403,
    ),
    "a script of another site": ("GET /healthz", "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Dest: empty", 403),
    "a link of another site": (
        "GET /jobs", f"Sec-Fetch-Site: cross-site\r\nSec-Fetch-Dest: document\r\n{GOOD}", 200,
    ),
    "a request within a request": (
        "GET /jobs", f"{GOOD}\r\nContent-Length: 5\r\nTransfer-Encoding: chunked", 400,
    ),
    "a body": ("GET /jobs", f"{GOOD}\r\nContent-Length: 5", 400),
    "two lengths": ("GET /jobs", f"{GOOD}\r\nContent-Length: 5\r\nContent-Length: 6", 400),
    "a header on two lines": ("GET /jobs", "Authorization:\r\n Bearer x", 401),
    "a NUL in a header": ("GET /jobs", f"X: a\0b\r\n{GOOD}", 400),
    "a web socket": ("GET /jobs", f"{GOOD}\r\nConnection: Upgrade\r\nUpgrade: websocket", 200),
}  # fmt: skip


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    url = f"sqlite:///{tmp_path_factory.mktemp('serve')}/s.db"
    fill(url)
    with served(url, token="env:T", proxies=("10.0.0.0/8",)) as site:
        yield site


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_is_refused_and_leaves_no_trace_in_the_answer(site, name):
    first, lines, status = ATTACKS[name]
    head = [
        f"{first} HTTP/1.1",
        *([] if lines.startswith("Host:") else ["Host: 127.0.0.1"]),
        *filter(None, [lines]),
    ]
    answer = site.raw("\r\n".join([*head, "Connection: close", "", ""]).encode("latin-1"))
    top, _, body = answer.partition(b"\r\n\r\n")
    assert top.startswith(f"HTTP/1.1 {status} ".encode()), top[:200]
    headers = dict(line.decode().lower().split(": ", 1) for line in top.split(b"\r\n")[1:])
    assert "set-cookie" not in headers
    assert "evil" not in headers.get("location", "")
    assert "access-control-allow-origin" not in headers
    text = body.decode()
    assert TOKEN not in text
    assert "root:" not in text
    assert "Traceback" not in text
    # JSON with the type of JSON is not drawn.
    if not headers.get("content-type", "").startswith("application/json"):
        assert "<script>window.pwned" not in text
        assert "<img src" not in text
    # A request that is none is answered by the server alone.
    if text != "Invalid HTTP request received.":
        assert {name: headers[name] for name in SECURE} == {n: v.lower() for n, v in SECURE.items()}


def test_there_are_enough_and_openapi_names_all_refusals():
    assert len(ATTACKS) >= 40
    document = api_document(views_of(Reader(None)))  # type: ignore[arg-type]
    answers = document["paths"]["/api/jobs"]["get"]["responses"]
    assert {f"{status}" for *_, status in ATTACKS.values()} - {"302"} <= answers.keys()


@pytest.mark.parametrize("header", [GOOD, GOOD.replace("Bearer", "bearer"), basic(TOKEN), "X: 1\r\n" + GOOD])
def test_the_token_lets_in_programs_and_browsers(site, header):
    answer = site.raw(
        f"GET /api/jobs HTTP/1.1\r\nHost: localhost:1\r\n{header}\r\nConnection: close\r\n\r\n".encode()
    )
    assert answer.startswith(b"HTTP/1.1 200 "), answer


def test_names_of_the_store_are_text_on_pages_and_come_back_whole_as_json(site):
    _, _, page = site.get("/jobs/evil", {"Authorization": f"Bearer {TOKEN}"})
    assert b"window.pwned=1&lt;/script&gt;" in page
    assert b"<script>window.pwned" not in page
    assert b"<img src=x" not in page
    _, headers, answer = site.get("/api/jobs/evil", {"Authorization": f"Bearer {TOKEN}"})
    assert json.loads(answer)["job"]["script"] == EVIL
    assert headers["content-type"] == "application/json"


def test_who_is_refused_has_the_same_answer_for_any_address(site):
    answers = {site.get(path)[0::2] for path in ("/jobs", "/jobs/one", "/jobs/none", "/api/x", "/nowhere")}
    assert len(answers) == 1


def test_a_proxy_is_believed_by_its_address_alone(tmp_path):
    url = f"sqlite:///{tmp_path}/s.db"
    fill(url)
    user = {"X-Remote": "ann"}
    with served(url, proxies=("127.0.0.1",), user_header="X-Remote", names=("GPU.example.",)) as site:
        assert site.get("/jobs", user)[0] == 200
        assert site.get("/jobs", user | {"Host": "GPU.example.:443"})[0] == 200
        assert site.get("/jobs", user | {"Host": "gpu.example.evil"})[0] == 421
        assert site.get("/jobs")[0] == 401
        assert site.get("/jobs", {"X-Remote": " "})[0] == 401
        assert site.get("/jobs", {"X-Forwarded-User": "ann"})[0] == 401


def test_without_a_token_only_this_machine_is_answered(tmp_path):
    url = f"sqlite:///{tmp_path}/s.db"
    fill(url)
    with served(url) as site:
        assert site.get("/jobs")[0] == 200
        # A proxy on this machine that was put before it by mistake, and a page that had its name changed.
        for header in ("X-Forwarded-For", "Forwarded", "Via", "X-Real-IP"):
            assert site.get("/jobs", {header: "1.2.3.4"})[0] == 401
        assert site.get("/jobs", {"Host": "rebound.example"})[0] == 421


def test_what_schemathesis_makes_of_the_schema_is_answered_as_it_says(site, tmp_path):
    pytest.importorskip("schemathesis")
    start = "from schemathesis.cli import schemathesis; schemathesis()"
    address = f"http://127.0.0.1:{site.port}/api/openapi.json"
    options = ["--header", GOOD, "--max-examples", "5", "--seed", "1", "--no-color"]
    command = [sys.executable, "-c", start, "run", address, *options]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr
    assert " generated, " in done.stdout
