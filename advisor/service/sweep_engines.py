"""Where the answers of a sweep are computed: processes of this machine, or workers of a Dask cluster.

Each answer comes from a child process (`advisor.cli.sweep`), which stays for the next ones: to start
takes up to ten times as long as to answer. One that crashes or hangs costs its own answer and no other.
"""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from advisor.core import processes
from advisor.core.errors import AdvisorError, InputError
from advisor.core.redaction import redact
from advisor.service.sweeping import Advice, Engine, Request, advice_from, versions

if TYPE_CHECKING:
    from distributed import Client, Future

LOCAL = "local"
_WITHIN_S = 1800.0
_CONNECT_WITHIN_S = 10.0
_MOST_CHARACTERS = 300
_COMMAND = (sys.executable, "-P", "-m", "advisor.cli.sweep")


@dataclass(frozen=True, slots=True)
class Children:
    """Processes that answer; as many as threads ask at once."""

    _idle: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def answer(self, request: str) -> dict[str, Any]:
        """Ask a child: ``{"advice": ...}``, or ``{"refused": why}`` where it must not answer."""
        try:
            child = self._next()
        except OSError as error:
            return _no_answer(f"its process did not start: {error.strerror or error}")
        limit = threading.Timer(_WITHIN_S, child.kill)
        limit.start()
        try:
            child.stdin.write(request.encode() + b"\n")  # type: ignore[union-attr]
            child.stdin.flush()  # type: ignore[union-attr]
            reply = json.loads(child.stdout.readline())  # type: ignore[union-attr]
        except (OSError, ValueError):
            _end(child)
            return _no_answer(f"its process ended with {child.returncode}")
        except BaseException:
            _end(child)
            raise
        finally:
            limit.cancel()
        self._idle.append(child)
        return dict(reply)

    def _next(self) -> subprocess.Popen[bytes]:
        try:
            return self._idle.pop()
        except IndexError:
            pipe = subprocess.PIPE
            return processes.start(_COMMAND, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)

    def close(self) -> None:
        """End those that have nothing to do."""
        while self._idle:
            _end(self._idle.pop())


def _no_answer(why: str) -> dict[str, Any]:
    return {"advice": asdict(Advice(error=f"no answer: {why}", is_final=False))}


def _end(child: subprocess.Popen[bytes]) -> None:
    child.kill()
    child.communicate()


def engine_for(name: str, num_workers: int) -> Engine:
    """The engine of that name: ``local``, or ``dask://HOST:PORT``. Raises InputError: there is none."""
    if name == LOCAL:
        return lambda requests: _local(requests, num_workers)
    host, separator, port = name.removeprefix("dask://").rpartition(":")
    if not name.startswith("dask://") or not (separator and host and port.isdecimal()):
        raise InputError(
            f"there is no engine {name!r}: write local or dask://HOST:PORT, such as dask://10.0.0.5:8786."
        )
    return lambda requests: _dask(requests, f"{host}:{port}")


def _local(requests: Sequence[Request], num_workers: int) -> Iterator[tuple[str, Advice]]:
    children = Children()
    pool = ThreadPoolExecutor(num_workers)
    try:
        asked = {pool.submit(children.answer, _text(one)): one for one in requests}
        for done in as_completed(asked):
            yield asked[done].key, _advice(done.result(), "this machine")
    finally:
        pool.shutdown(cancel_futures=True)
        children.close()


def _text(request: Request) -> str:
    return json.dumps(asdict(request))


def _advice(reply: dict[str, Any], where: str) -> Advice:
    if why := reply.get("refused"):
        raise AdvisorError(
            f"{where} cannot answer: {why}. What was computed so far is kept: run it again then."
        )
    return advice_from(reply["advice"])


# On a worker -----------------------------------------------------------------------------------------------

_CHILDREN = Children()


def answer_here(request: str) -> tuple[str, dict[str, Any]]:
    """Answer on a worker: its address and the reply."""
    from distributed import get_worker

    return str(get_worker().address), _CHILDREN.answer(request)


def _dask(requests: Sequence[Request], address: str) -> Iterator[tuple[str, Advice]]:
    with _connected(address) as client:
        from distributed import as_completed as as_done

        _check_workers(client, address)
        # Under its key a request is computed once, also where two sweeps ask for it.
        keys = [f"advisor-{one.key}" for one in requests]
        by_key = dict(zip(keys, requests, strict=True))
        # The queue alone holds the futures: the scheduler forgets each as soon as its result is here.
        done = as_done(
            client.map(answer_here, list(map(_text, requests)), key=keys),
            loop=client.loop,
            with_results=True,
            raise_errors=False,
        )
        for future, result in done:
            yield by_key[future.key].key, _result(future, result, address)


def _result(future: Future, result: Any, address: str) -> Advice:
    if future.status == "finished":
        worker, reply = result
        return _advice(reply, f"the Dask worker {worker}")
    if future.status == "error":
        kind = type(result[1]).__name__
        why = f"failed on this: {kind}: {redact(str(result[1]))[:_MOST_CHARACTERS]}"
        if kind == "KilledWorker":
            why = "ended, again and again, while it computed this"
        return Advice(error=f"no answer: a Dask worker {why}", is_final=False)
    raise AdvisorError(
        f"the Dask scheduler at {address} went away. What was computed so far is kept: start it and its"
        " workers again, and repeat the command."
    )


def _connected(address: str) -> Client:
    try:
        from distributed import Client
    except ImportError as error:
        raise InputError(
            "the engine dask:// needs dask.distributed: pip install 'gpu-advisor[dask]' in advisor's own"
            " environment and in those of the workers."
        ) from error
    # What it would log about workers and schedulers that end, errors of ours say.
    for name in [*logging.root.manager.loggerDict]:
        if name.partition(".")[0] == "distributed":
            logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        return Client(f"tcp://{address}", timeout=_CONNECT_WITHIN_S, set_as_default=False)
    except (OSError, ValueError) as error:
        raise InputError(
            f"no Dask scheduler answers at {address}: start one with `dask scheduler`, workers with `dask"
            f" worker {address}`, and check host and port."
        ) from error


def _check_workers(client: Client, address: str) -> None:
    """Refuse workers whose answers would not be ours before work is sent; one that joins later says so."""
    found = client.run(versions, on_error="return")
    if not found:
        raise InputError(
            f"the Dask scheduler at {address} has no workers: start some with `dask worker {address}`."
        )
    for worker, theirs in found.items():
        if isinstance(theirs, BaseException):
            theirs = f"no advisor that can answer ({type(theirs).__name__})"
        if theirs != versions():
            raise InputError(
                f"the Dask worker {worker} has {theirs}, and here is {versions()}. Install the same versions"
                " there, or end that worker."
            )
