"""What a sandboxed script may read: the one list. What is not on it is not there."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from advisor.core.errors import InputError
from advisor.profile.interpreter_files import interpreter_files

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
NAMED_BY = (
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
    """What is to be bound, besides the system.

    Attributes:
        paths: as the script calls them; each is also where its links lead.
        searched: those of them whose sockets are looked for.
        private: files in them that stay hidden.
    """

    paths: tuple[Path, ...]
    searched: tuple[Path, ...]
    private: tuple[Path, ...]


def home_folder() -> Path:
    """The home of the user; pathlib's raises where there is no such user."""
    return Path(os.path.expanduser("~"))  # noqa: PTH111


def readable(
    interpreter: Path | None,
    script: Path | None,
    *,
    arguments: Sequence[str] = (),
    added: Sequence[Path] = (),
    environment: Mapping[str, str],
) -> Readable:
    """What a run may read.

    Args:
        interpreter: of the script, if it is a script that is run.
        script: the file.
        arguments: of the script; those that are paths are data.
        added: by `profile.sandbox_read`.
        environment: the user's.

    Raises:
        InputError: a path that was added is not there, or is the whole machine.
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
    for name in NAMED_BY:
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
