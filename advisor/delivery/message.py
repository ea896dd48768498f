"""What is sent: one answer in the forms that channels take."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field

TEXT_TYPE = "text/plain"
JSON_TYPE = "application/json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A PNG inside the HTML of a mail, which shows it by ``cid:``."""

    cid: str
    png: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """The whole answer as a file.

    Attributes:
        suffix: such as ``.html``.
        media_type: such as ``text/html``; texts are UTF-8.
    """

    suffix: str
    media_type: str
    payload: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """An answer, ready to be sent.

    Attributes:
        subject: one line.
        text: for whoever reads plain text.
        html: of a mail, its pictures by ``cid:``; None for none.
        pictures: of the HTML.
        files: other forms of the answer; text and JSON are made of the fields here.
        blocks: of Slack's Block Kit.
        facts: for programs, as plain JSON.
    """

    subject: str
    text: str
    html: str | None = None
    pictures: tuple[Picture, ...] = ()
    files: tuple[File, ...] = ()
    blocks: tuple[Mapping[str, object], ...] = ()
    facts: Mapping[str, object] = field(default_factory=dict)

    def file(self, suffix: str) -> File | None:
        """The answer as a file of this suffix, if it has one."""
        if suffix == ".txt":
            return File(suffix=suffix, media_type=TEXT_TYPE, payload=f"{self.text}\n".encode())
        if suffix == ".json":
            payload = json.dumps(self.facts, indent=2)
            return File(suffix=suffix, media_type=JSON_TYPE, payload=f"{payload}\n".encode())
        return next((file for file in self.files if file.suffix == suffix), None)

    @property
    def sha256(self) -> str:
        """Of all that can be sent."""
        parts = [
            self.subject.encode(),
            self.text.encode(),
            (self.html or "").encode(),
            json.dumps([self.facts, self.blocks], sort_keys=True).encode(),
            *(picture.png for picture in self.pictures),
            *(file.payload for file in self.files),
        ]
        # Each part by its own hash: no two divisions of the same bytes look alike.
        return hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()
