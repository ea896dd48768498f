"""Forks children of profiles from a process that has torch: ``python server.py CHILD KEEPER SOCKET SOCKET``.

It ends with the process KEEPER.

The client's connection lives as long as the child: when either ends, so does the other.
"""

import contextlib
import gc
import importlib
import importlib.util
import io
import json
import multiprocessing.process
import os
import runpy
import selectors
import signal
import socket
import sys
import tempfile
import traceback

PATIENCE_S = 30.0
# What torch imports late, for nearly every job under the fake GPU.
LATE = (
    "sympy", "torch.fx.experimental.symbolic_shapes", "torch.distributed.fsdp", "torch.distributed.tensor",
    "torch.distributed.checkpoint.state_dict", "torch.export", "torch._dynamo.config",
    "torch._functorch.config", "torch._subclasses.schema_check_mode",
)  # fmt: skip
# And of the payload.
MODULES = ("session", "checkpoints", "fake.repeated_passes", "recording.iteration", "recording.random_steps")
# What training libraries import, as far as they are installed: no part of it looks at the GPU or at torch's
# functions, which are patched in the fork alone. Of transformers only its table of models.
LIBRARIES = (
    "boto3", "huggingface_hub.hf_api", "matplotlib.pyplot", "networkx", "PIL.Image", "psutil", "pydantic",
    "safetensors.torch", "tokenizers", "transformers.models.auto.auto_factory", "yaml",
)  # fmt: skip


def load(child_path):
    """The child's module, with all imported that it would import before it knows its job."""
    spec = importlib.util.spec_from_file_location("child", child_path)
    child = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(child)
    importlib.import_module("torch")
    child.load_payload("run")
    return child


def load_fake(child, libraries=LIBRARIES):
    """What jobs under the fake GPU import besides; only the stand-in for dynamo changes torch."""
    child.load_payload("lazy_dynamo").install()
    for module in MODULES:
        child.load_payload(module)
    for file in set(child.load_payload("backend").PATCHES.values()):
        child.load_payload(f"fake.patches.{file}")
    for name in LATE:
        importlib.import_module(name)
    for name in libraries:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    # With a GPU autograd would start threads, which no fork has.
    if not importlib.import_module("torch").cuda.is_available():
        take_step()


def take_step():
    """What torch makes at an operator's first call and keeps: its schema, its decomposition, how it is faked.

    On the CPU, without a session.
    """
    torch = importlib.import_module("torch")
    nn = torch.nn
    with importlib.import_module("torch._subclasses").FakeTensorMode():
        model = nn.Sequential(
            nn.Embedding(8, 8), nn.TransformerEncoderLayer(8, 2, 8, batch_first=True),
            nn.Unflatten(1, (2, 2)), nn.Conv2d(2, 8, 1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
            nn.Flatten(), nn.Linear(32, 8), nn.GELU(),
        )  # fmt: skip
        optimizers = (torch.optim.SGD(model.parameters(), 0.1), torch.optim.AdamW(model.parameters()))
        for _ in range(2):
            output = model(torch.randint(8, (4, 4)))
            nn.functional.cross_entropy(output, torch.randint(8, (4,))).backward()
            nn.functional.mse_loss(model(torch.randint(8, (4, 4))), torch.randn(4, 8)).backward()
            for optimizer in optimizers:
                optimizer.step()
                optimizer.zero_grad()


class Server:
    def __init__(self, child, listener, keeper):
        self._child = child
        self._listener = listener
        self._selector = selectors.DefaultSelector()
        self._selector.register(listener, selectors.EVENT_READ, self._accept)
        self._selector.register(os.pidfd_open(keeper), selectors.EVENT_READ, sys.exit)

    def serve(self):
        while True:
            for key, _ in self._selector.select():
                # One that ended earlier in this round is not asked again, nor whoever got its number since.
                if self._selector.get_map().get(key.fd) is key:
                    key.data()

    def _accept(self):
        connection, _ = self._listener.accept()
        request, files = asked(connection)
        pid = os.fork() if request else None
        if pid == 0:
            self._selector.close()
            self._listener.close()
            connection.close()
            run(self._child, request, files)
        for file in files:
            os.close(file)
        if pid is None:
            connection.close()
        else:
            self._watch(connection, pid)

    def _watch(self, connection, pid):
        ending = os.pidfd_open(pid)

        def end():
            self._selector.unregister(ending)
            self._selector.unregister(connection)
            kill_group(pid)
            status = os.waitpid(pid, 0)[1]
            os.close(ending)
            # Where the client was ended, the child was with it.
            with connection, contextlib.suppress(BrokenPipeError):
                connection.sendall(f"{status}\n".encode())

        self._selector.register(ending, selectors.EVENT_READ, end)
        self._selector.register(connection, selectors.EVENT_READ, end)


def asked(connection):
    """What a client wants and its standard files; nothing of one that was ended before it had said it all."""
    files, line = [], ""
    # One that is stopped in the middle must not keep all others waiting.
    connection.settimeout(PATIENCE_S)
    with contextlib.suppress(OSError):
        _, files, _, _ = socket.recv_fds(connection, 1, 3)
        with connection.makefile() as lines:
            line = lines.readline()
    connection.settimeout(None)
    return json.loads(line) if line.endswith("\n") else None, files


def kill_group(pid):
    for kill in (os.killpg, os.kill):
        with contextlib.suppress(ProcessLookupError):
            kill(pid, signal.SIGKILL)


def run(child, request, files):
    """What the interpreter would do with the child's file; never returns."""
    try:
        os.setsid()
        for number, file in enumerate(files):
            os.dup2(file, number)
            os.close(file)
        # As Python opens them with PYTHONUNBUFFERED.
        sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False)))
        sys.stdout, sys.stderr = (
            io.TextIOWrapper(io.FileIO(number, "w", closefd=False), errors=errors, write_through=True)
            for number, errors in ((1, "strict"), (2, "backslashreplace"))
        )
        os.environ.clear()
        os.environ.update(request["environment"])
        os.chdir(request["folder"])
        # What these modules keep of the process that imported them.
        tempfile.tempdir = None
        vars(multiprocessing.process)["ORIGINAL_DIR"] = request["folder"]
        sys.argv[:] = request["arguments"]
        if sys.argv[0] == "-m":
            sys.path.insert(0, request["folder"])
            del sys.argv[0]
            runpy.run_module(sys.argv[0], run_name="__main__")
            os._exit(0)
        child.main()
    except BaseException:  # noqa: BLE001 - printed, as the interpreter would
        traceback.print_exc()
    finally:
        os._exit(1)


def listen(child, path, keeper):
    """Serve until the end of the tests."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        gc.collect()
        gc.freeze()
        # Gives up the lock: both processes that hold it listen.
        os.dup2(2, 1)
        Server(child, listener, keeper).serve()


def main():
    child_path, keeper, socket_path, fake_path = sys.argv[1:]
    del sys.path[0]  # the folder of this file
    child = load(child_path)
    if os.fork() == 0:
        load_fake(child)
        socket_path = fake_path
    else:
        # A step on a real device imports it, wherever it comes to that.
        importlib.import_module("torch._dynamo")
    listen(child, socket_path, int(keeper))


if __name__ == "__main__":
    main()
