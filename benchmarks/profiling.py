"""``advisor profile`` without a GPU against one real iteration of the same script on this CPU.

The real iteration runs with a sixteenth of the batch and counts sixteen times: whole, it takes minutes.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SHARE = 16
EXAMPLES = Path(__file__).parents[1] / "examples"
# Name: script, batch size, aim in seconds of the whole command on two idle cores; by memory.
JOBS = {
    "LSTM, batch 64": ("train_lstm.py", 64, 6),
    "ResNet-50, batch 64": ("train_resnet50.py", 64, 8),
    "GPT-2 small, 8 x 1024, bf16": ("train_gpt.py", 8, 10),
}
# nanoGPT's configuration of GPT-2: 400 batches evaluated first, 40 micro-steps in each step.
NANOGPT = Path(__file__).parents[1] / "tests/compatibility/scripts/nanogpt.py"
NANOGPT_ARGUMENTS = (
    "--eval-iters 200 --gradient-accumulation-steps 40 --batch-size 12 --block-size 1024"
    " --n-layer 12 --n-head 12 --n-embd 768 --vocab-size 50304"
)
NANOGPT_AIM_S = 15
AIM_BYTES = 1.5e9
# Runs a script up to its second optimizer step and prints the seconds of the second iteration.
ONE_ITERATION = """
import os, runpy, sys, time
import torch
from torch.optim.optimizer import register_optimizer_step_post_hook
ends = []
def after(*_):
    ends.append(time.perf_counter())
    if len(ends) == 2:
        print("seconds", ends[1] - ends[0], flush=True)
        os._exit(0)
register_optimizer_step_post_hook(after)
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def profile_s(script: Path, arguments: list[str]) -> tuple[float, int]:
    """Wall seconds of the whole command, and the peak resident bytes of any process so far."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "advisor", "profile", str(script), "--backend", "fake"]
        begin = time.perf_counter()
        subprocess.run(
            [*command, "--out", f"{folder}/t.json.gz", "--", *arguments], check=True, capture_output=True
        )
        seconds = time.perf_counter() - begin
    return seconds, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024


def iteration_s(script: Path, arguments: list[str]) -> float:
    """Seconds of one real iteration on the CPU."""
    done = subprocess.run(
        [sys.executable, "-c", ONE_ITERATION, str(script), *arguments],
        env=os.environ | {"CUDA_VISIBLE_DEVICES": ""},
        check=True,
        capture_output=True,
        text=True,
    )
    return float(done.stdout.rpartition("seconds")[2])


def main() -> None:
    """Print seconds, memory and the ratio of each job."""
    # The kernel keeps one peak for all children, so those without a GPU go first, smallest first.
    measured = {
        name: profile_s(EXAMPLES / file, ["--batch-size", str(batch)])
        for name, (file, batch, _) in JOBS.items()
    }
    nanogpt_s, _ = profile_s(NANOGPT, NANOGPT_ARGUMENTS.split())
    print(f"profile {'nanoGPT, GPT-2, 40 x 12 x 1024':<28}{nanogpt_s:5.1f} s (aim: {NANOGPT_AIM_S} s)")
    for name, (file, batch, aim_s) in JOBS.items():
        seconds, peak_bytes = measured[name]
        part = max(1, batch // SHARE)
        real_s = iteration_s(EXAMPLES / file, ["--batch-size", str(part)]) * batch / part
        print(
            f"profile {name:<28}{seconds:5.1f} s (aim: {aim_s} s)  {peak_bytes / 1e9:4.2f} GB"
            f" (aim: {AIM_BYTES / 1e9:g} GB)  one real iteration takes {real_s / seconds:5.1f} x as long"
        )


if __name__ == "__main__":
    main()
