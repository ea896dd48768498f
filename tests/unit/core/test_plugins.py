"""Plug-ins by name: found in other packages, ours first, and told apart from what cannot be loaded."""

from collections.abc import Callable

import pytest

from advisor.core.errors import ConfigError
from advisor.core.plugins import OWN_DISTRIBUTION, load, registered
from advisor.pricing.sources.protocol import GROUP

TEST_GROUP = "advisor.tests"

Install = Callable[..., None]


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Installs a distribution with entry points of the test's group."""
    monkeypatch.syspath_prepend(str(tmp_path))
    registered.cache_clear()

    def put(distribution: str, **points: str) -> None:
        folder = tmp_path / f"{distribution.replace('-', '_')}-1.0.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
        lines = [f"[{TEST_GROUP}]", *(f"{name} = {target}" for name, target in points.items())]
        (folder / "entry_points.txt").write_text("\n".join(lines) + "\n")

    yield put
    registered.cache_clear()


def test_our_sources_are_registered_like_anybodys():
    ours = registered(GROUP, foreign=False)
    assert list(ours) == sorted(ours)
    assert {"snapshot", "custom", "aws", "gcp", "gpuhunt"} <= set(ours)
    assert all(point.dist is not None and point.dist.name == OWN_DISTRIBUTION for point in ours.values())


def test_plugins_are_in_alphabetical_order_whoever_brings_them(install):
    install("zeta", b="json:loads", d="json:dumps")
    install(OWN_DISTRIBUTION, c="json:load")
    install("alpha", a="json:dump")
    assert list(registered(TEST_GROUP)) == ["a", "b", "c", "d"]
    assert list(registered(TEST_GROUP, foreign=False)) == ["c"]


@pytest.mark.parametrize("other", ["aaa", "zzz"])
def test_a_plugin_never_takes_the_place_of_ours(install, other):
    install(OWN_DISTRIBUTION, same="json:loads")
    install(other, same="json:dumps")
    assert registered(TEST_GROUP)["same"].value == "json:loads"


def test_a_group_that_nobody_has_is_empty():
    assert registered("advisor.nobody") == {}


def test_what_is_registered_is_imported_when_it_is_needed(install, tmp_path, monkeypatch):
    (tmp_path / "lazy_plugin.py").write_text("raise ImportError('only when loaded')\n")
    install("lazy", lazy="lazy_plugin:source", good="json:loads")
    assert set(registered(TEST_GROUP)) == {"lazy", "good"}
    assert load(TEST_GROUP, "good")("[1]") == [1]


def test_an_unknown_name_names_the_near_ones(install):
    install("acme", acme_prices="json:loads")
    with pytest.raises(
        ConfigError, match=r"'acme_price'.*Did you mean 'acme_prices'\?.*Known are acme_prices"
    ):
        load(TEST_GROUP, "acme_price")


def test_a_name_in_an_empty_group_says_how_there_could_be_one():
    with pytest.raises(ConfigError, match=r"Known are none; a plug-in must be installed"):
        load("advisor.nobody", "acme")


@pytest.mark.parametrize(
    ("body", "target", "reason"),
    [
        ("import no_such_module_at_all", "source", "ModuleNotFoundError: No module named 'no_such_module"),
        ("x = 1 / 0", "source", "ZeroDivisionError: division by zero"),
        ("def other(): ...", "source", "AttributeError"),
        ("def source(:", "source", "SyntaxError"),
    ],
)
def test_a_broken_plugin_is_named_with_the_reason(install, tmp_path, body, target, reason):
    module = tmp_path.name.replace("-", "_")
    (tmp_path / f"{module}.py").write_text(body + "\n")
    install("broken", broken=f"{module}:{target}")
    with pytest.raises(ConfigError, match=r"the plug-in 'broken'.*cannot be loaded") as caught:
        load(TEST_GROUP, "broken")
    assert reason in str(caught.value)
    assert str(caught.value).endswith("Update or uninstall it.")
