"""Names of GPUs, GPU strings, and reading the catalog."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core import gpus as gpus_module
from advisor.core.errors import AmbiguousGpuError, CatalogError, InputError, UnknownGpuError
from advisor.core.files import as_text
from advisor.core.gpus import (
    catalog_path,
    load_gpus,
    normal_form,
    parse_gpu_request,
    provider_gpu,
    read_catalog,
    resolve_gpu,
    resolve_gpus,
)
from advisor.core.units import MIB


@pytest.mark.parametrize(
    ("text", "name"),
    [
        # torch's device names
        ("NVIDIA A100-SXM4-40GB", "A100-SXM-40GB"),
        ("NVIDIA A100-SXM4-80GB", "A100-SXM-80GB"),
        ("NVIDIA A100 80GB PCIe", "A100-PCIE-80GB"),
        ("NVIDIA A100-PCIE-40GB", "A100-PCIE-40GB"),
        ("NVIDIA H100 80GB HBM3", "H100-SXM-80GB"),
        ("NVIDIA H100 PCIe", "H100-PCIE-80GB"),
        ("NVIDIA H100 NVL", "H100-NVL-94GB"),
        ("NVIDIA H200", "H200-SXM-141GB"),
        ("NVIDIA H200 NVL", "H200-NVL-141GB"),
        ("NVIDIA B200", "B200-SXM-180GB"),
        ("NVIDIA A10G", "A10G"),
        ("NVIDIA L4", "L4"),
        ("NVIDIA L40", "L40"),
        ("NVIDIA L40S", "L40S"),
        ("NVIDIA RTX A6000", "RTX-A6000"),
        ("NVIDIA RTX 6000 Ada Generation", "RTX-6000-Ada"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "RTX-PRO-6000-Server"),
        ("NVIDIA GeForce RTX 3090", "RTX-3090"),
        ("NVIDIA GeForce RTX 4090", "RTX-4090"),
        ("NVIDIA TITAN RTX", "TITAN-RTX"),
        ("Tesla T4", "T4"),
        ("Tesla K80", "K80"),
        ("Tesla V100-SXM2-16GB", "V100-SXM-16GB"),
        ("Tesla V100-DGXS-32GB", "V100-DGXS-32GB"),
        ("Tesla P100-PCIE-16GB", "P100-PCIE-16GB"),
        ("AMD Instinct MI300X", "MI300X"),
        # GCP's accelerator types
        ("nvidia-tesla-a100", "A100-SXM-40GB"),
        ("nvidia-a100-80gb", "A100-SXM-80GB"),
        ("nvidia-h100-80gb", "H100-SXM-80GB"),
        ("nvidia-h100-mega-80gb", "H100-SXM-80GB"),
        ("nvidia-h200-141gb", "H200-SXM-141GB"),
        ("nvidia-tesla-v100", "V100-SXM-16GB"),
        ("nvidia-tesla-t4", "T4"),
        ("nvidia-l4", "L4"),
        # what people type
        ("l40s", "L40S"),
        ("rtx3090", "RTX-3090"),
        ("RTX_3090", "RTX-3090"),
        ("  4090 ", "RTX-4090"),
        ("T4g", "T4G"),
        ("rtx 4070 ti super", "RTX-4070-Ti-SUPER"),
    ],
)
def test_a_name_means_one_gpu(text, name):
    assert resolve_gpu(text).name == name


@pytest.mark.parametrize(
    ("family", "members"),
    [
        ("A100", ["A100-PCIE-40GB", "A100-PCIE-80GB", "A100-SXM-40GB", "A100-SXM-80GB"]),
        ("A100-80GB", ["A100-PCIE-80GB", "A100-SXM-80GB"]),
        ("NVIDIA A100 80 GB", ["A100-PCIE-80GB", "A100-SXM-80GB"]),
        ("a100 sxm", ["A100-SXM-40GB", "A100-SXM-80GB"]),
        ("H200", ["H200-SXM-141GB", "H200-NVL-141GB"]),
        ("L40", ["L40"]),
    ],
)
def test_a_family_widens_to_its_members_and_a_model_does_not(family, members):
    assert [gpu.name for gpu in resolve_gpus(family)] == members


def test_a_family_where_one_gpu_is_needed_lists_its_members():
    with pytest.raises(AmbiguousGpuError, match="choose one of A100-PCIE-80GB, A100-SXM-80GB"):
        resolve_gpu("A100-80GB")


@pytest.mark.parametrize("text", ["A101", "A100-SXM-60GB", "L", "", "NVIDIA", "A100 80GB SXM9"])
def test_an_unknown_gpu_is_an_error_that_quotes_it(text):
    with pytest.raises(UnknownGpuError, match=f"no GPU is called {text!r}"):
        resolve_gpus(text)


def test_an_unknown_gpu_is_told_the_near_matches():
    with pytest.raises(UnknownGpuError, match="Did you mean 'RTX-3090'"):
        resolve_gpu("NVIDIA GeForce RTX 3091")


@pytest.mark.parametrize(
    ("text", "names", "counts"),
    [
        ("L4", ["L4"], ()),
        ("L4:1", ["L4"], (1,)),
        ("A100-80GB:8", ["A100-PCIE-80GB", "A100-SXM-80GB"], (8,)),
        ("A100:80GB:1..4", ["A100-PCIE-80GB", "A100-SXM-80GB"], (1, 2, 3, 4)),
        ("H200:1,2,4", ["H200-SXM-141GB", "H200-NVL-141GB"], (1, 2, 4)),
        ("L4:8, 1 .. 2", ["L4"], (1, 2, 8)),
        ("NVIDIA A100-SXM4-80GB", ["A100-SXM-80GB"], ()),
        ("nvidia-tesla-a100:2", ["A100-SXM-40GB"], (2,)),
        ("RTX:3090:2", ["RTX-3090"], (2,)),
    ],
)
def test_gpu_strings(text, names, counts):
    request = parse_gpu_request(text)
    assert [gpu.name for gpu in request.gpus] == names
    assert request.counts == counts
    assert request.text == text


@pytest.mark.parametrize("text", ["L4:", "L4:0", "L4:-1", "L4:4..1", "L4:1,,2", "L4:1.5", "L4:99999"])
def test_a_wrong_number_of_gpus_says_what_is_allowed(text):
    with pytest.raises(InputError, match=r"is not a number of GPUs: write NAME:8"):
        parse_gpu_request(text)


def test_an_unknown_gpu_with_a_count_is_named_without_it():
    with pytest.raises(UnknownGpuError, match="no GPU is called 'Z99'"):
        parse_gpu_request("Z99:8")


def test_what_is_neither_memory_nor_a_count_is_part_of_the_name():
    with pytest.raises(UnknownGpuError, match="no GPU is called 'A100:90GB'"):
        parse_gpu_request("A100:90GB")


def test_a_clouds_own_name_needs_its_memory():
    assert provider_gpu("aws", "A100", "40 GiB").name == "A100-SXM-40GB"
    assert provider_gpu("aws", "A100", "80 GiB").name == "A100-SXM-80GB"
    assert provider_gpu("gcp", "A100-80GB", "80 GB").name == "A100-SXM-80GB"
    with pytest.raises(UnknownGpuError, match=r"aws has a GPU 'A100' with 60 GiB"):
        provider_gpu("aws", "A100", "60 GiB")
    with pytest.raises(UnknownGpuError, match="azure has a GPU"):
        provider_gpu("azure", "A100", "80 GiB")


def test_normal_form_keeps_what_tells_models_apart():
    assert normal_form("Tesla V100-SXM2-16GB") == "v-100-sxm-2-16-gb"
    assert normal_form("L40S") != normal_form("L40")
    assert normal_form("A100-SXM4-80GB") != normal_form("A100-SXM-480GB")


def test_the_catalog_is_read_once_and_cannot_be_changed():
    catalog = load_gpus()
    assert load_gpus() is catalog
    with pytest.raises(TypeError):
        catalog["L4"] = catalog["T4"]  # type: ignore[index]
    with pytest.raises(TypeError):
        catalog["L4"].vector_flops_per_s["fp32"] = 1.0  # type: ignore[index]


def test_catalogs_are_found_in_the_checkout_or_the_package():
    assert catalog_path("gpus.toml").is_file()
    with pytest.raises(CatalogError, match=r"'none\.toml' is missing: looked in .*_catalogs"):
        catalog_path("none.toml")


def test_installed_catalogs_win_over_those_beside_the_package(tmp_path, monkeypatch):
    installed = tmp_path / "advisor" / "_catalogs"
    installed.mkdir(parents=True)
    (tmp_path / "catalogs").mkdir()
    for folder in (installed, tmp_path / "catalogs"):
        (folder / "gpus.toml").touch()
    monkeypatch.setattr(gpus_module, "__file__", str(tmp_path / "advisor" / "core" / "gpus.py"))
    assert catalog_path("gpus.toml") == installed / "gpus.toml"


# --- Broken catalogs ------------------------------------------------------------------------------

SHIPPED = catalog_path("gpus.toml").read_text(encoding="utf-8")
L4_MEMORY = f"memory_bytes = {22888 * MIB:_}"


def break_catalog(tmp_path: Path, old: str, new: str) -> Path:
    path = tmp_path / "gpus.toml"
    start = SHIPPED.index("[gpu.L4]")
    assert old in SHIPPED[start:]
    path.write_text(SHIPPED[:start] + SHIPPED[start:].replace(old, new, 1), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("[gpu.L4]", "[gpu.L4", "Expected"),
        (L4_MEMORY, "", r"\[gpu\.L4\] lacks or should not have memory_bytes"),
        (L4_MEMORY, f"{L4_MEMORY}\nmemory_gb = 24", r"\[gpu\.L4\] .* memory_gb"),
        ('compute_capability = "8.9"', 'compute_capability = "8.8"', "without occupancy limits"),
        ("aliases = []", 'aliases = ["Tesla T4"]', "'t-4' means both 'T4' and 'L4'"),
        ("aliases = []", 'aliases = ["A100"]', "'a-100' is a family of"),
        ("aliases = []", 'aliases = ["NVIDIA"]', "means both"),
        ("[gpu.L4]", "[gpu.L5]", "unknown GPUs L4"),
        ("fp32 = 30.29e12", 'fp32 = "fast"', "could not convert"),
    ],
)
def test_a_broken_catalog_is_refused_with_the_reason(tmp_path, old, new, problem):
    path = break_catalog(tmp_path, old, new)
    with pytest.raises(CatalogError, match=problem) as caught:
        read_catalog(path)
    assert str(path) in str(caught.value)


def test_an_incomplete_or_unreadable_catalog_is_refused(tmp_path):
    path = tmp_path / "gpus.toml"
    path.write_text("[gpu]\n", encoding="utf-8")
    with pytest.raises(CatalogError, match="missing 'compute_capability'"):
        read_catalog(path)
    with pytest.raises(CatalogError, match="No such file"):
        read_catalog(tmp_path / "absent.toml")


@given(st.binary())
def test_every_name_of_the_system_becomes_text(name):
    as_text(os.fsdecode(name)).encode()


@given(st.text(st.characters(min_codepoint=0xD700, max_codepoint=0xE010, categories=("Cs", "Co"))))
def test_every_half_of_a_character_becomes_text(name):
    as_text(name).encode()


@given(st.text())
def test_text_stays(name):
    assert as_text(name) == name
