"""The benchmark of the main job runs, on as many options as it says, and stays within its memory."""

import json
import subprocess

import pytest

from benchmarks.recommend import AIM_BYTES, CASES, NUM_OFFERS, prepared

# Runs a module as its command line would, and says how much memory that took.
MEASURED = """
import atexit, pathlib, runpy, sys
# Not getrusage: what it tells includes the memory of the process that started this one.
def peak_kib():
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    return next(line.split()[1] for line in lines if line.startswith("VmHWM"))
atexit.register(lambda: print(peak_kib(), file=sys.stderr))
sys.argv = ["advisor", *sys.argv[1:]]
runpy.run_module("advisor", run_name="__main__")
"""


@pytest.mark.slow
def test_every_offer_is_an_option_and_memory_stays_small(tmp_path):
    command = prepared(tmp_path, CASES[0])
    at = command.index("-m")
    command[at : at + 2] = ["-c", MEASURED]
    done = subprocess.run([*command, "--json"], check=True, capture_output=True, text=True)
    options = json.loads(done.stdout)["options"]
    assert len(options) == NUM_OFFERS
    assert {option["num_gpus"] for option in options} == {1, 2, 4, 8}
    assert int(done.stderr.split()[-1]) * 1024 < AIM_BYTES
