"""Progress comes from a process that runs foreign code: it can lie in words, and do no more."""

import pytest

from advisor.cli.listening import Narration
from advisor.payload.progress import Teller
from advisor.payload.protocol import RunPhase
from advisor.profile.profiling import parse_event


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
