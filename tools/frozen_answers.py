"""Records what forty commands answer, so that a change of the house can be shown to change no answer.

    python -m tools.frozen_answers record /tmp/before     # then change something
    python -m tools.frozen_answers compare /tmp/before

Times, dates and ages of prices are of the day: both are to run on the same one. Data beside the checkout
(``../shared``) are used where they are there.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SHARED = {
    "log.csv.gz": ROOT.parent / "shared/traces/drac_cedar_gpu_2021.csv.gz",
    "kineto.pt.trace.json.gz": ROOT.parent / "shared/kineto/resnet50_v100_2021-06.pt.trace.json.gz",
}

PREPARED = [
    "profile examples/train_resnet50.py --out resnet50.json.gz",
    "profile examples/train_gpt.py --out gpt.json.gz",
    "profile --from-kineto kineto.pt.trace.json.gz --out kineto.json.gz",
]
COMMANDS = """
recommend resnet50.json.gz --epochs 90 --budget 200
recommend resnet50.json.gz --epochs 90 --budget 200 --format json
recommend resnet50.json.gz --epochs 90 --budget 200 --format markdown
recommend resnet50.json.gz --epochs 90 --budget 200 --format csv
recommend resnet50.json.gz --epochs 90 --budget 5 --format json
recommend resnet50.json.gz --epochs 90 --deadline 3h --format json
recommend gpt.json.gz --iterations 100000 --deadline 3d --budget 2000
recommend gpt.json.gz --iterations 100000 --deadline 3d --budget 2000 --format json
recommend gpt.json.gz --iterations 100000 --market spot --format json
recommend gpt.json.gz --iterations 100000 --market on-demand --gpu H100-SXM-80GB --format json
recommend gpt.json.gz --iterations 100000 --all --format json
recommend gpt.json.gz --iterations 100000 --provider aws --region 'us-*' --format json
recommend kineto.json.gz --iterations 50000 --format json
recommend resnet50.json.gz --epochs 90 --policy examples/policies/university-lab.yaml --format json
recommend resnet50.json.gz --epochs 90 --policy examples/policies/university-lab.yaml
recommend resnet50.json.gz
recommend resnet50.json.gz --epochs 90 --budget -1
recommend nothing.json --epochs 1
predict resnet50.json.gz
predict resnet50.json.gz --format json
predict resnet50.json.gz --gpu A100-SXM-80GB:8 --gpu T4 --format json
predict gpt.json.gz --gpu H100-SXM-80GB:8 --format json
predict gpt.json.gz --gpu H100-SXM-80GB:1,2,4,8
predict gpt.json.gz --gpu V100-SXM-16GB
predict kineto.json.gz --format json
predict gpt.json.gz --gpu H10
gpus
gpus --format json
gpus --relative-to V100-PCIE-16GB
prices --gpu H100-SXM-80GB
prices --gpu A100-SXM-80GB --format json
prices --provider gcp --market spot --format csv
prices sources
prices check
policy check examples/policies/university-lab.yaml
policy show examples/policies/university-lab.yaml
policy schema
queue fit log.csv.gz --out waits.json
queue check log.csv.gz
config show
"""
ENVIRONMENT = {"ADVISOR_PRICES__OFFLINE": "true", "NO_COLOR": "1", "COLUMNS": "160", "LC_ALL": "C.UTF-8"}
# What a command takes, and where it ran, is no answer.
_TIMES = re.compile(r"\b\d+(\.\d+)? (ms|s|min)\b(?= (ago|old))|\d{4}-\d\d-\d\dT[\d:.]+(\+00:00|Z)")


def run(line: str, folder: Path) -> str:
    """The command's exit code, output and errors as text."""
    home = folder / "home"
    homes = {"HOME": str(home), "XDG_CONFIG_HOME": str(home), "XDG_DATA_HOME": str(home)}
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ADVISOR_")}
    done = subprocess.run(
        [sys.executable, "-m", "advisor", *shlex.split(line)], cwd=folder, text=True, capture_output=True,
        stdin=subprocess.DEVNULL, env=environment | homes | ENVIRONMENT, check=False,
    )  # fmt: skip
    return _TIMES.sub("<time>", f"$ advisor {line}\nexit {done.returncode}\n{done.stdout}{done.stderr}")


def prepare(folder: Path) -> None:
    """Make the folder's traces, once: what is compared comes of the same ones."""
    if folder.exists():
        return
    (folder / "home").mkdir(parents=True)
    shutil.copytree(ROOT / "examples", folder / "examples")
    for name, path in SHARED.items():
        if path.exists():
            (folder / name).symlink_to(path)
    for line in PREPARED:
        run(line, folder)


def answers_of(folder: Path) -> list[str]:
    """What each command answers in a folder that was prepared."""
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda line: run(line, folder), COMMANDS.strip().splitlines()))


def main(task: str, folder: Path) -> int:
    """Record or compare; 1 if an answer has changed."""
    prepare(folder)
    answers = answers_of(folder)
    path = folder / "answers.json"
    if task == "record":
        path.write_text(json.dumps(answers, indent=1))
        return 0
    changed = 0
    for before, now in zip(json.loads(path.read_text()), answers, strict=True):
        lines = list(difflib.unified_diff(before.splitlines(), now.splitlines(), lineterm="", n=0))
        changed += bool(lines)
        if lines:
            print(before.splitlines()[0], *lines[:40], sep="\n")
    print(f"{len(answers) - changed} of {len(answers)} commands answer as before")
    return int(changed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2])))
