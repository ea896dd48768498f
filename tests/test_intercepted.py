"""The page on what is intercepted is complete, and names only what there is."""

import re
from pathlib import Path

import pytest

from advisor.payload import backend, replacing
from advisor.profile.environment import ADDED, TEMPORARY

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "what-is-intercepted.md").read_text()
PATCHES = sorted(backend.PATCHES)


@pytest.mark.parametrize("name", PATCHES)
def test_every_patch_is_listed(name):
    assert f"`{name}`" in PAGE.partition("## Patches of torch")[2]


def test_every_listed_patch_exists():
    rows = PAGE.partition("|---|---|\n")[2].rpartition("|---|---|\n")[2].splitlines()
    listed = {name for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[1])}
    assert listed == set(PATCHES)


@pytest.mark.parametrize("name", [*ADDED, *TEMPORARY])
def test_every_variable_is_listed(name):
    assert f"`{name}`" in PAGE


def test_every_listed_variable_is_set():
    variables = set(re.findall(r"`([A-Z][A-Z0-9_]+)`", PAGE))
    assert variables == {*ADDED, *TEMPORARY}


@pytest.mark.torch
def test_every_library_that_is_changed_is_listed():
    pytest.importorskip("torch")
    from advisor.payload.fake.patches import downloads, saving

    modules = {*downloads._UPLOADS, *downloads._TRACKERS, *downloads._SUMMARY_WRITERS, *saving._WRITES}
    names = {
        "wandb": "Weights & Biases", "comet_ml": "Comet", "huggingface_hub": "Hugging Face",
        "transformers": "Hugging Face", "lightning_fabric": "Lightning", "pytorch_lightning": "Lightning",
        "torch": "TensorBoard",
    }  # fmt: skip
    assert replacing._finder.actions == {}  # looking at the tables changes nothing here
    for module in modules:
        package = module.partition(".")[0]
        assert names.get(package, package).lower() in PAGE.lower(), package
