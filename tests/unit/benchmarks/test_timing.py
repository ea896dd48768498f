"""What the benchmarks of speed measure."""

import subprocess
import sys

import pytest

from benchmarks.timing import processor_s


def test_work_of_a_command_counts():
    works = processor_s([sys.executable, "-c", "sum(range(30_000_000))"], 1)
    starts = processor_s([sys.executable, "-c", "pass"], 1)
    assert works > starts > 0


def test_the_processor_of_a_command_that_fails_is_not_counted():
    with pytest.raises(subprocess.CalledProcessError, match="non-zero exit status 3"):
        processor_s([sys.executable, "-c", "raise SystemExit(3)"], 1)
