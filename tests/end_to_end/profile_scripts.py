"""Training scripts with habits, each a few lines around the same loop."""

LOOP = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

device = "cuda" if torch.cuda.is_available() else "cpu"
data = TensorDataset(torch.zeros(1000, 16), torch.zeros(1000, dtype=torch.long))
loader = DataLoader(data, batch_size=8, num_workers=4)
model = nn.Linear(16, 4).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

def train_step(inputs, labels):
    loss = nn.functional.cross_entropy(model(inputs.to(device)), labels.to(device))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
TRAIN = """
for inputs, labels in loader:
    train_step(inputs, labels)
"""

SCRIPTS = {
    "plain": LOOP + TRAIN,
    "catches Exception": LOOP
    + """
for inputs, labels in loader:
    try:
        train_step(inputs, labels)
    except Exception:
        print("swallowed")
""",
    "swallows everything": LOOP
    + """
from pathlib import Path
while True:
    try:
        for inputs, labels in loader:
            train_step(inputs, labels)
    except:
        pass
""",
    "finally": LOOP
    + """
from pathlib import Path
try:
    for inputs, labels in loader:
        train_step(inputs, labels)
finally:
    torch.save(model.state_dict(), "checkpoint.pt")
    model(torch.zeros(2, 16).to(device))
    Path("after.txt").write_text("reached")
""",
    "hangs in finally": LOOP
    + """
import time
try:
    for inputs, labels in loader:
        train_step(inputs, labels)
finally:
    time.sleep(100)
""",
    "atexit": LOOP
    + """
import atexit
from pathlib import Path
atexit.register(lambda: Path("atexit.txt").write_text("reached"))
"""
    + TRAIN,
    "accumulates": LOOP
    + """
for step, (inputs, labels) in enumerate(loader):
    loss = nn.functional.cross_entropy(model(inputs.to(device)), labels.to(device)) / 4
    loss.backward()
    if (step + 1) % 4 == 0:
        optimizer.step()
        optimizer.zero_grad()
""",
    "two steps": LOOP
    + """
for step, (inputs, labels) in enumerate(loader):
    train_step(inputs, labels)
    if step == 1:
        break
""",
    "optimizer before to": """
import torch
from torch import nn
embedding, head = nn.Embedding(100, 32), nn.Linear(32, 100, bias=False)
head.weight = embedding.weight
model = nn.Sequential(embedding, head)
optimizer = torch.optim.AdamW(model.parameters())
model.cuda()
for step in range(100):
    loss = model(torch.zeros(4, 10, dtype=torch.long, device="cuda")).float().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
""",
    "compiled fp16": LOOP
    + """
model = torch.compile(model)
torch.backends.cuda.matmul.allow_tf32 = True
scaler = torch.cuda.amp.GradScaler()
for inputs, labels in loader:
    with torch.cuda.amp.autocast():
        loss = nn.functional.cross_entropy(model(inputs.cuda()), labels.cuda())
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad(set_to_none=True)
""",
    "sees itself": """
import os, sys
import helper, advisor, recommender, fake, recorder, patches
from advisor.core.values import Op
from recommender import recommend
assert __name__ == "__main__", __name__
assert sys.argv == [__file__, "--lr", "1"], sys.argv
assert os.path.abspath(sys.path[0]) == os.path.dirname(os.path.abspath(__file__)), sys.path
assert (helper.WHO, advisor.WHO, recommend, Op) == ("helper", "user", "mine", "my op")
assert sys.stdin.read() == ""
assert "SOME_API_TOKEN" not in os.environ and os.environ["PL_KEPT"] == "yes"
assert os.path.samefile(os.getcwd(), os.environ["PL_EXPECTED_CWD"])
import pickle
class Thing: pass
pickle.loads(pickle.dumps(Thing()))
"""
    + LOOP
    + TRAIN,
    # What follows yields no trace.
    "raises": LOOP
    + """
def prepare():
    print("password=hunter22")
    raise ValueError("the learning rate is wrong, token=abcdefgh1234")
prepare()
""",
    "never steps": LOOP
    + """
print("only evaluating")
with torch.no_grad():
    for inputs, labels in loader:
        model(inputs.to(device))
""",
    "exits": LOOP + "import sys; sys.exit('--data is missing')",
    "leaves": LOOP + "import os; os._exit(5)",
    "missing argument": """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--data", required=True)
parser.parse_args()
""",
    "null bytes": "import torch\x00",
    "hungry": """
import torch
kept = []
for _ in range(12):
    kept.append(torch.ones(64, 2**20))
""",
    "two gpus": "import sys, torch\nif torch.cuda.device_count() < 2:\n    sys.exit('two are needed')\n",
    "of keras": "from keras_that_is_not_here import x\nimport keras\n",
}
ARGUMENTS = {"sees itself": ["--lr", "1"]}
LIMITS = {"hungry": {"memory_bytes": 3 * 2**29}}
USERS_MODULES = {
    "helper.py": 'WHO = "helper"',
    "advisor/__init__.py": 'WHO = "user"',
    "advisor/core/values/__init__.py": 'Op = "my op"',
    "recommender/__init__.py": 'recommend = "mine"',
    "fake.py": "",
    "recorder.py": "",
    "patches/__init__.py": "",
}
