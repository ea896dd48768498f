"""The measuring process: looks at its device, measures, writes one line for each thing it finds."""

from __future__ import annotations

import json
import traceback
from pathlib import Path

from .progress import leave, unusable_torch, write_result
from .protocol import Details, MeasuringDevice, MeasuringJob, MeasuringLine, Status


def run(job: MeasuringJob) -> None:
    """Measure the job's cases, write its result file, and leave the process."""
    try:
        status, details = unusable_torch() or _measure(job)
    except BaseException as error:  # noqa: BLE001 - the parent must learn of our own bugs, too
        status, details = Status.CRASHED, {"message": repr(error), "traceback": traceback.format_exc()}
    write_result(job, status, details)
    leave()


def _measure(job: MeasuringJob) -> tuple[Status, Details]:
    from . import torch_names
    from .backend import NoCudaError, check_cuda
    from .operator_timing import LostDeviceError, clock_of, first_line, is_out_of_memory, measure_all

    try:
        torch_names.check_all()
        if job["backend"] == "cuda":
            check_cuda()
        with Path(job["progress"]).open("a", encoding="utf-8") as out:

            def tell(line: MeasuringLine) -> None:
                out.write(json.dumps(line) + "\n")
                out.flush()

            tell({"device": device_of(job["backend"])})
            measure_all(job["cases"], clock_of(job["backend"]), job["reference"], tell)
    except NoCudaError as error:
        return Status.NO_CUDA, {"message": str(error)}
    except torch_names.MissingNameError as error:
        import torch

        return Status.STRANGE_TORCH, {"message": str(error), "torch": str(torch.__version__)}
    except LostDeviceError as error:
        return Status.LOST_DEVICE, {"message": str(error)}
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        return Status.FULL_DEVICE, {"message": first_line(error)}
    return Status.OK, {}


def device_of(backend: str) -> MeasuringDevice:
    """Name, compute capability and versions."""
    import platform

    import torch

    versions: dict[str, str | None] = {"torch": str(torch.__version__), "python": platform.python_version()}
    if backend == "cpu":
        name = platform.processor() or platform.machine()
        return {"name": name, "compute_capability": None, "versions": versions}
    cudnn = torch.backends.cudnn.version()
    major, minor = torch.cuda.get_device_capability()
    return {
        "name": torch.cuda.get_device_name(),
        "compute_capability": f"{major}.{minor}",
        "versions": {**versions, "cuda": torch.version.cuda, "cudnn": None if cudnn is None else str(cudnn)},
    }
