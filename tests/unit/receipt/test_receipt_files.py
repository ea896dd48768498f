"""Receipts as files: whose process is gone is left behind, whose process runs is not."""

import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from advisor.core.errors import InputError
from advisor.receipt.receipt_files import ReceiptFile, begin, left_behind, read_receipt
from tests.unit.store.test_ledger import WHOLE_RUN, make_run

RECEIPT = ReceiptFile(run=make_run(id="one", **WHOLE_RUN), steps_folder="/somewhere")
ROOT = Path(__file__).resolve().parents[3]
HOLDS = """
import sys
from pathlib import Path
from advisor.receipt.receipt_files import begin
from tests.unit.receipt.test_receipt_files import RECEIPT
begun = begin(Path(sys.argv[1]), RECEIPT)
print("begun", flush=True)
sys.stdin.read()
"""


def left(folder: Path) -> list[str]:
    with left_behind(folder) as paths:
        return [path.name for path in paths]


def test_a_receipt_comes_back_whole_and_is_for_its_owner_alone(tmp_path):
    begun = begin(tmp_path / "new" / "folder", RECEIPT)
    assert read_receipt(begun.path) == RECEIPT
    assert stat.S_IMODE(begun.path.stat().st_mode) == 0o600
    assert [path.name for path in begun.path.parent.iterdir()] == ["one.json"]
    os.close(begun.handle)


def test_a_run_that_goes_on_is_not_left_behind_and_one_that_was_killed_is(tmp_path):
    command = [sys.executable, "-c", HOLDS, str(tmp_path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as process:
        assert process.stdout.readline() == "begun\n"
        assert left(tmp_path) == []
        process.kill()
        process.wait()
    assert left(tmp_path) == ["one.json"]


def test_files_that_never_got_their_name_go_when_the_next_run_begins(tmp_path):
    old, new = tmp_path / ".begun-old", tmp_path / ".begun-new"
    for path in (old, new):
        path.touch()
    os.utime(old, (0, 0))
    os.close(begin(tmp_path, RECEIPT).handle)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".begun-new", "one.json"]


def test_who_looks_at_what_is_left_behind_is_alone(tmp_path):
    os.close(begin(tmp_path, RECEIPT).handle)
    with left_behind(tmp_path) as paths:
        assert [path.name for path in paths] == ["one.json"]
        assert left(tmp_path) == []
    assert left(tmp_path) == ["one.json"]


def test_a_file_that_another_one_took_the_place_of_waits_for_the_next_look(tmp_path):
    begun = begin(tmp_path, RECEIPT)
    begun.replace(ReceiptFile(run=make_run(id="one")))
    assert read_receipt(begun.path).steps_folder is None
    assert left(tmp_path) == ["one.json"]


def test_links_and_pipes_are_not_opened(tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    os.close(begin(elsewhere, RECEIPT).handle)
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "link.json").symlink_to(elsewhere / "one.json")
    assert left(folder) == []
    assert left(tmp_path / "gone") == []


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ('"version": 1', '"version": 2', "version"),
        ('"advisor-receipt"', '"advisor-recording"', "format"),
        ('"interrupted"', '"exploded"', "run.status"),
        ('"num_gpus": 8', '"num_gpus": "8"', "run.num_gpus"),
        ('"p10": 0.1', '"p10": 9.9', "run.step_s"),
        ('"user"', '"usr"', "run.usr"),
        ('"run"', '"walk"', "run"),
        ("{", "", "it is no JSON"),
        ('"note": "a note"', f'"note": "{"x" * 2_000_000}"', "more than"),
    ],
)
def test_what_is_no_receipt_is_one_clear_line(before, after, words, tmp_path):
    path = tmp_path / "receipt.json"
    path.write_text(RECEIPT.to_bytes().decode().replace(before, after, 1))
    with pytest.raises(InputError, match=words) as caught:
        read_receipt(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_file_says_so(tmp_path):
    with pytest.raises(InputError, match=r"cannot read the receipt .*No such file"):
        read_receipt(tmp_path / "gone.json")


IMPOSSIBLE = [
    ("cost_usd", "1e308"), ("cost_usd", "1e999999999"), ("cost_usd", "NaN"), ("cost_usd", "-0.0"),
    ("cost_usd", "true"), ("cost_usd", '"5"'), ("duration_s", "Infinity"), ("duration_s", "1e300"),
    ("usd_per_h", "1e10"), ("num_gpus", str(2**70)), ("num_gpus", "9" * 100_000), ("num_gpus", "true"),
    ("num_nodes", "0"), ("num_steps", str(2**63)), ("exit_code", str(2**31)), ("id", '""'),
    ("id", '"../x"'), ("id", '"/etc/passwd"'), ("id", '".."'), ("id", '"a\\u0000"'),
    ("id", f'"{"x" * 10_000}"'), ("recommendation_id", '"../../x"'), ("script", '"a\\u0000b"'),
    ("note", f'"{"x" * 20_000}"'), ("started_at", '"9999-01-01T00:00:00Z"'),
    ("started_at", '"1900-01-01T00:00:00Z"'), ("started_at", '"2026-11-01T00:00:00"'),
]  # fmt: skip


@pytest.mark.parametrize(("field", "value"), IMPOSSIBLE, ids=lambda value: str(value)[:30])
def test_what_cannot_be_true_of_a_run_names_the_file_and_the_field(field, value, tmp_path):
    path = tmp_path / "receipt.json"
    text = RECEIPT.to_bytes().decode()
    changed = re.sub(rf'"{field}": ("[^"]*"|[^,\n]*)', lambda _: f'"{field}": {value}', text, count=1)
    assert changed != text
    path.write_text(changed)
    with pytest.raises(InputError) as caught:
        read_receipt(path)
    message = str(caught.value)
    assert str(path) in message
    assert "\n" not in message
    assert len(message) < 600
    # A number of 100,000 digits and Infinity are no JSON that is read at all.
    assert field in message or "number" in message or "digits" in message


def test_a_key_that_stands_twice_is_refused(tmp_path):
    path = tmp_path / "receipt.json"
    path.write_text(RECEIPT.to_bytes().decode().replace('"run": {', '"run": {"num_gpus": 1,', 1))
    with pytest.raises(InputError, match="the key 'num_gpus' stands twice"):
        read_receipt(path)


def test_names_of_other_bytes_than_utf_8_are_kept_as_text(tmp_path):
    receipt = ReceiptFile(run=make_run(id="one", script="caf\udce9.py", note="\udcff"))
    (tmp_path / "one.json").write_bytes(receipt.to_bytes())
    run = read_receipt(tmp_path / "one.json").run
    assert (run.script, run.note) == ("caf\\xe9.py", "\\xff")
