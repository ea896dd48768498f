"""The environment of the child process: what a training job needs of the user's, and nothing that uploads."""

import os
import re
import subprocess
import sys
from collections.abc import Collection, Mapping
from fnmatch import translate
from pathlib import Path

from advisor.core import processes
from advisor.core.devices import Device, detect_device, detect_devices
from advisor.core.errors import GpuUnusableError, InputError
from advisor.core.redaction import is_secret_variable
from advisor.core.units import GIB, MIB, format_bytes, whole_number

# What a training job needs, by what it is for. All else is handed on by its name (`profile.env`): names alone
# do not tell what holds a secret.
_ALLOWED = (
    # The user and the machine.
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "PWD", "LANG", "LANGUAGE", "LC_*", "TZ", "TERM", "COLUMNS",
    "LINES", "NO_COLOR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME",
    "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "HTTP_PROXY", "HTTPS_PROXY",
    "ALL_PROXY", "NO_PROXY", "CI",
    # The interpreter, its libraries and compilers. Not PYTHONSTARTUP, PYTHONINSPECT and the like.
    "PYTHONPATH", "PYTHONHOME", "PYTHONHASHSEED", "PYTHONWARNINGS", "PYTHONFAULTHANDLER", "PYTHONIOENCODING",
    "PYTHONUTF8", "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED", "PYTHONPYCACHEPREFIX", "PYTHONNOUSERSITE",
    "PYTHONUSERBASE", "PYTHONOPTIMIZE", "PYTHONMALLOC", "PYTHONSAFEPATH", "PYTHONDEVMODE",
    "PYTHONTRACEMALLOC", "VIRTUAL_ENV", "CONDA_*", "MAMBA_*", "PYENV_*", "LD_LIBRARY_PATH", "LD_PRELOAD",
    "LIBRARY_PATH", "CPATH", "CC", "CXX", "CFLAGS", "CXXFLAGS", "LDFLAGS", "MAX_JOBS", "MPLBACKEND",
    "MPLCONFIGDIR", "NLTK_DATA",
    # GPUs and numbers.
    "CUDA_*", "CUDNN_*", "CUBLAS_*", "NVIDIA_*", "NCCL_*", "GLOO_*", "UCX_*", "HIP_*", "ROCR_*", "ROCM_*",
    "TORCH_*", "TORCHINDUCTOR_*", "TORCHDYNAMO_*", "TORCHELASTIC_*", "PYTORCH_*", "TRITON_*", "OMP_*",
    "KMP_*", "GOMP_*", "MKL_*", "OPENBLAS_*", "BLIS_*", "NUMEXPR_*", "NUMBA_*", "VECLIB_*", "DNNL_*",
    "ONEDNN_*", "TBB_*", "XLA_*", "JAX_*", "TF_*", "MALLOC_*",
    # Libraries of training. Of Hugging Face's no pattern: tokens have many names there.
    "HF_HOME", "HF_HUB_CACHE", "HF_ASSETS_CACHE", "HF_DATASETS_CACHE", "HF_MODULES_CACHE", "HF_METRICS_CACHE",
    "HF_EVALUATE_CACHE", "HF_XET_CACHE", "HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE", "HF_HUB_DISABLE_*",
    "HF_HUB_ENABLE_HF_TRANSFER", "HF_HUB_VERBOSITY", "HF_ENDPOINT", "HUGGINGFACE_HUB_CACHE", "TRANSFORMERS_*",
    "TOKENIZERS_PARALLELISM", "DATASETS_VERBOSITY", "DIFFUSERS_*", "ACCELERATE_*", "DEEPSPEED_*", "DS_*",
    "PL_*", "KERAS_*", "TIMM_*", "TQDM_*", "WANDB_MODE", "WANDB_DISABLED", "WANDB_SILENT", "WANDB_PROJECT",
    "WANDB_DIR",
    # One process of several.
    "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE", "NODE_RANK",
    "ROLE_RANK", "ROLE_WORLD_SIZE", "ROLE_NAME", "MASTER_ADDR", "MASTER_PORT", "SLURM_PROCID",
    "SLURM_LOCALID", "SLURM_NTASKS", "SLURM_NTASKS_PER_NODE", "SLURM_NNODES", "SLURM_NODEID", "SLURM_JOB_ID",
    "SLURM_JOBID", "SLURM_JOB_NODELIST", "SLURM_NODELIST", "SLURM_CPUS_PER_TASK", "SLURM_GPUS_ON_NODE",
    "SLURM_NPROCS", "OMPI_COMM_WORLD_*", "PMI_RANK", "PMI_SIZE",
)  # fmt: skip
_IS_ALLOWED = re.compile("|".join(map(translate, _ALLOWED)))

# Shared credential files and metadata services would answer although the variables are gone.
ADDED = {
    **dict.fromkeys(
        ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "AZURE_CONFIG_DIR", "CLOUDSDK_CONFIG",
         "DOCKER_CONFIG", "HF_TOKEN_PATH", "KAGGLE_CONFIG_DIR", "KUBECONFIG", "NETRC"),
        os.devnull,
    ),
    **dict.fromkeys(("AWS_EC2_METADATA_DISABLED", "NO_GCE_CHECK"), "true"),
    # Only what lies in the caches is used.
    "HF_HUB_DISABLE_TELEMETRY": "1",
    **dict.fromkeys(("HF_DATASETS_OFFLINE", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"), "1"),
    # Experiment trackers; `payload/fake/patches/downloads.py` silences those that have no such variable.
    "CLEARML_OFFLINE_MODE": "1",
    "NEPTUNE_MODE": "debug",
    **dict.fromkeys(("COMET_MODE", "SWANLAB_MODE", "WANDB_MODE"), "disabled"),
    "PYTHONUNBUFFERED": "1",
    # glibc keeps what the script frees. Whether it returned the memory of a batch was chance, and to get it
    # anew took up to five times as long as to fill it.
    "MALLOC_MMAP_THRESHOLD_": str(32 * MIB),  # the most that glibc takes
    "MALLOC_TRIM_THRESHOLD_": str(1024 * GIB),
}  # fmt: skip

TEMPORARY = ("TMPDIR", "TEMP", "TMP")


def child_environment(
    environment: Mapping[str, str], temporary: Path, *, handed_on: Collection[str] = ()
) -> dict[str, str]:
    """What a training job needs of the environment, with what keeps a profiled script from uploading.

    Args:
        temporary: folder of the script's temporary files, which is removed after it.
        handed_on: names that the user wants the script to get, whatever they hold.
    """
    names = {*environment} - {*withheld(environment, handed_on)}
    kept = {name: value for name, value in environment.items() if name in names}
    # Builds of extensions that are cut off leave a lock behind, on which the next one waits for ever.
    folders = dict.fromkeys((*TEMPORARY, "TORCH_EXTENSIONS_DIR"), str(temporary))
    # A file of credentials that the user hands on is meant; what says "offline" stays.
    meant = {name for name in handed_on if name in environment and ADDED.get(name) == os.devnull}
    return kept | {name: value for name, value in ADDED.items() if name not in meant} | folders


def withheld(environment: Mapping[str, str], handed_on: Collection[str] = ()) -> tuple[str, ...]:
    """Names of the variables that a script does not get, in order.

    >>> withheld({"HOME": "/root", "DB_PASS": "x", "CUDA_TOKEN": "y", "MY_DATA": "/data"}, ["MY_DATA"])
    ('CUDA_TOKEN', 'DB_PASS')
    """
    names = {*environment} - {*handed_on, *TEMPORARY}
    return tuple(sorted(name for name in names if not _is_needed(name, environment[name])))


def _is_needed(name: str, value: str) -> bool:
    # A second look: patterns have no end, and an address may hold a login.
    return _IS_ALLOWED.match(name.upper()) is not None and not is_secret_variable(name, value)


# Which Python runs the script.

_ANSWER_S = 20.0
_NAME_AN_EXECUTABLE = "Name an executable such as .venv/bin/python, or the folder of a virtual environment."


def candidates(python: Path | None, environment: Mapping[str, str]) -> list[Path]:
    """Interpreters to try in order: the named one alone, or the active environment's, then ours.

    Raises InputError: the named one is no file that can be run.
    """
    if python is not None:
        return [_checked(python)]
    pythons = []
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        folder = environment.get(variable)
        if folder:
            pythons.append(Path(folder) / "bin" / "python")
    pythons.append(Path(sys.executable))
    # One environment may be known by two names; links are kept, since they mark environments.
    return list(dict.fromkeys(path for path in pythons if _can_run(path)))


def _checked(python: Path) -> Path:
    # A path forgets that it was ./python, and a bare name is looked for in PATH.
    python = python.absolute()
    if python.is_dir() and _can_run(python / "bin" / "python"):
        return python / "bin" / "python"
    if not _can_run(python):
        raise InputError(
            f"`profile.python` {str(python)!r} is not an interpreter that can be run. {_NAME_AN_EXECUTABLE}"
        )
    # Ask harmlessly: any other program would take our files for its own arguments.
    command = processes.isolated(python, "-S", "-c", "print('Python ' + 'speaks')")
    try:
        answer = processes.run(command, timeout_s=_ANSWER_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InputError(
            f"`profile.python` {str(python)!r} does not start: {error}. {_NAME_AN_EXECUTABLE}"
        ) from error
    if answer.stdout.strip() != b"Python speaks":
        raise InputError(f"`profile.python` {str(python)!r} is no Python interpreter. {_NAME_AN_EXECUTABLE}")
    return python


def _can_run(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)


# Which backend can be used here: a GPU that others work on gives wrong times.

BACKENDS = ("auto", "cuda", "fake", "cpu")


def check_backend(backend: str, environment: Mapping[str, str]) -> None:
    """Refuse an unknown backend, and CUDA on a GPU that is busy.

    Raises:
        InputError: there is no such backend.
        GpuUnusableError: the GPU that the script would get is busy.
    """
    if backend not in BACKENDS:
        raise InputError(f"unknown profiling backend {backend!r}: choose one of {', '.join(BACKENDS)}.")
    if backend in ("fake", "cpu"):
        return
    reason = why_first_is_busy(environment)
    if reason is not None:
        raise GpuUnusableError(
            f"{reason}.",
            "Wait until it is free, choose another with CUDA_VISIBLE_DEVICES, or profile without it:"
            " `profile.backend` fake.",
        )


def why_first_is_busy(environment: Mapping[str, str]) -> str | None:
    """In words what others do on the GPU that a script would get; None if it is free or unknown."""
    device = first_device(environment)
    return None if device is None else why_busy(device)


def first_device(environment: Mapping[str, str]) -> Device | None:
    """The GPU that a script would get, as nvidia-smi reports it; None where it tells nothing."""
    first = first_visible(environment)
    index = whole_number(first)
    if index is None:
        return detect_device(first) if first else None
    devices = detect_devices()
    return devices[index] if index < len(devices) else None


def visible_devices(backend: str, environment: Mapping[str, str]) -> dict[str, str]:
    """The variable that says which GPUs the script sees: one where it is measured, none on the CPU.

    >>> visible_devices("cuda", {"CUDA_VISIBLE_DEVICES": "3,1"})
    {'CUDA_VISIBLE_DEVICES': '3'}
    """
    if backend == "fake":
        return {}
    return {"CUDA_VISIBLE_DEVICES": "" if backend == "cpu" else first_visible(environment)}


def why_busy(device: Device) -> str | None:
    """In words what others do on the GPU; None if it is free or unknown."""
    if device.is_working:
        return f"the {device.name} is busy ({device.utilization or 0:.0%} utilized)"
    if not device.is_occupied:
        return None
    used, total = format_bytes(device.used_bytes or 0), format_bytes(device.memory_bytes or 0)
    return f"others use {used} of the {total} of the {device.name}"


def first_visible(environment: Mapping[str, str]) -> str:
    """What CUDA takes for its device 0: nvidia-smi's index, or a name; empty where all are hidden."""
    return environment.get("CUDA_VISIBLE_DEVICES", "0").partition(",")[0].strip()
