"""What is sent: one answer in the forms that channels take."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

TEXT_TYPE = "text/plain"
JSON_TYPE = "application/json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A PNG inside the HTML of a mail."""

    cid: str
    png: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Html:
    """The HTML of a mail, which shows its pictures by ``cid:``."""

    text: str
    pictures: tuple[Picture, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """The whole answer as a file.

    Attributes:
        suffix: such as ``.html``.
        media_type: such as ``text/html``; texts are UTF-8.
        make: its text, made where a channel wants it: a page takes seconds.
    """

    suffix: str
    media_type: str
    make: Callable[[], str] = field(repr=False)

    @property
    def payload(self) -> bytes:
        """Its bytes, which end with a line."""
        return f"{self.make()}\n".encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """An answer, ready to be sent.

    Attributes:
        subject: one line.
        text: plain text.
        html: makes that of a mail; None for none.
        files: other forms of the answer; text and JSON are made of the fields here.
        blocks: of Slack's Block Kit.
        facts: for programs, as plain JSON.
        of_moment: facts that differ each time; with any, the other facts alone tell two answers apart.
    """

    subject: str
    text: str
    html: Callable[[], Html] | None = None
    files: tuple[File, ...] = ()
    blocks: tuple[Mapping[str, object], ...] = ()
    facts: Mapping[str, object] = field(default_factory=dict)
    of_moment: frozenset[str] = frozenset()

    def file(self, suffix: str) -> File | None:
        """The answer as a file of this suffix, if it has one."""
        if suffix == ".txt":
            return File(suffix=suffix, media_type=TEXT_TYPE, make=lambda: self.text)
        if suffix == ".json":
            return File(suffix=suffix, media_type=JSON_TYPE, make=lambda: json.dumps(self.facts, indent=2))
        return next((file for file in self.files if file.suffix == suffix), None)

    @property
    def sha256(self) -> str:
        """Of what it says; how that looks follows from it."""
        parts: list[object] = [self.subject, self.text, self.blocks, self.facts]
        if self.of_moment:
            parts = [{name: fact for name, fact in self.facts.items() if name not in self.of_moment}]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
