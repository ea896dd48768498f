"""A diff on its way to a terminal: as it is, or with a word on what is not."""

import pytest

from advisor.core.findings.about_estimates import NotPatched
from advisor.edits.patch import patch_of
from advisor.report.printing import Format, text_of
from advisor.report.recommendation import patch_document, prints_as_it_is

SCRIPT = "import torch\n\nif True:\n\tprint('Gruß')\n"


def test_tabs_and_letters_of_any_language_are_printed():
    patch = patch_of(SCRIPT, "train.py", ["tf32", "fp16"])
    assert prints_as_it_is(patch)
    assert f"{text_of(patch_document(patch), Format.TABLE)}\n" == patch.diff
    assert patch_document(patch).facts["changes"] == ("tf32",)
    (refused,) = patch.refused.values()
    assert isinstance(refused, NotPatched)
    assert refused.why == "by-hand"


@pytest.mark.parametrize("text", [SCRIPT.replace("\n", "\r\n"), SCRIPT.replace("Gruß", "\u202e")])
def test_what_could_deceive_is_escaped_and_known_to_be(text):
    patch = patch_of(text, "train.py", ["tf32"])
    assert not prints_as_it_is(patch)
    assert patch_document(patch).facts["diff"] == patch.diff


def test_without_a_change_nothing_is_printed():
    assert text_of(patch_document(patch_of(SCRIPT, "train.py", ["fp16"])), Format.TABLE) == ""
