"""What this torch must have, and what is said of one that lacks it or is of another version."""

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
from advisor.profile.payload import torch_names  # noqa: E402 - needs torch
from advisor.profile.payload.fake import patches  # noqa: E402 - needs torch
from advisor.profile.payload.torch_names import NAMES, MissingNameError, check, version_warning  # noqa: E402

pytestmark = pytest.mark.torch


def test_this_torch_has_all_names():
    check()


@pytest.mark.parametrize(
    "path",
    [
        "torch.amp:GradScaler._no_such_method",
        "torch._C:_no_such_function",
        "torch.no_such_module:name",
    ],
)
def test_a_missing_name_and_its_user_are_told(path):
    with pytest.raises(MissingNameError) as raised:
        check({"mode": ("torch:Tensor",), "scaler": ("torch:Tensor", path)})
    assert path.replace(":", ".") in str(raised.value)
    assert "'scaler'" in str(raised.value)


def test_a_name_that_a_version_dropped_is_noticed(monkeypatch):
    monkeypatch.delattr(torch.amp.GradScaler, "_maybe_opt_step")
    with pytest.raises(MissingNameError, match=r"GradScaler\._maybe_opt_step.*'scaler'"):
        check()


def test_users_are_patches_or_modules():
    modules = {path.stem for path in Path(torch_names.__file__).parent.rglob("*.py")}
    assert set(NAMES) <= set(patches.ORDER) | modules


@pytest.mark.parametrize("version", ["2.13.0", "2.13.1+cpu", "2.13.0a0+git1234", "2.12.1", "2.11.0+cu130"])
def test_expected_versions_are_nothing_to_tell(version):
    assert version_warning(version) is None


@pytest.mark.parametrize(
    ("version", "word"),
    [("2.14.0", "newer"), ("3.0.1+cu140", "newer"), ("2.10.0", "older"), ("2.6", "older")],
)
def test_other_versions_are_told(version, word):
    warning = version_warning(version)
    assert word in warning
    assert version in warning
    assert "2.13" in warning
