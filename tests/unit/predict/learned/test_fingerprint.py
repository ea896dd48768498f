"""Corrections that a calibration found hold for the networks of that day alone."""

import numpy as np
import pytest

from advisor.core.findings import Finding
from advisor.core.findings.about_options import Unknown
from advisor.core.gpus import resolve_gpu
from advisor.predict.constants import constants_for
from advisor.predict.iteration import predict
from advisor.predict.knowledge import write_calibration
from advisor.predict.learned import learned_times
from advisor.predict.roofline import KERNEL_FLOOR_S
from tests.builders import make_trace
from tests.unit.predict.learned.values import EXACT, make_knowledge, mm, softmax

T4 = resolve_gpu("T4")
OPS = (mm(512, 256, 128), softmax(64, 1000))
THESE = "fedcba9876543210"
KNOWLEDGE = make_knowledge(fingerprint=THESE, is_calibrated_here=True)
CORRECTED = {"learned.gemm": 0.5, "streaming_fraction": 0.5}


@pytest.fixture(autouse=True)
def nothing_calibrated(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))


def work_s() -> np.ndarray:
    times = learned_times(OPS, T4, constants_for(T4, KNOWLEDGE), EXACT, KNOWLEDGE)
    return times.time_s - KERNEL_FLOOR_S


def assumptions() -> tuple[Finding, ...]:
    return predict(make_trace(ops=OPS), T4, knowledge=KNOWLEDGE).assumptions


@pytest.mark.parametrize("networks", [None, "0123456789abcdef"])
def test_corrections_of_other_networks_do_not_count_and_are_told(networks):
    before = work_s()
    write_calibration("T4", "today", CORRECTED, networks=networks)
    assert work_s() == pytest.approx(before)
    constants = constants_for(T4, KNOWLEDGE)
    assert (constants.learned_share, constants.fractions["streaming_fraction"]) == ({}, 0.5)
    assert Unknown(what="calibration") in assumptions()


def test_corrections_of_these_networks_count():
    before = work_s()
    write_calibration("T4", "today", CORRECTED, networks=THESE)
    assert work_s() == pytest.approx(before / [0.5, 1])
    assert Unknown(what="calibration") not in assumptions()


def test_a_calibration_without_corrections_needs_no_networks():
    write_calibration("T4", "today", {"streaming_fraction": 0.5})
    assert Unknown(what="calibration") not in assumptions()
