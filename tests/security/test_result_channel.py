"""Whatever a script puts in the place of its result: one line, soon, and little memory."""

import json
import os
import sys
from pathlib import Path

import pytest

from advisor.cli.listening import Narration
from advisor.core.errors import ProfileError
from advisor.core.findings import Text
from advisor.core.findings.about_traces import NotDone
from advisor.payload.progress import Teller
from advisor.payload.protocol import VERSION, Notice, RunPhase
from advisor.profile import attempt, profile
from advisor.profile.attempt import ChildEnding, job_folder, run_child
from advisor.profile.child_files import AppendedLines
from advisor.profile.environment import child_environment
from advisor.profile.profiling import parse_event
from advisor.profile.recording import read_recording, trace_of
from advisor.report.words import sentence
from tests.unit.profile.test_recording import recording

BEGIN = f'{{"format_version":{VERSION},'
START = f'{{"format_version":{VERSION},"status":"ok",'


def refused(path: Path) -> str:
    """The one line that a recording gives."""
    with pytest.raises(ProfileError) as failed:
        read_recording(path)
    text = str(failed.value)
    assert "\n" not in text
    assert len(text) < 500
    return text


def test_a_pipe_does_not_keep_us_waiting(tmp_path):
    os.mkfifo(tmp_path / "result.json")
    assert "no regular file" in refused(tmp_path / "result.json")


@pytest.mark.parametrize("target", ["/dev/zero", "/etc/passwd", "/nowhere", "."])
def test_a_link_is_not_followed(target, tmp_path):
    (tmp_path / "result.json").symlink_to(target)
    assert "no regular file" in refused(tmp_path / "result.json")


def test_a_folder_is_no_result(tmp_path):
    (tmp_path / "result.json").mkdir()
    assert "no regular file" in refused(tmp_path / "result.json")


def test_a_huge_file_is_not_read(tmp_path):
    with (tmp_path / "result.json").open("wb") as file:
        file.truncate(2**40)
    assert "larger than allowed" in refused(tmp_path / "result.json")


@pytest.mark.parametrize(
    "text",
    [
        "[" * 10**6,
        START + '"calls":' + "[" * 10**6 + "]" * 10**6 + "}",
        START + '"loading":' + '{"a":' * 10**5 + "1" + "}" * 10**5 + "}",
    ],
)
def test_depth_is_no_traceback(text, tmp_path):
    (tmp_path / "result.json").write_text(text)
    assert "recursion limit" in refused(tmp_path / "result.json")


def test_millions_of_values_are_counted_before_they_are_built(tmp_path):
    (tmp_path / "result.json").write_text(START + '"calls":[' + ",".join(["{}"] * 3 * 10**6) + "]}")
    assert "values" in refused(tmp_path / "result.json")


def test_of_a_million_faults_one_is_told(tmp_path):
    """A schema that collects all of them takes gigabytes to do so."""
    (tmp_path / "result.json").write_text(START + '"calls":[' + ",".join(['"x"'] * 10**6) + "]}")
    assert "calls is 'x'" in refused(tmp_path / "result.json")


@pytest.mark.parametrize(
    "text",
    [
        "", "null", "7", "[]", '"ok"', "{", "\0" * 100, "\udc80", "{}", BEGIN + '"torch": "2"}',
        '{"format_version": "1", "status": "ok"}', BEGIN + '"status": []}',
        BEGIN + '"status": "owned"}', BEGIN + '"status": "ok", "message": 7}',
        BEGIN + '"status": "crashed", "warnings": "abc"}',
        BEGIN + '"status": "crashed", "refused": [{}]}',
        START + '"operators": {}}', START + '"memory": {"peak_bytes": -1}}', START + '"iteration_s": NaN}',
        START + '"iteration_s": "' + "9" * 5000 + '"}', START + '"world_size": ' + "9" * 5000 + "}",
    ],
)  # fmt: skip
def test_what_is_no_result_is_damaged(text, tmp_path):
    (tmp_path / "result.json").write_bytes(text.encode("utf-8", errors="surrogateescape"))
    assert "damaged" in refused(tmp_path / "result.json")


OPERATOR = recording()["operators"][0]
TENSOR = OPERATOR["inputs"][0]


@pytest.mark.parametrize(
    "forged",
    [
        {"operators": []},
        {"operators": [OPERATOR | {"count": 0}]},
        {"operators": [OPERATOR | {"inputs": []}]},
        {"operators": [OPERATOR | {"inputs": [TENSOR | {"shape": [2**62, 2**62]}] * 2}]},
        {"operators": [OPERATOR | {"attributes": {"a": {"b": 1}}}]},
        {"operators": [OPERATOR | {"name": "aten::mm\x1b[2J"}]},
        {"versions": {"torch": 7}},
        {"world_size": 0},
        {"num_backward_passes": 10**30, "loading": None},
        {"iteration_s": 1e300},
        {"memory": {}},
    ],
)
def test_numbers_that_no_iteration_has_are_refused(forged, tmp_path):
    path = tmp_path / "result.json"
    path.write_text(json.dumps(recording() | forged))
    with pytest.raises(ProfileError, match="damaged"):
        trace_of(read_recording(path) or {}, "train.py", [])


def quoting(words: str) -> Notice:
    return {"code": "text", "facts": {"text": words}}


FORGED: list[object] = [
    {"code": "budget", "facts": {"cost_usd": 1.0, "budget_usd": 2.0, "p": 0.5}},
    {"code": "unheard-of", "facts": {}},
    {"code": "not-done", "facts": {"what": "removal", "more": 1}},
    {"code": "not-done", "facts": {}},
    {"code": "not-done", "facts": {"what": "download", "name": 7}},
    {"code": "not-done", "facts": {"what": "download", "name": {"{}": []}}},
    {"code": "iteration-seen", "facts": {"of": "closure-repeated", "num": 10**30}},
    {"code": "iteration-seen", "facts": {"of": "closure-repeated", "num": True}},
    {"code": "kernels-left-out", "facts": {"which": "unmarked", "share_of_time": float("nan")}},
    {"code": "profile-lacks", "facts": {"what": "values", "names": ["one", ["two"]]}},
    {"code": "text", "facts": {"text": ["x" * 10**6] * 3}},
]


@pytest.mark.parametrize("forged", FORGED, ids=lambda one: str(one)[:60])
def test_a_forged_warning_is_a_text(forged, tmp_path):
    path = tmp_path / "result.json"
    path.write_text(json.dumps(recording() | {"warnings": [forged]}))
    (warning,) = trace_of(read_recording(path) or {}, "train.py", []).warnings
    assert isinstance(warning, Text)
    assert sentence(warning).startswith(f"{forged['code']} ")
    assert len(sentence(warning)) <= 1000


@pytest.mark.parametrize(
    "forged", ["a sentence", 7, None, {}, {"code": 7, "facts": {}}, {"code": "x", "facts": []}]
)
def test_what_is_no_warning_is_damaged(forged, tmp_path):
    path = tmp_path / "result.json"
    path.write_text(json.dumps(recording() | {"warnings": [forged]}))
    assert "damaged" in refused(path)


def test_a_warning_keeps_its_code_and_the_beginning_and_end_of_its_facts(tmp_path):
    path = tmp_path / "result.json"
    forged = {"code": "not-done", "facts": {"what": "download", "name": "begin" + "x" * 10**6 + "end"}}
    path.write_text(json.dumps(recording() | {"warnings": [forged]}))
    (warning,) = trace_of(read_recording(path) or {}, "train.py", []).warnings
    assert isinstance(warning, NotDone)
    assert warning.what == "download"
    assert len(str(warning.facts["name"])) == 1000
    assert sentence(warning).startswith("beginxxx")


def test_words_are_cut_at_both_ends(tmp_path):
    words = "begin" + "x" * 5_000_000 + "end"
    document = {
        "message": words,
        "traceback": words,
        "warnings": [quoting(words)] * 3 + [quoting("few")] * 1000,
    }
    path = tmp_path / "result.json"
    path.write_text(json.dumps({"format_version": VERSION, "status": "crashed", **document}))
    shown = read_recording(path)
    assert len(json.dumps(shown)) < 20_000
    for text in (shown["message"], shown["traceback"], shown["warnings"][0]["facts"]["text"]):
        assert text.startswith("begin")
        assert text.endswith("end")
        assert "[... cut ...]" in text
    assert shown["warnings"][-1] == quoting("[... 953 more ...]")


def test_a_secret_is_taken_out_before_it_can_be_cut_in_half(tmp_path):
    """Half of a password is not known as one."""
    for before in range(985, 1000):
        words = "x" * before + "https://bob:hunter22hunter22@host/w.pt" + "y" * 5000
        path = tmp_path / "result.json"
        path.write_text(json.dumps({"format_version": VERSION, "status": "crashed", "message": words}))
        assert "hunter" not in read_recording(path)["message"]


# --- Progress --------------------------------------------------------------------------------------


def lines_of(path: Path) -> list[str]:
    lines: list[str] = []
    AppendedLines(path, lines.append).tell_all()
    return lines


def test_progress_is_read_from_a_regular_file_alone(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("/dev/zero")
    assert lines_of(tmp_path / "pipe") == lines_of(tmp_path / "link") == lines_of(tmp_path / "none") == []


def test_progress_without_a_line_end_is_dropped(tmp_path):
    (tmp_path / "p").write_bytes(b"one\n" + b"x" * 3 * 2**20 + b"\ntwo\n\xff\nhalf")
    lines = lines_of(tmp_path / "p")
    assert lines[0] == "one"
    assert lines[-2:] == ["two", "�"]
    assert max(map(len, lines)) < 2**20


# --- Whole scripts ---------------------------------------------------------------------------------

FORGE = """
import os, tempfile
from pathlib import Path
result = Path(tempfile.gettempdir()).parent / "result.json"
{plot}
os._exit(0)
"""


@pytest.mark.torch
@pytest.mark.usefixtures("warm_children")
@pytest.mark.parametrize(
    ("plot", "words"),
    [
        (
            "os.mkfifo(result); os.replace(result, result.with_name('progress.txt')); os.mkfifo(result)",
            "regular",
        ),
        ("result.symlink_to('/dev/zero')", "regular"),
        ("result.write_text('[' * 10**6)", "damaged"),
        (f'result.write_text(\'{{"format_version": {VERSION}, "status": "ok"}}\')', "damaged"),
    ],
)
def test_a_script_that_forges_its_result_gets_one_line(plot, words, tmp_path):
    script = tmp_path / "train.py"
    script.write_text(FORGE.format(plot=plot))
    with pytest.raises(ProfileError, match=words) as failed:
        profile(script, timeout_s=60)
    assert "\n" not in str(failed.value)


@pytest.mark.torch
def test_a_long_message_of_a_script_is_cut(tmp_path):
    pytest.importorskip("torch")
    script = tmp_path / "train.py"
    script.write_text("print('y' * 10**7)\nraise ValueError('x' * 50_000_000 + ' is why')")
    with pytest.raises(ProfileError, match=r"ValueError: xxx.*is why\. It must run") as failed:
        profile(script, timeout_s=60)
    assert len(str(failed.value)) < 15_000


def test_a_script_that_asks_for_another_start_is_started_once_more_only(tmp_path, monkeypatch):
    starts = []

    def ask_again(job, *rest):
        starts.append(job)
        return (
            {"status": "needs_torchrun", "message": "KeyError: 'RANK'"},
            None,
            ChildEnding(returncode=0, log=""),
        )

    monkeypatch.setattr(attempt, "_attempt", ask_again)
    script = tmp_path / "train.py"
    script.write_text("")
    with pytest.raises(ProfileError):
        profile(script, python=sys.executable)
    assert [job.world_size for job in starts] == [None, 1]


def test_a_folder_nested_by_the_thousand_is_removed(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    code = "import os\nfor _ in range(2500): os.mkdir('d'); os.chdir('d')\nopen('f', 'w')"
    with job_folder() as folder:
        ending = run_child(
            [sys.executable, "-c", f"import os; os.chdir({str(folder)!r})\n{code}"],
            environment=child_environment(os.environ, folder),
            progress_path=folder / "progress.txt",
            timeout_s=60,
            progress=None,
        )
        assert (ending.returncode, (folder / "d/d").is_dir()) == (0, True), ending.log
    assert list(tmp_path.iterdir()) == []


def test_a_million_batches_are_a_few_lines_a_second():
    """New with progress by batch: a line for each would fill the disk or the pipe."""
    now_s, lines = 0.0, []
    teller = Teller(lines.append, clock=lambda: now_s)
    for batch in range(1, 1_000_001):
        now_s += 2e-6
        teller.tell({"phase": RunPhase.EVALUATION, "done": batch})
    assert 5 <= len(lines) <= 11


def test_a_script_that_closes_our_file_is_not_stopped_by_it():
    def closed(_: str) -> None:
        raise OSError(9, "Bad file descriptor")

    Teller(closed).tell({"phase": RunPhase.TORCH})


@pytest.mark.parametrize(
    "line",
    [
        "", "{", "[]", "null", "5", "profiling train.py with python", '{"phase": 5}', '{"phase": ["torch"]}',
        '{"phase": "mining"}', '{"done": 5}', '{"phase": "evaluation", "done": 0}',
        '{"phase": "evaluation", "done": -3}', '{"phase": "evaluation", "done": 1e3}',
        '{"phase": "evaluation", "done": true}', '{"phase": "evaluation", "done": "\\u001b[2J"}',
        '{"phase": "evaluation", "done": NaN}', '{"phase": "evaluation", "done": 1000000001}',
        '{"phase": "evaluation", "done": ' + "9" * 100 + "}", "[" * 100_000, "x" * 10**6,
    ],
)  # fmt: skip
def test_what_is_not_ours_is_ignored(line):
    assert parse_event(line) is None


def test_control_characters_are_shown_as_text():
    narration = Narration("profiling \x1b]0;owned\x07.py", clock=lambda: 5.0)
    narration.update("last gcp eu\nwarning: forged")
    line = narration.line()
    assert line == "profiling \\x1b]0;owned\\x07.py: last gcp eu\\nwarning: forged (0 s)"
