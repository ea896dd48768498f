"""Runs pieces of code under the fake GPU, each in a fork, so that torch is imported once.

Usage: ``python -m tests.unit.profile.probe_server``. Each line of its input names a file of groups and one
for their results, with a tab between them; it is answered with a line when the results are there.

A group is ``{"skip": [patches not to apply], "probes": {name: code}}``; the code leaves its answer in
``result``.
"""

import gc
import importlib
import json
import os
import resource
import signal
import sys
import warnings
from pathlib import Path

from tests.warm.server import load, load_fake

CHILD = Path(__file__).parents[3] / "advisor" / "payload" / "child.py"
GPU = {
    "name": "Pretended GPU", "compute_capability": "8.0", "num_sms": 100, "memory_bytes": 10**10,
}  # fmt: skip
WORLD_SIZE = 4
PROBE_TIMEOUT_S = 60


def start_session(payload, skip):
    session_module = importlib.import_module(payload + ".session")
    gpu = importlib.import_module(payload + ".fake.gpu").PretendedGpu.from_job(GPU)
    world = importlib.import_module(payload + ".fake.gpu").PretendedWorld(WORLD_SIZE)
    session = session_module.Session(gpu, world=world)
    importlib.import_module(payload + ".backend").install(session, frozenset(skip))
    return session


def run_probe(session, code):
    import torch

    names = {"torch": torch, "nn": torch.nn, "F": torch.nn.functional, "session": session,
             "ops": lambda: {entry["name"] for entry in session.recorder.operators()}}  # fmt: skip
    signal.alarm(PROBE_TIMEOUT_S)
    # As a user's process has it: what a test may take is less than what may be mapped.
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    warnings.simplefilter("ignore")
    with session.mode:
        exec(code, names)  # noqa: S102 - our own probes
    return names["result"]


def told(function, *arguments):
    """The function's JSON result, or how it failed."""
    try:
        return {"result": function(*arguments)}
    except BaseException as error:  # noqa: BLE001 - told to the test
        return {"error": f"{type(error).__name__}: {error}"[:2000]}


def forked(function, *arguments):
    """The same, run in a fork."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        with os.fdopen(write, "w") as out:
            json.dump(told(function, *arguments), out)
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as source:
        text = source.read()
    status = os.waitpid(pid, 0)[1]
    return json.loads(text) if text else {"error": f"process ended with status {status}"}


def run_group(payload, skip, probes):
    """Probes that share a set of patches share their installation; one alone needs no fork from it."""
    session = start_session(payload, skip)
    run = forked if len(probes) > 1 else told
    return {name: run(run_probe, session, code) for name, code in probes.items()}


def answer(payload, asked, answered):
    """Run the groups of a file."""
    results = {}
    for group in json.loads(Path(asked).read_text()):
        reply = forked(run_group, payload, group["skip"], group["probes"])
        failed = {name: {"error": reply.get("error")} for name in group["probes"]}
        results |= reply.get("result", failed)
    Path(answered).write_text(json.dumps(results))


def main():
    # What probes print goes where errors go: the pipe is for replies.
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    forked_warm = "torch" in sys.modules
    child = load(CHILD)
    if not forked_warm:
        load_fake(child, libraries=())
    # A fork that looks for garbage among all that torch made would copy it.
    gc.collect()
    gc.freeze()
    gc.disable()
    for line in sys.stdin:
        answer(child.PAYLOAD, *line.rstrip("\n").split("\t"))
        print("done", file=replies, flush=True)


if __name__ == "__main__":
    main()
