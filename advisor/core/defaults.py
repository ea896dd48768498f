"""Defaults of settings that engines need as well, where nobody says."""

from __future__ import annotations

VALUE_OF_TIME_USD_PER_H = 2.0
"""What an hour until a job is done is worth: about a tenth of the attention of one engineer
(docs/decisions/0018-value-an-hour-at-two-dollars.md)."""

CHANGE_USD = 25.0
"""What it costs to change a script by more than a line: half an hour of an engineer, of whom an
hour at work costs some 50 USD."""
