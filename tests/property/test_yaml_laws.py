"""Files of users are parsed by libyaml where it reads as PyYAML does, which must hold for any text."""

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from advisor.formats import strict_yaml

pytestmark = pytest.mark.skipif(not yaml.__with_libyaml__, reason="PyYAML was built without libyaml")

MOST_VALUES = 200
WORDS = st.text(st.sampled_from("ab_09.-:é~ '\"#[]{},&*|>=<@`\n\\"), max_size=6)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | st.floats(0, 1) | st.dates() | WORDS,
    lambda values: st.lists(values, max_size=3) | st.dictionaries(WORDS, values, max_size=3),
    max_leaves=12,
)
# Where in a text another one is put in, and how much it takes away.
EDITS = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 2), WORDS), max_size=3)


def edited(text: str, edits: list[tuple[float, int, str]]) -> str:
    for share, taken, put in edits:
        at = round(share * len(text))
        text = text[:at] + put + text[at + taken :]
    return text


def by_python(text: str) -> object:
    try:
        return strict_yaml._document(strict_yaml._StrictLoader(text, MOST_VALUES))
    except (yaml.YAMLError, *strict_yaml.FAULTS):
        return None


def read(text: str) -> object:
    try:
        return strict_yaml.read(text, MOST_VALUES)
    except (yaml.YAMLError, *strict_yaml.FAULTS):
        return None


@given(VALUES, st.sampled_from([True, False, None]), EDITS)
@example("a", True, [(0.0, 0, "b: |#c\n ")])  # libyaml takes for a comment what PyYAML refuses
@example("a", True, [(0.0, 0, "b: >-#c\n ")])
def test_both_parsers_find_the_same_in_a_text_or_what_is_wrong_with_it(value, flow, edits):
    text = edited(yaml.safe_dump(value, default_flow_style=flow), edits)
    assert repr(read(text)) == repr(by_python(text))


@given(VALUES, st.sampled_from([True, False, None]))
def test_libyaml_reads_what_is_written_plainly(value, flow):
    text = yaml.safe_dump(value, default_flow_style=flow, allow_unicode=True)
    if not strict_yaml._READ_OTHERWISE.search(text):
        found = strict_yaml._document(strict_yaml._FastLoader(text, MOST_VALUES))
        assert repr(found) == repr(by_python(text))
