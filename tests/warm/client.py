# Stands in for an interpreter: asks the server for a fork that runs the command, and ends as that ends.
# Written in front when the folder is made: REAL, SOCKETS, CHILD, MODULES: of others, whether they
# need the fake GPU, SETTINGS, FAKE: the backends that end as the fake one. It does without slow imports.
# ruff: noqa: F821, PTH109, PTH123, S606

import array
import ctypes
import json
import os
import signal
import socket
import sys


def is_fake(path):
    with open(path, encoding="utf-8") as file:
        job = json.load(file)
    return job["module"] == "run" and job["backend"] in FAKE


def main():
    arguments = sys.argv[1:]
    settings = {name: value for name, value in os.environ.items() if name.startswith("PYTHON")}
    module = arguments[1] if arguments[:1] == ["-m"] else None
    if settings != SETTINGS or (arguments[:1] != [CHILD] and module not in MODULES):
        os.execv(REAL, [REAL, *arguments])
    if sys.platform == "linux":
        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(SOCKETS[MODULES[module] if module else is_fake(arguments[1])])
        request = {"arguments": arguments, "environment": dict(os.environ), "folder": os.getcwd()}
        files = array.array("i", [0, 1, 2])
        connection.sendmsg([b" "], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, files)])
        connection.sendall(json.dumps(request).encode() + b"\n")
        status = os.waitstatus_to_exitcode(int(connection.makefile().readline()))
    if status < 0:
        if -status != signal.SIGKILL:
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status)


main()
