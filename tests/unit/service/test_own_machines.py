"""Settings, cards and job logs to machines: how many GPUs are free, what they cost, how long one waits."""

from pathlib import Path
from typing import Any, cast

import pytest

from advisor.config.settings import ClusterSettings, Settings
from advisor.core import devices
from advisor.core.devices import MIB, Device
from advisor.core.errors import ConfigError, InputError, UnknownGpuError
from advisor.core.findings.about_options import GangAssumed
from advisor.core.gpus import resolve_gpu
from advisor.core.values import Quantiles, Tier
from advisor.report.words import sentences
from advisor.service.listening import Listener
from advisor.service.queue_waits import WaitRequest, check_waits, expected_wait, fit_waits, fitted_waits
from advisor.service.recommend.own_machines import own_machines
from advisor.site_files.fitted_files import write_fit
from advisor.site_files.job_logs import read_job_log
from recommender.outcome.nodes import times_of_one
from recommender.plans.candidates import plans_of_machine
from recommender.queue.fitted import fit
from recommender.queue.waits import JobLog
from tests.findings import said
from tests.jobs import csv_of, job_log, make_job
from tests.listening import Heard

HOUR_S = 3600.0


def card(name: str, power_limit_w: float | None = None) -> Device:
    return Device(
        name=name, memory_bytes=None, used_bytes=None, utilization=None, power_limit_w=power_limit_w
    )


@pytest.fixture
def cards(monkeypatch):
    """What nvidia-smi says; empty unless filled."""
    listed: list[Device] = []
    monkeypatch.setattr(devices, "detect_devices", lambda: tuple(listed))
    return listed


def test_without_a_gpu_there_is_no_local_option(cards):
    heard = Heard()
    assert own_machines(Settings(), heard) == []
    assert heard.notes == ["this machine has no GPU (local.gpu NAME counts a GPU that you own)"]


def test_equal_cards_are_one_machine_and_others_another(cards):
    cards += [card("Tesla T4"), card("NVIDIA L4"), card("Tesla T4")]
    heard = Heard()
    machines = own_machines(Settings(local={"usd_per_gpu_h": 0.25}), heard)
    assert [(machine.gpu, machine.num_gpus) for machine in machines] == [("T4", 2), ("L4", 1)]
    for machine in machines:
        assert (machine.tier, machine.name, machine.usd_per_gpu_h) == (Tier.LOCAL, "local", 0.25)
        assert machine.wait_s == Quantiles(p50=0.0, p90=0.0)
    assert heard.notes == heard.warnings == []


def test_a_card_that_nobody_knows_is_left_out_with_a_warning(cards):
    heard = Heard()
    cards += [card("Voodoo 5"), card("Tesla T4")]
    assert [machine.gpu for machine in own_machines(Settings(), heard)] == ["T4"]
    (warning,) = heard.warnings
    assert "'Voodoo 5'" in warning


def test_the_named_gpu_wins_over_the_cards(cards):
    cards += [card("Tesla T4")]
    (machine,) = own_machines(Settings(local={"gpu": "L4", "num_gpus": 3}), Listener())
    assert (machine.gpu, machine.num_gpus, machine.usd_per_gpu_h) == ("L4", 3, None)


@pytest.mark.parametrize("name", ["Voodoo 5", ""])
def test_a_named_gpu_that_nobody_knows_is_refused(cards, name):
    with pytest.raises(UnknownGpuError, match=f"'{name}'"):
        own_machines(Settings(local={"gpu": name}), Listener())


def cluster(**changes: Any) -> ClusterSettings:
    return ClusterSettings(**({"name": "lab", "gpu": "Tesla T4", "num_gpus": 4} | changes))


def test_clusters_come_after_this_machine(cards):
    cards += [card("NVIDIA L4")]
    settings = Settings(clusters=(cluster(usd_per_gpu_h=0.5, wait_p50="1h", wait_p90="2h"),))
    local, lab = own_machines(settings, Listener())
    assert (local.tier, lab.tier) == (Tier.LOCAL, Tier.CLUSTER)
    assert (lab.name, lab.gpu, lab.num_gpus, lab.usd_per_gpu_h) == ("lab", "T4", 4, 0.5)
    assert lab.wait_s == Quantiles(p50=3600.0, p90=7200.0)


@pytest.mark.parametrize(
    ("waits", "expected"),
    [
        ({}, None),
        ({"wait_p50": "0s", "wait_p90": "0s"}, Quantiles(p50=0.0, p90=0.0)),
        ({"wait_p50": "1h", "wait_p90": "1h"}, Quantiles(p50=3600.0, p90=3600.0)),
    ],
)
def test_waits_may_be_unknown_none_or_certain(cards, waits, expected):
    (machine,) = own_machines(Settings(clusters=(cluster(**waits),)), Listener())
    assert machine.wait_s == expected
    assert machine.usd_per_gpu_h is None


# --- Limits of power ---------------------------------------------------------------------------------


def test_what_the_slowest_card_may_draw_counts(cards):
    cards += [card("Tesla T4", 60.0), card("Tesla T4", 50.0), card("NVIDIA L4"), card("Tesla T4")]
    limited, whole = own_machines(Settings(local={"usd_per_kwh": 0.5}), Listener())
    assert (limited.gpu, limited.power_limit_w, whole.gpu, whole.power_limit_w) == ("T4", 50.0, "L4", None)
    assert (limited.usd_per_gpu_h, whole.usd_per_gpu_h) == pytest.approx((0.5 * 0.05, 0.5 * 0.072))
    assert limited.cost_source == (
        "electricity alone: 50 W a GPU (its power limit) at 0.5 USD/kWh (local.usd_per_kwh)"
    )


@pytest.mark.parametrize(
    ("local", "told_w", "limit_w", "usd"),
    [
        # A card that tells nonsense is not limited; what is configured wins over the card.
        ({}, 0.0, None, None),
        ({"power_limit_w": 40}, 60.0, 40.0, None),
        ({"gpu": "L4", "power_limit_w": 50}, 60.0, 50.0, None),
        # Electricity costs what a card may draw, be it more than its data sheet says.
        ({"usd_per_kwh": 0.5}, 80.0, 80.0, 0.5 * 0.08),
        ({"gpu": "L4", "power_limit_w": 100, "usd_per_kwh": 1}, 80.0, 100.0, 0.1),
        ({"gpu": "T4", "usd_per_kwh": 0}, 80.0, None, 0),
    ],
)
def test_what_a_card_may_draw_is_its_limit_and_its_electricity(cards, local, told_w, limit_w, usd):
    cards += [card("Tesla T4", told_w)]
    (machine,) = own_machines(Settings(local=local), Listener())
    assert (machine.power_limit_w, machine.usd_per_gpu_h) == (limit_w, usd and pytest.approx(usd))


def test_a_cluster_says_what_its_cards_may_draw(cards):
    settings = Settings(clusters=(cluster(power_limit_w=50), cluster(name="other")))
    assert [machine.power_limit_w for machine in own_machines(settings, Listener())] == [50.0, None]


@pytest.mark.parametrize("limit_w", [0, -1, 9.9, 1e5, float("nan"), "much"])
def test_a_limit_that_no_card_has_is_refused(limit_w):
    with pytest.raises(ValueError, match="power_limit_w"):
        cluster(power_limit_w=limit_w)


# --- Busy GPUs ---------------------------------------------------------------------------------------


def busy(name: str = "Tesla T4", utilization: float = 0.92) -> Device:
    return Device(name=name, memory_bytes=16 * 1024 * MIB, used_bytes=0, utilization=utilization)


def test_busy_cards_are_told_by_their_index(cards):
    cards += [card("Tesla T4"), busy(), card("NVIDIA L4")]
    t4, l4 = own_machines(Settings(), Listener())
    assert (t4.num_gpus, sentences(t4.in_use)) == (2, ["GPU 1 is in use: 92 % busy"])
    assert l4.in_use == ()


def test_a_busy_card_is_planned_with_only_if_all_are_asked_for(cards):
    cards += [card("Tesla T4"), busy(), card("Tesla T4"), card("Tesla T4")]
    (machine,) = own_machines(Settings(), Listener())
    assert [plan.num_gpus for plan in plans_of_machine(machine)] == [1, 2, 3]
    assert {said(plan.notes) for plan in plans_of_machine(machine)} == {"GPU 1 is in use: 92 % busy"}
    *free, every = plans_of_machine(machine, asked={4})
    assert (every.num_gpus, every.wait_s) == (4, None)
    assert {plan.wait_s for plan in free} == {Quantiles(p50=0.0, p90=0.0)}


def test_where_all_are_busy_each_plan_says_so_and_a_configured_gpu_is_nobody_elses(cards):
    cards += [busy(), busy(utilization=0.5)]
    (machine,) = own_machines(Settings(), Listener())
    notes = {plan.num_gpus: sentences(plan.notes) for plan in plans_of_machine(machine)}
    both = ["GPU 0 is in use: 92 % busy", "GPU 1 is in use: 50 % busy"]
    assert notes == {1: both, 2: both}
    (machine,) = own_machines(Settings(local={"gpu": "T4"}), Listener())
    assert machine.in_use == ()


# --- Electricity -------------------------------------------------------------------------------------


def test_electricity_costs_the_tdp(cards):
    (machine,) = own_machines(Settings(local={"gpu": "T4", "num_gpus": 2, "usd_per_kwh": 0.3}), Listener())
    assert resolve_gpu("T4").tdp_w == 70
    assert machine.usd_per_gpu_h == pytest.approx(0.021)
    one, two = plans_of_machine(machine)
    assert (one.usd_per_h, two.usd_per_h) == (pytest.approx(0.021), pytest.approx(0.042))
    assert one.rates == {
        "training": "electricity alone: 70 W a GPU (its TDP) at 0.3 USD/kWh (local.usd_per_kwh)"
    }


def test_a_configured_cost_goes_before_electricity(cards):
    (machine,) = own_machines(
        Settings(local={"gpu": "T4", "usd_per_gpu_h": 0.5, "usd_per_kwh": 0.3}), Listener()
    )
    assert (machine.usd_per_gpu_h, machine.cost_source) == (0.5, None)
    assert plans_of_machine(machine)[0].rates == {}


# --- Waits from a log --------------------------------------------------------------------------------


@pytest.fixture
def log(tmp_path):
    """One GPU waits a minute, four wait three hours; in queue slow they wait twice as long."""
    jobs = [
        make_job(10 * i, size=size, wait_s=wait_s * factor, queue=queue)
        for i in range(400)
        for size, wait_s in ((1, 60.0), (4, 3 * HOUR_S))
        for queue, factor in (("fast", 1), ("slow", 2))
    ]
    path = tmp_path / "jobs.csv"
    path.write_text(csv_of(jobs))
    return path


def waits_of(**changes: Any) -> dict[int, Quantiles | None]:
    (machine,) = own_machines(Settings(clusters=(cluster(**changes),)), Listener())
    return {plan.num_gpus: plan.wait_s for plan in plans_of_machine(machine)}


def test_each_number_of_gpus_has_its_own_wait_in_each_queue(cards, log):
    waits = waits_of(wait_log=log, queue="fast")
    assert waits[1].p90 < 600 < HOUR_S < waits[4].p50 < waits_of(wait_log=log, queue="slow")[4].p50


def test_a_row_says_which_jobs_its_wait_is_from(cards, log):
    (machine,) = own_machines(
        Settings(clusters=(cluster(wait_log=log, queue="fast", walltime="1h"),)), Listener()
    )
    one, two, four = plans_of_machine(machine)
    assert said(one.notes) == "wait from 400 jobs of 1 gpus, walltime <=1h, queue 'fast'"
    assert said(four.notes) == "wait from 400 jobs of 4..7 gpus, walltime <=1h, queue 'fast'"
    assert "fewer than 10 jobs of this size" in sentences(two.notes)[1]


def test_a_fit_tells_the_same_as_its_log(cards, log, tmp_path):
    write_fit(tmp_path / "fit.json", fit(read_job_log(log)))
    assert waits_of(wait_log=tmp_path / "fit.json") == waits_of(wait_log=log)


def test_nodes_have_the_wait_of_their_gpus_and_a_longer_one_where_the_log_has_no_such_jobs(cards, log):
    lab = cluster(wait_log=log, queue="fast", num_gpus=2, num_nodes=4)
    (machine,) = own_machines(Settings(clusters=(lab,)), Listener())
    plans = {(plan.num_nodes, plan.num_gpus): plan for plan in plans_of_machine(machine)}
    assert set(plans) == {(1, 1), (1, 2), (2, 4), (4, 8)}
    four, eight = plans[2, 4], plans[4, 8]
    assert said(four.notes) == "wait from 400 jobs of 4..7 gpus, queue 'fast'"
    any_size, *_, gang = eight.notes
    assert any_size.facts["size"] is None
    assert isinstance(gang, GangAssumed)
    assert eight.wait_s.p90 == pytest.approx(plans[1, 2].wait_s.p90 * times_of_one(4))


def test_what_a_cluster_exchanges_over_is_written_in_words(cards):
    lab = cluster(gpu="A100-SXM-40GB", num_gpus=8, num_nodes=2, network="infiniband 8x200 Gbit", link="pcie")
    (machine,) = own_machines(Settings(clusters=(lab,)), Listener())
    assert (machine.num_nodes, machine.fabric.link, machine.fabric.network) == (2, "pcie", "infiniband")
    assert machine.fabric.network_bytes_per_s == 200e9
    (unsaid,) = own_machines(Settings(clusters=(cluster(num_nodes=2),)), Listener())
    assert unsaid.fabric.network is None
    (alone,) = own_machines(Settings(clusters=(cluster(),)), Listener())
    assert alone.fabric is None
    for wrong in ({"link": "rope"}, {"network": "infiniband fast"}):
        with pytest.raises(ConfigError, match="cluster 'lab'"):
            own_machines(Settings(clusters=(cluster(**wrong),)), Listener())


def test_a_log_of_nodes_is_asked_for_as_many_nodes(cards, tmp_path):
    jobs = job_log([make_job(10 * i, size=1 + i % 2, wait_s=60.0) for i in range(100)]).jobs
    write_fit(tmp_path / "fit.json", fit(JobLog(jobs=jobs, size_unit="nodes", left_out={})))
    lab = cluster(wait_log=tmp_path / "fit.json", num_gpus=4, num_nodes=2)
    (machine,) = own_machines(Settings(clusters=(lab,)), Listener())
    *_, one, two = plans_of_machine(machine)
    assert sentences(one.notes)[0] == "wait from 50 jobs of 1 nodes"
    assert "counts nodes, not GPUs" in sentences(one.notes)[1]
    assert "of 2..3 nodes" in sentences(two.notes)[0]
    assert "this is the wait of size 2" in sentences(two.notes)[1]


@pytest.mark.parametrize(
    ("changes", "words"),
    [({"queue": "fats"}, "no queue 'fats'.*'fast'"), ({"wait_log": "none.csv"}, "cannot read 'none.csv'")],
)
def test_logs_that_cannot_be_used_are_refused(cards, log, changes, words):
    with pytest.raises(ConfigError, match=f"'lab'.*{words}"):
        waits_of(**{"wait_log": log, **changes})


@pytest.mark.parametrize(("origin", "place"), [(None, ""), ("/etc/us.yaml", "/etc/us.yaml: ")])
@pytest.mark.parametrize(("gpu", "words"), [("A1000", "no GPU is called 'A1000'"), ("A100", "several GPUs")])
def test_a_cluster_of_no_gpu_is_refused_with_its_name_and_file(cards, origin, place, gpu, words):
    with pytest.raises(ConfigError, match=f"^{place}cluster 'lab': .*{words}"):
        own_machines(Settings(clusters=(cluster(gpu=gpu),)), Listener(), origin)


@pytest.mark.parametrize("key", ["num_racks", "interconnect"])
def test_what_is_not_used_is_refused(key):
    with pytest.raises(ValueError, match=key):
        cluster(**{key: 2})


JOBS = [make_job(minute, wait_s=60 + minute % 7, size=1 + 3 * (minute % 2)) for minute in range(400)]


@pytest.fixture
def log_file(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text(csv_of(JOBS))
    return path


def test_a_fit_is_written_and_read_back(log_file, tmp_path):
    heard = Heard()
    fitted = fit_waits(log_file, tmp_path / "waits.json", heard)
    assert heard.steps == ["reading jobs.csv"]
    assert heard.notes == [f"wrote {str(tmp_path / 'waits.json')!r}"]
    assert fitted_waits(tmp_path / "waits.json", heard) == fitted == fitted_waits(log_file, heard)
    assert fitted.num_jobs == len(JOBS)


def test_nothing_is_written_unless_a_file_is_named(log_file, tmp_path):
    fit_waits(log_file, None, Listener())
    assert [path.name for path in tmp_path.iterdir()] == ["jobs.csv"]


def test_jobs_that_are_left_out_are_noted(log_file):
    late = JOBS[0].submit_s - 60
    log_file.write_text(log_file.read_text() + f"{JOBS[0].submit_s},{late},1,3600,gpu\n")
    heard = Heard()
    check_waits(log_file, heard)
    assert [note.partition(":")[0] for note in heard.notes] == ["1 jobs left out"]


def test_the_wait_of_a_kind_of_job_is_that_of_its_bin(log_file):
    wait = expected_wait(WaitRequest(source=log_file, num_gpus=4, queue="gpu"), Listener())
    assert wait.alike == fitted_waits(log_file, Listener()).of(size=4, queue="gpu")
    assert wait.size_unit == "gpus"
    assert 55 <= wait.alike.p50_s <= wait.alike.p90_s <= 75


@pytest.mark.parametrize("count", [-1, 0, 1.5, float("nan"), float("inf"), 1e30])
def test_a_number_of_gpus_that_cannot_be_is_refused_before_anything_is_read(count):
    with pytest.raises(InputError, match="num_gpus must be a whole number of at least 1"):
        expected_wait(WaitRequest(source=Path("gone.csv"), num_gpus=cast("int", count)), Listener())
