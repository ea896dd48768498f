"""What redaction hides and what it leaves: every shape of a secret, and harmless texts that look alike."""

import base64

import pytest

from advisor.core.redaction import HIDDEN, redact, redact_message
from advisor.core.secrets import rules
from tests.secret_shapes import HARMLESS, SHAPES, split_by_escapes, split_by_lines

# A group of its own letters is what is secret of these; the rest says whose it is.
PART = 12


def is_gone(secret: str, shown: str) -> bool:
    """Whether no part of it that could be used is left."""
    pieces = [secret[start : start + PART] for start in range(0, max(1, len(secret) - PART), PART)]
    lines = [line for piece in pieces for line in piece.split("\n")]
    return not any(len(line) >= min(PART, 6) and line in shown for line in lines if "-----" not in line)


@pytest.mark.parametrize("name", SHAPES)
def test_every_shape_is_hidden(name):
    """Before: 30 to 45 of 63 to 85 shapes were printed and stored as they are."""
    text, secret = SHAPES[name]
    for hide in (redact, redact_message):
        shown = hide(text.format(secret))
        assert HIDDEN in shown, shown
        assert is_gone(secret, shown), shown


def test_there_are_many_of_both():
    assert len(SHAPES) >= 85
    assert len(HARMLESS) >= 60


@pytest.mark.parametrize("text", HARMLESS)
def test_harmless_texts_stay(text):
    """Before: counts of tokens, names of tokenizers and the like were hidden."""
    assert redact(text) == text


# They begin with letters of their own, so nothing around them is needed.
ISSUED = [
    "NVIDIA NGC", "Hugging Face", "GitHub", "GitLab", "PyPI", "Vault", "OpenAI", "Anthropic", "Stripe",
    "SendGrid", "Slack bot", "Google API", "AWS id", "JSON web token", "npm",
]  # fmt: skip


@pytest.mark.parametrize("name", ISSUED)
def test_colours_and_broken_lines_do_not_save_them(name):
    """Before: half of the secret was left."""
    _, secret = SHAPES[name]
    for split in (split_by_escapes, split_by_lines):
        shown = redact(f"said {split(secret)} and went on")
        assert secret[-5:] not in shown, shown
        assert secret[-10:-5] not in shown, shown


@pytest.mark.parametrize("name", ISSUED)
def test_base64_does_not_save_them(name):
    """Before: it was printed."""
    wrapped = base64.b64encode(f"x: {SHAPES[name][1]}".encode()).decode()
    assert wrapped[:20] not in redact(f"data: {wrapped}.")


@pytest.mark.parametrize("name", SHAPES)
def test_hiding_twice_is_hiding_once(name):
    text, secret = SHAPES[name]
    once = redact(text.format(secret))
    assert redact(once) == once


def test_every_rule_begins_with_its_anchor():
    """An anchor that no pattern begins with would never be tried."""
    for rule in rules():
        assert rule.anchors, rule.id
        assert all(anchor == anchor.lower() for anchor in rule.anchors), rule.id
        assert rule.pattern.groups or rule.pattern.pattern, rule.id
