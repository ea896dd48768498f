"""The service of schedules under a virtual clock: what runs, when, how often, and what becomes of it."""

from datetime import UTC, datetime, timedelta

import pytest

from advisor.core.errors import ConfigError, DeliveryError, StoreError
from advisor.core.values import DeliverWhen, Occurrence, OccurrenceState, Schedule
from advisor.service.schedule import running
from advisor.service.schedule.child_commands import Command, Ending, Ran
from advisor.service.schedule.running import MOST_AT_ONCE, MOST_ATTEMPTS, Inline, ScheduleService, run_at_once
from advisor.store.database import open_store
from advisor.store.handle import Store
from advisor.store.locks import Lock
from advisor.store.schedules import (
    add_schedule,
    occurrences,
    remove_schedule,
    schedule_lock,
    schedules,
    settle,
)
from tests.schedules import AT, make_schedule
from tests.unit.service.virtual_world import MayGoOn, VirtualWorld, ran

MONDAY = datetime(2026, 11, 23, 7, tzinfo=UTC)


@pytest.fixture
def rarely(monkeypatch):
    """Looks at the store each six hours, and when something is due: weeks are over sooner."""
    monkeypatch.setattr(running, "LONGEST_WAIT_S", 6 * 3600.0)


@pytest.fixture
def store(tmp_path):
    """An empty database."""
    with open_store(f"sqlite:///{tmp_path}/advisor.db") as opened:
        yield opened


def keep(store: Store, **changes: object) -> Schedule:
    schedule = make_schedule(**changes)
    assert add_schedule(store, schedule)
    return schedule


def service(store: Store, world: VirtualWorld, name: str = "ann") -> ScheduleService:
    return ScheduleService(world.surroundings(store, name), Inline())


def past(store: Store, schedule: Schedule) -> list[Occurrence]:
    """Its occurrences in order of time."""
    return [*reversed(occurrences(store, schedule.id, most=200))]


def due_times(world: VirtualWorld) -> list[str]:
    """When what ran was due, by the keys of its commands."""
    return [command.key.partition("@")[2][:16] for command in world.commands]


@pytest.mark.usefixtures("rarely")
def test_a_week_of_two_schedules(store):
    keep(store)
    keep(store, id="7a", name="nightly", cron="30 2 * * *", zone="UTC")
    world = VirtualWorld()
    service(store, world).run()
    expected = [f"2026-11-{day}T02:30" for day in range(23, 30)]
    assert due_times(world) == [expected[0], "2026-11-23T07:00", *expected[1:]]
    assert world.commands[1].words == ("prices", "refresh")
    assert (world.commands[1].folder, world.commands[1].timeout_s) == ("/home/ann/train", 3600)
    (monday,) = past(store, schedules(store)[1])
    assert (monday.state, monday.outcome, monday.holder) == (OccurrenceState.DONE, "exit code 0", "ann")


def test_each_runs_on_its_minute_and_the_store_is_looked_at_each_minute(store):
    keep(store)
    seen: list[datetime] = []
    start = MONDAY - timedelta(minutes=10, seconds=20)
    world = VirtualWorld(clock=[start], until=MONDAY + timedelta(minutes=5))

    def look(command: Command, may_go_on: MayGoOn) -> Ran:
        seen.append(world.clock[0])
        return ran()

    world.act = look
    service(store, world).run()
    assert seen == [MONDAY]
    assert max(world.waits) == 60.0


def test_a_schedule_that_is_added_or_removed_counts_within_a_minute(store):
    keep(store, id="a", name="a", cron="0 13 * * *", zone="UTC")
    world = VirtualWorld(until=AT + timedelta(hours=1, minutes=5))

    def change(command: Command, may_go_on: MayGoOn) -> Ran:
        if not remove_schedule(store, "a"):
            return ran()
        added = make_schedule(id="b", name="b", cron="2 13 * * *", zone="UTC", settled_until=world.clock[0])
        add_schedule(store, added)
        return ran()

    world.act = change
    service(store, world).run()
    assert [command.key[0] for command in world.commands] == ["a", "b"]


@pytest.mark.usefixtures("rarely")
def test_summer_time_ends_and_begins_and_nothing_runs_twice(store):
    start = datetime(2026, 10, 24, tzinfo=UTC)
    keep(store, cron="30 2 * * *", added_at=start, settled_until=start)
    world = VirtualWorld(clock=[start], until=start + timedelta(days=3))
    service(store, world).run()
    assert due_times(world) == ["2026-10-24T00:30", "2026-10-25T00:30", "2026-10-26T01:30"]
    spring = datetime(2027, 3, 27, tzinfo=UTC)
    again = VirtualWorld(clock=[spring], until=spring + timedelta(days=3))
    service(store, again).run()
    # Caught up first: what was due a day before, while no service ran.
    expected = ("2027-03-26T01:30", "2027-03-27T01:30", "2027-03-28T01:00", "2027-03-29T00:30")
    assert due_times(again) == [*expected]


@pytest.mark.usefixtures("rarely")
def test_a_missed_night_is_caught_up_once(store):
    nightly = keep(store, cron="30 2 * * *", zone="UTC")
    morning = AT + timedelta(days=3)
    world = VirtualWorld(clock=[morning], until=morning + timedelta(hours=4))
    service(store, world).run()
    assert due_times(world) == ["2026-11-25T02:30"]
    assert [one.state for one in past(store, nightly)] == [
        OccurrenceState.MISSED, OccurrenceState.MISSED, OccurrenceState.DONE,
    ]  # fmt: skip
    assert (
        "weekly: missed 2 since 2026-11-23 02:30 UTC; the latest one, of 2026-11-25 02:30 UTC, runs now"
        in world.log
    )


def test_what_is_too_old_is_not_caught_up(store):
    weekly = keep(store)
    late = MONDAY + timedelta(days=1, seconds=1)
    world = VirtualWorld(clock=[late], until=late + timedelta(hours=1))
    service(store, world).run()
    assert world.commands == []
    assert [one.state for one in past(store, weekly)] == [OccurrenceState.MISSED]
    assert world.log[0] == "weekly: missed 1 since 2026-11-23 07:00 UTC"


def test_two_services_share_the_work(store):
    """They take turns at every moment: each occurrence is one's."""
    nightly = keep(store, cron="0 * * * *", zone="UTC")
    clock = [AT]
    worlds = [VirtualWorld(clock=clock) for _ in range(2)]
    services = [service(store, world, name) for world, name in zip(worlds, ("ann", "bob"), strict=True)]
    for minute in range(0, 6 * 60, 5):
        clock[0] = AT + timedelta(minutes=minute)
        for one in services if minute % 10 else reversed(services):
            one.begin_due()
    assert sorted(due_times(worlds[0]) + due_times(worlds[1])) == [
        f"2026-11-22T{h}:00" for h in range(13, 18)
    ]
    assert len(past(store, nightly)) == 5


def test_who_read_too_early_finds_it_taken(store, monkeypatch):
    keep(store)
    clock = [MONDAY]
    first, second = VirtualWorld(clock=clock), VirtualWorld(clock=clock)
    before = schedules(store)
    service(store, first).begin_due()
    monkeypatch.setattr("advisor.store.schedules.schedules", lambda _store: before)
    service(store, second, "bob").begin_due()
    assert (len(first.commands), second.commands) == (1, [])


def dies_in(store: Store, schedule: Schedule, at: datetime) -> None:
    """A service that begins what is due, and is killed."""
    occurrence = Occurrence(
        schedule_id=schedule.id, due_at=at, state=OccurrenceState.RUNNING, holder="the dead", attempts=1
    )
    assert settle(store, schedule, occurrence, (), until=at, forget_before=AT - timedelta(days=900))


def test_what_a_killed_service_left_is_run_again_under_the_same_key(store):
    weekly = keep(store)
    dies_in(store, weekly, MONDAY)
    world = VirtualWorld(clock=[MONDAY + timedelta(seconds=30)], until=MONDAY + timedelta(hours=1))
    service(store, world, "bob").run()
    assert due_times(world) == ["2026-11-23T07:00"]
    assert world.log[0] == "weekly: was interrupted, it was due at 2026-11-23 07:00 UTC"
    assert world.log[1].endswith("attempt 2")
    (only,) = past(store, weekly)
    assert (only.state, only.attempts, only.holder) == (OccurrenceState.DONE, 2, "bob")


def test_a_command_that_kills_its_service_each_time_is_given_up(store):
    weekly = keep(store)
    dies_in(store, weekly, MONDAY)

    def kill(command: Command, may_go_on: MayGoOn) -> Ran:
        raise SystemExit

    for _ in range(MOST_ATTEMPTS - 1):
        world = VirtualWorld(clock=[MONDAY], act=kill)
        with pytest.raises(SystemExit):
            service(store, world).begin_due()
        assert len(world.commands) == 1
    last = VirtualWorld(clock=[MONDAY])
    service(store, last).begin_due()
    assert last.commands == []
    (only,) = past(store, weekly)
    assert (only.state, only.attempts) == (OccurrenceState.FAILED, MOST_ATTEMPTS)
    assert only.outcome == "given up: the service ended during the last of 5 attempts"
    assert only.ended_at == MONDAY


def test_while_a_command_runs_no_other_service_touches_its_schedule(store):
    weekly = keep(store)
    clock = [MONDAY]
    other = VirtualWorld(clock=clock)

    def work(command: Command, may_go_on: MayGoOn) -> Ran:
        for _ in range(10):
            clock[0] += timedelta(days=3)
            assert may_go_on()
            service(store, other, "bob").begin_due()
        return ran()

    world = VirtualWorld(clock=clock, act=work)
    service(store, world).begin_due()
    assert other.commands == []
    (only,) = past(store, weekly)
    assert (only.state, only.holder) == (OccurrenceState.DONE, "ann")


class Leaky(Lock):
    """The lock of a schedule whose connection to the server ends at some time."""

    def __init__(self, inner: Lock) -> None:
        self._inner, self._is_held = inner, True

    def is_held(self) -> bool:
        return self._is_held

    def release(self) -> None:
        if self._is_held:
            self._is_held = False
            self._inner.release()


@pytest.fixture
def leaky(monkeypatch):
    """The locks that services take, in order."""
    locks: list[Leaky] = []

    def take(store: Store, schedule: Schedule, holder: str) -> Lock:
        locks.append(Leaky(schedule_lock(store, schedule, holder)))
        return locks[-1]

    monkeypatch.setattr("advisor.store.schedules.schedule_lock", take)
    return locks


def test_a_service_that_lost_its_lock_ends_its_command_and_notes_nothing(store, leaky):
    weekly = keep(store, channel="team", when=DeliverWhen.ALWAYS)
    clock = [MONDAY]
    other = VirtualWorld(clock=clock)

    def sleep(command: Command, may_go_on: MayGoOn) -> Ran:
        clock[0] += timedelta(minutes=10)
        leaky[0].release()
        service(store, other, "bob").begin_due()
        assert not may_go_on()
        return ran(None, ending=Ending.STOPPED)

    world = VirtualWorld(clock=clock, act=sleep)
    service(store, world).begin_due()
    assert world.outgoing == []
    assert [one.key for one in other.outgoing] == [world.commands[0].key]
    (only,) = past(store, weekly)
    assert (only.state, only.holder, only.attempts) == (OccurrenceState.DONE, "bob", 2)


@pytest.mark.parametrize("channel", ["team", None])
def test_a_command_that_ends_after_its_lock_was_lost_delivers_nothing(store, leaky, channel):
    weekly = keep(store, channel=channel)
    clock = [MONDAY]
    other = VirtualWorld(clock=clock)

    def hang(command: Command, may_go_on: MayGoOn) -> Ran:
        leaky[0].release()
        service(store, other, "bob").begin_due()
        return ran(7)

    world = VirtualWorld(clock=clock, act=hang)
    service(store, world).begin_due()
    assert (len(world.outgoing), len(other.outgoing)) == (0, int(channel is not None))
    (only,) = past(store, weekly)
    assert (only.exit_code, only.holder) == (0, "bob")
    if channel is None:
        assert world.log[-1].startswith("weekly: its end is not noted")


def test_what_is_stopped_is_left_to_the_next_service(store):
    weekly = keep(store)
    clock = [MONDAY]
    world = VirtualWorld(clock=clock, is_hurried=True)
    world.act = lambda _, may_go_on: ran(0 if may_go_on() else None, ending=Ending.STOPPED)
    service(store, world).begin_due()
    assert world.log[-1] == "weekly: stopped before its end; the next service runs it again"
    next_one = VirtualWorld(clock=clock)
    service(store, next_one, "bob").begin_due()
    assert [command.key for command in next_one.commands] == [world.commands[0].key]
    (only,) = past(store, weekly)
    assert only.state is OccurrenceState.DONE


@pytest.mark.parametrize(
    ("ending", "state", "outcome"),
    [
        (ran(0), "done", "exit code 0"),
        (ran(0, recommended="aws/g5.xlarge/spot"), "done", "recommends aws/g5.xlarge/spot"),
        (ran(4), "done", "exit code 4: nothing feasible"),
        (ran(3), "done", "exit code 3: the policy removes all"),
        (ran(5), "done", "exit code 5"),
        (ran(1), "failed", "exit code 1"),
        (ran(2), "failed", "exit code 2"),
        (ran(-9), "failed", "exit code -9"),
        (ran(None, ending=Ending.TIMED_OUT), "failed", "ended after 1 h, the limit of schedule.timeout"),
    ],
)
def test_how_it_ended(store, ending, state, outcome):
    weekly = keep(store)
    service(store, VirtualWorld(clock=[MONDAY], act=lambda *_: ending)).begin_due()
    (only,) = past(store, weekly)
    assert (only.state, only.outcome, only.exit_code) == (state, outcome, ending.exit_code)
    assert (only.output, only.output_sha256) == ("words", "ab" * 32)


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (
            FileNotFoundError(2, "No such file", "/home/ann/train"),
            "cannot start: FileNotFoundError: [Errno 2]",
        ),
        (
            RuntimeError("token=abcdef went wrong"),
            "weekly: RuntimeError: token=*** went wrong. It will run again.",
        ),
    ],
)
def test_an_error_at_the_start_is_one_schedules_own(store, error, line):
    """Such as a folder that is gone, which fails it, or one that nobody foresaw."""
    keep(store)
    other = keep(store, id="7a", name="other")

    def start(command: Command, may_go_on: MayGoOn) -> Ran:
        if command.key.startswith("5f"):
            raise error
        return ran()

    world = VirtualWorld(clock=[MONDAY], act=start)
    service(store, world).begin_due()
    assert any(line in one for one in world.log)
    assert past(store, other)[0].state is OccurrenceState.DONE


def test_a_command_that_somebody_wrote_into_the_database_is_not_run(store):
    weekly = keep(store, command=("trust", "theirs"))
    world = VirtualWorld(clock=[MONDAY])
    service(store, world).begin_due()
    assert world.commands == []
    (failed,) = past(store, weekly)
    assert failed.outcome.startswith("cannot start: InputError: 'trust' cannot be scheduled")


def test_a_zone_that_this_machine_does_not_know_stops_no_other_schedule(store):
    keep(store, zone="Mars/Olympus")
    keep(store, id="7a", name="other")
    world = VirtualWorld(clock=[MONDAY])
    following = service(store, world).begin_due()
    assert len(world.commands) == 1
    assert following == MONDAY + timedelta(days=7)
    assert any("there is no time zone 'Mars/Olympus'" in line for line in world.log)


@pytest.mark.parametrize(
    ("when", "codes", "sent"),
    [
        (DeliverWhen.ALWAYS, [0, 0, 4, 1], [0, 1, 2, 3]),
        (DeliverWhen.OK, [4, 0, 1, 0], [1, 3]),
        (DeliverWhen.FAILS, [0, 1, 4, 0], [1, 2]),
        (DeliverWhen.CHANGES, [4, 4, 0, 0, 4], [0, 2, 4]),
        (DeliverWhen.OVER, [0, 5, 1, 5], [1, 3]),
    ],
)
def test_when_it_is_delivered(store, when, codes, sent):
    keep(store, cron="0 7 * * *", zone="UTC", channel="team", when=when)
    world = VirtualWorld(clock=[MONDAY])
    for day, code in enumerate(codes):
        world.clock[0] = MONDAY + timedelta(days=day)
        world.act = lambda *_, code=code: ran(code)
        service(store, world).begin_due()
    assert [one.key for one in world.outgoing] == [world.commands[day].key for day in sent]


def test_another_recommended_option_is_a_change(store):
    weekly = keep(store, cron="0 7 * * *", zone="UTC", channel="team", when=DeliverWhen.CHANGES)
    world = VirtualWorld(clock=[MONDAY])
    for day, option in enumerate(["aws/a", "aws/a", "gcp/b"]):
        world.clock[0] = MONDAY + timedelta(days=day)
        world.act = lambda *_, option=option: ran(0, recommended=option)
        service(store, world).begin_due()
    assert [one.ended.outcome for one in world.outgoing] == ["recommends aws/a", "recommends gcp/b"]
    assert [one.delivery for one in past(store, weekly)] == [
        "sent to team", "not sent: nothing changed", "sent to team",
    ]  # fmt: skip


def test_what_did_not_arrive_is_tried_again_under_the_same_key(store):
    weekly = keep(store, channel="team")
    world = VirtualWorld(clock=[MONDAY], trouble=DeliveryError("team: the server says 451"))
    service(store, world).begin_due()
    (first,) = past(store, weekly)
    assert (first.state, first.outcome) == (
        OccurrenceState.CLAIMED,
        "not delivered yet: team: the server says 451",
    )
    assert world.log[-1].endswith("451; again at 2026-11-23 07:05 UTC")
    world.pass_s(299)
    service(store, world).begin_due()
    assert len(world.commands) == 1
    world.pass_s(1)
    world.trouble = None
    service(store, world).begin_due()
    assert [one.key for one in world.outgoing] == [world.commands[0].key] == [world.commands[1].key]
    (done,) = past(store, weekly)
    assert (done.state, done.delivery, done.attempts) == (OccurrenceState.DONE, "sent to team", 2)


def test_what_never_arrives_is_given_up_and_a_change_is_sent_the_next_day(store):
    daily = keep(store, cron="0 7 * * *", zone="UTC", channel="team", when=DeliverWhen.CHANGES)
    trouble = DeliveryError("team: the server says 550")
    world = VirtualWorld(clock=[MONDAY], until=MONDAY + timedelta(hours=4), trouble=trouble)
    service(store, world).run()
    (failed,) = past(store, daily)
    assert (failed.state, failed.attempts, failed.delivery) == (OccurrenceState.FAILED, MOST_ATTEMPTS, "")
    assert failed.outcome == "exit code 0, but not delivered: team: the server says 550"
    assert failed.ended_at == MONDAY + timedelta(minutes=5 + 10 + 20 + 40)
    world.trouble = None
    world.clock[0] = MONDAY + timedelta(days=1)
    service(store, world).begin_due()
    assert len(world.outgoing) == 1


def test_a_channel_that_is_gone_is_not_tried_again(store):
    weekly = keep(store, channel="team")
    world = VirtualWorld(clock=[MONDAY], trouble=ConfigError("there is no channel 'team'."))
    service(store, world).begin_due()
    (failed,) = past(store, weekly)
    assert (failed.state, failed.exit_code) == (OccurrenceState.FAILED, 0)
    assert failed.outcome == "exit code 0, but not delivered: there is no channel 'team'."


def test_what_a_command_could_not_send_is_tried_again_too(store):
    weekly = keep(store, command=("report", "--to", "team"))
    world = VirtualWorld(clock=[MONDAY], act=lambda *_: ran(1, undelivered="team: busy"))
    service(store, world).begin_due()
    world.act = lambda *_: ran(0)
    world.pass_s(300)
    service(store, world).begin_due()
    (done,) = past(store, weekly)
    assert (done.state, done.attempts, done.outcome) == (OccurrenceState.DONE, 2, "exit code 0")
    assert len({command.key for command in world.commands}) == 1


def test_a_database_that_fails_for_a_while_is_tried_again(store, monkeypatch):
    keep(store)
    world = VirtualWorld(clock=[MONDAY - timedelta(minutes=5)], until=MONDAY + timedelta(minutes=5))
    real, calls = ScheduleService.begin_due, []

    def fail(self: ScheduleService) -> datetime | None:
        calls.append(1)
        if 2 <= len(calls) <= 4:
            raise StoreError("the server is away.")
        return real(self)

    monkeypatch.setattr(ScheduleService, "begin_due", fail)
    service(store, world).run()
    assert world.log[:3] == ["the server is away. Trying again within a minute."] * 3
    assert len(world.commands) == 1


class Never(Inline):
    """A pool whose commands never begin."""

    def submit(self, call: object, /, *args: object, **more: object) -> None:  # type: ignore[override]
        """Nothing."""


def test_no_more_is_claimed_than_can_run(store):
    for number in range(MOST_AT_ONCE + 2):
        keep(store, id=f"{number}", name=f"{number}")
    world = VirtualWorld(clock=[MONDAY])
    ScheduleService(world.surroundings(store), Never()).begin_due()
    assert sum(len(past(store, schedule)) for schedule in schedules(store)) == MOST_AT_ONCE
    other = VirtualWorld(clock=[MONDAY])
    service(store, other, "bob").begin_due()
    assert len(other.commands) == 2


@pytest.mark.usefixtures("rarely")
def test_a_person_may_run_it_at_any_time_and_the_times_stay(store):
    weekly = keep(store)
    asked = VirtualWorld(clock=[AT + timedelta(minutes=1)])
    ended = run_at_once(weekly, asked.surroundings(store))
    assert (ended.state, ended.attempts) == (OccurrenceState.DONE, 1)
    assert past(store, weekly) == [ended]
    world = VirtualWorld()
    service(store, world).run()
    assert due_times(world) == ["2026-11-23T07:00"]
