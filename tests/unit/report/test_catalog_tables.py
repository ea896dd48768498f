"""GPUs of the catalog in TFLOP/s and GB/s, and as multiples of one of them."""

from advisor.core.gpus import load_gpus
from advisor.core.units import GIB
from advisor.report.catalog_tables import COLUMNS, gpus_document
from advisor.report.printing import Format, text_of
from tests.builders import make_gpu
from tests.unit.report.printed import json_of, rows_of

BASE = make_gpu(tensor_flops_per_s={"tf32": 50e12, "fp16": 100e12, "bf16": 200e12}, nvlink_bytes_per_s=300e9)
PLAIN = make_gpu("PLAIN", tensor_flops_per_s={}, num_sms=40, memory_bytes=8 * GIB, memory_bytes_per_s=2.5e12)


def test_units_of_every_column():
    (row,) = rows_of(gpus_document([BASE]))
    figures = ["80", "16", "1,000", "10", "50", "100", "200", "300"]
    assert list(row.values()) == ["TEST-1", "Volta", "7.0", *figures]


def test_what_a_gpu_lacks_is_empty():
    (row,) = rows_of(gpus_document([PLAIN]))
    assert [row[c] for c in ("FP32", "TF32", "FP16", "BF16", "NVLink GB/s")] == ["10", "", "", "", ""]


def test_multiples_of_another_gpu():
    plain, itself = rows_of(gpus_document([PLAIN, BASE], base=BASE))
    multiples = ["0.50 x", "0.50 x", "2.50 x", "1.00 x", "", "", "", ""]
    assert list(plain.values()) == ["PLAIN", "Volta", "7.0", *multiples]
    assert {itself[column] for column in (column.name for column in COLUMNS[3:])} == {"1.00 x"}


def test_a_multiple_of_nothing_is_empty():
    (row,) = rows_of(gpus_document([BASE], base=PLAIN))
    assert [row[c] for c in ("SMs", "TF32", "FP16", "BF16", "NVLink GB/s")] == ["2.00 x", "", "", "", ""]


def test_json_carries_the_facts_whatever_the_base():
    plain, amd = json_of(gpus_document([PLAIN, make_gpu("AMD", occupancy=None)], base=BASE))["gpus"]
    assert (plain["name"], plain["num_sms"], plain["memory_bytes"]) == ("PLAIN", 40, 8 * GIB)
    assert plain["memory_bytes_per_s"] == 2.5e12
    assert plain["vector_flops_per_s"]["fp32"] == 10e12
    assert (plain["occupancy"]["max_threads"], amd["occupancy"]) == (2048, None)
    assert plain["source_date"] == "2026-01-01"


def test_the_whole_catalog_prints():
    specs = list(load_gpus().values())
    assert [gpu["name"] for gpu in json_of(gpus_document(specs))["gpus"]] == [spec.name for spec in specs]
    assert len(text_of(gpus_document(specs), Format.MARKDOWN).splitlines()) == len(specs) + 2
    names = [line.split()[0] for line in text_of(gpus_document(specs), Format.TABLE).splitlines()[4:-1]]
    assert [name for name in names if name in load_gpus()] == [spec.name for spec in specs]
