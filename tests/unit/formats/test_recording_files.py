"""Recordings: written line by line, cut off anywhere, zipped, foreign, damaged, from the future."""

import gzip
import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core.errors import RecordingError
from advisor.formats import recording_files as recording_io
from advisor.formats.recording_files import (
    FORMAT,
    SCHEMA_VERSION,
    Entry,
    Header,
    Recording,
    Skipped,
    append_entry,
    drop_half_line,
    read_recording,
    start_recording,
)
from tests.recordings import make_header, make_measurement

ENTRIES: tuple[Entry, ...] = (
    1e-3,
    make_measurement(case="a"),
    Skipped(case="b", reason="out of memory"),
    make_measurement("aten::_softmax", time_s=2e-4, case="c"),
    1.02e-3,
)


def written(path: Path, entries: tuple[Entry, ...] = ENTRIES, header: Header | None = None) -> Path:
    start_recording(path, header or make_header())
    for entry in entries:
        append_entry(path, entry)
    return path


def test_what_was_written_is_read(tmp_path):
    recording = read_recording(written(tmp_path / "k.jsonl"))
    assert recording == Recording(
        header=make_header(),
        measurements=(ENTRIES[1], ENTRIES[3]),  # type: ignore[arg-type]
        skipped=(ENTRIES[2],),  # type: ignore[arg-type]
        references_s=(1e-3, 1.02e-3),
    )
    assert recording.cases == {"a", "b", "c"}
    assert recording.measurements[1].time_s == 2e-4


def test_the_first_line_says_what_it_is(tmp_path):
    first = json.loads(written(tmp_path / "k.jsonl").read_text().splitlines()[0])
    assert (first["format"], first["schema_version"]) == (FORMAT, SCHEMA_VERSION)
    assert set(asdict(make_header())) < set(first)


@given(cut=st.integers(0, 10_000))
def test_a_file_cut_anywhere_holds_the_lines_before_the_cut(tmp_path_factory, cut):
    path = written(tmp_path_factory.mktemp("cut") / "k.jsonl")
    raw = path.read_bytes()
    kept = raw[: len(raw) - cut % len(raw)]
    path.write_bytes(kept)
    whole_lines = kept.count(b"\n")
    if whole_lines == 0:
        with pytest.raises(RecordingError, match="not a recording"):
            read_recording(path)
        return
    rest = read_recording(path)
    assert len(rest.measurements) + len(rest.skipped) + len(rest.references_s) == whole_lines - 1


def test_after_a_half_line_is_dropped_more_can_be_appended_and_a_whole_file_stays(tmp_path):
    path = written(tmp_path / "k.jsonl")
    before = path.read_bytes()
    drop_half_line(path)
    assert path.read_bytes() == before
    with path.open("ab") as out:
        out.write(b'{"case":"d","reas')
    drop_half_line(path)
    append_entry(path, Skipped(case="e", reason="again"))
    assert read_recording(path).cases == {"a", "b", "c", "e"}


def test_a_zipped_one_is_read(tmp_path):
    path = written(tmp_path / "k.jsonl")
    zipped = tmp_path / "k.jsonl.gz"
    zipped.write_bytes(gzip.compress(path.read_bytes()))
    assert read_recording(zipped) == read_recording(path)
    zipped.write_bytes(zipped.read_bytes()[:-20])
    with pytest.raises(RecordingError, match="damaged"):
        read_recording(zipped)


@pytest.mark.parametrize("text", ["", "{}\n", "[]\n", "no JSON\n", '{"format": "advisor-trace"}\n'])
def test_something_else_is_refused(tmp_path, text):
    (tmp_path / "x").write_text(text)
    with pytest.raises(RecordingError, match="is not a recording of advisor measure"):
        read_recording(tmp_path / "x")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"schema_version": SCHEMA_VERSION + 1}, "newer than the 1 this advisor reads: upgrade"),
        ({"schema_version": "1"}, "no valid schema_version"),
        ({"schema_version": 0}, "no valid schema_version"),
        ({}, "backend is missing"),
    ],
)
def test_a_header_of_another_version_or_that_lacks_something_is_told(tmp_path, changes, words):
    header = {} if "missing" in words else asdict(make_header())
    line = {"format": FORMAT, "schema_version": 1, **header, **changes}
    (tmp_path / "k").write_text(json.dumps(line) + "\n")
    with pytest.raises(RecordingError, match=words):
        read_recording(tmp_path / "k")


def test_fields_that_a_later_version_adds_do_no_harm(tmp_path):
    line = {"format": FORMAT, "schema_version": 1, **asdict(make_header()), "humidity": 0.4}
    (tmp_path / "k").write_text(json.dumps(line) + "\n")
    assert read_recording(tmp_path / "k").header == make_header()


GOOD = asdict(make_measurement())


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "null",
        '{"reference_s": 0}',
        '{"reference_s": "1"}',
        '{"reference_s": NaN}',
        json.dumps({**GOOD, "op": {**GOOD["op"], "measured_s": None}}),
        json.dumps({**GOOD, "op": {**GOOD["op"], "measured_s": -1.0}}),
        json.dumps({**GOOD, "op": {**GOOD["op"], "flops": -1}}),
        json.dumps({key: value for key, value in GOOD.items() if key != "precision"}),
    ],
)
def test_a_damaged_line_is_named_by_its_number(tmp_path, line):
    path = written(tmp_path / "k.jsonl")
    with path.open("a") as out:
        out.write(line + "\n")
    with pytest.raises(RecordingError, match=f"line {len(ENTRIES) + 2} of the recording"):
        read_recording(path)


def test_missing(tmp_path):
    with pytest.raises(RecordingError, match="make one with advisor measure"):
        read_recording(tmp_path / "none")
    with pytest.raises(RecordingError, match="cannot read"):
        read_recording(tmp_path)


def test_a_full_disk_is_told_with_what_to_do():
    with pytest.raises(RecordingError, match=r"No space left.*is kept: make room and repeat"):
        append_entry(Path("/dev/full"), 1.0)


def test_a_place_that_cannot_be_written(tmp_path):
    with pytest.raises(RecordingError, match="`out`"):
        start_recording(tmp_path / "no" / "k.jsonl", make_header())
    with pytest.raises(RecordingError, match="`out`"):
        drop_half_line(tmp_path)


@given(st.lists(st.floats(1e-6, 1.0), min_size=1))
def test_drift_is_how_much_the_slowest_lags(references_s):
    recording = Recording(header=make_header(), measurements=(), skipped=(), references_s=tuple(references_s))
    assert recording.drift >= 0
    assert min(references_s) * (1 + recording.drift) == pytest.approx(max(references_s))
    assert replace(recording, references_s=()).drift == 0.0, "nothing is known to drift"


def test_the_operators_are_encoded_as_a_trace_encodes_them(tmp_path):
    from advisor.formats.trace_files import read_trace, write_trace
    from tests.builders import make_trace

    kernel = make_measurement()
    path = written(tmp_path / "k.jsonl", (kernel,))
    write_trace(make_trace(ops=(kernel.op,)), tmp_path / "t.json")
    line = json.loads(path.read_text().splitlines()[1])
    assert line["op"] == json.loads((tmp_path / "t.json").read_text())["ops"][0]
    assert read_trace(tmp_path / "t.json").ops == (read_recording(path).measurements[0].op,)


def test_a_number_of_whole_seconds_is_a_reference_too(tmp_path):
    assert read_recording(written(tmp_path / "k", (1.0,))).references_s == (1.0,)
    assert recording_io.FORMAT == "advisor-recording"
    assert replace(make_header(), gpu=None).gpu is None
