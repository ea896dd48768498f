"""What tests of commands share."""

import pytest

from tests.end_to_end.cli import Shell


@pytest.fixture
def shell(tmp_path):
    """An empty folder; a module that needs files in it has a fixture of its own."""
    return Shell(folder=tmp_path)
