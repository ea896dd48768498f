"""Probes of the patches that keep a script from leaving traces; stand-in packages play the libraries."""

# Runs in a folder of its own; ``package(name, code)`` makes an importable stand-in.
_FOLDER = """
import os, pathlib, shutil, sys, tempfile
folder = pathlib.Path(tempfile.mkdtemp())
os.chdir(folder)
sys.path.insert(0, str(folder / "packages"))
def package(name, code):
    path = folder / "packages" / (name.replace(".", "/") + ".py")
    path.parent.mkdir(parents=True, exist_ok=True)
    for parent in path.parents[: name.count(".")]:
        (parent / "__init__.py").touch()  # else the real library, where it is installed, goes first
    path.write_text(code)
def written():
    return sorted(entry.name for entry in real_scandir(folder) if entry.name != "packages")
real_scandir = getattr(os.scandir, "__wrapped__", os.scandir)
real_open = getattr(open, "__wrapped__", open)
"""
_WRITER = """
class SummaryWriter:
    def __init__(self, log_dir="runs"):
        open(log_dir, "w").close()
    def add_scalar(self, *arguments):
        raise OSError("no disk")
    def _get_file_writer(self):
        raise OSError("no disk")
    def __enter__(self):
        return self
    def __exit__(self, *_):
        self.add_scalar()
"""

FILE_PROBES = {
    "saving": (
        _FOLDER
        + """
model = nn.Linear(100_000, 100_000, bias=False, device="cuda")
torch.save({"model": model.state_dict(), "labels": torch.arange(3)}, "model.pt")
saved = torch.load("model.pt")
result = [written(), str(saved["model"]["weight"].device), list(saved["model"]["weight"].shape),
          saved["labels"].tolist(), list(session.warnings)]
""",
        [[], "cuda:0", [100_000, 100_000], [0, 1, 2],
         ["not-done {'what': 'writing', 'name': 'torch.save'}"]],
    ),
    "restoring": (
        _FOLDER
        + """
path = session.saved.place("old.pt")
host = nn.Linear(3, 3)
torch.save({"host": host.state_dict(), "device": host.cuda().state_dict()}, path)
def devices(where):
    loaded = torch.load("old.pt", map_location=where)
    return [str(loaded[name]["weight"].device) for name in ("host", "device")]
result = [devices(where) for where in (
    None, "cpu", "cuda", {"cuda:0": "cpu"}, lambda storage, _: storage, lambda storage, _: storage.cuda(0))]
""",
        [["cpu", "cuda:0"], ["cpu", "cpu"], ["cuda:0"] * 2, ["cpu", "cpu"], ["cpu", "cpu"], ["cuda:0"] * 2],
    ),
    "saved_paths": (
        _FOLDER
        + """
import glob
torch.save({"epoch": 1}, "last.pt")
shutil.copyfile("last.pt", "best.pt")
shutil.copy2("last.pt", "other.pt")
os.replace("other.pt", "renamed.pt")
pathlib.Path("last.pt").unlink()
with open("best.pt", "rb") as file:
    epoch = torch.load(file)["epoch"]
result = [epoch, pathlib.Path("best.pt").exists(), os.path.getsize("best.pt") > 0,
          os.path.exists("last.pt"), sorted(glob.glob("*.pt")), sorted(pathlib.Path().glob("*.pt")) != [],
          [name for name in sorted(os.listdir()) if name.endswith("pt")], written()]
""",
        [1, True, True, False, ["best.pt", "renamed.pt"], True, ["best.pt", "renamed.pt"], []],
    ),
    "removed_paths": (
        _FOLDER
        + """
import glob
def put(name):
    pathlib.Path(name).parent.mkdir(exist_ok=True)
    pathlib.Path(name).write_text(name)
for name in ("a.pt", "b.pt", "c.pt", "d.pt", "e.pt", "old/f.pt", "runs/log.csv"):
    put(name)
session.saved._made.clear()  # from here on these are the owner's
def seen():
    return sorted(glob.glob("**/*.*", recursive=True, root_dir=folder))
put("own.pt")
os.remove("own.pt")
os.remove("a.pt")
pathlib.Path("b.pt").unlink()
put("new.pt")
os.replace("new.pt", "c.pt")
os.rename("d.pt", "moved.pt")
os.rename("old", "older")
shutil.rmtree("runs")
os.makedirs("runs")
put("b.pt-2")
with open("b.pt", "w") as file:
    file.write("again")
torch.save({}, "e.pt")
os.remove("e.pt")
torch.save({}, "moved.pt")  # not through a link
names = ("a.pt", "b.pt", "c.pt", "moved.pt", "older/f.pt", "runs/log.csv", "runs")
result = [
    [name for name in seen() if not name.startswith("packages")],
    [os.path.exists(name) for name in names],
    pathlib.Path("b.pt").read_text(), pathlib.Path("c.pt").read_text(),
    written(), [(real_open(folder / name).read()) for name in ("a.pt", "b.pt", "c.pt", "d.pt", "e.pt")],
    sorted(entry.name for entry in real_scandir(folder / "runs"))]
""",
        [["b.pt", "b.pt-2", "c.pt", "moved.pt", "older/f.pt"],
         [False, True, True, True, True, False, True],
         "again", "new.pt",
         ["a.pt", "b.pt", "b.pt-2", "c.pt", "d.pt", "e.pt", "old", "runs"],
         ["a.pt", "b.pt", "c.pt", "d.pt", "e.pt"], ["log.csv"]],
    ),
    "saving_libraries": (
        _FOLDER
        + """
package("accelerate.accelerator", '''
import os, torch
class Accelerator:
    def save_state(self, output_dir=None, safe=True):
        os.makedirs(output_dir, exist_ok=True)
        with open(os.path.join(output_dir, "state.json"), "w") as file:
            file.write("{}")
''')
from accelerate.accelerator import Accelerator
Accelerator().save_state(output_dir="state")
result = [written(), os.listdir("state"), os.path.isdir("state")]
""",
        [[], ["state.json"], True],
    ),
    "safetensors_files": (
        _FOLDER
        + """
package("safetensors.torch", '''
def save_file(tensors, filename, metadata=None):
    open(filename, "w").close()
save_model = storage_ptr = save_file
''')
package("safetensors.__init__", '''
class safe_open:
    def __init__(self, filename, framework, device="cpu"):
        open(filename, "rb").close()
''')
from safetensors import safe_open
from safetensors.torch import save_file
import json
save_file({"w": torch.zeros(2, 3, device="cuda"), "host": torch.tensor([1, 2], dtype=torch.int16)}, "m.st")
safe_open("m.st", framework="pt")
data = open("m.st", "rb").read()
length = int.from_bytes(data[:8], "little")
result = [written(), json.loads(data[8:8 + length])["w"], list(data[8 + length:])]
""",
        [[], {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, [0] * 24 + [1, 0, 2, 0]],
    ),
    "distributed_checkpoint": (
        _FOLDER
        + """
import torch.distributed.checkpoint as dcp
model = nn.Linear(100_000, 100_000, device="cuda")
dcp.save({"model": model.state_dict(), "step": 7}, checkpoint_id="state")
state = {"model": model.state_dict(), "step": 0}
dcp.load(state, checkpoint_id="state")
result = [written(), state["step"], str(state["model"]["weight"].device)]
""",
        [[], 7, "cuda:0"],
    ),
    "loggers": (
        _FOLDER
        + f"""
package("tensorboardX.writer", {_WRITER!r})
package("wandb", '''
modes = []
def init(project, mode="online"):
    modes.append(mode)
def login(key):
    raise OSError("no network")
''')
package("mlflow", '''
def start_run():
    raise OSError("no network")
log_metric = set_tracking_uri = start_run
''')
package("aim", '''
class Run:
    def __init__(self):
        raise OSError("no disk")
''')
import aim, mlflow, wandb
from tensorboardX.writer import SummaryWriter
wandb.login(key="k")
wandb.init("p", mode="online")
mlflow.set_tracking_uri("http://localhost:1")
with mlflow.start_run() as active:
    mlflow.log_metric(active.info.run_id, 1.0)
run = aim.Run()
run["lr"] = 0.1
run.track(0.5, name="loss")
with SummaryWriter() as writer:
    writer.add_scalar("loss", torch.zeros((), device="cuda"), 1)
    writer._get_file_writer().add_summary(1)
result = [written(), wandb.modes, writer.log_dir, len(session.warnings)]
""",
        [[], ["disabled"], "runs", 4],
    ),
    "downloads": (
        _FOLDER
        + """
import urllib.request
torch.hub.set_dir(str(folder / "packages" / "hub"))
(folder / "packages" / "hub" / "checkpoints").mkdir(parents=True)
url = "http://example.invalid/net.pth"
model = nn.Linear(2, 2)
weights = torch.hub.load_state_dict_from_url(url)
model.load_state_dict({name: weights["model"][name] for name in weights})
model.load_state_dict(weights["model"])
torch.save({"bias": torch.ones(2), "weight": torch.ones(2, 2)},
           session.saved.place(folder / "packages" / "hub" / "checkpoints" / "net.pth"))
model.load_state_dict(torch.hub.load_state_dict_from_url(url))
try:
    urllib.request.urlopen("http://example.invalid/data.gz")
    message = ""
except OSError as error:
    message = str(error)
package("huggingface_hub.__init__", '''
def login(token):
    raise OSError("no network")
''')
package("huggingface_hub.file_download", '''
def hf_hub_download(repo_id, filename):
    raise OSError("offline")
''')
package("timm.models._builder", '''
def load_pretrained(model):
    from huggingface_hub.file_download import hf_hub_download
    hf_hub_download("timm/net", "model.pth")
''')
import huggingface_hub, timm.models._builder
huggingface_hub.login("t")
timm.models._builder.load_pretrained(model)
result = [model.bias.tolist(), "refused to download 'http://example.invalid/data.gz'" in message,
          list(session.refused), [text for text in session.warnings if "torch.save" not in text]]
""",
        [[1.0, 1.0], True, ["http://example.invalid/data.gz"],
         ["not-done {'what': 'download', 'name': 'http://example.invalid/net.pth'}",
          "not-done {'what': 'call', 'name': 'login'}",
          "not-done {'what': 'download', 'name': 'timm/net'}"]],
    ),
}  # fmt: skip
