"""Hooks of mkdocs: pages from outside docs/, folders in the navigation, and links that leave the site."""

from __future__ import annotations

import os
import re
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from mkdocs.structure.files import File, Files

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
_STUDIES = ROOT / "research" / "docs"
# Files outside docs/ that are pages, too.
PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "reporting.md",
    **{
        f"research/docs/{name}": f"studies/{name}"
        for kind in ("*.md", "*.svg")
        for name in sorted(path.relative_to(_STUDIES).as_posix() for path in _STUDIES.rglob(kind))
    },
}
_SOURCES = {page: source for source, page in PAGES.items()}
_LINK = re.compile(r"(?<!\!)\[([^\]]*)\]\(([^)\s#]*)(#[^)\s]*)?\)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """A folder in the navigation stands for its pages, in order of their names."""
    config.nav = _unfolded(config.nav, Path(config.docs_dir))
    return config


def _unfolded(entry: object, docs: Path) -> object:
    if isinstance(entry, list):
        return [_unfolded(item, docs) for item in entry]
    if isinstance(entry, dict):
        return {title: _unfolded(item, docs) for title, item in entry.items()}
    if isinstance(entry, str) and entry.endswith("/"):
        pages = [f"{entry}{page.name}" for page in sorted((docs / entry).glob("*.md"))]
        return pages or [page for page in PAGES.values() if page.startswith(entry) and page.endswith(".md")]
    return entry


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """The pages of the root and of the studies, as they are."""
    for source, page in PAGES.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_bytes()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001
    """Links as the site needs them: to a page of it, or the name of a file that only the repository has."""
    here = PurePosixPath(page.file.src_uri)
    folder = PurePosixPath(_SOURCES[str(here)]).parent if str(here) in _SOURCES else "docs" / here.parent

    def link(match: re.Match[str]) -> str:
        text, target, anchor = match[1], match[2], match[3] or ""
        if not target or "://" in target:
            return match[0]
        path = os.path.normpath(folder / target)
        inside = PAGES.get(path) or (path.removeprefix("docs/") if path.startswith("docs/") else None)
        if inside is None or files.get_file_from_path(inside) is None:
            return text if text.strip("`") == path else f"{text} (`{path}`)"
        return f"[{text}]({os.path.relpath(inside, here.parent)}{anchor})"

    return _LINK.sub(link, markdown)
