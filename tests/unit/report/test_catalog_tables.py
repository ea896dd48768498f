"""GPUs of the catalog in TFLOP/s and GB/s, and as multiples of one of them."""

from advisor.core.gpus import load_gpus
from advisor.core.units import GIB
from advisor.report.catalog_tables import COLUMNS, gpus_document
from advisor.report.printing import Format, print_document
from tests.builders import make_gpu
from tests.unit.report.printed import read_csv, read_json

BASE = make_gpu(tensor_flops_per_s={"tf32": 50e12, "fp16": 100e12, "bf16": 200e12}, nvlink_bytes_per_s=300e9)
PLAIN = make_gpu("PLAIN", tensor_flops_per_s={}, num_sms=40, memory_bytes=8 * GIB, memory_bytes_per_s=2.5e12)


def test_units_of_every_column(capsys):
    print_document(gpus_document([BASE]), Format.CSV)
    (row,) = read_csv(capsys)
    assert list(row.values()) == [
        "TEST-1",
        "Volta 7.0",
        "80",
        "16 GiB",
        "1,000",
        "10",
        "50",
        "100",
        "200",
        "300",
    ]


def test_what_a_gpu_lacks_is_empty(capsys):
    print_document(gpus_document([PLAIN]), Format.CSV)
    (row,) = read_csv(capsys)
    assert [row[c] for c in ("FP32", "TF32", "FP16", "BF16", "NVLink GB/s")] == ["10", "", "", "", ""]


def test_multiples_of_another_gpu(capsys):
    print_document(gpus_document([PLAIN, BASE], base=BASE), Format.CSV)
    plain, itself = read_csv(capsys)
    assert plain == {
        "GPU": "PLAIN",
        "Architecture": "Volta 7.0",
        "SMs": "0.50 x",
        "Memory": "0.50 x",
        "GB/s": "2.50 x",
        "FP32": "1.00 x",
        "TF32": "",
        "FP16": "",
        "BF16": "",
        "NVLink GB/s": "",
    }
    assert {itself[column] for column in (column.name for column in COLUMNS[2:])} == {"1.00 x"}


def test_a_multiple_of_nothing_is_empty(capsys):
    print_document(gpus_document([BASE], base=PLAIN), Format.CSV)
    (row,) = read_csv(capsys)
    assert [row[c] for c in ("SMs", "TF32", "FP16", "BF16", "NVLink GB/s")] == ["2.00 x", "", "", "", ""]


def test_json_carries_the_facts_whatever_the_base(capsys):
    print_document(gpus_document([PLAIN, make_gpu("AMD", occupancy=None)], base=BASE), Format.JSON)
    plain, amd = read_json(capsys)["gpus"]
    assert (plain["name"], plain["num_sms"], plain["memory_bytes"]) == ("PLAIN", 40, 8 * GIB)
    assert plain["memory_bytes_per_s"] == 2.5e12
    assert plain["vector_flops_per_s"]["fp32"] == 10e12
    assert (plain["occupancy"]["max_threads"], amd["occupancy"]) == (2048, None)
    assert plain["source_date"] == "2026-01-01"


def test_the_whole_catalog_prints(capsys):
    specs = list(load_gpus().values())
    print_document(gpus_document(specs), Format.JSON)
    assert [gpu["name"] for gpu in read_json(capsys)["gpus"]] == [spec.name for spec in specs]
    print_document(gpus_document(specs), Format.MARKDOWN)
    assert len(capsys.readouterr().out.splitlines()) == len(specs) + 2
