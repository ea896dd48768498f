"""JSON of others: large documents piece by piece within bounds, and one value or one clear error."""

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.formats import foreign_files
from advisor.formats.foreign_files import MOST_CHARACTERS, read_json, read_members

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def read(text: str, streamed: str = "ops") -> dict[str, Any]:
    members = read_members(io.StringIO(text), streamed=streamed)
    return {
        name: value if isinstance(value, str | int | dict | None) else list(value) for name, value in members
    }


@given(
    before=st.dictionaries(st.text(min_size=5), VALUES, max_size=3),
    ops=st.lists(VALUES, max_size=6),
    after=st.dictionaries(st.text(min_size=5), VALUES, max_size=3),
    indent=st.sampled_from([None, 2]),
    piece=st.sampled_from([1, 7, 2**16]),
)
def test_the_members_are_those_of_the_whole(before, ops, after, indent, piece):
    document = {**before, "ops": ops, **after}
    text = json.dumps(document, indent=indent)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(foreign_files, "_PIECE", piece)
        members = list(_listed(read_members(io.StringIO(text), streamed="ops")))
    assert members == list(json.loads(text).items())


def _listed(members: Any) -> Any:
    for name, value in members:
        yield name, list(value) if name == "ops" else value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("[1.5, -Infinity, 2e3]", [1.5, -float("inf"), 2000.0]),
        ("[]", []),
        (" [ ] ", []),
        ("[[1, 2], {}]", [[1, 2], {}]),
    ],
)
def test_a_list_is_the_streamed_member(text, value):
    assert read(text) == {"ops": value}


@pytest.mark.parametrize("text", ["3", '"text"', "null"])
def test_any_other_document_has_no_members(text):
    assert read(text) == {}


def test_elements_that_nobody_asks_for_are_passed_over():
    assert [name for name, _ in read_members(io.StringIO('{"ops": [1, 2], "b": 3}'), streamed="ops")] == [
        "ops",
        "b",
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "Expecting value at character 0"),
        ("{", "no member of an object at character 1"),
        ('{"a" 1}', "no member of an object at character 5"),
        ("{1: 2}", "no member of an object at character 1"),
        ('{"a": 1', "',' or '}' is missing at character 7"),
        ('{"a": 1 "b": 2}', "',' or '}' is missing at character 8"),
        ('{"a": 1,}', "no member of an object at character 8"),
        ('{"ops": [1, 2', "',' or ']' is missing at character 13"),
        ('{"ops": [1, ]}', "Expecting value at character 12"),
        ('{"ops": [1, tru', "Expecting value at character 12"),
        ('{"ops": ["abc', "Unterminated string starting at"),
        ('{"a": 1} x', "there is more after its end, at character 9"),
        ('{"a": 1, "a": 2}', "'a' stands twice"),
        ('{"a": ' + "9" * 5000 + "}", "a number of too many digits after character 6"),
        ('{"a": ' + "[" * 50_000, "nested too deeply at character 6"),
        ('{"ops": [' + "[" * 50_000, "nested too deeply at character 9"),
    ],
)
def test_what_is_no_document_is_refused_with_its_place(text, words):
    with pytest.raises(ValueError, match=r"\S") as caught:
        read(text)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        '{"ops": ["' + "x" * MOST_CHARACTERS + '", "y"]}' + " " * MOST_CHARACTERS,
        '{"a": "' + "x" * MOST_CHARACTERS + '"}' + " " * MOST_CHARACTERS,
        "{" + ",".join(f'"{number}": "{"x" * 2**20}"' for number in range(5)) + "}",
    ],
    ids=["an element", "a member", "all members together"],
)
def test_a_part_that_is_too_large_is_refused(text):
    with pytest.raises(ValueError, match="one part of it holds more than 4 million characters"):
        read(text)


def test_a_long_list_of_small_elements_is_no_such_part():
    element = "x" * 98
    number = MOST_CHARACTERS // 50
    members = read_members(io.StringIO("[" + f'"{element}",' * number + "1]"), streamed="ops")
    (elements,) = (list(values) for _, values in members)
    assert elements == [element] * number + [1]


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
