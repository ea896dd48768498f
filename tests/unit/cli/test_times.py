"""Times and durations as they are typed."""

from datetime import UTC, datetime

import pytest

from advisor.cli.common import deadline_s, duration_s, moment, moment_or_duration_s
from advisor.core.errors import InputError


def test_a_time_without_a_zone_is_utc():
    assert moment("--start", " 2026-11-01 ") == datetime(2026, 11, 1, tzinfo=UTC)
    assert moment("--start", "2026-11-01T01:00+01:00") == datetime(2026, 11, 1, tzinfo=UTC)


def test_how_far_back_or_since_when():
    assert moment_or_duration_s("--since", "12d") == 12 * 86400
    assert moment_or_duration_s("--since", "2026-11-01") == datetime(2026, 11, 1, tzinfo=UTC)
    with pytest.raises(InputError, match="--since: 'soon' is no time"):
        moment_or_duration_s("--since", "soon")


@pytest.mark.parametrize("text", ["12", "soon", "-3h", ""])
def test_what_is_no_duration_is_refused_with_its_flag(text):
    with pytest.raises(InputError, match="--since: "):
        duration_s("--since", text)


def test_a_deadline_lies_ahead_and_not_too_far():
    assert deadline_s("--deadline", None) is None
    assert deadline_s("--deadline", "1h30m") == 5400
    with pytest.raises(InputError, match="--deadline '-3h' lies in the past"):
        deadline_s("--deadline", "-3h")
    with pytest.raises(InputError, match=r"--deadline must be at most .*, got '999999w'"):
        deadline_s("--deadline", "999999w")
