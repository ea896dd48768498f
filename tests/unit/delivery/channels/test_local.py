"""Files of this machine and standard output: what the preview shows, whole or not at all."""

from pathlib import Path

import pytest

from advisor.delivery.channel import Channel, PermanentError
from tests.delivery.parts import channel_of, make_message, make_parcel


def file_at(path: Path) -> Channel:
    return channel_of({"kind": "file", "path": str(path)})


@pytest.mark.parametrize("suffix", [".html", ".md", ".csv", ".json", ".txt"])
def test_the_ending_says_what_is_written(tmp_path, suffix):
    channel = file_at(tmp_path / "new" / ("{date}-{key}" + suffix))
    channel.send(make_parcel(), lambda: None)
    path = tmp_path / "new" / f"2026-11-23-week-47{suffix}"
    assert channel.preview(make_parcel()) == f"{path}\n\n{path.read_text()}"


def test_a_file_of_before_is_replaced_and_nothing_else_left(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    file_at(path).send(make_parcel(message=make_message(text="new")), lambda: None)
    assert path.read_text() == "new\n"
    assert list(tmp_path.iterdir()) == [path]


def test_a_form_that_an_answer_lacks(tmp_path):
    parcel = make_parcel(message=make_message(files=()))
    for act in (lambda c: c.preview(parcel), lambda c: c.send(parcel, lambda: None)):
        with pytest.raises(PermanentError, match=r"no form '\.html'"):
            act(file_at(tmp_path / "a.html"))


def test_a_place_where_nothing_can_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(PermanentError, match="cannot write"):
        file_at(tmp_path / "file" / "a.txt").send(make_parcel(), lambda: None)


@pytest.mark.parametrize("form", ["txt", "json", "md"])
def test_standard_output_shows_the_preview(capsys, form):
    channel = channel_of({"kind": "stdout", "format": form})
    channel.send(make_parcel(), lambda: None)
    assert capsys.readouterr().out == channel.preview(make_parcel())
