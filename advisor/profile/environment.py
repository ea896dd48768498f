"""The environment of the child process: the user's, without credentials and without uploads."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from advisor.core import redaction
from advisor.core.units import GIB, MIB

# The clouds' and vendors' own variables, whatever they hold.
SCRUBBED_PREFIXES = (
    "ALIBABA_", "AMAZON_", "ARM_", "AWS_", "AZURE_", "BOTO_", "CLOUDSDK_", "DATABRICKS_",
    "DIGITALOCEAN_", "GCLOUD_", "GCP_", "GOOGLE_", "LAMBDA_", "OCI_", "RUNPOD_", "VAULT_",
)  # fmt: skip
# Anybody's secrets, told by how the name ends.
SCRUBBED_ENDINGS = (
    "APIKEY", "KEY", "KEY_ID", "PAT", "AUTH", "AUTH_SOCK", "CREDENTIAL",
    "CREDENTIALS", "PASSPHRASE", "PASSWD", "PASSWORD", "SECRET", "SECRETS", "TOKEN", "TOKENS",
)  # fmt: skip
SCRUBBED_NAMES = ("KUBECONFIG", "MYSQL_PWD", "NETRC", "PGPASSFILE", "PGPASSWORD")
# Whatever the name: an address with a password, such as that of a database, ours included.
_PASSWORD_INSIDE = re.compile(r"://[^/\s:@]*:[^/\s@]+@|\bpassword=")

# Shared credential files and metadata services would answer although the variables are gone.
ADDED = {
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    "AWS_EC2_METADATA_DISABLED": "true",
    "AZURE_CONFIG_DIR": os.devnull,
    "CLOUDSDK_CONFIG": os.devnull,
    "DOCKER_CONFIG": os.devnull,
    "HF_TOKEN_PATH": os.devnull,
    "KAGGLE_CONFIG_DIR": os.devnull,
    "KUBECONFIG": os.devnull,
    "NETRC": os.devnull,
    "NO_GCE_CHECK": "true",
    # Only what lies in the caches is used.
    "HF_DATASETS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    # Experiment trackers; `payload/fake/patches/loggers.py` silences those that have no such variable.
    "CLEARML_OFFLINE_MODE": "1",
    "COMET_MODE": "disabled",
    "NEPTUNE_MODE": "debug",
    "SWANLAB_MODE": "disabled",
    "WANDB_MODE": "disabled",
    "PYTHONUNBUFFERED": "1",
    # glibc keeps what the script frees. Whether it returned the memory of a batch was chance, and to get it
    # anew took up to five times as long as to fill it.
    "MALLOC_MMAP_THRESHOLD_": str(32 * MIB),  # the most that glibc takes
    "MALLOC_TRIM_THRESHOLD_": str(1024 * GIB),
}

# Of options alone: the variable PWD is a folder.
_PASSWORD_WORDS = ("PASS", "PW", "PWD")
_OPTION = re.compile(r"--?[A-Za-z]")
# As mysql takes it. Letters alone are an option with one dash, such as -precision.
_JOINED_PASSWORD = re.compile(r"-p[A-Za-z_-]*[^A-Za-z_=-]")

TEMPORARY = ("TMPDIR", "TEMP", "TMP")


def is_secret(name: str) -> bool:
    """Whether a variable of this name is kept from the script.

    >>> is_secret("HF_TOKEN"), is_secret("TOKENIZERS_PARALLELISM"), is_secret("HOME")
    (True, False, False)
    """
    upper = name.upper()
    ends = any(upper == ending or upper.endswith("_" + ending) for ending in SCRUBBED_ENDINGS)
    return ends or upper.startswith(SCRUBBED_PREFIXES) or upper in SCRUBBED_NAMES


def child_environment(environment: Mapping[str, str], temporary: Path) -> dict[str, str]:
    """The environment without secrets, with what keeps a profiled script from uploading.

    Args:
        environment: the user's.
        temporary: folder of the script's temporary files, which is removed after it.
    """
    kept = {
        name: value
        for name, value in environment.items()
        if not is_secret(name) and not _PASSWORD_INSIDE.search(value)
    }
    # Builds of extensions that are cut off leave a lock behind, on which the next one waits for ever.
    folders = dict.fromkeys((*TEMPORARY, "TORCH_EXTENSIONS_DIR"), str(temporary))
    return kept | ADDED | folders


def redact(text: str, environment: Mapping[str, str]) -> str:
    """The text without the values of secret variables and without what looks like a secret.

    >>> redact("login with password=hunter22 failed", {})
    'login with password=*** failed'
    """
    for name, value in environment.items():
        if is_secret(name) and len(value) >= 8:
            text = text.replace(value, redaction.HIDDEN)
    return redaction.redact(text)


def redact_arguments(arguments: Sequence[str], environment: Mapping[str, str]) -> tuple[str, ...]:
    """A command line without secrets, those in ``--api-key VALUE``, ``-p VALUE`` and ``-pVALUE`` included.

    >>> redact_arguments(["--lr", "3", "--api-key", "abc", "--token=abc", "-p", "abc"], {})
    ('--lr', '3', '--api-key', '***', '--token=***', '-p', '***')
    """
    shown: list[str] = []
    for before, argument in pairwise(("", *arguments)):
        flag, equals, _ = argument.partition("=")
        if _is_secret_option(before) and not _OPTION.match(argument):
            shown.append(redaction.HIDDEN)
        elif equals and _is_secret_option(flag):
            shown.append(f"{flag}={redaction.HIDDEN}")
        elif _JOINED_PASSWORD.match(argument):
            shown.append(f"-p{redaction.HIDDEN}")
        else:
            shown.append(redact(argument, environment))
    return tuple(shown)


def _is_secret_option(argument: str) -> bool:
    name = argument.lstrip("-").replace("-", "_")
    is_password = name == "p" or name.upper().rpartition("_")[2] in _PASSWORD_WORDS
    return argument.startswith("-") and (is_password or is_secret(name))
