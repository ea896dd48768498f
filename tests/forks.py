"""Files of tests in forks of the process that collected them: ``pytest -p tests.forks --forks 4``.

A process that starts by itself imports and collects all of them anew: 17 s each in a fresh checkout. A fork
takes a file, runs it, tells how each test ended, and takes the next.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import groupby
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path

import pytest
from hypothesis.strategies import text

from tests import machine


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--forks`."""
    parser.addoption(
        "--forks", type=int, default=0, help="processes that run the files of tests; 0: this one"
    )


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """In place of pytest's own loop, where forks are asked for and there is something to run."""
    options = session.config.option
    if not options.forks or options.collectonly or session.testsfailed:
        return None
    # Each fork would make these for itself.
    text().validate()
    if options.programs != "all":
        machine.bare_path()
    files = [list(items) for _, items in groupby(session.items, lambda item: item.path)]
    with _forks(session, files, min(options.forks, len(files))) as forks:
        _hand_out(session, iter(range(len(files))), forks)
    return True


def _hand_out(session: pytest.Session, files: Iterator[int], forks: dict[Connection, int]) -> None:
    while forks:
        ready = wait([*forks])
        for pipe in [one for one in forks if one in ready]:
            try:
                reports = pipe.recv()
            except EOFError:
                # The tests that it had left are not run.
                if status := os.waitpid(forks.pop(pipe), 0)[1]:
                    pytest.exit(f"a process of tests ended with {os.waitstatus_to_exitcode(status)}", 1)
                continue
            if reports is None:
                pipe.send(next(files, None))
            else:
                _hand_on(session, reports)


def _hand_on(session: pytest.Session, reports: list[dict]) -> None:
    hook = session.config.hook
    for data in reports:
        report = hook.pytest_report_from_serializable(config=session.config, data=data)
        hook.pytest_runtest_logreport(report=report)
    hook.pytest_runtest_logfinish(nodeid=report.nodeid, location=report.location)
    if session.shouldfail:
        raise session.Failed(session.shouldfail)


@contextmanager
def _forks(
    session: pytest.Session, files: list[list[pytest.Item]], number: int
) -> Iterator[dict[Connection, int]]:
    """Forks by the pipes to them, without those that have ended; the rest is interrupted at the end."""
    forks: dict[Connection, int] = {}
    folder = vars(session.config)["_tmp_path_factory"].getbasetemp()
    try:
        for n in range(number):
            ours, its = Pipe()
            pid = os.fork()
            if pid == 0:
                # What others still hold does not end.
                for pipe in (ours, *forks):
                    pipe.close()
                _run_files(session, files, its, folder / f"fork-{n}")
            its.close()
            forks[ours] = pid
        yield forks
    finally:
        for pid in forks.values():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGINT)
        for pid in forks.values():
            os.waitpid(pid, 0)


def _run_files(
    session: pytest.Session, files: list[list[pytest.Item]], pipe: Connection, folder: Path
) -> None:
    """What a fork does; never returns."""
    status = 1
    try:
        _make_own(session.config, pipe, folder)
        items = _items(files, pipe)
        item = next(items, None)
        while item is not None:
            following = next(items, None)
            session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            item = following
        status = 0
    except (EOFError, BrokenPipeError, KeyboardInterrupt, pytest.exit.Exception):
        session._setupstate.teardown_exact(None)
    finally:
        os._exit(status)


def _items(files: list[list[pytest.Item]], pipe: Connection) -> Iterator[pytest.Item]:
    pipe.send(None)
    while (number := pipe.recv()) is not None:
        yield from files[number]
        pipe.send(None)


def _make_own(config: pytest.Config, pipe: Connection, folder: Path) -> None:
    """What forks must not share: the files that catch output, folders of tests, and the terminal."""
    plugins = config.pluginmanager
    capture = plugins.getplugin("capturemanager")
    capture.stop_global_capturing()
    capture.start_global_capturing()
    capture.suspend_global_capture(in_=True)
    folder.mkdir()
    vars(config)["_tmp_path_factory"]._basetemp = folder
    teller = _Teller(config, pipe)
    plugins.unregister(name="terminalreporter")
    plugins.register(teller, "terminalreporter")


class _Teller:
    """In the place of the terminal: sends all reports of a test at once."""

    def __init__(self, config: pytest.Config, pipe: Connection) -> None:
        self._config, self._pipe = config, pipe
        self._tw = config.get_terminal_writer()
        self._reports: list[object] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        to_data = self._config.hook.pytest_report_to_serializable
        self._reports.append(to_data(config=self._config, report=report))

    def pytest_runtest_logfinish(self) -> None:
        self._pipe.send(self._reports)
        self._reports = []
