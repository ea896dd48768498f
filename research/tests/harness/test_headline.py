"""The page of headline figures follows from the published results."""

import json

from benchmarks.accuracy.headline import PAGE, RESULTS, headline


def results() -> dict:
    return json.loads(RESULTS.read_text())


def test_the_page_is_what_the_results_say():
    assert PAGE.read_text() == headline(results()), "run python -m benchmarks.accuracy.headline"


def test_rows_that_fitted_a_constant_do_not_count():
    document = results()
    fitted = [score for score in document["throughput"] if score["case"]["fitted"]]
    before = headline(document)
    for score in fitted:
        score["error"] = 9.0
    assert fitted
    assert headline(document) == before
