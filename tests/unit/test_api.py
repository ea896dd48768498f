"""``import advisor``: the functions, what importing costs, and the same answers as the command line."""

import inspect
import json
import logging
import subprocess
import sys
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import advisor
from advisor import api
from advisor.cli import app
from advisor.cli.listening import TERMINAL
from advisor.core.errors import AdvisorError, InputError, NothingFeasibleError
from advisor.core.values import Recommendation
from advisor.formats.trace_files import write_trace
from advisor.report.recommendation import recommendation_document
from tests.builders import make_trace
from tests.end_to_end.cli import FEW_REGIONS
from tests.listening import Heard
from tests.unit.report.printed import json_of

FUNCTIONS = ("compare", "confirm", "predict", "prices", "profile", "recommend")
TRACE = make_trace()


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A folder without settings, where a trace lies."""
    monkeypatch.chdir(tmp_path)
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setenv("ADVISOR_PRICES__OFFLINE", "true")
    write_trace(TRACE, tmp_path / "t.json.gz")
    return tmp_path


@pytest.fixture
def few_regions(monkeypatch):
    """Whoever names none gets those: of all regions there are thousands of options."""
    monkeypatch.setenv("ADVISOR_CLOUD__REGIONS", FEW_REGIONS)


def ran(*arguments: str) -> None:
    app([*arguments], standalone_mode=False)


# --- The face ---------------------------------------------------------------------------------------


def modules_after(code: str) -> set[str]:
    code = f"import sys; before = set(sys.modules); {code}; print(*(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {name for name in done.stdout.split() if name.partition(".")[0] not in sys.stdlib_module_names}


def test_importing_the_package_imports_no_more_than_the_hook_of_notebooks():
    assert modules_after("import advisor") == {"advisor", "advisor.core", "advisor.core.notebook"}
    loaded = modules_after("import advisor; dir(advisor); advisor.recommend")
    assert not loaded & {"numpy", "pydantic", "typer"}


@pytest.mark.parametrize("before", ["", "import advisor.predict, advisor.profile"])
def test_functions_can_be_called_whether_rooms_of_their_names_were_imported_or_not(before):
    code = f"""
import advisor
{before}
for name in {FUNCTIONS}:
    try:
        getattr(advisor, name)(no_such=1)
    except TypeError as error:
        print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert [line.partition("(")[0] for line in done.stdout.splitlines()] == [*FUNCTIONS]


def test_rooms_stay_packages():
    import advisor.predict
    from advisor.predict import predict

    room: Any = advisor.predict
    assert room.predict is predict
    assert "predict" in repr(room)
    with pytest.raises(AttributeError, match="no attribute 'predicts'"):
        room.predicts  # noqa: B018


def test_the_face_is_whole():
    assert {*FUNCTIONS, "__version__"} == {*advisor.__all__} <= {*dir(advisor)}
    assert {"Logged", *FUNCTIONS} == {*api.__all__}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_argument_is_described(name):
    function = getattr(api, name)
    described = inspect.getdoc(function) or ""
    for argument in inspect.signature(function).parameters:
        assert f"\n    {argument}: " in described, argument


# --- The same as the command line -------------------------------------------------------------------


JOBS = st.fixed_dictionaries(
    {"epochs": st.sampled_from([1, 5, 90])},
    optional={
        "budget_usd": st.sampled_from([0.5, 20.0, 500.0]),
        "deadline_s": st.sampled_from([60.0, 3600.0, 86400.0]),
        "confidence": st.sampled_from([0.5, 0.99]),
        "value_of_time_usd_per_h": st.sampled_from([1.0, 30.0]),
        "gpus": st.sampled_from([["L4"], ["T4:1..4", "A10G"], ["H100"]]),
        "regions": st.sampled_from([["us-*"], ["*"]]),
        "markets": st.sampled_from([["spot"], ["on-demand"]]),
        "providers": st.sampled_from([["aws"], ["gcp"]]),
        "max_nodes": st.sampled_from([1, 2, 4]),
        "num_nodes": st.sampled_from([1, 2]),
    },
)


def flags_of(job: Mapping[str, Any]) -> list[str]:
    flags: list[str] = []
    for argument, value in job.items():
        setting = f"cloud.{argument}" if argument in ("regions", "markets", "providers") else argument
        flag = TERMINAL.name_of(setting)
        for one in value if isinstance(value, list) else [value]:
            flags += [flag, f"{one}s" if argument == "deadline_s" else str(one)]
    return flags


@settings(max_examples=5, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(job=JOBS)
def test_python_and_the_command_line_give_the_same_options(home, few_regions, capsys, job):
    answer, refused = outcome(lambda: advisor.recommend("t.json.gz", **job))
    capsys.readouterr()
    _, error = outcome(lambda: ran("recommend", "t.json.gz", "--format", "json", *flags_of(job)))
    shown = capsys.readouterr().out
    if answer is None:
        assert type(error) is type(refused)
        return
    assert type(error) is (NothingFeasibleError if answer.recommended is None else type(None))
    assert json.loads(shown) == json_of(recommendation_document(answer, top=None))


def outcome(call: Callable[[], Recommendation | None]) -> tuple[Recommendation | None, AdvisorError | None]:
    try:
        return call(), None
    except AdvisorError as error:
        return None, error


def test_predictions_are_those_of_the_command(home, capsys):
    estimates = advisor.predict("t.json.gz", gpus=["L4", "A100-SXM-80GB:1..2"])
    ran("predict", "t.json.gz", "--gpu", "L4", "--gpu", "A100-SXM-80GB:1..2", "--json")
    shown = json.loads(capsys.readouterr().out)["estimates"]
    assert [(e.gpu, e.num_gpus, e.iteration_s.p50) for e in estimates] == [
        (e["gpu"], e["num_gpus"], e["iteration_s"]["p50"]) for e in shown
    ]


def test_comparisons_are_those_of_the_command(home, capsys):
    pair = advisor.compare("t.json.gz", "L4:4", "p4d.24xlarge", epochs=5, value_of_time_usd_per_h=20.0)
    capsys.readouterr()
    ran("compare", "t.json.gz", "L4:4", "p4d.24xlarge", "--epochs", "5", "--value-of-time", "20", "--json")
    shown = json.loads(capsys.readouterr().out)
    assert (pair.a.plan.id, pair.b.plan.id) == (shown["a"]["id"], shown["b"]["id"])
    assert (pair.p_a_cheaper, pair.p_a_sooner) == (shown["p_a_cheaper"], shown["p_a_sooner"])
    assert pair.verdict.code == shown["verdict_finding"]["code"]


@pytest.mark.parametrize("order", ["price", "gpu-price", "age", "place"])
def test_prices_are_those_of_the_command(home, capsys, order):
    offers = advisor.prices(["L4"], regions=["us-*"], order=order).offers
    ran("prices", "--gpu", "L4", "--region", "us-*", "--sort", order, "--json")
    shown = json.loads(capsys.readouterr().out)["offers"]
    assert [(o.instance_type, o.region, o.market, o.usd_per_h) for o in offers] == [
        (o["instance_type"], o["region"], o["market"], o["usd_per_h"]) for o in shown
    ]
    assert offers


def test_settings_count_and_arguments_go_above_them(home):
    (home / "advisor").mkdir()
    (home / "advisor/config.yaml").write_text("cloud: {regions: [us-east-1], markets: [spot]}\n")
    offers = advisor.prices(["L4"], every_zone=True).offers
    assert {(offer.region, str(offer.market)) for offer in offers} == {("us-east-1", "spot")}
    moved = advisor.prices(["L4"], regions=["us-west-2"], settings={"cloud.markets": ["on-demand"]}).offers
    assert {(offer.region, str(offer.market)) for offer in moved} == {("us-west-2", "on-demand")}


def test_clusters_and_policies_count(home):
    (home / "policy.yaml").write_text(
        "version: 1\nname: lab\nlayer: organisation\ndeny: {providers: [aws]}\n"
    )
    lab = {
        "name": "lab",
        "gpu": "T4",
        "num_gpus": 2,
        "usd_per_gpu_h": 0.1,
        "wait_p50": "1m",
        "wait_p90": "2m",
    }
    answer = advisor.recommend(
        TRACE, epochs=1, gpus=["T4"], policies=["policy.yaml"], settings={"clusters": [lab]}
    )
    removed = {option.plan.provider for option in answer.options if "policy" in (option.removed_by or "")}
    assert removed == {"aws"}
    assert "cluster/lab/1xT4" in {option.plan.id for option in answer.options}


def test_what_is_to_be_recorded_is(home):
    heard = Heard()
    advisor.recommend(TRACE, epochs=1, settings={"store.record": True}, listener=heard)
    assert heard.notes[-1].startswith("Recorded as ")


# --- What is heard and refused ----------------------------------------------------------------------


def test_notes_and_warnings_are_logged_as_text(caplog):
    logged = api.Logged()
    with caplog.at_level(logging.INFO, logger="advisor"):
        logged.warn(["a\x1b[2Jwarning"])
        with logged.step("reading x.json") as step:
            step.update("half")
        with logged.count("measuring") as count:
            count(1, 2)
    assert [(record.levelname, record.message) for record in caplog.records] == [
        ("WARNING", "a\\x1b[2Jwarning"),
        ("INFO", "reading x.json"),
        ("INFO", "measuring"),
    ]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "how long does the job train? Give epochs N or iterations N."),
        ({"epochs": 1, "budget_usd": -1}, "budget_usd must be a finite number above 0"),
        ({"epochs": 1, "gpus": "L4"}, "gpus must be a list, got 'L4'"),
        (
            {"epochs": 1, "regions": ["us-esat-1"]},
            "no region with a known price is called 'us-esat-1'. Did you",
        ),
        ({"epochs": 1, "gpus": ["A10G"], "providers": ["gcp"]}, "Without providers there are"),
        ({"epochs": 1, "settings": {"cloud.max_gpu": 4}}, "(set by argument)"),
    ],
)
def test_errors_name_arguments_and_no_flags(home, arguments, words):
    with pytest.raises(AdvisorError) as caught:
        advisor.recommend(TRACE, **arguments)
    assert words in str(caught.value)
    assert " --" not in str(caught.value).replace("`advisor prices --sort place`", "")


def test_what_is_no_script_is_refused(home):
    with pytest.raises(InputError, match="source must be of type"):
        advisor.predict(5)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"there is no file 'gone\.py'"):
        advisor.predict("gone.py")
    with pytest.raises(InputError, match="order must be one of price"):
        advisor.prices(order="cheap")
