"""Lines of a crontab: what cron hands to the shell is what was asked for, character by character."""

import json
import re
import subprocess
import sys

import pytest

from advisor.core.errors import InputError
from advisor.schedule.exports import crontab, systemd_units
from tests.schedules import make_schedule

AWKWARD = (
    "recommend",
    "my script.py",
    "--",
    "50 %",
    "100%",
    "$HOME",
    "`id`",
    "a'b",
    'c"d',
    "e\\f",
    "#g",
    "*",
    "",
)
SHOW = "import json, os, sys; print(json.dumps([os.getcwd(), *sys.argv[1:]]))"


def as_cron_runs_it(line: str) -> str:
    """The command of a line, as cron(8) gives it to the shell: five fields, % is a line break, \\% a %."""
    command = re.fullmatch(r"(?:\S+\s+){5}(.*)", line)
    assert not re.search(r"(?<!\\)%", command[1]), "cron would cut the line here"
    return command[1].replace(r"\%", "%")


def test_the_words_arrive_as_they_were(tmp_path):
    folder = tmp_path / "a folder of 5 %"
    folder.mkdir()
    schedule = make_schedule(command=AWKWARD, folder=str(folder))
    (file,) = crontab([schedule], [sys.executable, "-c", SHOW])
    line = file.text.splitlines()[-1]
    done = subprocess.run(
        ["/bin/sh", "-c", as_cron_runs_it(line)], capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == [str(folder), *AWKWARD]


def test_each_line_has_its_zone_and_the_file_warns_of_debian():
    other = make_schedule(name="nightly", cron="30 2 * * *", zone="UTC")
    (file,) = crontab([make_schedule(), other], ["/usr/bin/advisor"])
    assert file.name == "advisor.crontab"
    assert "cron of Debian and Ubuntu ignores it" in file.text
    assert file.text.splitlines()[4:] == [
        "# weekly",
        "CRON_TZ=Europe/Zurich",
        "0 8 * * MON cd /home/ann/train && /usr/bin/advisor prices refresh",
        "",
        "# nightly",
        "CRON_TZ=UTC",
        "30 2 * * * cd /home/ann/train && /usr/bin/advisor prices refresh",
    ]


def test_what_is_delivered_is_run_as_a_whole():
    (file,) = crontab([make_schedule(channel="team-mail")], ["/usr/bin/advisor"])
    assert file.text.endswith("&& /usr/bin/advisor schedule run-now weekly\n")


def test_a_line_that_cron_would_cut_is_refused():
    with pytest.raises(InputError, match="cron takes lines of 998 characters"):
        crontab([make_schedule(command=("recommend", "x" * 1000))], ["/usr/bin/advisor"])


@pytest.mark.parametrize("change", [
    {"folder": "/a\n* * * * * touch /tmp/x"}, {"folder": "/a\nExecStartPre=/bin/true"}, {"folder": "/a\r"},
    {"folder": "/a\\"}, {"cron": "0 8 * *\n*"}, {"command": ("report", "--since", "7d\n* * * * * x")},
])  # fmt: skip
def test_a_line_break_adds_no_line_of_cron_or_systemd(change):
    """Was: a folder of a foreign repository, by its name, brought a command into the crontab and the unit."""
    schedule = make_schedule(**change)
    with pytest.raises(InputError, match="line break"):
        crontab([schedule], ["/bin/advisor"])
    with pytest.raises(InputError, match="line break"):
        systemd_units([schedule], program=["/bin/advisor"], timeout_s=60.0)
