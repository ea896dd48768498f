"""Where programs keep credentials: hidden in the sandbox where they lie in what a script may read."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

# Below the home folder: files and whole folders.
IN_HOME = (
    # Clouds
    ".aws", ".azure", ".boto", ".config/gcloud", ".config/doctl", ".databrickscfg", ".lambda_cloud", ".oci",
    ".runpod", ".terraform.d/credentials.tfrc.json", ".vault-token",
    # Clusters and containers
    ".kube", ".docker", ".config/containers/auth.json", ".config/helm/registry", ".sky",
    # Other machines, keys, mail
    ".ssh", ".gnupg", ".netrc", ".password-store", ".local/share/keyrings", ".rclone.conf", ".config/rclone",
    # Databases
    ".pgpass", ".pg_service.conf", ".my.cnf", ".mylogin.cnf",
    # Data and trackers
    ".huggingface", ".cache/huggingface/token", ".cache/huggingface/stored_tokens", ".kaggle",
    ".config/kaggle", ".config/wandb", ".comet.config", ".neptune",
    # Code and packages
    ".git-credentials", ".config/git/credentials", ".config/gh", ".config/glab-cli", ".npmrc", ".pypirc",
    ".config/pip", ".pip", ".condarc", ".cargo/credentials", ".cargo/credentials.toml", ".gem/credentials",
    # A command line may hold a password.
    ".bash_history", ".zsh_history", ".python_history", ".psql_history", ".mysql_history",
)  # fmt: skip
# Variables that name such files and folders, several with ``:`` between them.
NAMED_BY = (
    "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AZURE_CONFIG_DIR", "AZURE_FEDERATED_TOKEN_FILE", "BOTO_CONFIG", "CLOUDSDK_CONFIG", "DOCKER_CONFIG",
    "GNUPGHOME", "GOOGLE_APPLICATION_CREDENTIALS", "HF_TOKEN_PATH", "KAGGLE_CONFIG_DIR", "KUBECONFIG",
    "MYSQL_HOME", "NETRC", "NPM_CONFIG_USERCONFIG", "OCI_CLI_CONFIG_FILE", "PGPASSFILE", "PGSERVICEFILE",
    "PGSSLKEY", "PIP_CONFIG_FILE", "SSH_AUTH_SOCK",
)  # fmt: skip
# Of containers; mostly a link into /run.
_MOUNTED = "/var/run/secrets"
# The sandbox has its own.
_REPLACED = (Path("/dev"), Path("/proc"), Path("/run"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Hidden:
    """What of the list is there.

    Attributes:
        paths: to hide, none of them a link.
        left: not to be hidden, since the script, its interpreter or the working folder lies there.
    """

    paths: tuple[Path, ...]
    left: tuple[Path, ...]


def hidden(environment: Mapping[str, str], needed: Iterable[Path]) -> Hidden:
    """What of the list is on this machine.

    Args:
        environment: the user's.
        needed: what the script cannot do without.
    """
    kept = [path.resolve() for path in needed]
    paths: list[Path] = []
    left: list[Path] = []
    for path in dict.fromkeys(_real(path) for path in _known(environment)):
        if path is None or any(path.is_relative_to(folder) for folder in _REPLACED):
            continue
        if any(one.is_relative_to(path) for one in kept):
            left.append(path)
        elif not any(path.is_relative_to(other) for other in paths):
            paths.append(path)
    return Hidden(paths=tuple(paths), left=tuple(left))


def _known(environment: Mapping[str, str]) -> Sequence[Path]:
    home = Path(os.path.expanduser("~"))  # noqa: PTH111 - pathlib's raises where there is no such user
    named = [part for name in NAMED_BY for part in environment.get(name, "").split(os.pathsep) if part]
    # Where the home of Hugging Face's caches is another.
    caches = [environment.get("HF_HOME"), os.path.join(environment.get("XDG_CACHE_HOME", ""), "huggingface")]  # noqa: PTH118
    named += [os.path.join(cache, name) for cache in caches if cache for name in ("token", "stored_tokens")]  # noqa: PTH118
    return [*(home / name for name in IN_HOME), Path(_MOUNTED), *_our_own(), *map(Path, named)]


def _our_own() -> list[Path]:
    """Settings and database hold addresses with passwords."""
    from platformdirs import user_config_path, user_data_path

    return [user_config_path("advisor"), user_data_path("advisor")]


def _real(path: Path) -> Path | None:
    try:
        # Mounts cannot lie on links, and a home in a dotfiles repository is full of them.
        return path.expanduser().resolve(strict=True)
    except (OSError, RuntimeError):
        return None
