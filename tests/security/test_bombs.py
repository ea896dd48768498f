"""A small hostile file costs little: one line, 300 MB and a few seconds of the command's own CPU."""

import gzip
import json
import os
import sqlite3
from dataclasses import asdict
from pathlib import Path

import pytest

from advisor.core.errors import StoreError
from advisor.formats.recording_files import FORMAT as RECORDING
from advisor.store.database import open_store
from tests.recordings import make_header
from tests.security.bombs import Ending, launcher, write_gzip

MOST_BYTES = 300e6
# One or two here. A busy machine counts up to thrice as many, a reader without limits 40 and more.
MOST_CPU_S = 15.0

TRACE = b'{"format":"advisor-trace","schema_version":1,'
HEADER = json.dumps({"format": RECORDING, "schema_version": 1, **asdict(make_header())}).encode() + b"\n"
JOBS = b"submit,start,gpus\n"
OP = (
    b'{"name":"a","phase":"forward","outputs":[],"attributes":{},"flops":1,"bytes":1,"count":1,"measured_s":null,'
    b'"kernels":[],"inputs":[{"dtype":"float32","stride":null,"shape":['
)


@pytest.fixture(scope="module")
def run():
    """Runs commands."""
    with launcher() as ready:
        yield ready


def assert_cheap(ending: Ending) -> None:
    assert "Traceback" not in ending.err
    assert ending.peak_bytes < MOST_BYTES
    assert ending.cpu_s < MOST_CPU_S


def assert_one_line(ending: Ending, code: int = 2) -> None:
    """An error of ours in one line, cheaply."""
    assert ending.code == code, ending
    # A busy machine takes more than ten seconds, and then progress is told.
    (line,) = (line for line in ending.err.splitlines() if not line.endswith(" s)"))
    assert line.startswith("error: ")
    assert len(line) < 1000
    assert_cheap(ending)


@pytest.mark.parametrize(
    ("head", "unit", "number"),
    [
        pytest.param(b"[", b"[],", 10**8, id="10^8 lists"),
        pytest.param(b"[", b"{},", 10**8, id="10^8 objects"),
        pytest.param(TRACE + b'"ops":[', b"{},", 10**8, id="10^8 empty operators"),
        pytest.param(TRACE + b'"warnings":[', b'"",', 10**8, id="10^8 empty warnings"),
        pytest.param(TRACE + b'"versions":{"a":1', b',"b":{}', 10**7, id="10^7 versions"),
        pytest.param(TRACE + b'"ops":[' + OP, b"1,", 10**8, id="10^8 dimensions"),
        pytest.param(TRACE + b'"ops":[' + OP, b"9", 10**8, id="a number of 10^8 digits"),
        pytest.param(TRACE + b'"ops":[', b" ", 10**8, id="10^8 spaces"),
        pytest.param(TRACE + b'"x":"', b"\xf0\x9f\x92\xa3", 10**7, id="10^7 wide characters"),
        pytest.param(TRACE + b'"x":', b"[", 10**8, id="10^8 levels"),
        pytest.param(b'{"traceEvents":[', b"{},", 10**8, id="10^8 empty events"),
        pytest.param(b'{"traceEvents":[', b'{"ph":"M"},', 10**7, id="10^7 events that do not count"),
        pytest.param(b'{"traceEvents":[{"ph":"X","cat":"kernel","args":{', b'"a":{},', 10**7, id="one event"),
    ],
)
def test_gzips_in_the_place_of_a_trace(run, head, unit, number, tmp_path):
    path = write_gzip(tmp_path / "t.json.gz", head, unit, number)
    assert path.stat().st_size < 10**6
    assert_one_line(run(tmp_path, "predict", path, "-g", "T4"))


def test_the_bomb_is_a_valid_gzip(tmp_path):
    """A broken file would be refused for another reason."""
    path = write_gzip(tmp_path / "x.gz", b"[", b"[],", 10**6, b"[]]")
    assert len(json.loads(gzip.decompress(path.read_bytes()))) > 10**6


@pytest.mark.parametrize(
    ("head", "unit", "number"),
    [
        pytest.param(HEADER, b"\n", 10**8, id="10^8 empty lines"),
        pytest.param(HEADER, b"x", 10**8, id="a line without end"),
        pytest.param(HEADER, b'{"case":"","reason":""}\n', 10**7, id="10^7 cases"),
        pytest.param(HEADER + b'{"case":', b"[", 10**8, id="10^8 levels"),
    ],
)
def test_gzips_in_the_place_of_a_recording(run, head, unit, number, tmp_path):
    path = write_gzip(tmp_path / "k.jsonl.gz", head, unit, number)
    assert_one_line(run(tmp_path, "calibrate", "--from", path))


@pytest.mark.parametrize(
    ("head", "unit", "number"),
    [
        pytest.param(JOBS, b"0,60,1\n", 10**7, id="10^7 jobs"),
        pytest.param(JOBS, b"\n", 10**8, id="10^8 empty lines"),
        pytest.param(JOBS, b"x", 10**8, id="a line without end"),
        pytest.param(b"; SWF\n", b";\n", 10**8, id="10^8 comments"),
    ],
)
def test_gzips_in_the_place_of_a_job_log(run, head, unit, number, tmp_path):
    path = write_gzip(tmp_path / "jobs.csv.gz", head, unit, number)
    assert_one_line(run(tmp_path, "queue", "fit", path))


MEGABYTE = 990_000
FOCUS = (
    b"BilledCost,BillingCurrency,ChargeCategory,ChargePeriodEnd,ChargePeriodStart,ServiceName,ProviderName\n"
)
CHARGE = b"1,USD,Usage,2026-11-02T00:00:00Z,2026-11-01T00:00:00Z,EC2,AWS\n"
GCP = (
    b'{"cost":1,"currency":"USD","usage_start_time":"2026-11-01T00:00:00Z",'
    b'"usage_end_time":"2026-11-02T00:00:00Z","service":{"description":"Compute"}}'
)


@pytest.mark.parametrize(
    ("head", "unit", "number"),
    [
        pytest.param(FOCUS + CHARGE, b"x\n", 10**7, id="10^7 torn lines"),
        pytest.param(FOCUS + CHARGE, b'"', 10**8, id="a cell without end"),
        pytest.param(GCP + b"\n", b"{}\n", 10**7, id="10^7 empty objects"),
        pytest.param(GCP + b"\n", b"x", 10**8, id="a line without end"),
        pytest.param(b"[" + GCP, b",{}", 10**7, id="a list of 10^7 empty objects"),
        pytest.param(b"[" + GCP, b",[]", 10**7, id="a list of 10^7 lists"),
        pytest.param(b'{"cost":', b"[", 10**8, id="10^8 levels"),
    ],
)
def test_gzips_in_the_place_of_a_bill(run, head, unit, number, tmp_path):
    path = write_gzip(tmp_path / "bill.gz", head, unit, number)
    ending = run(tmp_path, "report", "--bills", path)
    assert_one_line(ending)
    assert "bill.gz" in ending.err


def test_a_parquet_of_very_many_rows_in_the_place_of_a_bill(run, tmp_path):
    """A column of equal values takes no place."""
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    names = FOCUS.decode().strip().split(",")
    columns = [pyarrow.DictionaryArray.from_arrays(pyarrow.array([0] * 10**6, "int32"), ["1"]) for _ in names]
    with parquet.ParquetWriter(tmp_path / "b.parquet", pyarrow.table(columns, names).schema) as writer:
        for _ in range(4):
            writer.write_table(pyarrow.table(columns, names))
    assert (tmp_path / "b.parquet").stat().st_size < 10**6
    ending = run(tmp_path, "report", "--bills", tmp_path / "b.parquet")
    assert_one_line(ending)
    assert "rows" in ending.err


def _export(marks: int, operators: int) -> bytes:
    events = [
        {
            "ph": "X",
            "cat": "user_annotation",
            "name": f"ProfilerStep#{n}",
            "ts": 0,
            "dur": 1e6,
            "pid": 1,
            "tid": 1,
        }
        for n in range(marks)
    ]
    for n in range(1, operators + 1):
        where = {"ph": "X", "ts": n, "dur": 1, "pid": 1, "tid": 1}
        events.append(where | {"cat": "cpu_op", "name": "aten::relu", "args": {"External id": n}})
        events.append(where | {"cat": "kernel", "name": "k", "args": {"External id": n}})
    return json.dumps({"traceEvents": events}).encode()


def test_steps_that_overlap(run, tmp_path):
    (tmp_path / "t.json.gz").write_bytes(gzip.compress(_export(5_000, 20_000)))
    ending = run(tmp_path, "predict", tmp_path / "t.json.gz", "-g", "T4", "--origin-gpu", "T4")
    assert_one_line(ending)
    assert "overlap" in ending.err


YAMLS = {
    "empty lists": "a: [" + "[]," * (MEGABYTE // 3) + "]",
    "keys": "".join(f"gemm{i}: 1\n" for i in range(MEGABYTE // 14)),
    "brackets": "[" * MEGABYTE,
    "braces": "{a: " * (MEGABYTE // 4),
    "dashes": "- " * (MEGABYTE // 2),
    "a number of base 60": "a: " + "1:" * (MEGABYTE // 2) + "1",
    "names of GPUs": "version: 1\nlayer: project\nallow:\n  gpus: [" + "A1000, " * (MEGABYTE // 7) + "]",
}


@pytest.mark.parametrize("kind", YAMLS)
def test_a_megabyte_of_yaml(run, kind, tmp_path):
    (tmp_path / "p.yaml").write_text(YAMLS[kind])
    ending = run(tmp_path, "policy", "check", "p.yaml")
    assert ending.code in {2, 3}
    assert_cheap(ending)


def test_a_table_of_rates_with_100_000_columns(run, tmp_path):
    (tmp_path / "r.csv").write_text(",".join(f"c{i}" for i in range(100_000)))
    folder = tmp_path / "home" / "advisor"
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(f"prices: {{options: {{custom: {{files: [{tmp_path / 'r.csv'}]}}}}}}")
    ending = run(tmp_path, "prices")
    assert_cheap(ending)


def pipe(path: Path) -> Path:
    os.mkfifo(path)
    return path


def link_to_zero(path: Path) -> Path:
    path.symlink_to("/dev/zero")
    return path


def folder(path: Path) -> Path:
    path.mkdir()
    return path


@pytest.mark.parametrize("make", [pipe, link_to_zero, folder], ids=["pipe", "link to /dev/zero", "folder"])
@pytest.mark.parametrize(
    "arguments",
    [
        ("predict", "FILE", "-g", "T4"),
        ("recommend", "FILE", "--epochs", "1", "--offline"),
        ("policy", "check", "FILE"),
        ("queue", "fit", "FILE"),
        ("calibrate", "--from", "FILE"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_what_is_no_file_is_not_waited_for(run, arguments, make, tmp_path):
    path = make(tmp_path / "x.json")
    ending = run(tmp_path, *(str(path) if word == "FILE" else word for word in arguments))
    assert ending.code == 2, ending
    assert str(path) in ending.err
    assert_cheap(ending)


@pytest.mark.parametrize(
    "version", ["-1", "0", "0000", "\u00b2", "9999", "", "1", 3, -1, 3.5, b"\xff", None, "x" * 10_000]
)
def test_a_store_of_an_impossible_version(version, tmp_path):
    path = tmp_path / "advisor.db"
    with open_store(f"sqlite:///{path}"):
        pass
    with sqlite3.connect(path) as connection:
        connection.execute("DROP TABLE alembic_version")
        connection.execute("CREATE TABLE alembic_version (version_num)")
        connection.execute("INSERT INTO alembic_version VALUES (?)", (version,))
    connection.close()
    with pytest.raises(StoreError, match=r"^[^\n]{1,999}store\.url[^\n]*$"):
        open_store(f"sqlite:///{path}")


@pytest.mark.parametrize("at", [0, 20, 100, 4096, 5000])
def test_a_store_that_is_damaged(run, at, tmp_path):
    path = tmp_path / "home" / "advisor" / "advisor.db"
    path.parent.mkdir(parents=True)
    with open_store(f"sqlite:///{path}"):
        pass
    payload = bytearray(path.read_bytes())
    payload[at : at + 3000] = b"\xa5" * 3000
    path.write_bytes(payload)
    ending = run(tmp_path, "run", "list")
    assert "Traceback" not in ending.err
    assert len(ending.err.splitlines()) <= 1


def test_a_pipe_in_the_place_of_the_store(run, tmp_path):
    path = tmp_path / "home" / "advisor" / "advisor.db"
    path.parent.mkdir(parents=True)
    pipe(path)
    assert_one_line(run(tmp_path, "run", "list"), 1)
