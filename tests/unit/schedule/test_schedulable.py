"""What may be scheduled: listed commands, without secrets, under names that files can have."""

import pytest

from advisor.core.errors import InputError
from advisor.schedule.schedulable import SCHEDULABLE, check_name, check_words, name_for, schedulable


def test_the_command_is_the_longest_name_that_the_words_begin_with():
    assert schedulable(["prices", "refresh", "--region", "us-east-1"]) == "prices refresh"
    assert schedulable(["prices", "--gpu", "H100"]) == "prices"
    assert schedulable(["recommend", "t.json", "--budget", "50"]) == "recommend"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "no command follows --"),
        (["schedule", "run"], "'schedule' cannot be scheduled: report, prices refresh"),
        (["queue", "show", "x"], "'queue show' cannot be scheduled"),
        (["trust", "."], "'trust' cannot be scheduled"),
        (["recomend", "x"], "'recomend' cannot be scheduled: .* Did you mean 'recommend'"),
        (["--version"], "'--version' cannot be scheduled"),
    ],
)
def test_other_commands_are_refused(words, message):
    with pytest.raises(InputError, match=message):
        schedulable(words)


@pytest.mark.parametrize(
    "words",
    [
        ["recommend", "t.py", "--", "--password", "hunter22"],
        ["recommend", "t.py", "--", "--api-key=abcdefgh"],
        ["recommend", "t.py", "--", "AKIAABCDEFGHIJKLMNOP"],
        ["report", "--out", "https://ann:hunter22@example.org/x"],
        ["report", "--to", "https://hooks.slack.com/services/T0/B0/abcdef"],
    ],
)
def test_secrets_are_refused_and_not_repeated(words):
    with pytest.raises(InputError, match="what looks like a password") as caught:
        check_words(words)
    assert not any(word in str(caught.value) for word in words[2:])


def test_words_that_no_file_could_hold_are_refused():
    for word in ("a\nb", "a\0b", "\x1b[2J", "\u202e"):
        with pytest.raises(InputError, match="does not show"):
            check_words(["recommend", word])
    with pytest.raises(InputError, match="more than 8,000 characters"):
        check_words(["recommend", "x" * 8001])
    check_words(["recommend", "mein Trainingsskript für 50 %.py", "--", "--lr", "$(x)", "a'b\"c\\"])


def test_names():
    for name in ("weekly", "A-1_b.c", "x" * 63):
        check_name(name)
    for name in ("", "-x", ".x", "a b", "x" * 64, "ü", "a/b", "a\n", "%h"):
        with pytest.raises(InputError, match="cannot be: take up to 63 letters"):
            check_name(name)
    assert name_for("prices refresh", []) == "prices-refresh"
    assert name_for("report", ["report", "report-2"]) == "report-3"
    for command in SCHEDULABLE:
        check_name(name_for(command, []))
