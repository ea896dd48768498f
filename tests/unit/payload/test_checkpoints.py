"""What the text of a script says of checkpoints: it saves and resumes, saves alone, or does neither."""

import sys
import types
from pathlib import Path
from textwrap import dedent

import pytest

from advisor.payload.checkpoints import checkpointing_of, line_of_turns

LOOP = """
import torch
for epoch in range(9):
    loss.backward()
    optimizer.step()
"""
SAVES = LOOP + "    torch.save({'model': model.state_dict()}, 'last.pt')\n"
OWN_TRAINER = "from transformers import Trainer, TrainingArguments\n"
FORMS = {
    "neither": (LOOP, "none"),
    "the weights when all is done": (LOOP + "torch.save(model.state_dict(), 'mnist_cnn.pt')\n", "none"),
    "other files in the loop": (LOOP + "    image.save('sample.png')\n    np.save('x', y)\n", "none"),
    "pretrained weights alone":
        (LOOP + "model.load_state_dict(torch.load('resnet.pt'))\ntorch.save(model, 'tuned.pt')\n", "none"),
    "in the loop": (SAVES, "saves"),
    "loads the model alone": (SAVES + "model.load_state_dict(torch.load('last.pt'))\n", "saves"),
    "copies an optimizer": (SAVES + "optimizer.load_state_dict(other.state_dict())\n", "saves"),
    "restores its optimizer":
        (SAVES + "c = torch.load('last.pt')\nself.optimizer.load_state_dict(c['optimizer'])\n", "resumes"),
    "restores one of several":
        (SAVES + "c = torch.load('last.pt')\nfor i in c: optimizers[i].load_state_dict(c[i])\n", "resumes"),
    "under other names":
        (("import torch as th\nfrom torch import save as keep\nwhile True:\n    loss.backward()\n"
         "    keep(x, 'a.pt')\nopt.load_state_dict(th.load('a.pt'))\n"), "resumes"),
    "in a function that the loop calls":
        (LOOP.replace("optimizer.step()", "finish(epoch)")
         + "def finish(epoch): keep()\ndef keep(): torch.save(model, 'a.pt')\n", "saves"),
    "in a function called when all is done":
        (LOOP + "finish()\ndef finish(): torch.save(model, 'a.pt')\n", "none"),
    "Accelerate":
        (("for batch in loader:\n    accelerator.backward(loss)\n    accelerator.save_state('out')\n"
         "accelerator.load_state('out')\n"), "resumes"),
    "DeepSpeed":
        (("for batch in loader:\n    engine.backward(loss)\n    engine.save_checkpoint('out')\n"
         "engine.load_checkpoint('out')\n"), "resumes"),
    "a function of its own called like a library's":
        (SAVES + "def load_checkpoint(): model.load_state_dict(torch.load('last.pt'))\nload_checkpoint()\n",
         "saves"),
    "distributed checkpoints":
        (("import torch.distributed.checkpoint as dcp\nfor x in y:\n    loss.backward()\n"
         "    dcp.save(s, 'out')\ndcp.load(s, 'out')\noptimizer.load_state_dict(s)\n"), "resumes"),
    "Lightning": ("import lightning as L\nL.Trainer(max_epochs=9).fit(model)\n", "saves"),
    "Lightning without":
        ("from lightning.pytorch import Trainer\nTrainer(enable_checkpointing=False).fit(model)\n", "none"),
    "Lightning from its last":
        ("import pytorch_lightning as pl\npl.Trainer().fit(model, ckpt_path='last')\n", "resumes"),
    "Lightning from nothing": ("import lightning as L\nL.Trainer().fit(model, ckpt_path=None)\n", "saves"),
    "a function named as a module's method":
        (("import torch\ndef train():\n    for batch in loader:\n        model.train()\n"
         "        loss.backward()\n    torch.save(model.state_dict(), 'a.pt')\ntrain()\n"), "none"),
    "Hugging Face": (OWN_TRAINER + "Trainer(model).train()\n", "saves"),
    "Hugging Face without":
        (OWN_TRAINER + "a = TrainingArguments('out', save_strategy='no')\nTrainer(model, a).train()\n",
         "none"),
    "Hugging Face resumed":
        (("import transformers\nclass Mine(transformers.Trainer): pass\n"
         "Mine(model).train(resume_from_checkpoint=args.resume)\n"), "resumes"),
    "the loop of another library": ("import somelib\nsomelib.fit(model)\n", None),
    "saved beside the loop of another library":
        (("import torch, somelib\nclass Keep(somelib.Callback):\n"
         "    def on_epoch_end(self): torch.save(self.model, 'a')\nsomelib.fit(model, Keep())\n"), "saves"),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_what_a_script_does_is_read_from_its_text(form, tmp_path):
    text, use = FORMS[form]
    found = checkpointing_of(_written(tmp_path, text))
    assert (None if found is None else found["use"]) == use


def test_each_place_has_its_line(tmp_path):
    found = checkpointing_of(_written(tmp_path, SAVES + "o = torch.load('a')\nopt.load_state_dict(o)\n"))
    assert found["saves"] == ["train.py:6 torch.save"]
    assert found["loads"] == ["train.py:7 torch.load", "train.py:8 opt.load_state_dict"]


def test_modules_beside_the_script_count_and_installed_ones_do_not(tmp_path, monkeypatch):
    script = _written(tmp_path, "import helper\nfor x in y:\n    loss.backward()\n    helper.keep()\n")
    helper = "import torch\ndef keep(): torch.save(model, 'a.pt')\n"
    for name, path in {"helper": "helper.py", "far": ".venv/lib/site-packages/far.py"}.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(helper if name == "helper" else "a.load_state('x')\n")
        module = types.ModuleType(name)
        module.__file__ = str(tmp_path / path)
        monkeypatch.setitem(sys.modules, name, module)
    found = checkpointing_of(script)
    assert (found["use"], found["saves"]) == ("saves", ["helper.py:2 torch.save"])


@pytest.mark.parametrize(
    "text", [LOOP + "f" + ".a" * 5000 + "()\n", "x = " + "-" * 3000 + "1\n", "\0", "def"]
)
def test_a_text_that_cannot_be_read_shows_nothing(text, tmp_path):
    found = checkpointing_of(_written(tmp_path, text))
    assert found is None or found["use"] == "none"


def _written(folder: Path, text: str) -> Path:
    path = folder / "train.py"
    path.write_text(dedent(text))
    return path


STEP = "            loss.backward(); optimizer.step()\n"
TURNS = {
    "folds": (
        ("import x\nfor fold, (train, test) in enumerate(folds.split(data)):\n"
        "    loader = DataLoader(data, 32, sampler=pick(train))\n"
        f"    for epoch in range(9):\n        for i, batch in enumerate(tqdm(loader)):\n{STEP}"),
        2,
    ),
    "a loader among others": (
        ("while size < 256:\n    loader, size = torch.utils.data.DataLoader(Images(size)), size * 2\n"
        f"    for epoch in range(9):\n        for batch in loader:\n{STEP}"),
        None,  # two names at once are not followed
    ),
    "stages": (
        ("while size < 256:\n    loader = torch.utils.data.DataLoader(Images(size))\n"
        f"    for epoch in range(9):\n        for batch in loader:\n{STEP}"),
        1,
    ),
    "a loader of each epoch": (
        f"for epoch in range(9):\n    loader = DataLoader(data)\n    for batch in loader:\n    {STEP}",
        None,
    ),
    "epochs alone": (
        ("loader = DataLoader(data)\nfor epoch in range(9):\n"
        f"    for part in parts:\n        for batch in loader:\n{STEP}"),
        None,
    ),
    "a validation in turns": (
        ("for fold in folds:\n    loader = DataLoader(fold)\n    for model in models:\n"
        "        for batch in loader:\n            model(batch)\n"),
        None,
    ),
    "no Python": ("for x in [1,\n", None),
}  # fmt: skip


@pytest.mark.parametrize("form", TURNS)
def test_a_loop_around_the_epochs_is_found_by_its_line(form, tmp_path):
    text, line = TURNS[form]
    (tmp_path / "train.py").write_text(text)
    assert line_of_turns(tmp_path / "train.py") == line
