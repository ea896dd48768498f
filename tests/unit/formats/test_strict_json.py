"""JSON of others: one value, or one clear error."""

import pytest

from advisor.formats.foreign_files import read_json


def test_json_is_read():
    assert read_json(b'{"a": [1, 2.5, {"b": null}], "c": {"b": true}}') == {
        "a": [1, 2.5, {"b": None}],
        "c": {"b": True},
    }


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b'{"a": 1, "a": 2}', "the key 'a' stands twice"),
        (b'[{"b": {"a": 1, "a": 1}}]', "stands twice"),
        (b"NaN", "NaN is no number"),
        (b"[-Infinity]", "-Infinity is no number"),
        (b"[" * 200_000, "nested too deeply"),
        (b"9" * 100_000, "digits"),
        (b'{"a": ', "it is no JSON"),
        (b"", "it is no JSON"),
        (b'"\xff"', "no text in UTF-8"),
    ],
)
def test_what_is_none_is_one_clear_error(text, words):
    with pytest.raises(ValueError, match=words):
        read_json(text)
