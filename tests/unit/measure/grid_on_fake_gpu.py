"""Builds and calls the quick grid on a pretended A100, and prints what went wrong as JSON."""

import importlib.util
import json
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
GPU = {"name": "NVIDIA A100", "compute_capability": "8.0", "num_sms": 108, "memory_bytes": 8 * 10**10}


def load_child():
    spec = importlib.util.spec_from_file_location("child", ROOT / "advisor" / "payload" / "child.py")
    child = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(child)
    return child


def forget_flattening(timing):
    """Moves weights into one buffer, which tensors without memory cannot do."""
    original = timing.operator_of

    def operator_of(name):
        if name == "aten::_cudnn_rnn_flatten_weight.default":
            return lambda weights, *_: weights[0].new_empty(0)
        return original(name)

    timing.operator_of = operator_of


def main():
    from advisor.measure import Extent, calibration_kernels, grid
    from advisor.profile.recording import operators_of

    warnings.simplefilter("ignore")
    child = load_child()
    backend, timing = child.load_payload("backend"), child.load_payload("operator_timing")
    forget_flattening(timing)
    session = backend.start_session(
        {"backend": "fake", "gpu": GPU, "world_size": None, "fake_data": None, "withheld": [],
         "skip_patches": [], "shortcuts": True}
    )  # fmt: skip
    report: dict[str, Any] = {"refused": {}, "num_cases": 0}
    report |= {name: [] for name in ("different", "without_cost", "operators", "wrong_phases")}
    with session.mode:
        for case in (*grid(Extent.QUICK), *calibration_kernels()):
            report["num_cases"] += 1
            described = json.loads(json.dumps({"key": case.key, **asdict(case)}))
            name = case.call.operator
            try:
                build = timing.Build(described, "cuda")
                entry = timing.described(build, described, "cuda")
                session.recorder.start_span()
                build.run()
            except Exception as error:  # noqa: BLE001 - all are told
                report["refused"][name] = repr(error)[:500]
                continue
            seen = [{**operator, "phase": entry["phase"]} for operator in session.recorder.operators()]
            if seen != [entry]:
                report["different"].append([name, seen, entry])
            if entry["phase"] != case.phase:
                report["wrong_phases"].append(name)
            (op,), unknown = operators_of([json.loads(json.dumps(entry))])
            if unknown or not op.bytes:
                report["without_cost"].append(name)
            report["operators"].append(op.name)
    print(json.dumps(report))  # noqa: T201


if __name__ == "__main__":
    main()
