"""What this torch must have, and what is said of one that lacks it or is of another version."""

import ast
import re
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
from advisor.payload import torch_names  # noqa: E402 - needs torch
from advisor.payload.backend import PATCHES  # noqa: E402 - needs torch
from advisor.payload.torch_names import (  # noqa: E402 - needs torch
    GROUP_NAMES,
    MESH_NAMES,
    NAMES,
    MissingNameError,
    check,
    check_all,
    version_warning,
)

pytestmark = pytest.mark.torch

PAYLOAD = Path(torch_names.__file__).parent
# What we bring along, and what is asked for with a default.
NOT_NEEDED = {
    "torch._dynamo", "torch._C._cuda_getCurrentRawStream",
    # Asked for by hasattr.
    "torch.ops.aten._grouped_mm", "torch.ops.aten._grouped_mm.default",
}  # fmt: skip
ALL_NAMES = {**NAMES, **GROUP_NAMES, **MESH_NAMES}


def test_this_torch_has_all_names():
    check_all()
    check(MESH_NAMES)


@pytest.mark.parametrize(
    "path",
    ["torch.amp:GradScaler._no_such_method", "torch._C:_no_such_function", "torch.no_such_module:name"],
)
def test_a_missing_name_and_its_user_are_told(path):
    with pytest.raises(MissingNameError) as raised:
        check({"mode": ("torch:Tensor",), "scaler": ("torch:Tensor", path)})
    assert path.replace(":", ".") in str(raised.value)
    assert "'scaler'" in str(raised.value)


def test_a_name_that_a_version_dropped_is_noticed(monkeypatch):
    monkeypatch.delattr(torch.amp.GradScaler, "_maybe_opt_step")
    with pytest.raises(MissingNameError, match=r"GradScaler\._maybe_opt_step.*'scaler'"):
        check_all()


def test_users_are_patches_or_modules():
    modules = {path.stem for path in PAYLOAD.rglob("*.py")}
    assert set(ALL_NAMES) <= set(PATCHES) | modules


def names_in_full(tree: ast.AST) -> dict[str, str]:
    """What the module's own names stand for: ``aten`` and everything imported."""
    meanings = {"aten": "torch.ops.aten"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            meanings |= {alias.name: alias.name for alias in node.names if alias.asname is None}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            meanings |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return meanings


def is_private(name: str) -> bool:
    parts = name.split(".")
    return parts[0] == "torch" and any(re.match("_[^_]", part) for part in parts)


def private_names_used(path: Path) -> set[str]:
    """The dotted private names of torch in a module's source, those of instances left out."""
    tree = ast.parse(path.read_text())
    meanings = names_in_full(tree)
    written = {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    roots = ((name.split(".")[0], name) for name in written if re.fullmatch(r"[\w.]+", name))
    used = {meanings[root] + name.removeprefix(root) for root, name in roots if root in meanings}
    return {name for name in used | set(meanings.values()) if is_private(name)}


@pytest.mark.parametrize("path", sorted(PAYLOAD.rglob("*.py")), ids=lambda path: path.stem)
def test_private_names_in_the_source_are_looked_up(path):
    known = {name.replace(":", ".") for names in ALL_NAMES.values() for name in names}
    unknown = {
        name
        for name in private_names_used(path) - NOT_NEEDED
        if not any((entry + ".").startswith(name + ".") or name.startswith(entry + ".") for entry in known)
    }
    assert unknown == set()


@pytest.mark.parametrize(
    ("versions", "is_newer"),
    [
        (("2.13.0", "2.13.1+cpu", "2.13.0a0+git1234", "2.12.1", "2.11.0+cu130"), None),
        (("2.14.0", "3.0.1+cu140"), True),
        (("2.10.0", "2.6"), False),
    ],
)
def test_versions_that_are_not_expected_are_told(versions, is_newer):
    for version in versions:
        told = {"version": version, "tested": "2.13", "is_newer": is_newer}
        assert version_warning(version) == (None if is_newer is None else told)
