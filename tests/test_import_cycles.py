"""No module needs another one that needs it: what is read first can be understood first."""

from graphlib import CycleError, TopologicalSorter

import grimp
import pytest

FOR_TYPE_CHECKERS = (
    ("advisor.payload.fake.patches.cuda_device", "advisor.payload.session"),
    ("advisor.payload.real_device", "advisor.payload.session"),
)


def graph() -> grimp.ImportGraph:
    """Imports for type checkers count, too, but for two of the payload, whose session knows its parts."""
    whole = grimp.build_graph("advisor", "recommender", cache_dir=None)
    for importer, imported in FOR_TYPE_CHECKERS:
        whole.remove_import(importer=importer, imported=imported)
    return whole


def cycle(whole: grimp.ImportGraph) -> list[str]:
    """Modules that import each other in a circle; none if there is no circle."""
    needs = {name: whole.find_modules_directly_imported_by(name) for name in whole.modules}
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_no_modules_import_each_other_in_a_circle():
    assert cycle(graph()) == []


@pytest.mark.parametrize("back", ["advisor.core.errors", "advisor.payload.protocol"])
def test_a_circle_would_be_seen(back):
    whole = graph()
    whole.add_import(importer=back, imported="advisor.__main__")
    whole.add_import(importer="advisor.__main__", imported=back)
    assert back in cycle(whole)
