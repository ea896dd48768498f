"""Scripts that cannot be profiled, and scripts with odd habits that can."""

from tests.end_to_end.profile_scripts import LOOP, TRAIN

HOPELESS = {
    "exits with a number": LOOP + "raise SystemExit(3)",
    "crashes in the second step": LOOP
    + """
train_step(*next(iter(loader)))
raise RuntimeError("the second batch is rotten")
""",
    "crashes before torch": "1 / 0",
    "binary": bytes(range(256)) * 4,
    "utf-16": (LOOP + TRAIN).encode("utf-16"),
    "latin-1 unsaid": ("name = 'caf\xe9'\n" + LOOP + TRAIN).encode("latin-1"),
    "never trains": "print('nothing here')",
    "empty": "",
    "trains in another process": "import torch.multiprocessing as mp\n"
    "def work(): pass\nprocess = mp.Process(target=work)\nprocess.start()\nprocess.join()\n",
    "swallows everything, never steps": LOOP
    + """
while True:
    try:
        raise KeyError("swallowed")
    except:
        pass
""",
    "asks": LOOP + "name = input('Name of the run? ')",
    "imports what is missing": "import torch\nimport surely_not_installed.part",
    "imports a missing name": "from torch.nn import NoSuchLayer",
    "allocates too much": LOOP + "cache = torch.zeros(1 << 46)",
    "allocates too much in Python": LOOP + "cache = bytearray(1 << 50)",
    "is killed": LOOP + "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
    "aborts": LOOP + "import os; os.abort()",
    "wants two GPUs": LOOP + "assert torch.cuda.device_count() >= 2, 'needs two GPUs'",
    "shell": "#!/bin/sh\nset -e\npython train.py --epochs 3\n",
    "has a syntax error": "import torch\nfor i in range(3)\n    print(i)\n",
    "imports a syntax error": "from pathlib import Path\n"
    "Path('broken_module.py').write_text('import os\\ndef f(:\\n    pass\\n')\nimport broken_module\n",
    "reads a file that ends too early": "import io, pickle\npickle.load(io.BytesIO(b''))\n",
    "has no network": "import socket\nsocket.create_connection(('surely-not.invalid', 80), timeout=3)\n",
    "relative import": "from .models import net\n",
    "captures a graph": LOOP
    + """
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    model(torch.zeros(8, 16, device=device))
graph.replay()
""",
    "graphs callables": LOOP
    + "model = torch.cuda.make_graphed_callables(model, (torch.zeros(8, 16, device=device),))\n"
    + TRAIN,
    "builds an extension": LOOP
    + """
from pathlib import Path
from torch.utils.cpp_extension import load
Path("mine.cu").write_text("__global__ void f() {}")
load(name="mine", sources=["mine.cu"])
""",
    "imports flash_attn": LOOP + "from flash_attn import flash_attn_func",
    "imports triton": LOOP + "import triton\nimport triton.language as tl",
    "trains on the CPU": LOOP.replace('"cuda" if torch.cuda.is_available() else "cpu"', '"cpu"') + TRAIN,
    "recurses": LOOP + "def again(): again()\nagain()",
    "checks a made-up value": LOOP
    + "assert model(torch.zeros(8, 16, device=device)).sum().item() > 1, 'diverged'\n"
    + TRAIN,
    "shapes differ": LOOP + "model(torch.zeros(3, 5, device=device))",
}

ODD = {
    "hides the GPU": "import os\nos.environ['CUDA_VISIBLE_DEVICES'] = ''\n" + LOOP + TRAIN,
    "changes folder": LOOP + "import os, tempfile\nos.chdir(tempfile.mkdtemp())\n" + TRAIN,
    "changes path and argv": LOOP + "import sys\nsys.path[:] = []\nsys.argv[:] = ['other']\n" + TRAIN,
    "redirects stdout": LOOP + "import io, sys\nsys.stdout = sys.stderr = io.StringIO()\n" + TRAIN,
    "closes stdout": LOOP + "import sys\nsys.stdout.close()\nsys.stderr.close()\n" + TRAIN,
    "closes all descriptors": LOOP + "import os\nos.closerange(0, 3)\n" + TRAIN,
    "prints megabytes": LOOP + "for _ in range(200): print('x' * 100_000)\n" + TRAIN,
    "deletes temporary files": LOOP
    + """
import shutil, tempfile
folder = tempfile.mkdtemp()
shutil.rmtree(folder)
tempfile.tempdir = folder
"""
    + TRAIN,
    "default dtype": "import torch\ntorch.set_default_dtype(torch.bfloat16)\n"
    + LOOP.replace("torch.zeros(1000, 16)", "torch.zeros(1000, 16, dtype=torch.bfloat16)")
    + TRAIN,
    "saves to a folder that is gone": LOOP
    + """
import os, tempfile
from pathlib import Path
folder = Path(tempfile.mkdtemp())
os.chdir(folder)
folder.rmdir()
"""
    + TRAIN,
    "default device": "import torch\ntorch.set_default_device('cuda')\n"
    + LOOP.replace(
        "torch.zeros(1000, 16), torch.zeros(1000, dtype=torch.long)",
        "torch.zeros(1000, 16, device='cpu'), torch.zeros(1000, dtype=torch.long, device='cpu')",
    )
    + TRAIN,
    "meta": LOOP.replace(
        "model = nn.Linear(16, 4).to(device)",
        'with torch.device("meta"):\n    model = nn.Linear(16, 4)\nmodel.to_empty(device=device)',
    )
    + TRAIN,
    "forks": LOOP + "import os\nif os.fork() == 0:\n    import time\n    time.sleep(300)\n" + TRAIN,
    "a fork trains": LOOP + "import os\npid = os.fork()\nif pid: os.waitpid(pid, 0)\n" + TRAIN,
    "spawns": """
import multiprocessing
def work(queue): queue.put(1)
if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=work, args=(queue,))
    process.start()
    assert queue.get() == 1
    process.join()
"""
    + "\n".join("    " + line for line in (LOOP + TRAIN).splitlines()),
    "leaves a process": LOOP
    + """
import subprocess
from pathlib import Path
outliving = subprocess.Popen(["sleep", "300"], start_new_session=True)
Path("outliving.txt").write_text(str(outliving.pid))
subprocess.Popen(["sleep", "300"])
"""
    + TRAIN,
    "threads": LOOP
    + """
import threading, time
threading.Thread(target=time.sleep, args=(300,)).start()
"""
    + TRAIN,
    "trains in a thread": LOOP
    + """
import threading
def train():
    for inputs, labels in loader:
        train_step(inputs, labels)
thread = threading.Thread(target=train)
thread.start()
thread.join()
""",
    "handles signals": LOOP
    + """
import signal
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM):
    signal.signal(number, lambda *_: None)
"""
    + TRAIN,
    "swallows KeyboardInterrupt and the rest": LOOP
    + """
def forever():
    while True:
        try:
            for inputs, labels in loader:
                train_step(inputs, labels)
        except KeyboardInterrupt:
            pass
        except BaseException:
            pass
        finally:
            continue
forever()
""",
    "swallows, without torch": LOOP
    + """
try:
    for inputs, labels in loader:
        train_step(inputs, labels)
except BaseException:
    while True:
        try:
            pass
        except BaseException:
            pass
""",
    "traces itself": LOOP
    + "import sys\nsys.settrace(lambda *_: None)\nsys.setprofile(lambda *_: None)\n"
    + TRAIN,
    "an excepthook": LOOP
    + """
import sys, time
sys.excepthook = sys.unraisablehook = lambda *_: time.sleep(300)
"""
    + TRAIN,
    "waits at exit": LOOP + "import atexit, time\natexit.register(time.sleep, 300)\n" + TRAIN,
    "destructors": LOOP
    + """
class Slow:
    def __del__(self):
        import time
        time.sleep(300)
slow = Slow()
"""
    + TRAIN,
    "latin-1": ("# -*- coding: latin-1 -*-\n" + LOOP + TRAIN + "# caf\xe9\n").encode("latin-1"),
    "byte order mark": b"\xef\xbb\xbf" + (LOOP + TRAIN).encode(),
    "windows lines": (LOOP + TRAIN).replace("\n", "\r\n").encode(),
    "warnings are errors": "import warnings\nwarnings.simplefilter('error')\n" + LOOP + TRAIN,
    "asyncio": LOOP
    + """
import asyncio
async def train():
    for inputs, labels in loader:
        train_step(inputs, labels)
        await asyncio.sleep(0)
asyncio.run(train())
""",
}
