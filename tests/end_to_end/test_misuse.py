"""A hundred command lines that are wrong, over all commands: each ends with a line that says what to do.

None shows a traceback of ours, none is silent, and none touches a file that is there or leaves a new one.
`tests/unit/cli/test_wrong_uses.py` has the names, numbers and settings that are out of bounds.
"""

import shlex
from collections.abc import Mapping
from pathlib import Path

import pytest

from advisor.formats.trace_files import write_trace
from tests.builders import make_trace
from tests.end_to_end.cli import Shell

FILES = {
    "train.py": "import torch\n",
    "torn.py": "import torch\nx = [1,\n",
    "nb.ipynb": "no notebook",
    "empty.json": "",
    "mine.json": '{"mine": 1}\n',
    "mine.html": "mine\n",
    "text.csv": "hello world\n",
    "log.csv": "submit,start,gpus,walltime,queue,user\n2026-01-01T00:00,2026-01-01T01:00,1,3600,gpu,ann\n",
    "policy.yaml": "version: 1\nname: us\nlayer: organisation\nlimits: {usd_per_job: 100}\n",
    "grid.yaml": "subjects: [t.json]\n",
    "typo.yaml": "version: 1\nname: us\nlayer: organisation\nlimts: {usd_per_job: 100}\n",
    "torn.yaml": "version: 1\nname: [us\n",
    "folder/kept.txt": "kept\n",
    ".config/advisor/config.yaml": "report: {teams: {vision: [resnet]}}\n",
}
RAN = "run record --start 2026-11-20T09:00 --duration 2h --gpu L4:1"
JOB = "recommend t.json --epochs 1 --offline"

# What is typed, the exit code, and words of the message.
MISUSES = [
    # No command, or another's words.
    ("recommned t.json", 2, "Did you mean 'recommend'?"),
    ("--verison", 2, "--version"),
    ("--format json gpus", 2, "No such option: --format"),
    ("report extra", 2, "(extra)"),
    ("doctor extra", 2, "(extra)"),
    ("config shw", 2, "Did you mean 'show'?"),
    ("catalog", 2, "Missing command"),
    # recommend
    ("recommend missing.py --epochs 1", 2, "there is no file 'missing.py'. Give a training script"),
    ("recommend log.csv --epochs 1", 2, "give the .py file that starts the training"),
    ("recommend torn.py --epochs 1", 2, "syntax error in line 2, 'x = [1,': '[' was never closed"),
    ("recommend nb.ipynb --epochs 1", 2, "give a .py or .ipynb file"),
    ("recommend empty.json --epochs 1", 2, "truncated or damaged (it is empty)"),
    ("recommend mine.json --epochs 1", 2, "Write one with advisor profile"),
    ("recommend t.json", 2, "Give --epochs N or --iterations N"),
    (f"{JOB} --iterations 5", 2, "both --epochs and --iterations were given: give one"),
    (f"{JOB} extra words", 2, "'t.json' is a saved trace: arguments for the script were fixed"),
    (f"{JOB} --deadline tomorrow", 2, "write a number with a unit"),
    (f"{JOB} --deadline -3h", 2, "lies in the past"),
    (f"{JOB} --confidence 95", 2, "between 0 and 1, got 95"),
    (f"{JOB} --explain nonsense", 2, "there is no option 'nonsense'"),
    (f"{JOB} --explain 1 --curve L4", 2, "give one of them"),
    (f"{JOB} --plot --json", 2, "leave --explain, --format and --json out"),
    (f"{JOB} --format csv --json", 2, "--json and --format csv contradict each other"),
    (f"{JOB} --curve B999", 2, "no plan has 'B999'"),
    (f"{JOB} --emit skypilo", 2, "Did you mean 'skypilot'?"),
    ("sweep t.json", 2, "docs/sweep.md shows how a grid"),
    ("sweep grid.yaml --show all", 2, "'jobs', 'best', 'moved', 'budget', 'capacity'"),
    ("sweep grid.yaml --engine dusk://h:1", 2, "write local or dask://HOST:PORT"),
    ("mcp extra", 2, "(extra)"),
    ("serve", 2, "there is no database to show yet"),
    ("serve --address 0.0.0.0", 2, "say who may read, with --token or --proxy"),
    ("launch t.json", 2, "`advisor recommend --emit KIND` writes one"),
    (f"{JOB} --what-if bf17", 2, "Did you mean 'bf16'?"),
    (f"{JOB} --what-if all --no-what-if", 2, "leave one out"),
    (f"{JOB} --patch", 2, "--patch needs --what-if"),
    (f"{JOB} --html nowhere/x.html", 2, "there is no folder 'nowhere'. Make it first"),
    (f"{JOB} --html folder", 2, "it is a folder. Name a file in it"),
    (f"{JOB} --html mine.html --gpu H1000", 2, "no GPU is called 'H1000'. Did you mean"),
    (f"{JOB} --policy missing.yaml", 2, "cannot read 'missing.yaml'"),
    (f"{JOB} --policy typo.yaml", 2, "typo.yaml:4: unknown key 'limts'. Did you mean 'limits'?"),
    (f"{JOB} --project resnte", 2, "nothing is recorded of a project 'resnte'. Did you mean 'resnet'?"),
    (f"{JOB} --to nobody", 2, "there is no channel 'nobody'"),
    (f"{JOB} --preview", 2, "add --to CHANNEL"),
    (f"{JOB} --recipe lora", 2, "give either 't.json' or --recipe lora, not both"),
    (f"{JOB} --model gpt2", 2, "--model belongs to a recipe: add --recipe NAME"),
    (f"{JOB} --suppose zero-9", 2, "Did you mean 'zero-3'"),
    (f"{JOB} --data s3://b@mars --dataset-gb 5", 2, "with a bucket, @ and its region"),
    (f"{JOB} --max-age 1d", 1, "Pull new ones with `advisor prices refresh`"),
    (f"{JOB} --python /no/python", 2, "'t.json' holds a profile: --python is for a script"),
    ("recommend train.py --epochs 1 --python /no/python", 2, "Name an executable such as .venv/bin/python"),
    ("recommend train.py --epochs 1 --fake-data hello", 2, "Write for instance 3x224x224:float32"),
    ("recommend train.py --epochs 1 --env 'A B'", 2, "--env: write the name of a variable"),
    ("recommend --recipe loraa", 2, "Did you mean 'lora' or 'qlora'?"),
    ("recommend --recipe lora --model lama-3.1-8b", 2, "Give one that `advisor recipe list` shows"),
    ("recommend --recipe lora --model gpt2 --tokens many", 2, "write 500000, 20M or 1.5B"),
    ("recommend --epochs 1 -- torchrun", 2, "give one that ends in .py, or -m MODULE"),
    ("recommend --epochs 1 -- python -m no.module", 2, "there is no module 'no.module' here"),
    # profile, predict, compare, diff
    ("profile", 2, "give either a script or --from-kineto FILE"),
    ("profile missing.py", 2, "give the path of the .py file that starts the training"),
    ("profile torn.py --out mine.json", 2, "syntax error in line 2"),
    ("profile train.py --out folder", 2, "cannot write the trace to 'folder': it is a folder"),
    ("profile train.py --out nowhere/t.json", 2, "there is no folder 'nowhere'. Make it first"),
    ("profile --from-kineto mine.json --out mine.html", 2, "torch.profiler's export_chrome_trace"),
    ("profile train.py --as H10", 2, "Did you mean 'H100'"),
    ("profile train.py --backend tpu", 2, "'auto', 'cuda', 'fake' or 'cpu'; got 'tpu'"),
    ("predict t.json --confirm --gpu L4", 2, "and 't.json' is a saved trace"),
    ("predict mine.json", 2, "neither a trace of advisor profile nor a profiler's export"),
    ("compare t.json L4 --epochs 1", 2, "Missing argument 'B'"),
    ("compare missing.json L4:1 A10G:1", 2, "there is no file 'missing.json'"),
    ("compare t.json L4:1 p4d.24xlarg --epochs 1 --offline", 2, "Did you mean 'p4d.24xlarge'"),
    ("compare t.json 'L4 sopt' L4:1 --epochs 1 --offline", 2, "no plan has 'sopt'. Did you mean 'spot'?"),
    ("diff t.json missing.json --epochs 1", 2, "there is no file 'missing.json'"),
    ("diff main:train.py t.json --epochs 1", 2, "'main' is no revision of a git repository here"),
    ("diff t.json t.json --epochs 1 --fail-above much", 2, "write one of 0 or more, such as 10%"),
    # A word that is missing, and an answer in the place of a question
    ("sweep grid.yaml --folder ''", 2, "the word after '--folder' is empty: is a variable not set?"),
    ("recommend '' --epochs 1", 2, "the word after 'recommend' is empty"),
    (f"{JOB} --html t.json", 2, "--html would replace a file that this command reads: give another name"),
    ("recommend --epochs 1 --html=train.py -- torchrun train.py", 2, "would replace a file that this"),
    ("profile train.py --out ./train.py", 2, "--out would replace a file that this command reads"),
    ("report --bills=text.csv --out text.csv", 2, "--out would replace a file that this command reads"),
    ("queue fit log.csv --out folder/../log.csv", 2, "--out would replace a file that this command reads"),
    ("run --receipt train.py -- python train.py", 2, "--receipt would replace a file that this command"),
    (f"run --receipt train.py -- nosuchprogram --log=train.py {'x' * 400}", 2, "Give a program after --"),
    # report
    ("report --team visoin", 2, "Did you mean 'vision'?"),
    ("report --team vision --project resnte", 2, "is no project of the team vision"),
    ("report --since soon", 2, "write 2026-11-01"),
    ("report --out mine.pdf", 2, "end the name in .txt, .html, .htm, .md, .csv, .json"),
    ("report --out mine.html --json", 2, "is a name for html, and --format says json"),
    ("report --format csv --json", 2, "contradict each other"),
    ("report --out nowhere/x.html", 2, "there is no folder 'nowhere'. Make it first"),
    ("report --out mine.html --bills missing.csv", 2, "cannot read 'missing.csv'"),
    ("report --bills text.csv", 2, "'text.csv' holds no charge: give a FOCUS 1.x file"),
    # gpus, prices, catalog
    ("gpus H99", 2, "`advisor gpus` lists all"),
    ("gpus --relative-to H100", 2, "choose one of H100-PCIE-80GB"),
    ("prices list", 2, "No such command 'list'"),
    ("prices --sort cost", 2, "'price', 'gpu-price', 'age', 'place'"),
    ("prices refresh --provider gpc", 2, "Did you mean 'gcp'?"),
    ("prices --min-memory-gib -3", 2, "--min-memory-gib must be a finite number of at least 0"),
    ("prices --gpu L4 --min-vcpus 500", 1, "Without --min-vcpus there are"),
    ("prices refresh --source aw", 2, "Did you mean 'aws'?"),
    ("prices history --since soon", 2, "write a number with a unit"),
    ("prices history --plot --json", 2, "leave --format and --json out"),
    ("prices history --gpu L4", 1, "`advisor prices refresh` pulls live ones"),
    ("prices capacity p5.48xlarge", 2, "Missing option '--region'"),
    ("catalog build --out folder", 1, "`advisor prices refresh` pulls them"),
    # queue, spot, recipe
    ("queue fit text.csv --out mine.json", 2, "'text.csv' has no column of the submission time"),
    ("queue fit log.csv --timezone Mars/Base", 2, "give one such as Europe/Zurich or UTC"),
    ("queue check log.csv", 2, "Export a longer time"),
    ("queue show mine.json", 2, "advisor queue fit LOG --out FILE"),
    ("queue simulate log.csv --capacity 8", 2, "the log has no run times"),
    ("spot fit log.csv --out mine.json", 2, "'log.csv' has no column time and event"),
    ("spot fit missing.csv", 2, "cannot read 'missing.csv'"),
    ("recipe show loraa", 2, "Did you mean 'lora'"),
    ("recipe show resnet --tokens 5M", 2, "counts samples: give --samples, not --tokens"),
    ("recipe write lora train.py", 2, "'train.py' is there already: give another name, or remove it"),
    ("recipe write lora lora.txt", 2, "end 'lora.txt' in .py"),
    # run
    ("run -- nosuchprogram", 2, "Give a program after --"),
    ("run train.py", 2, "To run a command write --: advisor run -- train.py"),
    ("run --receipt nowhere/r.json -- touch made.txt", 2, "there is no folder 'nowhere'. Make it first"),
    ("run --recommendation nosuch -- touch made.txt", 2, "`advisor recommend --record` prints the id"),
    ("run record", 2, "Give --start and --duration, or --receipt FILE"),
    (f"{RAN} --provider aws", 2, "how was 'aws' rented? Give --market"),
    (f"{RAN} --recommendation last", 2, "last: no recommendation is recorded yet"),
    (f"{RAN} --provider awss --market spot", 2, "no provider is called 'awss'. Did you mean 'aws'?"),
    ("run record --receipt mine.json", 2, "`advisor run` writes them"),
    # schedule, deliver
    ("schedule add '0 8 * *' -- report", 2, "it needs five: minute, hour, day of month"),
    ("schedule add '0 8 * * MON' -- reprot", 2, "Did you mean 'report'?"),
    ("schedule add '0 8 * * MON' -- report --formt html", 2, "--format"),
    ("schedule add '0 8 * * MON' -- rm -rf folder", 2, "'rm' cannot be scheduled"),
    ("schedule add '0 8 * * MON' --tz Mars/Base -- report", 2, "give one such as Europe/Zurich or UTC"),
    ("schedule run-now nosuch", 2, "`advisor schedule add` makes one"),
    ("schedule export", 2, "Choose from: cron, systemd, github-actions, kubernetes"),
    ("deliver test nobody", 2, "none is set up yet (docs/delivery.md)"),
    # policy, init, trust, measure, calibrate
    ("policy check typo.yaml", 2, "Did you mean 'limits'?"),
    ("policy check torn.yaml", 2, "'torn.yaml' is not valid YAML: line 3"),
    ("policy show train.py", 2, "a policy file holds keys such as 'version: 1'"),
    ("policy explain policy.yaml --plan nosuch", 2, "write PROVIDER/INSTANCE_TYPE/REGION_OR_ZONE/MARKET"),
    ("init", 2, "is already there: edit it, or overwrite it with --force"),
    ("trust folder", 2, "there is no .advisor.yaml in 'folder'"),
    ("trust --list --revoke", 2, "leave one out"),
    ("measure --only gem", 2, "Did you mean 'gemm'?"),
    ("measure --out mine.json --backend cpu --quick", 2, "choose another file"),
    ("calibrate --from mine.json", 2, "choose another file"),
    ("calibrate --from missing.jsonl", 2, "make one with advisor measure"),
]  # fmt: skip


@pytest.fixture(scope="module")
def shell(tmp_path_factory):
    """One folder for all: nothing that is wrong changes it."""
    shell = Shell(folder=tmp_path_factory.mktemp("misuse"))
    for name, text in FILES.items():
        shell.write(name, text)
    write_trace(make_trace(), shell.folder / "t.json")
    return shell


def files_of(shell: Shell) -> Mapping[Path, bytes]:
    """All but what advisor keeps for itself."""
    own = {shell.folder / ".local", shell.folder / ".cache"}
    paths = (path for path in shell.folder.rglob("*") if own.isdisjoint(path.parents) and path.is_file())
    return {path: path.read_bytes() for path in paths}


@pytest.mark.parametrize(("typed", "code", "words"), MISUSES, ids=[typed for typed, *_ in MISUSES])
def test_what_is_typed_wrong_is_told_and_harms_no_file(shell, typed, code, words):
    before = files_of(shell)
    answer = shell.run(*shlex.split(typed))
    assert (answer.code, answer.out) == (code, ""), answer
    _, _, message = (
        answer.err.rpartition("\nerror: ") if "\nerror: " in answer.err else answer.err.partition("error: ")
    )
    assert words in message, answer.err
    # A policy that is wrong has a line for each fault, and one on where to read more.
    assert message.count("\n") == (2 if "docs/policy.md" in message else 1), message
    assert "Traceback" not in answer.err
    assert files_of(shell) == before


def test_every_command_is_among_them():
    from advisor.cli.commands import COMMANDS

    assert COMMANDS.keys() - {typed.split()[0] for typed, *_ in MISUSES} == set()
    assert len(MISUSES) >= 100
