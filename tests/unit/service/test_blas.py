"""One BLAS thread for us, and none of it for anybody else."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import os, sys
from advisor.service.recommend.pipeline import load_numpy
load_numpy()
import numpy
numpy.ones((900, 900)) @ numpy.ones((900, 900))
print(os.environ.get("OPENBLAS_NUM_THREADS"), "numpy" in sys.modules, len(os.listdir("/proc/self/task")))
"""


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="threads are counted in /proc")
@pytest.mark.parametrize(("given", "printed"), [(None, "None True 1"), ("2", "2 True 2")])
def test_numpy_has_one_thread_unless_the_user_says_otherwise(given, printed):
    kept = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    if (os.cpu_count() or 1) < 2:
        pytest.skip("needs two cores")
    variable = {} if given is None else {"OPENBLAS_NUM_THREADS": given}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=kept | variable, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == printed
