"""Eight training scripts, and each change of them really written in: what a what-if is compared with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
Edits = tuple[tuple[str, str], ...]

ACCUMULATED = 4
_TO_BF16 = ("dtype=torch.float16, enabled=args.amp", "dtype=torch.bfloat16, enabled=args.amp")
_NO_SCALER = ("GradScaler(device, enabled=args.amp)", "GradScaler(device, enabled=False)")
_TF32 = ("import torch\n", "import torch\n\ntorch.set_float32_matmul_precision('high')\n")
_LAST = "memory_format=torch.channels_last"
_ACCUMULATED_SCALER: Edits = (
    ("optimizer.zero_grad()", f"optimizer.zero_grad() if step % {ACCUMULATED} == 0 else None"),
    ("scaler.scale(loss).backward()", f"scaler.scale(loss / {ACCUMULATED}).backward()"),
    ("scaler.update()", "pass"),
)
_STEP = ("scaler.step(optimizer)", f"step % {ACCUMULATED} == {ACCUMULATED - 1} and scaler.step(optimizer)")
_LAST_PASS = f"if step % {ACCUMULATED} == {ACCUMULATED - 1}:\n            "


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIfScript:
    """A script that trains in FP32, and the edits that change it."""

    path: str
    batch_size: int
    """Small, so that recording takes seconds."""
    edits: Mapping[str, Edits]
    """By the change's name, what writes it in."""
    base: Edits = ()
    """Edits that take out what the script does already."""
    arguments: tuple[str, ...] = ()
    """Of the script, besides its batch."""
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def changes(self) -> tuple[str, ...]:
        """Those that can be written in."""
        return ("batch", *dict.fromkeys((*self.edits, *self.extra)))

    @property
    def name(self) -> str:
        """The script's, without its folder."""
        return Path(self.path).stem

    def text(self, change: str | None) -> str:
        """The script, with a change written in.

        Raises:
            ValueError: an edit finds no place: the script has changed.
        """
        text = (ROOT / self.path).read_text()
        for old, new in (*self.base, *(self.edits.get(change, ()) if change else ())):
            if old not in text:
                raise ValueError(f"{self.path} no longer has {old!r}")
            text = text.replace(old, new)
        return text

    def command_line(self, change: str | None) -> tuple[str, ...]:
        """Its arguments, with a change made."""
        batch_size = self.batch_size * (2 if change == "batch" else 1)
        return ("--batch-size", str(batch_size), *self.arguments, *self.extra.get(change or "", ()))


def _under(context: str, line: str) -> tuple[str, str]:
    """An edit that runs one line of a loop's body under a context; twelve blanks before it."""
    return f"            {line}", f"            with {context}:\n                {line}"


_BF16 = 'torch.autocast("cuda", dtype=torch.bfloat16)'
_PLAIN_SCALER = (
    'scaler = torch.amp.GradScaler("cuda")',
    'scaler = torch.amp.GradScaler("cuda", enabled=False)',
)
_NO_AUTOCAST = 'with torch.autocast("cuda", dtype=torch.float16):', "if True:"
_IN_BF16 = "if True:", f"with {_BF16}:"
_ENUMERATED = "for images, masks in loader:", "for step, (images, masks) in enumerate(loader):"

SCRIPTS = (
    WhatIfScript(
        path="examples/train_resnet50.py",
        batch_size=16,
        base=(_TO_BF16, _NO_SCALER),
        edits={
            "tf32": (_TF32,),
            "channels_last": (
                ("ResNet().to(device)", f"ResNet().to(device, {_LAST})"),
                ("images.to(device, non_blocking=True)", f"images.to(device, non_blocking=True, {_LAST})"),
            ),
            "accumulate": (*_ACCUMULATED_SCALER, _STEP),
            "fused": (("weight_decay=1e-4)", "weight_decay=1e-4, fused=True)"),),
        },
        extra={"bf16": ("--amp",)},
    ),
    WhatIfScript(
        path="examples/train_gpt.py",
        batch_size=2,
        arguments=("--context", "512"),
        base=(
            ('precision("high")', 'precision("highest")'),
            ("with torch.autocast(device, dtype=torch.bfloat16):", "if True:"),
        ),
        edits={
            "tf32": (('precision("highest")', 'precision("high")'),),
            "bf16": (_IN_BF16,),
            "fused": (("weight_decay=0.1)", "weight_decay=0.1, fused=True)"),),
        },
        extra={"accumulate": ("--accumulate", str(ACCUMULATED))},
    ),
    WhatIfScript(
        path="examples/train_bert.py",
        batch_size=4,
        arguments=("--length", "128"),
        base=(_TO_BF16, _NO_SCALER, ("scaler.unscale_(optimizer)", "pass")),
        edits={
            "fused": (("weight_decay=0.01)", "weight_decay=0.01, fused=True)"),),
            "tf32": (_TF32,),
            "accumulate": (*_ACCUMULATED_SCALER, ("nn.utils.clip", _LAST_PASS + "    nn.utils.clip"), _STEP),
        },
        extra={"bf16": ("--amp",)},
    ),
    WhatIfScript(
        path="examples/train_lstm.py",
        batch_size=16,
        base=(_TO_BF16, _NO_SCALER, ("scaler.unscale_(optimizer)", "pass")),
        edits={
            "fused": (("lr=1e-3)", "lr=1e-3, fused=True)"),),
            "tf32": (_TF32,),
            "accumulate": (*_ACCUMULATED_SCALER, ("nn.utils.clip", _LAST_PASS + "    nn.utils.clip"), _STEP),
        },
        extra={"bf16": ("--amp",)},
    ),
    WhatIfScript(
        path="benchmarks/jobs_scripts/mnist.py",
        batch_size=64,
        edits={
            "tf32": (_TF32,),
            "bf16": (
                (
                    "            F.cross_entropy(model(images.to(device)), labels.to(device)).backward()",
                    (
                        f"            with {_BF16}:\n"
                        "                outputs = model(images.to(device))\n"
                        "                loss = F.cross_entropy(outputs, labels.to(device))\n"
                        "            loss.backward()"
                    ),
                ),
            ),
            "channels_last": (
                (").to(device)  # fmt", f").to(device, {_LAST})  # fmt"),
                ("images.to(device)", f"images.to(device, {_LAST})"),
            ),
            "accumulate": (
                ("for images, labels in loader:", "for step, (images, labels) in enumerate(loader):"),
                ("optimizer.zero_grad()", f"optimizer.zero_grad() if step % {ACCUMULATED} == 0 else None"),
                (
                    "F.cross_entropy(model(images.to(device)), labels.to(device)).backward()",
                    (
                        "(F.cross_entropy(model(images.to(device)), labels.to(device))"
                        f" / {ACCUMULATED}).backward()"
                    ),
                ),
                ("optimizer.step()", _LAST_PASS + "    optimizer.step()"),
            ),
        },
    ),
    WhatIfScript(
        path="benchmarks/jobs_scripts/unet.py",
        batch_size=1,
        base=(_NO_AUTOCAST, _PLAIN_SCALER),
        edits={
            "tf32": (_TF32,),
            "bf16": (_IN_BF16,),
            "channels_last": (
                ('UNet().to("cuda")', f'UNet().to("cuda", {_LAST})'),
                ('images.to("cuda")', f'images.to("cuda", {_LAST})'),
            ),
            "accumulate": (_ENUMERATED, *_ACCUMULATED_SCALER, _STEP),
        },
    ),
    WhatIfScript(
        path="benchmarks/jobs_scripts/detector.py",
        batch_size=2,
        base=(_NO_AUTOCAST, _PLAIN_SCALER),
        edits={
            "tf32": (_TF32,),
            "bf16": (_IN_BF16,),
            "channels_last": (
                ('Detector().to("cuda")', f'Detector().to("cuda", {_LAST})'),
                ('images.to("cuda")', f'images.to("cuda", {_LAST})'),
            ),
            "accumulate": (
                ("for images, targets in loader:", "for step, (images, targets) in enumerate(loader):"),
                *_ACCUMULATED_SCALER,
                _STEP,
            ),
        },
    ),
    WhatIfScript(
        path="benchmarks/jobs_scripts/llama.py",
        batch_size=1,
        arguments=("--context", "256"),
        base=((".to(torch.bfloat16)", ""),),
        edits={
            "tf32": (_TF32,),
            "bf16": (
                (
                    'model(tokens.to("cuda"), targets.to("cuda")).backward()',
                    (
                        f"with {_BF16}:\n"
                        '            loss = model(tokens.to("cuda"), targets.to("cuda"))\n'
                        "        loss.backward()"
                    ),
                ),
            ),
            "accumulate": (
                ("for tokens, targets in loader:", "for step, (tokens, targets) in enumerate(loader):"),
                ("optimizer.zero_grad()", f"optimizer.zero_grad() if step % {ACCUMULATED} == 0 else None"),
                (
                    'model(tokens.to("cuda"), targets.to("cuda")).backward()',
                    f'(model(tokens.to("cuda"), targets.to("cuda")) / {ACCUMULATED}).backward()',
                ),
                (
                    "nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n        optimizer.step()",
                    (
                        f"if step % {ACCUMULATED} == {ACCUMULATED - 1}:\n"
                        "            nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n"
                        "            optimizer.step()"
                    ),
                ),
            ),
        },
    ),
)
