"""Keeps numpy's BLAS to one thread: our matrices are small, and more threads only wait for each other."""

import os
import sys

VARIABLE = "OPENBLAS_NUM_THREADS"


def load_numpy() -> None:
    """Import numpy with one BLAS thread, unless the user set a number or it is there already.

    OpenBLAS reads the variable once, as it is loaded; it is taken back, so that no child process sees it.
    """
    if "numpy" in sys.modules or VARIABLE in os.environ:
        return
    os.environ[VARIABLE] = "1"
    try:
        import numpy as np  # noqa: F401
    finally:
        del os.environ[VARIABLE]
