"""Policy files for tests: written to a folder, read back as a person's would be."""

from pathlib import Path

from advisor.site_files.policy_files import read_policies
from recommender.policy.merge import Policy

HEADS = {
    "org": "version: 1\nname: org\nlayer: organisation\n",
    "team": "version: 1\nname: team\nlayer: team\n",
    "project": "version: 1\nname: project\nlayer: project\n",
}


def write(folder: Path, **bodies: str) -> list[Path]:
    """Files by layer (``org``, ``team``, ``project``; ``org_2`` is another one); bodies begin in line 4."""
    paths = []
    for name, body in bodies.items():
        path = folder / f"{name}.yaml"
        path.write_text(HEADS[name.partition("_")[0]] + body)
        paths.append(path)
    return paths


def policy_of(folder: Path, **bodies: str) -> Policy:
    """The policy that these files make together."""
    return read_policies(write(folder, **bodies))
