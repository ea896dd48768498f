"""Files of measured iterations: what is read, and what is refused with all its faults named."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core.errors import InputError
from benchmarks.accuracy.rows import REQUIRED, read_rows
from research.tests.harness.builders import HEADER, line, write_measurements
from tests.shared import SHARED, needs_shared


def read(path):
    return read_rows(path, path.parent / "model_configs")


def refused(tmp_path, *lines, **options):
    with pytest.raises(InputError) as caught:
        read(write_measurements(tmp_path, *lines, **options))
    return str(caught.value)


def test_a_row_is_read_in_seconds(tmp_path):
    (row,) = read(write_measurements(tmp_path, line(mode="train", forward_ms="4", backward_ms="6")))
    assert (row.gpu.name, str(row.workload)) == ("T4", "tiny train 32 x 2")
    assert (row.measured_s, row.forward_s, row.backward_s) == pytest.approx((0.01, 0.004, 0.006))
    assert row.num_layers == 2
    assert row.columns["other_ms"] == "12.0"


def test_zero_and_nothing_mean_not_said(tmp_path):
    (row,) = read(write_measurements(tmp_path, line(num_layers="0.0", backward_ms="", other_ms="")))
    assert (row.num_layers, row.backward_s) == (None, None)


def test_required_columns_are_enough(tmp_path):
    (row,) = read(write_measurements(tmp_path, line(), header=REQUIRED))
    assert (row.num_layers, row.forward_s, set(row.columns)) == (None, None, set(REQUIRED))


def test_a_gpu_that_nobody_measured_is_fine_if_the_catalog_has_it(tmp_path):
    (row,) = read(write_measurements(tmp_path, line(gpu="NVIDIA H100 80GB HBM3")))
    assert row.gpu.name == "H100-SXM-80GB"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"gpu": "B9000"}, "no GPU is called 'B9000'"),
        ({"gpu": "A100"}, "A100"),
        ({"model": "tinny"}, "no configuration of the model 'tinny'"),
        ({"mode": "training"}, "mode 'training' is none of train, inf"),
        ({"seq_len": "many"}, "seq_len 'many' is not a whole number"),
        ({"batch_size": "0"}, "batch_size '0' is not a whole number"),
        ({"batch_size": "2.5"}, "batch_size '2.5'"),
        ({"measured_ms": "fast"}, "measured_ms 'fast' is not a time"),
        ({"measured_ms": ""}, "measured_ms '' is not a time"),
        ({"measured_ms": "0"}, "measured_ms '0' is not a time"),
        ({"measured_ms": "-1"}, "measured_ms '-1' is not a time"),
        ({"measured_ms": "nan"}, "measured_ms 'nan' is not a time"),
        ({"measured_ms": "inf"}, "measured_ms 'inf' is not a time"),
        ({"other_ms": "n/a"}, "other_ms 'n/a' is not a time"),
        ({"num_layers": "two"}, "num_layers 'two' is not a number"),
    ],
)
def test_a_fault_names_its_line(tmp_path, changes, words):
    message = refused(tmp_path, line(), line(**changes))
    assert "line 3: " in message
    assert words in message


def test_near_names_are_proposed(tmp_path):
    assert "Did you mean 'tiny'?" in refused(tmp_path, line(model="tinny"))


def test_all_faults_are_told_at_once(tmp_path):
    message = refused(tmp_path, line(gpu="B9000", measured_ms="x"), line(model="none"))
    assert message.count("line 2: ") == 2
    assert message.count("line 3: ") == 1


def test_missing_columns_are_named(tmp_path):
    message = refused(tmp_path, line(), header=[name for name in HEADER if name != "gpu"])
    assert "lacks the columns ['gpu']" in message


def test_an_empty_file_and_a_short_row(tmp_path):
    assert "no rows" in refused(tmp_path)
    path = write_measurements(tmp_path, line())
    path.write_text(path.read_text() + "T4,tiny\n")
    with pytest.raises(InputError, match=r"line 3: its number of fields"):
        read(path)


def test_what_is_no_table_is_refused(tmp_path):
    with pytest.raises(InputError, match="cannot read"):
        read(tmp_path / "none.csv")
    (tmp_path / "binary.csv").write_bytes(bytes(range(128, 256)))
    with pytest.raises(InputError, match="cannot read"):
        read(tmp_path / "binary.csv")


@given(text=st.text(st.characters(codec="utf-8", exclude_characters="\r\n\x00"), max_size=12))
def test_any_text_for_a_number_is_read_or_refused(tmp_path_factory, text):
    path = write_measurements(tmp_path_factory.mktemp("rows"), line(seq_len=text, measured_ms=text))
    try:
        (row,) = read(path)
    except InputError:
        return
    assert row.workload.seq_len > 0
    assert row.measured_s > 0


@pytest.mark.shared
@needs_shared
def test_the_published_rows_are_read():
    folder = SHARED / "measurements"
    rows = read_rows(folder / "end_to_end.csv", folder / "model_configs")
    assert len(rows) == 50
    assert len({row.gpu.name for row in rows}) == 6
