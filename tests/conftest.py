"""What all tests share."""

import gc
import os
import resource
import signal
import sqlite3
import sys
from collections.abc import Generator
from importlib.util import find_spec

import pytest
from botocore.client import ClientCreator
from botocore.loaders import Loader
from hypothesis import settings
from sqlalchemy import Engine, event

from advisor.__main__ import NEW_OBJECTS_BEFORE_COLLECTION
from tests import machine
from tests.postgres import postgres_server, postgres_url
from tests.slurm import PACKAGES, slurm
from tests.warm import cold_children, start_server, warm_children, warm_folder, warm_module

__all__ = [
    "cold_children", "no_calibration", "postgres_server", "postgres_url", "slurm", "warm_children",
    "warm_folder", "warm_module",
]  # fmt: skip

# Of a law that does not say how many it needs. Before a release: pytest --hypothesis-profile=thorough.
EXAMPLES = 30

# Each core has a process of tests of its own: threads of torch's would wait for each other, at full load.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# A noisy machine must not fail a law, and CI must not fail by luck; at a desk, new examples each time.
settings.register_profile(
    "advisor", deadline=None, derandomize=bool(os.environ.get("CI")), max_examples=EXAMPLES
)
settings.register_profile("thorough", deadline=None, max_examples=1000)
settings.load_profile("advisor")

# A test that takes all memory fails with a stack; without a limit the kernel kills its process, or another's.
MOST_BYTES = 8 * 2**30
if sys.platform == "linux":
    _, _hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (MOST_BYTES, _hard))

# Started by nohup or in the background of a shell, we would hand on that interrupts are ignored.
for _number, _handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, _handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Which programs of the system the tests see."""
    machine.add_option(parser)


@pytest.hookimpl(wrapper=True)
def pytest_cmdline_main() -> Generator[None, object, object]:
    """What a process that is killed leaves behind goes with the one that started it."""
    with machine.shared_folder():
        return (yield)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """A test that needs a program that is not there is skipped."""
    machine.show_programs(item)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whoever asks for a server needs its programs; long files first, so that none is left for the end."""
    items.sort(key=_is_short)
    for item in items:
        asked = getattr(item, "fixturenames", ())
        for package in (
            ("postgresql",) if "postgres_server" in asked else PACKAGES if "slurm" in asked else ()
        ):
            item.add_marker(machine.needs(package))


def _is_short(item: pytest.Item) -> bool:
    """A file of a room takes a second or two; those beside the rooms, and of profiles, start processes."""
    folders = item.nodeid.split("/")[:-1]
    return folders[:2] == ["tests", "unit"] and len(folders) > 2 and folders[2] != "profile"


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """What is collected lives to the end: who looks for garbage need not look through thousands of tests.

    Meanwhile another core imports torch for the children of profiles, where the whole suite is run.
    """
    config = session.config
    if config.getoption("--forks", 0) and config.args == config.getini("testpaths") and find_spec("torch"):
        start_server()
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
        gc.set_threshold(NEW_OBJECTS_BEFORE_COLLECTION)


@pytest.fixture(autouse=True, scope="session")
def no_calibration(tmp_path_factory):
    """Keeps constants that were calibrated on this machine out of the predictions of the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("data_home")))
        yield


@pytest.fixture(autouse=True, scope="session")
def no_public_prices():
    """No command pulls prices unless its test says so, and nobody listens where the catalogs would be."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CI", "true")
        patch.setenv("GPUHUNT_CATALOG_URL", "http://127.0.0.1:9")
        yield


@pytest.fixture(autouse=True, scope="session")
def no_steps_on_this_cpu():
    """How fast this machine's CPU is decides no test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("advisor.service.recommend.recommending.MOST_FLOPS", -1.0)
        yield


@pytest.fixture(autouse=True, scope="session")
def nothing_waits_for_the_disk():
    """No test cuts the power: what is committed may lie in the system's own memory."""

    def trust_the_system(connection, _record):
        if isinstance(connection, sqlite3.Connection):
            connection.execute("PRAGMA synchronous = OFF")

    event.listen(Engine, "connect", trust_the_system)
    yield
    event.remove(Engine, "connect", trust_the_system)


@pytest.fixture(autouse=True, scope="session")
def aws_models_are_read_once():
    """Each of boto3's sessions parses megabytes of JSON anew, and each client makes its methods of them.

    Both take longer than most tests of AWS.
    """
    read, methods = {}, {}
    make, methods_of = Loader.__init__, ClientCreator._create_methods

    def make_with_what_is_read(self, *arguments, **options):
        make(self, *arguments, **options)
        self._cache = read

    def methods_once(self, service):
        if service.service_name not in methods:
            methods[service.service_name] = methods_of(self, service)
        return dict(methods[service.service_name])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Loader, "__init__", make_with_what_is_read)
        patch.setattr(ClientCreator, "_create_methods", methods_once)
        yield


@pytest.fixture(autouse=True, scope="session")
def no_terminal():
    """A test is as wide as it says: whoever runs several at once sets the width for all."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("COLUMNS", raising=False)
        yield
