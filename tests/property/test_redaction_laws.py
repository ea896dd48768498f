"""Laws of hiding: a planted secret never survives, ordinary words always do."""

from hypothesis import assume, example, given
from hypothesis import strategies as st

from advisor.core.plugins import error_in_words
from advisor.core.redaction import redact_message

# A password that begins as a port does.
DIGITS = "postgresql://me:123/{}@db.acme.test/x"
PLACES = [
    DIGITS,
    "https://me:{}@acme.test/prices",
    "https://{}@acme.test/prices",
    "postgresql://me:p@{}@db.acme.test/x",
    "https://acme.test/prices?signature={}&page=2",
    "/prices?id={}",
    "Authorization: Bearer {}",
    "Bearer {}",
    "password={}",
    "key={}",
    "token={}",
    "api_key: {}",
    '"client_secret": "{}"',
]
# No part of the words around it.
secrets = st.text(alphabet="ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", min_size=1, max_size=40).map("7Q".__add__)
marks = st.sampled_from(["", "@", "/", ":", "-", "_", "%", "+", ",", "="])
words = st.lists(st.text(alphabet="abcdefghij.,:()'-", max_size=8), max_size=6).map(" ".join)


@given(place=st.sampled_from(PLACES), first=secrets, mark=marks, last=secrets, before=words, after=words)
@example(place=PLACES[3], first="7Q0", mark="/", last="7Q1", before="", after="")
@example(place=DIGITS, first="7Q0", mark="/", last="7Q1", before="", after="")
def test_a_planted_secret_never_survives(place, first, mark, last, before, after):
    # A name that ends with a slash is a host, and what follows is a path.
    assume(mark != "/" or place != "https://{}@acme.test/prices")
    message = f"{before} {place.format(first + mark + last)} {after}"
    for shown in (redact_message(message), error_in_words(RuntimeError(message), most=10_000)):
        assert first not in shown
        assert last not in shown


@given(words)
def test_ordinary_words_stay(text):
    assert redact_message(text) == text


@given(place=st.sampled_from(PLACES), secret=secrets)
def test_hiding_twice_is_hiding_once(place, secret):
    once = redact_message(place.format(secret))
    assert redact_message(once) == once
