"""Whatever a file holds, it is read or refused by an error of ours."""

import io
import json
import zipfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from advisor.config.layers import load_config
from advisor.core.errors import AdvisorError
from advisor.core.gpus import catalog_path
from advisor.formats.recording_files import FORMAT as RECORDING
from advisor.formats.recording_files import read_recording
from advisor.formats.trace_files import read_trace
from advisor.kineto.export import read_kineto
from advisor.predict import knowledge
from advisor.predict.knowledge import read_networks
from advisor.pricing.sources.custom import read_rates
from advisor.report.catalog_tables import by_family, reasons
from advisor.site_files.fitted_files import load_fit, write_fit
from advisor.site_files.job_logs import read_job_log
from advisor.site_files.policy_files import check_policies
from recommender.queue.fitted import fit
from tests.jobs import csv_of, job_log, make_job, sacct_of, swf_of
from tests.property.test_damaged_traces import DOCUMENTS
from tests.recordings import make_header, make_measurement
from tests.security.mutations import VALUES, damaged, documents, forms
from tests.unit.test_kineto import three_steps

# Twenty faults at most, each in a few hundred characters.
MOST_CHARACTERS = 20_000
fuzzed = settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])

JOBS = [make_job(i, size=2**i, wait_s=600.0 * i, queue="7") for i in range(12)]
LOGS = [form(JOBS).encode() for form in (csv_of, sacct_of, swf_of)]
HEADER = {"format": RECORDING, "schema_version": 1, **asdict(make_header())}
ENTRIES = [asdict(make_measurement()), {"case": "b", "reason": "no memory"}, {"reference_s": 0.5}]
POLICY = {
    "version": 1, "name": "p", "layer": "project", "currency": "USD",
    "allow": {"providers": ["aws"], "gpus": ["L4", "A100-80GB"]}, "deny": {"regions": ["us-*"]},
    "limits": {"usd_per_job": 100.0, "gpus_per_job": 8},
}  # fmt: skip
SETTINGS = {
    "local": {"gpu": "RTX-3090", "usd_per_gpu_h": 0.1}, "cloud": {"max_gpus": 8},
    "policy": {"files": ["p.yaml"]}, "profile": {"timeout": "60s", "sandbox": True},
    "prices": {"options": {"custom": {"files": ["r.csv"]}}},
    "clusters": [{"name": "c", "gpu": "L4", "num_gpus": 4, "wait_p50": "1h", "wait_p90": "2h"}],
}  # fmt: skip
RATE = {"provider": "acme", "instance_type": "a", "gpu": "L4", "num_gpus": 1, "as_of": "2026-11-01"}
RATES = [
    {**RATE, "usd_per_h": 1.5},
    {**RATE, "instance_type": "b", "usd_per_gpu_h": 1, "includes": ["disk"], "market": "spot", "note": "n"},
]
YAML_TEXTS = (
    "!!bool x", "!!timestamp x", "!!int x", "!!float x", "!!set {a}", "!!omap [a: 1]", "!!binary x",
    "!!python/none", "1:" * 400 + "1", "1:" * 400 + "1.5", "0x" + "f" * 5000, "2026-13-45", ".nan", ".inf",
    "0001-01-01T00:00:00+14:00", "? [a]", "&a [*a]", "{? {a: 1}: 2}", "!x y", "<<: {a: 1}", "[" * 2000,
    "- " * 2000, "%YAML 9.9", "\x00", "\ufeff", "'", "\t", "=", "~", '"\\ud800"',
)  # fmt: skip


def only_our_errors(read: Callable[[Path], Any], path: Path, payload: bytes) -> None:
    """Read; what is no error of ours is raised. A message is one that a person can read."""
    path.write_bytes(payload)
    message = ""
    try:
        read(path)
    except AdvisorError as error:
        message = str(error)
    assert len(message) < MOST_CHARACTERS


@pytest.mark.parametrize("name", DOCUMENTS)
@fuzzed
@given(data=st.data())
def test_traces(name, data, tmp_path):
    only_our_errors(read_trace, tmp_path / "t.json", data.draw(forms(DOCUMENTS[name])))


@fuzzed
@given(payload=forms(three_steps().document))
def test_profiles(payload, tmp_path):
    only_our_errors(read_kineto, tmp_path / "p.json", payload)


@fuzzed
@given(payload=forms([HEADER, *ENTRIES]))
@example(payload=json.dumps([HEADER, ENTRIES[0] | {"case": []}]).encode())
@example(payload=json.dumps([HEADER | {"versions": 3}, *ENTRIES]).encode())
def test_recordings(payload, tmp_path):
    try:
        lines = json.loads(payload)
    except (ValueError, RecursionError):
        lines = None
    if isinstance(lines, list):
        payload = b"".join(json.dumps(line).encode() + b"\n" for line in lines)

    def read(path: Path) -> None:
        recording = read_recording(path)
        assert isinstance(recording.cases, frozenset)
        assert recording.drift >= 0
        json.dumps([dict(by_family(recording)), reasons(recording), asdict(recording.header)])

    only_our_errors(read, tmp_path / "k.jsonl", payload)


def read_log(path: Path) -> None:
    fit(read_job_log(path))


@fuzzed
@given(payload=st.sampled_from(LOGS).flatmap(damaged))
def test_job_logs(payload, tmp_path):
    only_our_errors(read_log, tmp_path / "log", payload)


@fuzzed
@given(data=st.data())
def test_fits_of_waits(data, tmp_path):
    write_fit(tmp_path / "whole.json", fit(job_log(make_job(i, wait_s=60.0 * i) for i in range(60))))
    whole = json.loads((tmp_path / "whole.json").read_text())
    only_our_errors(load_fit, tmp_path / "fit.json", data.draw(forms(whole)))


@st.composite
def yaml_bytes(draw: st.DrawFn, whole: Any) -> bytes:
    """A document changed and written as YAML, at times with a text that means something else to YAML."""
    document = draw(documents(whole))
    text = yaml.safe_dump(document, allow_unicode=False, sort_keys=False)
    lines = text.splitlines()
    if draw(st.booleans()):
        at = draw(st.integers(0, max(len(lines) - 1, 0)))
        name = lines[at].partition(":")[0] if lines else "a"
        lines[at:at] = [f"{name}: {draw(st.sampled_from(YAML_TEXTS))}"]
        del lines[at + 1 : at + 2]
    return "\n".join(lines).encode(errors="surrogatepass")


def yaml_forms(whole: Any) -> st.SearchStrategy[bytes]:
    return yaml_bytes(whole) | damaged(yaml.safe_dump(whole).encode())


@fuzzed
@given(payload=yaml_forms(POLICY))
def test_policies(payload, tmp_path):
    def read(path: Path) -> None:
        for fault in check_policies([path]).faults:
            assert len(str(fault)) < MOST_CHARACTERS

    only_our_errors(read, tmp_path / "policy.yaml", payload)


@fuzzed
@given(payload=yaml_forms(SETTINGS))
def test_settings(payload, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))

    def read(path: Path) -> None:
        load_config(environ={}, cwd=path.parent)

    only_our_errors(read, tmp_path / ".advisor.yaml", payload)
    # As the user's own, where every key counts.
    (tmp_path / ".advisor.yaml").rename(tmp_path / "kept")
    own = tmp_path / "home" / "advisor" / "config.yaml"
    own.parent.mkdir(parents=True, exist_ok=True)
    only_our_errors(lambda _: read(tmp_path / "none"), own, payload)


@fuzzed
@given(payload=yaml_forms(RATES))
def test_rates_in_yaml(payload, tmp_path):
    only_our_errors(lambda path: read_rates([path]), tmp_path / "rates.yaml", payload)


@fuzzed
@given(data=st.data())
def test_rates_in_csv(data, tmp_path):
    columns = [*RATE, "usd_per_h", "usd_per_gpu_h", "market", "note"]
    cells = [[str(row.get(name, "")) for name in columns] for row in RATES]
    row, column = data.draw(st.integers(0, 1)), data.draw(st.integers(0, len(columns) - 1))
    cells[row][column] = str(data.draw(st.sampled_from(VALUES)))
    whole = "\n".join(",".join(cells) for cells in [columns, *cells]).encode(errors="surrogatepass")
    only_our_errors(
        lambda path: read_rates([path]), tmp_path / "r.csv", data.draw(st.just(whole) | damaged(whole))
    )


@fuzzed
@given(data=st.data())
def test_calibrations(data, tmp_path, monkeypatch):
    monkeypatch.setattr(knowledge, "calibration_path", lambda gpu: tmp_path / f"{gpu}.toml")
    constants = {"gemm_fraction.bf16": 0.5, "streaming_fraction": 0.8}
    kernels = {"tensor_gemm": [[1, 4096, 4096, 4096, 0.9], [8, 512, 512, 64, 0.7]]}
    whole = knowledge.write_calibration("L4", "today", constants, kernels=kernels).read_bytes()
    text = data.draw(st.just(b"a = " + b"[" * 5000) | damaged(whole))
    only_our_errors(lambda _: knowledge.read_calibration("L4"), tmp_path / "L4.toml", text)


NETWORKS = catalog_path("learned.npz").read_bytes()


def enormous() -> bytes:
    """An archive of one array that says it has 10^13 numbers."""
    head, body = io.BytesIO(), io.BytesIO()
    np.lib.format.write_array_header_1_0(head, {"descr": "<f8", "fortran_order": False, "shape": (10**13,)})
    with zipfile.ZipFile(body, "w") as archive:
        archive.writestr("version.npy", head.getvalue())
    return body.getvalue()


def unclosed() -> bytes:
    """An archive of one array whose header opens a bracket and never closes it."""
    body = io.BytesIO()
    header = b"{'descr': '<f2', 'shape': (8, 35, 96*, }".ljust(117) + b"\n"
    with zipfile.ZipFile(body, "w") as archive:
        archive.writestr("version.npy", b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
    return body.getvalue()


@settings(fuzzed, max_examples=25)
@given(payload=damaged(NETWORKS))
@example(payload=enormous())
@example(payload=unclosed())
def test_weights(payload, tmp_path):
    only_our_errors(read_networks, tmp_path / "w.npz", payload)


def test_the_documents_themselves_are_read(tmp_path, monkeypatch):
    """Changing what was refused anyway would test nothing."""
    (tmp_path / "p.json").write_text(json.dumps(three_steps().document))
    assert read_kineto(tmp_path / "p.json").ops
    (tmp_path / "k").write_text("".join(json.dumps(line) + "\n" for line in [HEADER, *ENTRIES]))
    assert len(read_recording(tmp_path / "k").cases) == 2
    (tmp_path / "r.yaml").write_text(yaml.safe_dump(RATES))
    assert len(read_rates([tmp_path / "r.yaml"])[tmp_path / "r.yaml"]) == 2
    (tmp_path / "policy.yaml").write_text(yaml.safe_dump(POLICY))
    assert check_policies([tmp_path / "policy.yaml"]).policy is not None
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "advisor").mkdir()
    (tmp_path / "advisor" / "config.yaml").write_text(yaml.safe_dump(SETTINGS))
    assert load_config(environ={}, cwd=tmp_path).settings.local.gpu == "RTX-3090"
