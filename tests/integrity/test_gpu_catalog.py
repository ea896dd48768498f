"""Every GPU of the catalog: in range, consistent with itself and with NVIDIA's hardware rules."""

import csv
import tomllib
from datetime import date
from pathlib import Path

import pytest

from advisor.core.errors import UnknownGpuError
from advisor.core.gpus import catalog_path, load_gpus, normal_form, provider_gpu, resolve_gpu, resolve_gpus
from advisor.core.units import GIB, KIB, TB
from advisor.core.values import GpuSpec
from tests.every import of_every

GPUS = tuple(load_gpus().values())
NVIDIA = tuple(gpu for gpu in GPUS if gpu.vendor == "NVIDIA")
BY_GPU = of_every(GPUS, name=lambda gpu: gpu.name)
BY_NVIDIA_GPU = of_every(NVIDIA, name=lambda gpu: gpu.name)
SHARED_SPECS = Path(__file__).resolve().parents[3] / "shared" / "gpus" / "specs.csv"

# CUDA programming guide, "Throughput of native arithmetic instructions": FP32 results per clock and SM.
FP32_LANES = {
    "3.7": 192, "5.2": 128, "6.0": 64, "6.1": 128, "7.0": 64, "7.5": 64, "8.0": 64, "8.6": 128,
    "8.9": 128, "9.0": 128, "10.0": 128, "10.3": 128, "12.0": 128,
}  # fmt: skip
# Dense FP16 FLOP per clock and SM of the tensor cores, FP32 accumulate at full rate.
TENSOR_FLOP = {
    "7.0": 1024, "7.5": 1024, "8.0": 2048, "8.6": 1024, "8.9": 1024, "9.0": 4096, "10.0": 8192,
    "10.3": 8192, "12.0": 1024,
}  # fmt: skip
# Vendors state these at another clock than the boost clock (GHz), see the comments in gpus.toml.
TENSOR_CLOCK_HZ = {
    "TITAN-V": 1.343e9, "H100-PCIE-80GB": 1.62e9, "H100-SXM-80GB": 1.83e9,
    "H100-NVL-94GB": 1.545e9, "H200-SXM-141GB": 1.83e9, "H200-NVL-141GB": 1.545e9,
    "GH200-96GB": 1.83e9, "B200-SXM-180GB": 1.856e9, "B300-SXM-288GB": 1.856e9, "GB200": 2.0076e9,
    "GB300": 2.0076e9,
}  # fmt: skip
HALF_RATE = {"A10G", "L40"}
FP64_FRACTION = {
    "3.7": 3, "5.2": 32, "6.0": 2, "6.1": 32, "7.0": 2, "7.5": 32, "8.0": 2, "8.6": 64, "8.9": 64,
    "9.0": 2, "10.0": 2, "10.3": 64, "12.0": 64,
}  # fmt: skip


def test_there_are_enough_gpus_and_the_ones_clouds_rent():
    assert len(GPUS) >= 45
    rented = (
        "K80 M60 P4 P100-PCIE-16GB V100-SXM-16GB V100-SXM-32GB T4 T4G L4 A10G A100-SXM-40GB"
        " A100-SXM-80GB L40S H100-SXM-80GB H200-SXM-141GB B200-SXM-180GB B300-SXM-288GB"
        " RTX-PRO-6000-Server MI300X RTX-3090 RTX-4090"
    )
    assert set(rented.split()) <= set(load_gpus())


@BY_GPU
def test_figures_are_of_their_type_and_in_range(gpu):
    assert type(gpu.num_sms) is int
    assert 5 <= gpu.num_sms <= 400
    assert 0.4e9 <= gpu.base_clock_hz <= gpu.boost_clock_hz <= 3e9
    assert type(gpu.memory_bytes) is int
    assert 5 * GIB <= gpu.memory_bytes <= 300 * GIB
    assert 100e9 <= gpu.memory_bytes_per_s <= 10e12
    assert type(gpu.l2_bytes) is int
    assert 1 * KIB**2 <= gpu.l2_bytes <= 128 * KIB**2
    assert 50 <= gpu.tdp_w <= 1500
    assert gpu.pcie_bytes_per_s in {7.875e9, 15.75e9, 31.5e9, 63e9}
    assert gpu.nvlink_bytes_per_s == 0 or 50e9 <= gpu.nvlink_bytes_per_s <= 1e12


@BY_GPU
def test_peaks_are_known_dtypes_in_range(gpu):
    assert {"fp64", "fp32"} <= set(gpu.vector_flops_per_s) <= {"fp64", "fp32", "fp16", "bf16"}
    assert set(gpu.tensor_flops_per_s) <= {"fp64", "fp32", "tf32", "fp16", "bf16", "fp8"}
    assert all(0.05 * TB <= peak <= 200 * TB for peak in gpu.vector_flops_per_s.values())
    assert all(5 * TB <= peak <= 6000 * TB for peak in gpu.tensor_flops_per_s.values())


@BY_GPU
def test_source_and_date_are_there(gpu):
    assert gpu.source_url.startswith("https://")
    assert date(2020, 1, 1) <= gpu.source_date <= date(2026, 11, 21)


@BY_GPU
def test_every_way_to_name_it_leads_to_it(gpu):
    for name in (gpu.name, *gpu.aliases):
        assert resolve_gpu(name) is gpu
    for family in gpu.families:
        assert gpu in resolve_gpus(family)


def test_no_name_or_alias_is_shared():
    forms = [form for gpu in GPUS for form in {normal_form(n) for n in (gpu.name, *gpu.aliases)}]
    assert len(forms) == len(set(forms))


@BY_NVIDIA_GPU
def test_fp32_peak_is_sms_x_lanes_x_2_x_boost_clock(gpu):
    formula = gpu.num_sms * FP32_LANES[gpu.compute_capability] * 2 * gpu.boost_clock_hz
    assert gpu.vector_flops_per_s["fp32"] == pytest.approx(formula, rel=0.01)


@BY_NVIDIA_GPU
def test_fp64_peak_is_the_architectures_fraction_of_fp32(gpu):
    ratio = gpu.vector_flops_per_s["fp32"] / gpu.vector_flops_per_s["fp64"]
    assert ratio == pytest.approx(FP64_FRACTION[gpu.compute_capability], rel=0.02)


@BY_NVIDIA_GPU
def test_tensor_peaks_are_dense(gpu):
    """A figure with sparsity is twice the formula, so 3 % tells them apart."""
    peaks = gpu.tensor_flops_per_s
    if gpu.compute_capability not in TENSOR_FLOP:
        assert not peaks
        return
    half_rate = gpu.name in HALF_RATE or is_geforce(gpu)
    clock_hz = TENSOR_CLOCK_HZ.get(gpu.name, gpu.boost_clock_hz)
    rate = TENSOR_FLOP[gpu.compute_capability] / (2 if half_rate else 1)
    assert peaks["fp16"] == pytest.approx(gpu.num_sms * rate * clock_hz, rel=0.03)


def is_geforce(gpu: GpuSpec) -> bool:
    """GeForce cards accumulate in FP32 at half the rate of the same chip on a workstation card."""
    return "/geforce-" in gpu.source_url


@BY_NVIDIA_GPU
def test_tensor_peaks_of_other_dtypes_follow_fp16(gpu):
    peaks = gpu.tensor_flops_per_s
    assert ("bf16" in peaks) == (gpu.compute_capability in set(TENSOR_FLOP) - {"7.0", "7.5"})
    for dtype, ratio in (("tf32", 0.5), ("bf16", 1.0), ("fp8", 2.0)):
        if dtype in peaks:
            assert peaks[dtype] == pytest.approx(ratio * peaks["fp16"], rel=0.02)


@BY_NVIDIA_GPU
def test_occupancy_limits_are_whole_units(gpu):
    limits = gpu.occupancy
    assert limits is not None
    assert limits.max_threads in {1024, 1536, 2048}
    assert limits.max_threads // limits.max_blocks in {64, 96, 128}
    assert limits.max_registers == (2 if gpu.compute_capability == "3.7" else 1) * 65536
    assert limits.max_registers % limits.register_unit == 0
    assert limits.max_shared_bytes % limits.shared_unit_bytes == 0
    per_block = limits.max_shared_bytes_per_block + limits.reserved_shared_bytes_per_block
    assert per_block <= limits.max_shared_bytes
    assert limits.reserved_shared_bytes_per_block == (KIB if float(gpu.compute_capability) >= 8 else 0)


def test_occupancy_limits_of_a_v100_are_what_a_device_reported():
    """deviceProperties of a Tesla V100-DGXS-32GB in a profiler trace (2021-06)."""
    gpu = resolve_gpu("Tesla V100-DGXS-32GB")
    assert gpu.num_sms == 80
    assert gpu.memory_bytes == pytest.approx(34_087_305_216, rel=1e-3)
    assert gpu.occupancy is not None
    assert gpu.occupancy.max_threads == 2048
    assert gpu.occupancy.max_registers == 65536
    assert gpu.occupancy.max_shared_bytes == 98304
    assert gpu.occupancy.max_shared_bytes_per_block == 98304


def test_other_vendors_have_no_cuda_occupancy():
    others = [gpu for gpu in GPUS if gpu.vendor != "NVIDIA"]
    assert {gpu.vendor for gpu in others} == {"AMD"}
    assert all(gpu.occupancy is None for gpu in others)


@pytest.mark.parametrize(
    ("name", "num_sms", "memory_gib", "memory_tb_per_s", "fp16_tflops", "nvlink_gb_per_s"),
    [
        ("K80", 13, 11.2, 0.2406, None, 0),
        ("T4", 40, 14.75, 0.320, 65, 0),
        ("V100-SXM-16GB", 80, 15.8, 0.9, 125, 150),
        ("A10G", 80, 22.35, 0.6, 70, 0),
        ("L4", 58, 22.35, 0.3, 121, 0),
        ("A100-PCIE-40GB", 108, 39.6, 1.555, 312, 0),
        ("A100-SXM-40GB", 108, 39.6, 1.555, 312, 300),
        ("A100-SXM-80GB", 108, 79.35, 2.039, 312, 300),
        ("H100-SXM-80GB", 132, 79.1, 3.35, 989, 450),
        ("H200-SXM-141GB", 132, 139.7, 4.8, 989, 450),
        ("GH200-96GB", 132, 95.6, 4.0, 989, 450),
        ("B200-SXM-180GB", 148, 179.06, 8.0, 2250, 900),
        ("GB200", 152, 185, 8.0, 2500, 900),
        ("GB300", 152, 268.6, 8.0, 2500, 900),
    ],
)
def test_facts_that_matter_most(name, num_sms, memory_gib, memory_tb_per_s, fp16_tflops, nvlink_gb_per_s):
    gpu = resolve_gpu(name)
    assert gpu.num_sms == num_sms
    assert gpu.memory_bytes / GIB == pytest.approx(memory_gib, rel=0.005)
    assert gpu.memory_bytes_per_s == pytest.approx(memory_tb_per_s * 1e12, rel=0.005)
    assert gpu.nvlink_bytes_per_s == nvlink_gb_per_s * 1e9
    if fp16_tflops:
        assert gpu.tensor_flops_per_s["fp16"] == pytest.approx(fp16_tflops * 1e12, rel=0.005)


def test_names_of_clouds_lead_to_their_gpu():
    document = tomllib.loads(catalog_path("gpus.toml").read_text(encoding="utf-8"))
    for text, name in document["exact_names"].items():
        assert resolve_gpu(text).name == name
        assert resolve_gpu(text.upper()).name == name
    for provider, names in document["provider_names"].items():
        for text, name in names.items():
            gpu_name, amount, unit = text.rsplit(" ", 2)
            assert provider_gpu(provider, gpu_name, f"{amount} {unit}").name == name


@pytest.mark.shared
def test_every_gpu_of_the_collected_table_is_known_or_left_out_on_purpose():
    if not SHARED_SPECS.is_file():
        pytest.skip("no ../shared/gpus beside the checkout")
    with SHARED_SPECS.open(encoding="utf-8", newline="") as file:
        names = [row["name"] for row in csv.DictReader(file)]
    unknown = set()
    for name in names:
        try:
            resolve_gpus(name)
        except UnknownGpuError:
            unknown.add(name)
    assert unknown == {
        "H100 SXM5 96 GB",  # no cloud rents it
        "H800 PCIe 80 GB", "H800 SXM5",  # clocks that contradict the H100's
        "Radeon Instinct MI250", "Radeon Instinct MI250X",  # two devices a board, one row
        "Radeon Instinct MI300A",  # the row repeats the MI300X
    }  # fmt: skip
