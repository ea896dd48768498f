"""A file is whole or not there."""

import os
import re
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import advisor
from advisor.core.files import write_atomically


def test_write_and_overwrite(tmp_path):
    path = tmp_path / "a"
    for payload in (b"one", b"two"):
        write_atomically(path, payload)
        assert path.read_bytes() == payload
    assert [entry.name for entry in tmp_path.iterdir()] == ["a"]
    assert stat.S_IMODE(path.stat().st_mode) & 0o400


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_an_interruption_keeps_the_old_file_and_leaves_nothing(tmp_path, monkeypatch, error):
    path = tmp_path / "a"
    path.write_bytes(b"old")

    def interrupted(self: Path, target: Path) -> Path:
        raise error

    monkeypatch.setattr(Path, "replace", interrupted)
    with pytest.raises(error):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["a"]


def test_a_missing_folder(tmp_path):
    with pytest.raises(OSError, match="No such file"):
        write_atomically(tmp_path / "no" / "a", b"")


def test_a_link_stays_and_its_target_is_replaced(tmp_path):
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "target").write_bytes(b"old")
    link, far, dangling = tmp_path / "link", tmp_path / "far", tmp_path / "dangling"
    link.symlink_to("elsewhere/target")
    far.symlink_to(link)
    dangling.symlink_to(folder / "new")
    for path in (link, far, dangling):
        write_atomically(path, path.name.encode())
        assert path.is_symlink()
        assert path.read_bytes() == path.name.encode()
    assert sorted(entry.name for entry in folder.iterdir()) == ["new", "target"]


def test_links_in_a_ring_are_one_error(tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(OSError, match="symbolic links"):
        write_atomically(tmp_path / "a", b"")
    assert (tmp_path / "a").is_symlink()


def test_a_pipe_is_written_into(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    write_atomically(path, b"through")
    assert os.read(reader, 100) == b"through"
    assert stat.S_ISFIFO(path.lstat().st_mode)
    os.close(reader)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes devices")
def test_a_device_node_in_a_folder_that_root_may_write_stays(tmp_path):
    path = tmp_path / "null"
    try:
        os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        os.close(os.open(path, os.O_WRONLY))
    except OSError:
        pytest.skip("devices cannot be made or used here")
    link = tmp_path / "link"
    link.symlink_to(path)
    for name in (path, link):
        write_atomically(name, b"nobody reads this")
        assert stat.S_ISCHR(path.lstat().st_mode)
        assert link.is_symlink()


def test_what_standard_output_goes_to_gets_it_too(tmp_path):
    """By a link of the test: a fault of ours, run by root, would replace /dev/stdout itself."""
    link = tmp_path / "stdout"
    link.symlink_to("/proc/self/fd/1")
    script = (
        "import sys; from pathlib import Path; from advisor.core.files import write_atomically;"
        f"print('before', flush=True); write_atomically(Path({str(link)!r}), b'answer\\n'); print('after')"
    )
    with (tmp_path / "out").open("wb") as out:
        subprocess.run([sys.executable, "-c", script], stdout=out, check=True)
    assert (tmp_path / "out").read_text() == "before\nanswer\nafter\n"
    piped = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True, text=True)
    assert piped.stdout == "before\nanswer\nafter\n"


def test_folders_and_sockets_are_refused(tmp_path):
    with pytest.raises(IsADirectoryError):
        write_atomically(tmp_path, b"")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "s"))
        with pytest.raises(OSError, match="socket"):
            write_atomically(tmp_path / "s", b"")
    assert (tmp_path / "s").is_socket()


def test_a_replaced_file_keeps_its_permissions(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    path.chmod(0o640)
    write_atomically(path, b"new")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    write_atomically(path, b"mine", private=True)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_all_writers_of_whole_files_are_this_one():
    """Whoever opens a file for writing elsewhere is named here with the reason."""
    allowed = {
        "core/files.py": "the writer itself",
        "payload": "runs in the script's process, in a folder of ours",
        "profile": "folders of ours",
        "cli/launch_lines.py": "a folder of ours",
        "measure/measuring.py": "a folder of ours",
        "service/child_commands.py": "a folder of ours",
        "recipes/recipes.py": "a folder of ours",
        "cli/recipe.py": "a new file alone, which exists in whole or is removed",
        "service/revisions.py": "a folder of ours",
        "formats/recording_files.py": "adds a line to a recording",
        "pricing": "catalogs in a new folder, renamed as a whole",
        "store/transactions.py": "the database, linked into place",
        "report/plain.py": "/dev/null in the place of a closed output",
        "__main__.py": "/dev/null in the place of a closed output",
    }
    writes = re.compile(r"""write_text\(|write_bytes\(|O_WRONLY|open\([^)]*["'][wax]b?\+?["']|\.touch\(""")
    root = Path(advisor.__file__).parent
    for path in root.rglob("*.py"):
        name = path.relative_to(root).as_posix()
        if writes.search(path.read_text(encoding="utf-8")):
            assert any(name == known or name.startswith(f"{known}/") for known in allowed), name
