"""Whatever a bill holds, it is read or refused; a row that is damaged harms no other."""

import tempfile
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.core.errors import BillError
from advisor.spend.bill_files import read_bill
from tests.unit.spend.bills import FOCUS_ROW, GCP_ROW, write_focus, write_gcp

AMOUNTS = st.lists(st.decimals(-1000, 1_000_000, places=10), min_size=1, max_size=20)
# A bare carriage return ends a line of CSV, and Python's writer does not quote it.
ANYTHING = st.text(st.characters(exclude_characters="\r\x00", exclude_categories=["Cs"]), max_size=30)
CHANGES = st.lists(st.dictionaries(st.sampled_from(sorted(FOCUS_ROW)), ANYTHING, max_size=3), max_size=5)


def folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory()


@given(AMOUNTS)
def test_charges_add_up_to_what_was_written(amounts):
    with folder() as place:
        path = write_focus(Path(place) / "bill.csv", *({"BilledCost": f"{amount:f}"} for amount in amounts))
        assert [charge.billed_cost for charge in read_bill(path, "project").charges] == amounts


@settings(max_examples=40)
@given(CHANGES)
def test_each_row_is_a_charge_or_a_fault(changes):
    with folder() as place:
        path = write_focus(Path(place) / "bill.csv", {}, *changes)
        bill = read_bill(path, "project")
        torn = any("from here on" in fault.reason for fault in bill.faults)
        assert torn or len(bill.charges) + len(bill.faults) == 1 + len(changes)
        assert bill.charges[0].billed_cost == Decimal("1.25")


@given(st.data())
def test_a_file_that_is_cut_anywhere_is_read_or_refused(data):
    with folder() as place:
        write = data.draw(st.sampled_from([write_focus, write_gcp]))
        path = write(Path(place) / "bill", {}, {})
        whole = path.read_bytes()
        path.write_bytes(whole[: data.draw(st.integers(0, len(whole)))])
        try:
            bill = read_bill(path, "project")
        except BillError:
            return
        assert len(bill.charges) <= 2


@given(st.binary(max_size=300))
def test_bytes_of_any_kind_are_no_bill(payload):
    with folder() as place:
        path = Path(place) / "bill"
        path.write_bytes(payload)
        with pytest.raises(BillError, match="bill"):
            read_bill(path, "project")


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | ANYTHING,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANYTHING, inner, max_size=3),
    max_leaves=5,
)


@settings(max_examples=40)
@given(st.dictionaries(st.sampled_from(sorted(GCP_ROW)), JSON, max_size=4))
def test_values_of_any_shape_in_an_export_are_faults_at_worst(change):
    with folder() as place:
        path = write_gcp(Path(place) / "export.jsonl", {}, change)
        bill = read_bill(path, "project")
        assert len(bill.charges) + len(bill.faults) == 2
