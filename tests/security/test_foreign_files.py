"""Files of others that say a thing twice, or say what nothing has."""

import gzip
import json
from dataclasses import asdict
from pathlib import Path

import pytest

from advisor.config.layers import load_config
from advisor.core.errors import AdvisorError
from advisor.formats.recording_files import FORMAT as RECORDING
from advisor.formats.recording_files import read_recording
from advisor.formats.trace_files import read_trace
from advisor.pricing.sources.custom import read_rates
from advisor.site_files.job_logs import read_job_log
from advisor.site_files.policy_files import check_policies
from advisor.site_files.spot_logs import read_spot_log
from advisor.spend.bill_files import read_bill
from tests.recordings import make_header

HEADER = json.dumps({"format": RECORDING, "schema_version": 1, **asdict(make_header())})
JOBS = "submit,start,gpus,walltime\n"
JOB = "2026-11-01T00:00:00Z,2026-11-01T00:30:00Z,1,"
FOCUS = "BilledCost,BillingCurrency,ChargeCategory,ChargePeriodStart,ChargePeriodEnd,ServiceName,ProviderName"
CHARGE = "1.5,USD,Usage,2026-11-20T00:00:00Z,2026-11-21T00:00:00Z,EC2,AWS"
CHARGE_JSON = json.dumps(dict(zip(FOCUS.split(","), CHARGE.split(","), strict=True)))
TWICE = CHARGE_JSON.replace("{", '{"BilledCost": "9999", ', 1)


def written(folder: Path, name: str, text: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def rates_of(path: Path) -> object:
    return read_rates([path])


def policy_of(path: Path) -> object:
    """Its faults, as one error."""
    checked = check_policies([path])
    raise AdvisorError("; ".join(fault.message for fault in checked.faults))


def settings_of(path: Path) -> object:
    """Of a project: its file has a name."""
    path.rename(path.with_name(".advisor.yaml"))
    return load_config(environ={}, cwd=path.parent)


def read_charges(path: Path) -> object:
    return read_bill(path, "project")


@pytest.mark.parametrize(
    ("read", "name", "text"),
    [
        pytest.param(read_recording, "r.jsonl", HEADER.replace("{", '{"gpu": "L4", ', 1) + "\n", id="header"),
        pytest.param(
            read_recording,
            "r.jsonl",
            HEADER + '\n{"reference_s": 0.5, "reference_s": 5.0}\n',
            id="a line of a recording",
        ),
        pytest.param(read_charges, "b.csv", f"{FOCUS},BilledCost\n{CHARGE},9999\n", id="a column of a bill"),
        pytest.param(read_charges, "b.json", f"[{CHARGE_JSON},{TWICE}]", id="a charge of a list"),
        pytest.param(
            read_job_log, "j.csv", f"submit,start,gpus,gpus\n{JOB}8\n" * 2, id="a column of a job log"
        ),
        pytest.param(
            read_spot_log, "s.csv", "time,event,event\n2026-11-01,up,down\n", id="a column of a spot log"
        ),
        pytest.param(rates_of, "r.csv", "gpu,gpu\nL4,H100\n", id="a column of rates (held before)"),
        pytest.param(read_trace, "t.json", '{"versions": {"torch": "2", "torch": "3"}}', id="a trace"),
    ],
)
def test_what_stands_twice_is_refused(tmp_path, read, name, text):
    with pytest.raises((AdvisorError, ValueError), match="stands twice"):
        read(written(tmp_path, name, text))


@pytest.mark.parametrize("line", [TWICE, CHARGE_JSON.replace('"1.5"', "NaN")])
def test_a_charge_that_says_two_things_or_no_number_is_left_out(tmp_path, line):
    bill = read_bill(written(tmp_path, "b.jsonl", f"{CHARGE_JSON}\n{line}\n"), "project")
    assert len(bill.charges) == 1
    (fault,) = bill.faults
    assert fault.line == 2


@pytest.mark.parametrize("walltime", ["1e308", "-5", "99999999999", "999999-00:00:00", "-0.5"])
def test_a_run_time_that_no_job_asks_for_names_its_line(tmp_path, walltime):
    path = written(tmp_path, "j.csv", JOBS + f"{JOB}1h\n" * 20 + f"{JOB}{walltime}\n")
    with pytest.raises(AdvisorError, match=r"line 22: .*is no run time: it must be between 0 and 100 years"):
        read_job_log(path)


@pytest.mark.parametrize("moment", ["1764115200000", "1e18", "-1e12"])
def test_a_time_in_milliseconds_names_its_line(tmp_path, moment):
    path = written(tmp_path, "j.csv", JOBS + f"{JOB}1h\n" * 20 + f"{moment},{moment},1,1h\n")
    with pytest.raises(AdvisorError, match=r"line 22: .*in milliseconds"):
        read_job_log(path)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "latin-1"])
@pytest.mark.parametrize(
    ("read", "name", "text"),
    [
        (policy_of, "p.yaml", "version: 1\nname: é\n"),
        (settings_of, "c.yaml", "local: {gpu: é}\n"),
        (rates_of, "r.csv", "gpu\né\n"),
        (read_job_log, "j.csv", JOBS + "é\n"),
        (read_charges, "b.csv", FOCUS + "é\n"),
    ],
    ids=["policy", "settings", "rates", "job log", "bill"],
)
def test_another_encoding_is_named_in_plain_words(tmp_path, read, name, text, encoding):
    with pytest.raises(AdvisorError) as caught:
        read(written(tmp_path, name, text.encode(encoding)))
    assert "codec" not in str(caught.value)
    assert "UTF-8" in str(caught.value)


@pytest.mark.parametrize("damage", ["cut off", "with more behind", "packed twice", "of another ending"])
def test_a_damaged_gzip_is_one_line(tmp_path, damage):
    whole = gzip.compress(f"{FOCUS}\n{CHARGE}\n".encode())
    packed = {
        "cut off": whole[:-9],
        "with more behind": whole + b"garbage",
        "packed twice": gzip.compress(whole),
        "of another ending": whole,
    }[damage]
    path = written(tmp_path, "b.csv", packed)
    if damage == "of another ending":
        assert len(read_bill(path, "project").charges) == 1
        return
    with pytest.raises(AdvisorError) as caught:
        read_bill(path, "project")
    assert len(str(caught.value).splitlines()) == 1
