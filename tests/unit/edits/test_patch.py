"""Changes written into scripts: where that is safe, and why not elsewhere."""

import ast
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core.errors import InputError
from advisor.core.findings.about_estimates import NotPatched
from advisor.edits.patch import PLACES, edited, lines_of, patch_of, read_script

ROOT = Path(__file__).resolve().parents[3]
SCRIPTS = sorted([*ROOT.glob("examples/*.py"), *ROOT.glob("benchmarks/jobs_scripts/*.py")])
SCRIPT = """\
import torch
from torch import nn

model = nn.Linear(8, 8).to("cuda")
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for images, labels in loader:
    optimizer.zero_grad()
    outputs = model(images)
    loss = nn.functional.mse_loss(outputs, labels)
    loss.backward()
    optimizer.step()
"""


def after(name: str, text: str = SCRIPT) -> list[str]:
    """The lines that a patch adds, and those that it takes away."""
    patch = patch_of(text, "train.py", [name])
    assert patch.changes == (name,), patch.refused
    return [line for line in patch.diff.splitlines()[2:] if line[:1] in ("+", "-")]


def refused(name: str, text: str) -> str:
    patch = patch_of(text, "train.py", [name])
    assert (patch.changes, patch.diff) == ((), "")
    why = patch.refused[name]
    assert isinstance(why, NotPatched)
    return why.why


def test_tf32_stands_behind_the_imports():
    assert after("tf32") == ["+", '+torch.set_float32_matmul_precision("high")']
    named = SCRIPT.replace("import torch\n", "import torch as th\n").replace("torch.optim", "th.optim")
    assert after("tf32", named)[-1] == '+th.set_float32_matmul_precision("high")'


def test_tf32_takes_the_place_of_what_forbids_it():
    text = SCRIPT + 'torch.set_float32_matmul_precision("highest")\n'
    assert after("tf32", text) == [
        '-torch.set_float32_matmul_precision("highest")',
        '+torch.set_float32_matmul_precision("high")',
    ]


def test_fused_suits_a_script_that_clips_by_itself_or_a_trainer_that_does_not():
    assert after("fused", SCRIPT + "torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n")
    assert after("fused", SCRIPT + "L.Trainer(max_epochs=3)\n")


def test_fused_joins_the_arguments_of_every_optimizer():
    assert after("fused")[-1] == "+optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)"
    comma = SCRIPT.replace("lr=1e-3)", "lr=1e-3,\n)")
    assert after("fused", comma)[-1].endswith("lr=1e-3, fused=True,")


def test_layout_and_compilation_come_before_the_optimizer():
    assert after("channels_last") == ["+model.to(memory_format=torch.channels_last)"]
    assert after("compile") == ["+model.compile()"]


def test_autocast_holds_what_makes_the_loss_and_no_more():
    assert after("bf16") == [
        "-    outputs = model(images)",
        "-    loss = nn.functional.mse_loss(outputs, labels)",
        '+    with torch.autocast("cuda", dtype=torch.bfloat16):',
        "+        outputs = model(images)",
        "+        loss = nn.functional.mse_loss(outputs, labels)",
    ]


NO_TORCH = SCRIPT.replace("import torch\n", "from torch import optim\n").replace("torch.optim", "optim")
TWO = SCRIPT.replace("for images", "other = torch.optim.SGD(model.parameters(), 0.1)\nfor images")
UNNAMED = SCRIPT.replace("    loss = ", "    ").replace("labels)\n    loss.backward", "labels).backward")


@pytest.mark.parametrize(
    ("name", "text", "code"),
    [
        ("tf32", NO_TORCH, "no-torch"),
        ("tf32", SCRIPT + "torch.backends.cuda.matmul.allow_tf32 = False\n", "set-already"),
        ("tf32", SCRIPT + "torch.set_float32_matmul_precision(args.precision)\n", "set-already"),
        ("tf32", SCRIPT.replace("import nn", "import nn; nn.x = 1"), "shared-line"),
        ("fused", SCRIPT.replace("AdamW", "RMSprop"), "no-optimizer"),
        ("fused", SCRIPT.replace("lr=1e-3", "lr=1e-3, foreach=True"), "set-already"),
        ("fused", SCRIPT.replace("lr=1e-3", "**options"), "set-already"),
        ("fused", SCRIPT.replace("lr=1e-3", "fused=False"), "set-already"),
        ("fused", SCRIPT + "L.Trainer(gradient_clip_val=1.0)\n", "fused-not-clipped"),
        ("fused", SCRIPT + "self.clip_gradients(optimizer, 1.0)\n", "fused-not-clipped"),
        ("channels_last", TWO, "no-model"),
        ("channels_last", SCRIPT.replace("model.parameters()", "groups"), "no-model"),
        ("channels_last", SCRIPT.replace("optimizer =", "a = 1; optimizer ="), "shared-line"),
        ("compile", SCRIPT + "model = torch.compile(model)\n", "set-already"),
        ("bf16", SCRIPT + "torch.autocast\n", "set-already"),
        ("bf16", UNNAMED, "loop-unclear"),
        ("bf16", SCRIPT + SCRIPT[SCRIPT.index("for") :], "loop-unclear"),
        ("bf16", SCRIPT.replace("    loss = ", "    if 1: loss = "), "loop-unclear"),
        ("bf16", SCRIPT.replace("model(images)", 'model(images, """a\nb""")'), "loop-unclear"),
        ("bf16", SCRIPT.replace("model(images)", "net(images)"), "loop-unclear"),
        ("fp16", SCRIPT, "by-hand"),
        ("batch", SCRIPT, "by-hand"),
    ],
)
def test_what_is_not_plain_is_refused(name, text, code):
    assert refused(name, text) == code


def test_several_changes_are_one_diff():
    patch = patch_of(SCRIPT, "train.py", ["fused", "tf32", "fp16", "bf16"])
    assert patch.changes == ("fused", "tf32", "bf16")
    assert set(patch.refused) == {"fp16"}
    assert patch.diff.count("--- a/train.py") == 1


def test_a_text_that_is_no_python_is_refused():
    with pytest.raises(InputError, match=r"train\.py cannot be parsed"):
        patch_of("for x in:\n", "train.py", ["tf32"])


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
@pytest.mark.parametrize("name", sorted(PLACES))
def test_whatever_is_placed_is_python_and_is_placed_once(path, name):
    text = path.read_text()
    patch = patch_of(text, path.name, [name])
    if not patch.changes:
        assert patch.diff == ""
        return
    placed = PLACES[name](read_script(text, path.name))
    assert isinstance(placed, tuple)
    new = edited(read_script(text, path.name), placed)
    ast.parse(new)
    # A second time it is there already.
    assert patch_of(new, path.name, [name]).changes == ()


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@given(comment=st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=20))
def test_all_else_stays_as_it_was(newline, comment):
    text = SCRIPT.replace("import torch\n", f"import torch  # {comment}\f\n", 1).replace("\n", newline)
    for name in ("tf32", "fused", "bf16", "channels_last"):
        script = read_script(text, "train.py")
        placed = PLACES[name](script)
        assert isinstance(placed, tuple)
        new = edited(script, placed)
        ast.parse(new)
        kept = [line for line in lines_of(text) if line in lines_of(new)]
        assert len(lines_of(text)) - len(kept) <= 2
        assert all(line.endswith(newline) for line in lines_of(new))
