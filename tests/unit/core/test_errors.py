"""The tree of errors, its exit codes, and near matches."""

import inspect

import pytest

from advisor.core import errors
from advisor.core.errors import AdvisorError, did_you_mean

# Parent and exit code of each.
TREE = {
    "AdvisorError": ("Exception", 1),
    "InputError": ("AdvisorError", 2),
    "ConfigError": ("InputError", 2),
    "PolicyError": ("InputError", 2),
    "TraceError": ("InputError", 2),
    "RecordingError": ("InputError", 2),
    "BillError": ("InputError", 2),
    "UnknownGpuError": ("InputError", 2),
    "AmbiguousGpuError": ("UnknownGpuError", 2),
    "ProfileError": ("AdvisorError", 1),
    "GpuUnusableError": ("ProfileError", 1),
    "CalibrationError": ("ProfileError", 1),
    "CatalogError": ("AdvisorError", 1),
    "StaleCatalogError": ("CatalogError", 1),
    "StoreError": ("AdvisorError", 1),
    "LockedError": ("StoreError", 1),
    "ReceiptLostError": ("AdvisorError", 1),
    "CloudError": ("AdvisorError", 1),
    "DeliveryError": ("AdvisorError", 1),
    "NoOfferError": ("AdvisorError", 1),
    "PolicyViolationError": ("AdvisorError", 3),
    "NothingFeasibleError": ("AdvisorError", 4),
    "ThresholdExceededError": ("AdvisorError", 5),
}
CLASSES: dict[str, type[AdvisorError]] = {
    name: cls for name, cls in vars(errors).items() if inspect.isclass(cls) and name.endswith("Error")
}


def test_the_tree_is_complete():
    assert set(CLASSES) == set(TREE)


@pytest.mark.parametrize("name", TREE)
def test_each_error_has_its_parent_and_exit_code(name):
    parent, exit_code = TREE[name]
    cls = CLASSES[name]
    assert cls.__bases__[0].__name__ == parent
    assert cls.exit_code == exit_code
    assert issubclass(cls, AdvisorError)


@pytest.mark.parametrize("exit_code", [0, 130])
def test_no_error_ends_as_success_or_as_an_interrupt(exit_code):
    assert exit_code not in {cls.exit_code for cls in CLASSES.values()}


def test_letter_case_does_not_matter_and_the_answer_keeps_its_own():
    assert did_you_mean("a100-sxm-40gb", ["A100-SXM-40GB"]) == " Did you mean 'A100-SXM-40GB'?"
    assert did_you_mean("BUDGET", ["budget"]) == " Did you mean 'budget'?"


def test_the_nearest_comes_first():
    hint = did_you_mean("regionss", ["region", "regions"])
    assert hint.index("'regions'") < hint.index("'region'")


def test_three_at_most_unless_told_otherwise():
    choices = [f"budget{i}" for i in range(6)]
    assert did_you_mean("budget", choices).count("'budget") == 3
    assert did_you_mean("budget", choices, most=1).count("'budget") == 1


@pytest.mark.parametrize(("name", "choices"), [("budget", []), ("", ["budget"]), ("zzz", ["budget"])])
def test_nothing_near_is_no_hint(name, choices):
    assert did_you_mean(name, choices) == ""


def test_choices_may_be_read_once():
    assert "'budget'" in did_you_mean("budgt", iter(["budget", "deadline"]))
