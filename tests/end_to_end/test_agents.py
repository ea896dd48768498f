"""``advisor mcp`` by the SDK's own client, over standard input and output as an editor starts it."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters, stdio_client

from advisor.cli.agents import _options, allowed, server_of
from advisor.core.errors import InputError
from advisor.formats.trace_files import write_trace
from tests.builders import make_trace
from tests.end_to_end.cli import Shell, assert_plain_error

TOOLS = {"recommend", "explain", "compare", "prices", "spend"}


@pytest.fixture
def folder(tmp_path):
    """A folder with a trace and a script, and beside it a trace that is not in it."""
    inside = tmp_path / "project"
    inside.mkdir()
    write_trace(make_trace(), inside / "t.json.gz")
    write_trace(make_trace(), tmp_path / "other.json.gz")
    (inside / "train.py").write_text("open('ran', 'w')\n")
    (inside / "link.json.gz").symlink_to(tmp_path / "other.json.gz")
    return inside


def test_an_agent_asks_as_a_person_does(folder):
    """One session: what there is, an answer, and what is refused."""
    shell = Shell(folder=folder)
    command = ["-m", "advisor", "mcp"]
    server = StdioServerParameters(
        command=sys.executable,
        args=command,
        cwd=folder,
        env={**shell.environ(), "ADVISOR_PRICES__REFRESH": "never"},
    )

    async def session() -> None:
        async with Client(stdio_client(server, errlog=sys.stderr)) as client:
            listed = await client.list_tools()
            assert {tool.name for tool in listed.tools} == TOOLS
            assert all(tool.description for tool in listed.tools)
            answer = await client.call_tool(
                "recommend", {"trace": "t.json.gz", "epochs": 2, "gpus": ["L4:1"], "providers": ["gcp"]}
            )
            assert not answer.is_error, answer
            assert "L4" in answer.content[0].text
            refused = await client.call_tool("recommend", {"trace": "train.py", "epochs": 2})
            assert refused.is_error
            assert "is no saved trace" in refused.content[0].text
            nobody = await client.call_tool("recommend", {"trace": "t.json.gz", "gpus": ["L5"], "epochs": 1})
            assert nobody.is_error
            assert "L5" in nobody.content[0].text
            assert "Traceback" not in nobody.content[0].text

    asyncio.run(session())
    assert not (folder / "ran").exists()


def called(folder: Path, name: str, arguments: dict[str, object]) -> Any:
    """Within this process: what needs no command of its own."""

    async def call() -> Any:
        async with Client(server_of(folder)) as client:
            return await client.call_tool(name, arguments)

    return asyncio.run(call())


@pytest.mark.parametrize(
    "name",
    [
        "../other.json.gz", "link.json.gz", "/etc/passwd", "train.py", "missing.json.gz", ".", "", "\0",
        "../project/train.py", "x" * 5000,
    ],
)  # fmt: skip
def test_only_saved_traces_of_the_folder_are_read(name, folder):
    with pytest.raises(InputError, match="is no saved trace"):
        allowed(folder, name)


def test_paths_within_the_folder_are_fine_however_written(folder):
    for name in ("t.json.gz", "./t.json.gz", "../project/t.json.gz", str(folder / "t.json.gz")):
        assert allowed(folder, name) == folder / "t.json.gz"


@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        ("recommend", {}, "give either trace or recipe"),
        ("recommend", {"trace": "t.json.gz", "recipe": "lora"}, "give either trace or recipe"),
        ("prices", {"gpus": ["--offline"]}, "does not begin with a dash"),
        ("prices", {"gpus": [""]}, "does not begin with a dash"),
        ("compare", {"trace": "t.json.gz", "a": "-h", "b": "L4:1"}, "does not begin with a dash"),
        ("explain", {"trace": "t.json.gz", "option": "--all"}, "does not begin with a dash"),
        ("explain", {"trace": "train.py", "option": "x"}, "Scripts are not run for agents"),
        ("spend", {"since": "--out=x"}, "does not begin with a dash"),
        ("recommend", {"trace": 7}, "trace"),
        ("recommend", {"recipe": "lora", "model": "/etc/passwd"}, "lies outside"),
        ("recommend", {"recipe": "lora", "model": "../other.json"}, "lies outside"),
    ],
)
def test_what_cannot_be_meant_is_an_error_in_words(tool, arguments, words, folder):
    answer = called(folder, tool, arguments)
    assert answer.is_error
    assert words in answer.content[0].text


def test_lists_repeat_a_flag_and_none_leaves_it_out():
    assert _options(gpu=["L4:1", "T4"], max_price=2.5, region=None) == [
        "--gpu", "L4:1", "--gpu", "T4", "--max-price", "2.5",
    ]  # fmt: skip


def test_a_folder_that_is_not_there(folder):
    answer = Shell(folder=folder).run("mcp", "--folder", "nowhere")
    assert_plain_error(answer, 2, "no folder 'nowhere'")


def test_without_the_sdk_the_extra_is_named(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "mcp.server", None)
    assert_plain_error(Shell(folder=folder).run("mcp"), 2, "gpu-advisor[agents]")
