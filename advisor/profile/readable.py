"""What a sandboxed script may read: the one list. What is not on it is not there."""

import contextlib
import ctypes
import json
import os
import re
import stat
import sys
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from advisor.core.errors import InputError

# Where programs keep credentials: hidden in the sandbox where they lie in what a script may read.

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
CREDENTIALS_NAMED_BY = (
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
    """What of the list is there."""

    paths: tuple[Path, ...]
    """To hide, none of them a link."""
    left: tuple[Path, ...]
    """Not to be hidden, since the script, its interpreter or the working folder lies there."""


def hidden(environment: Mapping[str, str], needed: Iterable[Path]) -> Hidden:
    """What of the list is on this machine."""
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
    # Machines where kernels alone are measured have numpy and no package more.
    import platformdirs

    home = Path(os.path.expanduser("~"))  # noqa: PTH111 - pathlib's raises where there is no such user
    named = [
        part for name in CREDENTIALS_NAMED_BY for part in environment.get(name, "").split(os.pathsep) if part
    ]
    # Where the home of Hugging Face's caches is another.
    caches = [environment.get("HF_HOME"), os.path.join(environment.get("XDG_CACHE_HOME", ""), "huggingface")]  # noqa: PTH118
    named += [os.path.join(cache, name) for cache in caches if cache for name in ("token", "stored_tokens")]  # noqa: PTH118
    # Our own settings and database hold addresses with passwords.
    own = platformdirs.user_config_path("advisor"), platformdirs.user_data_path("advisor")
    return [*(home / name for name in IN_HOME), Path(_MOUNTED), *own, *map(Path, named)]


def _real(path: Path) -> Path | None:
    try:
        # Mounts cannot lie on links, and a home in a dotfiles repository is full of them.
        return path.expanduser().resolve(strict=True)
    except (OSError, RuntimeError):
        return None


# Where a Python interpreter and its packages are, read from their files: nothing of it is run.

_SITES = ("lib*/python3*/site-packages", "lib*/python3*/dist-packages", "lib/python3/dist-packages")
_SYSTEM = (Path("/usr"), Path("/usr/local"))
# Paths in the lines of a .pth file that are code.
_QUOTED_PATH = re.compile(r"""['"](/[^'"\n]+)['"]""")
_MOST_LINKS = 40
_MOST_BYTES = 2**20


def interpreter_files(program: Path, home: Path) -> list[Path]:
    """Folders and files that an interpreter is made of: environment, base, packages that are elsewhere.

    Args:
        program: as it is called; beside it and beside what it links to are the libraries.
        home: of the user, where packages may be, too.
    """
    found = dict.fromkeys(part for path in _links(program) for part in _parts(path))
    prefixes = [*found, *_SYSTEM, home / ".local"]
    sites = [site for prefix in prefixes for pattern in _SITES for site in prefix.glob(pattern)]
    of_user = (home / ".local").glob("lib*/python3*")
    return [*found, *of_user, *(path for site in sites for path in _elsewhere(site))]


def _links(program: Path) -> Iterator[Path]:
    """The program and what it links to, link by link, since each may lie in another environment."""
    path = program.absolute()
    for _ in range(_MOST_LINKS):
        yield path
        if not path.is_symlink():
            break
        path = Path(os.path.normpath(path.parent / path.readlink()))
    yield program.resolve()


def _parts(path: Path) -> Iterator[Path]:
    """Where the program of an environment, an installation, or a version manager has its files."""
    prefix = path.parent.parent
    settings = prefix / "pyvenv.cfg"
    if settings.is_file():
        yield prefix
        for line in _text(settings).splitlines():
            name, _, value = line.partition("=")
            if name.strip() == "home" and value.strip():
                base = Path(value.strip())
                yield from (base.parent, base.resolve().parent)
    elif path.parent.name == "shims" or any(prefix.glob("lib/python3*")):
        yield prefix
    yield path


def _elsewhere(site: Path) -> Iterator[Path]:
    """What the packages of a folder have outside of it."""
    for file in site.glob("*.pth"):
        for line in _text(file).splitlines():
            if line.startswith(("import ", "import\t")):
                yield from map(Path, _QUOTED_PATH.findall(line))
            elif line.strip() and not line.startswith("#"):
                yield site / line.strip()
    yield from _editable(site.glob("*.dist-info/direct_url.json"))


def _editable(files: Iterable[Path]) -> Iterator[Path]:
    for file in files:
        with contextlib.suppress(ValueError, TypeError, AttributeError):
            described = json.loads(_text(file))
            url = urlsplit(described.get("url", ""))
            if url.scheme == "file" and described.get("dir_info", {}).get("editable"):
                yield Path(unquote(url.path))


def _text(path: Path) -> str:
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.read(_MOST_BYTES)
    except OSError:
        return ""


# Sockets, pipes and passwords in folders that a sandboxed script reads: a read-only mount closes neither
# sockets nor named pipes, and repositories keep passwords of their remotes among their own files.

# Of all folders together: what is near their top, in a tenth of a second.
_MOST_ENTRIES = 40_000
_BOUND = Path("/proc/net/unix")
_OF_REPOSITORIES = {".git": ("config", "config.worktree", "credentials"), ".hg": ("hgrc",)}
_OF_PACKAGES = ("pip.conf", ".condarc")
_WITH_PASSWORDS = {*_OF_PACKAGES, *(name for names in _OF_REPOSITORIES.values() for name in names)}


def special_files(folders: Iterable[Path]) -> list[Path]:
    """All that a process of this machine listens at, and what is in the folders, deep ones perhaps not."""
    pending = deque(folder.resolve() for folder in folders)
    seen: set[Path] = set()
    found: list[Path] = []
    num_left = _MOST_ENTRIES
    while pending and num_left > 0:
        folder = pending.popleft()
        if folder in seen:
            continue
        seen.add(folder)
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                num_left -= 1
                if entry.is_dir(follow_symlinks=False):
                    pending.append(Path(entry.path))
                elif _is_found(entry):
                    found.append(Path(entry.path))
                if num_left <= 0:
                    break
    return list(dict.fromkeys([*_bound_sockets(), *found]))


def _bound_sockets() -> list[Path]:
    """By the kernel's list; servers in containers and names relative to a server's folder are not in it."""
    try:
        lines = _BOUND.read_text(encoding="utf-8", errors="surrogateescape").split("\n")
    except OSError:
        return []
    # Seven columns, and a name that may have spaces.
    names = {parts[7] for parts in (line.split(maxsplit=7) for line in lines) if len(parts) == 8}
    return [path.resolve() for path in map(Path, names) if path.is_absolute() and _is_special(path)]


def _is_special(path: Path) -> bool:
    with contextlib.suppress(OSError):
        return stat.S_ISSOCK(path.stat().st_mode) or stat.S_ISFIFO(path.stat().st_mode)
    return False


def _is_found(entry: os.DirEntry[str]) -> bool:
    if entry.is_file(follow_symlinks=False):
        return entry.name in _WITH_PASSWORDS and _may_hold_passwords(Path(entry.path))
    return not entry.is_symlink()


def _may_hold_passwords(path: Path) -> bool:
    """Settings of a repository, of what it has within (submodules, worktrees), or of a package index.

    >>> _may_hold_passwords(Path("a/.git/modules/b/config")), _may_hold_passwords(Path("a/config"))
    (True, False)
    """
    within = (folder for folder, names in _OF_REPOSITORIES.items() if path.name in names)
    return path.name in _OF_PACKAGES or any(folder in path.parts for folder in within)


# Keeps other processes of the same user from looking into this one.

_PR_GET_DUMPABLE = 3
_PR_SET_DUMPABLE = 4


@contextlib.contextmanager
def unreadable() -> Iterator[None]:
    """Meanwhile ``/proc/PID/environ``, memory and open files of this process are root's alone.

    Linux only. Nothing keeps root from reading them. Debuggers of the same user cannot attach either, and
    a crash leaves no core file, so it does not last longer than it must.
    """
    if sys.platform != "linux":
        yield
        return
    _state.enter()
    try:
        yield
    finally:
        _state.leave()


class _State:
    """Threads profile side by side: the first one closes this process, the last one opens it again."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._num_inside = 0
        self._was_readable = True

    def enter(self) -> None:
        with self._lock:
            if self._num_inside == 0:
                self._was_readable = _prctl(_PR_GET_DUMPABLE) == 1
                _prctl(_PR_SET_DUMPABLE, 0)
            self._num_inside += 1

    def leave(self) -> None:
        with self._lock:
            self._num_inside -= 1
            if self._num_inside == 0 and self._was_readable:
                _prctl(_PR_SET_DUMPABLE, 1)


_state = _State()


def _prctl(option: int, value: int = 0) -> int:
    return int(ctypes.CDLL(None).prctl(option, value))


# Programs, libraries, and where machines of a team keep data sets. Not /mnt: WSL has Windows' disks there.
SYSTEM = ("/usr", "/opt", "/nix/store", "/gnu/store", "/data", "/datasets", "/scratch")
# Links into /usr on most systems.
LINKS = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
IN_ETC = (
    "OpenCL", "alternatives", "ca-certificates", "ca-certificates.conf", "crypto-policies", "debian_version",
    "fonts", "group", "host.conf", "hosts", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime",
    "lsb-release", "magic", "mime.types", "nsswitch.conf", "os-release", "passwd", "pki/ca-trust",
    "pki/tls/certs", "protocols", "redhat-release", "services", "ssl/certs", "ssl/openssl.cnf", "timezone",
    "vulkan",
)  # fmt: skip
IN_SYS = ("block", "bus", "class", "devices", "fs/cgroup", "module")
# Below /run are the sockets of docker and other daemons, which would write for the script; these are not.
IN_RUN = ("/run/current-system", "/run/opengl-driver")
# Below the home folder.
CACHES = (
    ".cache/clip", ".cache/fontconfig", ".cache/huggingface", ".cache/kagglehub", ".cache/matplotlib",
    ".cache/open_clip", ".cache/torch", ".cache/torch_extensions", ".cache/torch_geometric", ".cache/whisper",
    ".config/matplotlib", ".keras", ".triton", "nltk_data", "scikit_learn_data", "tensorflow_datasets",
)  # fmt: skip
# Variables that name such folders, and libraries; several with ``:`` between them.
READABLE_NAMED_BY = (
    "CUDA_HOME", "CUDA_PATH", "HF_ASSETS_CACHE", "HF_DATASETS_CACHE", "HF_HOME", "HF_HUB_CACHE",
    "HUGGINGFACE_HUB_CACHE", "KAGGLEHUB_CACHE", "LD_LIBRARY_PATH", "MPLCONFIGDIR", "NLTK_DATA", "PYTHONPATH",
    "SCIKIT_LEARN_DATA", "SENTENCE_TRANSFORMERS_HOME", "TFDS_DATA_DIR", "TIKTOKEN_CACHE_DIR", "TORCH_HOME",
    "TRANSFORMERS_CACHE", "TRITON_CACHE_DIR",
)  # fmt: skip
_OWN = ("/tmp", "/var/tmp", "/dev", "/proc", "/run", "/sys", "/etc", "/var/lib", "/mnt", "/media")  # noqa: S108
_IN_HOME = (".cache", ".config", ".local/share", ".local/state")
# With passwords of package indexes, in an environment, and of remotes, in a project.
_PRIVATE = ("pip.conf", ".condarc", ".git/config")


@dataclass(frozen=True, slots=True, kw_only=True)
class Readable:
    """What is to be bound, besides the system."""

    paths: tuple[Path, ...]
    """As the script calls them; each is also where its links lead."""
    searched: tuple[Path, ...]
    """Those of them whose sockets are looked for."""
    private: tuple[Path, ...]
    """Files in them that stay hidden."""


def home_folder() -> Path:
    """The home of the user; pathlib's raises where there is no such user."""
    return Path(os.path.expanduser("~"))  # noqa: PTH111


def readable(
    interpreter: Path | None, script: Path | None, *, arguments: Sequence[str] = (),
    added: Sequence[Path] = (), environment: Mapping[str, str],
) -> Readable:  # fmt: skip
    """What a run may read.

    Args:
        interpreter: of the script, if it is a script that is run.
        arguments: of the script; those that are paths are data.
        added: by `profile.sandbox_read`.

    Raises InputError: a path that was added is not there, or is the whole machine.
    """
    home = home_folder()
    installed = [] if interpreter is None else [*interpreter_files(interpreter, home)]
    project = [Path.cwd()] if script is None else [Path.cwd(), *_project(script, home)]
    searched = _narrow([*project, *_caches(home, environment), *_data(arguments)], home)
    searched += _checked(added)
    paths = [*_narrow(installed, home), *searched]
    private = [path / name for path in paths for name in _PRIVATE]
    return Readable(paths=tuple(paths), searched=tuple(searched), private=tuple(private))


def is_too_broad(path: Path, home: Path) -> bool:
    """Whether with this folder everything would be in sight that is not the job's.

    >>> is_too_broad(Path("/home"), Path("/home/me")), is_too_broad(Path("/home/me/job"), Path("/home/me"))
    (True, False)
    """
    kept = [home, *(home / name for name in _IN_HOME), *map(Path, _OWN)]
    return any(other.is_relative_to(path) for other in kept)


def _narrow(paths: Iterable[Path], home: Path) -> list[Path]:
    """Those that are there and are narrow enough, by their own name and where they lead."""
    found = dict.fromkeys(Path(os.path.abspath(path)) for path in paths)  # noqa: PTH100 - keeps links
    kept = []
    for path in found:
        real = Path(os.path.realpath(path))
        broad = is_too_broad(path, home) or is_too_broad(real, Path(os.path.realpath(home)))
        if not broad and (real.is_dir() or real.is_file()):
            kept.append(path)
    return kept


def _project(script: Path, home: Path) -> Iterator[Path]:
    """The repository of the script, or its folder; of a script in the home folder the modules beside it."""
    folder = Path(os.path.abspath(script)).parent  # noqa: PTH100
    for parent in (folder, *folder.parents):
        if is_too_broad(parent, home):
            break
        if (parent / ".git").exists():
            yield parent
            break
    yield folder
    yield script
    if is_too_broad(folder, home):
        yield from folder.glob("*.py")


def _caches(home: Path, environment: Mapping[str, str]) -> Iterator[Path]:
    yield from (home / name for name in CACHES)
    if environment.get("XDG_CACHE_HOME"):
        cache = Path(environment["XDG_CACHE_HOME"])
        yield from (cache / name.removeprefix(".cache/") for name in CACHES if name.startswith(".cache/"))
    for name in READABLE_NAMED_BY:
        yield from map(Path, filter(None, environment.get(name, "").split(os.pathsep)))


def _data(arguments: Sequence[str]) -> Iterator[Path]:
    for argument in arguments:
        for word in (argument, argument.partition("=")[2]):
            # Numbers and names are no paths, whatever lies in the working folder.
            if os.sep in word and "\0" not in word:
                yield Path(word).expanduser()


def _checked(added: Sequence[Path]) -> list[Path]:
    for path in added:
        if not path.exists() or path.resolve() == Path("/"):
            raise InputError(
                f"`profile.sandbox_read` names {str(path)!r}, which"
                f" {'is the whole machine' if path.exists() else 'does not exist'}: name files and folders"
                " that the script reads."
            )
    return [Path(os.path.abspath(path)) for path in added]  # noqa: PTH100
