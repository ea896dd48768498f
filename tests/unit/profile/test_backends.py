"""A GPU that others work on is refused; what the driver says comes from a program on PATH."""

import pytest

from advisor.core.devices import Device
from advisor.core.errors import GpuUnusableError, InputError
from advisor.profile.environment import BACKENDS, check_backend, visible_devices, why_busy, why_first_is_busy
from tests.programs import write_program

FREE = "NVIDIA A10G, 23028, 300, 2, 300.00"
BUSY = "NVIDIA A10G, 23028, 300, 83, 300.00"
FULL = "NVIDIA A10G, 23028, 20000, 0, 300.00"


@pytest.fixture
def nvidia_smi(tmp_path, monkeypatch):
    """Puts a program of that name on PATH that prints the given lines."""

    def make(*lines):
        write_program(tmp_path / "nvidia-smi", "".join(f"echo '{line}'\n" for line in lines))
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    return make


def test_unknown_backend():
    with pytest.raises(InputError, match="'gpu': choose one of auto, cuda, fake, cpu"):
        check_backend("gpu", {})


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_free_gpu_is_fine_and_no_driver_is_for_the_child_to_tell(
    backend, nvidia_smi, monkeypatch, tmp_path
):
    nvidia_smi(FREE)
    check_backend(backend, {})
    monkeypatch.setenv("PATH", str(tmp_path / "none"))
    check_backend(backend, {})


@pytest.mark.parametrize(
    ("line", "words"), [(BUSY, r"busy \(83% utilized\)"), (FULL, "others use .* of the")]
)
def test_a_busy_gpu_is_refused_where_it_would_be_measured(line, words, nvidia_smi):
    nvidia_smi(line)
    for backend in ("auto", "cuda"):
        with pytest.raises(GpuUnusableError, match=words + ".*`profile.backend` fake"):
            check_backend(backend, {})
    for backend in ("fake", "cpu"):
        check_backend(backend, {})


def test_the_gpu_that_the_script_sees_counts(nvidia_smi):
    nvidia_smi(BUSY, FREE)
    check_backend("cuda", {"CUDA_VISIBLE_DEVICES": "1,0"})
    with pytest.raises(GpuUnusableError):
        check_backend("cuda", {"CUDA_VISIBLE_DEVICES": "0"})
    check_backend("cuda", {"CUDA_VISIBLE_DEVICES": "7"})


# Answers as nvidia-smi does: all cards, one by its name, or an exit code for a name it does not know.
BY_NAME = f"""
case "$*" in
  *--id=GPU-1111*) echo '{FREE}' ;;
  *--id=MIG-3333*) echo '{BUSY}' ;;
  *--id=*) echo 'No devices were found'; exit 6 ;;
  *) echo '{FULL}'; echo '{BUSY}' ;;
esac
"""


@pytest.fixture
def by_name(tmp_path, monkeypatch):
    write_program(tmp_path / "nvidia-smi", BY_NAME)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")


@pytest.mark.parametrize(
    ("visible", "words"),
    [
        (None, "others use"),
        ("0", "others use"),
        ("1", "busy"),
        ("GPU-1111", None),
        ("GPU-1111,0", None),
        ("MIG-3333", "busy"),
        ("GPU-9999", None),
        ("-1", None),
        ("", None),
    ],
)
def test_the_gpu_is_asked_for_by_the_name_it_is_given(by_name, visible, words):
    environment = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    reason = why_first_is_busy(environment)
    assert reason is None if words is None else words in reason


def test_what_the_driver_does_not_say_is_not_busy():
    silent = Device(name="GPU", memory_bytes=None, used_bytes=None, utilization=None)
    assert why_busy(silent) is None
    assert why_busy(Device(name="GPU", memory_bytes=None, used_bytes=10**12, utilization=0.15)) is None
    assert why_busy(Device(name="GPU", memory_bytes=1000, used_bytes=200, utilization=0.0)) is None
    assert why_busy(Device(name="GPU", memory_bytes=1000, used_bytes=201, utilization=0.0)) is not None


@pytest.mark.parametrize(
    ("backend", "given", "expected"),
    [
        ("cpu", "0,1", {"CUDA_VISIBLE_DEVICES": ""}),
        ("fake", "0,1", {}),
        ("cuda", "2,1", {"CUDA_VISIBLE_DEVICES": "2"}),
        ("auto", "GPU-8932f937,1", {"CUDA_VISIBLE_DEVICES": "GPU-8932f937"}),
        ("auto", None, {"CUDA_VISIBLE_DEVICES": "0"}),
        ("cuda", "", {"CUDA_VISIBLE_DEVICES": ""}),
    ],
)
def test_where_it_is_measured_the_script_sees_one_gpu(backend, given, expected):
    environment = {} if given is None else {"CUDA_VISIBLE_DEVICES": given}
    assert visible_devices(backend, environment) == expected
