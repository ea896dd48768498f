"""Charts where memory is scarce: V8 ends the process that draws, and the report goes on without."""

import resource
import subprocess
import sys

import platformdirs
import pytest

from advisor.core import processes
from advisor.report.document import USD, Axis, Chart, Document, Series
from advisor.report.writers import pictures
from advisor.report.writers.html import to_page
from advisor.report.writers.mail import to_mail_html
from advisor.report.writers.vega import spec_of

CHART = Chart(x=Axis(USD), y=Axis(USD), series=(Series("a", ((1.0, 2.0), (2.0, 1.0))),), title="Costs")
DOCUMENT = Document(blocks=(CHART,), facts={})
# V8 reserves more than this for its heap, and a process of Python needs less.
LITTLE_BYTES = 2**30
TOO_LITTLE = "too little memory"


@pytest.fixture
def little_memory(monkeypatch, tmp_path):
    """The process that draws is started with a limit; nothing was drawn before."""
    start = processes.start

    def limited(command: list[str], **options: object) -> subprocess.Popen[bytes]:
        limits = (LITTLE_BYTES, LITTLE_BYTES)
        return start(command, **options, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, limits))  # type: ignore[arg-type]

    pictures._painter.cache_clear()
    monkeypatch.setattr(processes, "start", limited)
    monkeypatch.setattr(platformdirs, "user_cache_path", lambda name: tmp_path / "cache" / name)
    yield
    pictures._painter.cache_clear()


def test_v8_ends_its_process(tmp_path):
    """Why it has one of its own: this is what became of advisor."""
    code = f"""
import resource, vl_convert
resource.setrlimit(resource.RLIMIT_AS, ({LITTLE_BYTES}, {LITTLE_BYTES}))
vl_convert.vegalite_to_svg('{{"mark": "point", "data": {{"values": []}}}}')
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, cwd=tmp_path)
    assert done.returncode < 0


@pytest.mark.usefixtures("little_memory")
def test_a_page_without_pictures():
    text = to_page(DOCUMENT)
    assert TOO_LITTLE in text
    assert "The figures of this chart" in text
    assert 'class="still"' not in text
    assert "vegaEmbed = vegaEmbed" not in text


@pytest.mark.usefixtures("little_memory")
def test_a_mail_without_pictures():
    mail = to_mail_html(DOCUMENT, "Costs")
    assert mail.pictures == ()
    assert TOO_LITTLE in mail.text


def test_once_there_is_memory_again_charts_are_drawn(little_memory, monkeypatch):
    assert pictures.still(spec_of(CHART)) is None
    monkeypatch.undo()
    assert "<svg" in str(pictures.still(spec_of(CHART)))


def test_what_cannot_be_drawn_does_not_end_the_process_that_draws():
    assert pictures._drawn("svg", "{") is None
    assert "<svg" in str(pictures.still(spec_of(CHART)))
