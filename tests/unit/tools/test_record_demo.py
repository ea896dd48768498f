"""The recording is an asciicast that a player takes, and its picture asks no server for anything."""

import json
import sys
import xml.etree.ElementTree as ET

import pytest

from tests.test_docs import ROOT
from tools import record_demo
from tools.record_demo import COMMAND, HEIGHT, WIDTH, Event, cast, picture, played, typed

RECORDED = ROOT / "docs" / "demo.cast"


def events_of(text):
    header, *lines = map(json.loads, text.splitlines())
    return header, [Event(at_s, written) for at_s, kind, written in lines if kind == "o"]


def test_the_recording_is_of_the_main_job_as_it_is_written_now():
    header, events = events_of(RECORDED.read_text())
    assert (header["version"], header["width"], header["height"]) == (2, WIDTH, HEIGHT)
    times = [event.at_s for event in events]
    assert times == sorted(times)
    text = "".join(event.text for event in events)
    assert text.startswith(f"$ {' '.join(COMMAND)}\r\n")
    assert "recommended" in text
    assert str(ROOT) not in text


@pytest.mark.parametrize("name", ["demo.cast", "demo.svg"])
def test_no_path_and_no_traceback_is_shown(name):
    text = (ROOT / "docs" / name).read_text()
    assert "/root/" not in text
    assert "Traceback" not in text


def test_the_picture_stands_alone():
    text = (ROOT / "docs" / "demo.svg").read_text()
    ET.fromstring(text)  # noqa: S314 - our own file
    assert "@font-face" not in text
    assert "url(http" not in text
    assert "href" not in text


def test_typing_takes_its_time_and_writes_the_command():
    events = list(typed(("advisor", "gpus")))
    assert "".join(event.text for event in events) == "$ advisor gpus"
    assert [event.at_s for event in events] == sorted(event.at_s for event in events)


def test_a_terminal_is_what_the_command_sees():
    code = "import sys, shutil; print(sys.stdout.isatty(), shutil.get_terminal_size().columns, '\\u2713')"
    events = list(played([sys.executable, "-c", code], begin_s=3.0))
    assert "".join(event.text for event in events) == f"True {WIDTH} ✓\r\n"
    assert events[0].at_s > 3.0


def test_a_command_that_fails_is_not_recorded():
    with pytest.raises(SystemExit, match="ended with 3: nothing was written"):
        list(played([sys.executable, "-c", "raise SystemExit(3)"], begin_s=0.0))


def test_what_was_written_over_is_gone_in_the_end():
    svg = picture(
        [Event(0, "$ x\r\n"), Event(1, "10 %\r"), Event(2, "done &lt;\r\n\x1b[32mgreen\x1b[0m")], "x"
    )
    assert "done" in svg
    assert "10&#160;%" not in svg
    assert "&amp;lt;" in svg


def test_both_files_are_written(tmp_path, monkeypatch):
    monkeypatch.setattr(record_demo, "played", lambda _, begin_s: [Event(begin_s + 1, "answer\r\n")])
    monkeypatch.setattr("sys.argv", ["record_demo.py", "--out", str(tmp_path)])
    record_demo.main()
    _, events = events_of((tmp_path / "demo.cast").read_text())
    assert events[-1].text == "answer\r\n"
    assert "answer" in (tmp_path / "demo.svg").read_text()


def test_a_cast_begins_with_its_header():
    assert json.loads(cast([], "title").splitlines()[0])["title"] == "title"
