"""Names of bytes become text, and text stays as it is."""

import os

from hypothesis import given
from hypothesis import strategies as st

from advisor.core.files import as_text


@given(st.binary())
def test_every_name_of_the_system_becomes_text(name):
    as_text(os.fsdecode(name)).encode()


@given(st.text(st.characters(min_codepoint=0xD700, max_codepoint=0xE010, categories=("Cs", "Co"))))
def test_every_half_of_a_character_becomes_text(name):
    as_text(name).encode()


@given(st.text())
def test_text_stays(name):
    assert as_text(name) == name
