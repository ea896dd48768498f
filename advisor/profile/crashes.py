"""What to say of a script that an error ended: whose fault it is only where the traceback shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.profile.hints import FULL, hint_of, withheld_hint

if TYPE_CHECKING:
    from advisor.profile.recording import Recording

_MADE_UP = (
    " Values that it reads from the GPU are made up while it is profiled: if it raised because of one, pass"
    " arguments that leave the check out."
)


def crash(recording: Recording, script: str) -> str:
    """The message for an error that was not caught, without its traceback."""
    message = recording.get("message", "").rstrip(".")
    hint, asked = hint_of(recording), withheld_hint(recording)
    # A full folder may have stopped our own writing, in the midst of the script.
    if recording.get("origin") != "pretended" and hint != FULL:
        made_up = _MADE_UP if recording.get("checks_made_up") and not hint else ""
        return (
            f"{script!r} raised {message}. It must run up to its third optimizer step: fix it,"
            f" or pass the arguments it needs after `--`.{made_up}{hint}{asked}"
        )
    ended = f"{script!r} was ended before its third optimizer step by {message}."
    if hint:
        return ended + hint + asked
    return (
        f"{ended} It comes from torch, whose GPU is only pretended, so the fault may be the script's or"
        " advisor's: run the script by itself, or with `profile.backend` cpu if it can do without a GPU. If"
        " it trains there, please report this."
    )


def syntax_error(recording: Recording, script: str, python: str) -> str:
    """The message for a file that Python cannot read: the script, or one that it imports."""
    # A forged recording may lack any of it.
    file, line, text, message = map(recording.get, ("file", "line", "text", "message"))
    what = repr(script) if recording.get("is_script") else f"{script!r} imports {file!r}, which"
    return (
        f"{what} has a syntax error in line {line}, {text!r}: {message}. Correct it; if it is"
        f" written for a newer Python than that of {python!r}, name that one with `profile.python` PATH."
    )
