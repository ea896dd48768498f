"""A trace from whatever is given: saved, exported, or profiled now."""

import gzip
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import advisor.profile
from advisor.cli.listening import TERMINAL
from advisor.config.layers import ARGUMENT, Config
from advisor.config.settings import Settings
from advisor.core.errors import InputError, ProfileError, TraceError
from advisor.core.findings.about_traces import World
from advisor.core.values import Collective, RankWork, Trace
from advisor.formats.trace_files import write_trace
from advisor.profile.attempt import ScriptGpu
from advisor.profile.epoch import FakeField
from advisor.service.listening import Listener
from advisor.service.traces import TraceRequest, check_exists, holds_data, profile_script, trace_of
from tests.builders import make_trace
from tests.listening import Heard

DEFAULTS = Config(settings=Settings(), origins={}, warnings=())


def load_trace(source: Any, arguments: Any, config: Config, listener: Any = TERMINAL, **asked: Any) -> Any:
    request = TraceRequest(source=source, arguments=tuple(arguments or ()), **asked)
    return trace_of(request, config.tracing, listener)


@pytest.fixture
def profiled(monkeypatch):
    """Calls of the profiler, which answers with a small trace."""
    calls: list[tuple[Any, Any, dict[str, Any]]] = []

    def profile(script: Path, arguments: Any, **options: Any) -> Any:
        calls.append((script, arguments, options))
        return make_trace()

    monkeypatch.setattr(advisor.profile, "profile", profile)
    return calls


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("train.py", b"import torch\n", False),
        ("train.py", b"", False),
        ("train", b"\n  {}", True),
        ("trace", b"{", True),
        ("trace", b" " * 63 + b"{", True),
        ("trace", b" " * 64 + b"{", False),
        ("trace", b"[{", False),
        ("trace.json", b"[{", True),
        ("trace.json.gz", b"damaged", True),
        ("trace.json5", b"[{", False),
        ("trace", gzip.compress(b"x", mtime=0), True),
        ("trace", b"\x1f", False),
        ("x.json", None, False),
    ],
)
def test_data_is_told_by_content_and_then_by_name_and_a_folder_holds_none(name, content, expected, tmp_path):
    path = tmp_path / name
    _ = path.mkdir() if content is None else path.write_bytes(content)
    assert holds_data(path) is expected


def test_what_is_not_there_is_refused(tmp_path, profiled):
    for look in (check_exists, lambda path: load_trace(path, None, DEFAULTS)):
        with pytest.raises(InputError, match=r"gone\.py"):
            look(tmp_path / "gone.py")
    with pytest.raises(InputError, match=r"is a folder: give the \.py file"):
        check_exists(tmp_path)
    assert profiled == []


def test_a_saved_trace_is_read_and_takes_no_arguments(tmp_path, profiled):
    path = tmp_path / "t.json.gz"
    write_trace(make_trace(), path)
    assert load_trace(path, None, DEFAULTS) == load_trace(path, [], DEFAULTS) == make_trace()
    with pytest.raises(InputError, match="arguments"):
        load_trace(path, ["--lr", "1"], DEFAULTS)
    path = tmp_path / "x.json"
    path.write_text('{"traceEvents": []}')
    with pytest.raises(InputError, match="--world was fixed"):
        load_trace(path, None, DEFAULTS, world_size=8)
    path.write_text("{")  # damaged, which is no script
    with pytest.raises(TraceError):
        load_trace(path, None, DEFAULTS)
    assert profiled == []


def test_an_export_is_read_with_its_origin(tmp_path, monkeypatch):
    seen = []

    def read(path, origin_gpu):
        seen.append((path, origin_gpu))
        return make_trace()

    monkeypatch.setattr("advisor.kineto.export.read_kineto", read)
    path = tmp_path / "x.pt.trace.json"
    path.write_text('{"traceEvents": []}')
    load_trace(path, None, DEFAULTS, origin_gpu="T4")
    load_trace(path, None, DEFAULTS)
    assert seen == [(path, "T4"), (path, None)]


def test_a_script_is_profiled_by_the_settings(tmp_path, profiled):
    script = tmp_path / "train.py"
    script.write_text("pass\n")
    python = tmp_path / "python"
    settings = Settings(
        profile={
            "python": python, "timeout": "90s", "backend": "cpu", "fake_data": "3x8:float32", "samples": 50,
            "sandbox": True,
        }
    )  # fmt: skip
    load_trace(script, ["--lr", "1"], Config(settings=settings, origins={}, warnings=()))
    ((given, arguments, options),) = profiled
    assert (given, arguments) == (script, ("--lr", "1"))
    assert callable(options.pop("progress"))
    assert options == {
        "python": python,
        "timeout_s": 90.0,
        "backend": "cpu",
        "gpu": None,
        "fake_data": (FakeField(name=None, shape=(3, 8), kind="float32"),),
        "num_samples": 50,
        "world_size": None,
        "sandbox": True,
        "sandbox_read": (),
        "env": (),
        "variables": {},
        "memory_bytes": None,
    }


def test_a_script_may_be_told_of_a_world_and_its_steps_are_heard(tmp_path, profiled):
    script = tmp_path / "train.py"
    script.write_text("pass\n")
    heard = Heard()
    load_trace(script, None, DEFAULTS, heard, world_size=8)
    assert profiled[0][2]["world_size"] == 8
    assert heard.steps == ["profiling train.py"]


def test_a_script_may_be_told_of_a_gpu(tmp_path, profiled):
    (tmp_path / "train.py").write_text("")
    pretended = TraceRequest(source=tmp_path / "train.py", pretended_gpu="T4")
    profile_script(pretended, DEFAULTS.settings.profile, Listener())
    ((_, arguments, options),) = profiled
    assert arguments == ()
    assert (options["python"], options["timeout_s"]) == (None, 300.0)
    assert isinstance(options["gpu"], ScriptGpu)
    assert options["gpu"].name == "NVIDIA T4"
    assert options["backend"] == "fake"


def test_a_real_device_cannot_be_called_another(tmp_path, profiled):
    for backend in ("cpu", "cuda"):
        config = Config(settings=Settings(profile={"backend": backend}), origins={}, warnings=())
        pretended = TraceRequest(source=tmp_path / "train.py", pretended_gpu="T4")
        with pytest.raises(InputError, match=f"--as T4 needs the backend fake, not {backend}"):
            profile_script(pretended, config.settings.profile, TERMINAL)
    assert not profiled


@pytest.mark.parametrize(
    ("name", "flag"),
    [("backend", "--backend"), ("fake_data", "--fake-data"), ("samples", "--samples"),
     ("sandbox", "--sandbox"), ("python", "--python"), ("timeout", "--timeout")],
)  # fmt: skip
def test_a_saved_trace_takes_no_flag_of_profiling_and_does_not_mind_a_setting(name, flag, tmp_path):
    path = tmp_path / "t.json"
    write_trace(make_trace(), path)
    given = Config(settings=Settings(), origins={f"profile.{name}": "flag"}, warnings=())
    with pytest.raises(InputError, match=f"{flag} is for a script"):
        load_trace(path, None, given)
    setting = Config(settings=Settings(), origins={f"profile.{name}": "a file"}, warnings=())
    assert load_trace(path, None, setting) == make_trace()


def test_a_trace_at_hand_is_taken_as_it_is(profiled):
    trace = make_trace()
    assert load_trace(trace, None, DEFAULTS) == trace
    with pytest.raises(InputError, match="the trace is a saved trace: world_size was fixed"):
        load_trace(trace, None, DEFAULTS, Listener(), world_size=2)
    given = Config(settings=Settings(), origins={"profile.samples": ARGUMENT}, warnings=())
    with pytest.raises(InputError, match=r"the trace holds a profile: profile\.samples is for a script"):
        load_trace(trace, None, given, Listener())
    assert profiled == []


# --- A second world, which shows what a script does with its batch -----------------------------------


@pytest.fixture
def worlds(tmp_path, monkeypatch):
    """Profiles a script in worlds that a test describes, and tells in which it was."""
    asked: list[int | None] = []

    def run(text, batch_of, *, world_size=None, settings=DEFAULTS):
        def profile(script: Path, arguments: Any, *, world_size: int | None, **_: Any) -> Any:
            asked.append(world_size)
            batch = batch_of(world_size)
            if batch is None:
                raise ProfileError("the script needs another world")
            used = (world_size or 1) if "init_process_group" in text else None
            trace = make_trace(batch_size=batch, world_size=used)
            return _dividing(trace, text) if "shard" in text else trace

        monkeypatch.setattr(advisor.profile, "profile", profile)
        (tmp_path / "train.py").write_text(text)
        heard = Heard()
        request = TraceRequest(source=tmp_path / "train.py", world_size=world_size)
        return profile_script(request, settings.settings.profile, heard), asked, heard

    return run


TORCHRUN = "init_process_group; WORLD_SIZE"
FSDP, TENSORS = f"{TORCHRUN}; fully_shard", f"{TORCHRUN}; shard_columns"
ZERO_2 = f"{TORCHRUN}; shards its state alone, as DeepSpeed's ZeRO-2 does"
EXCHANGED = {FSDP: ("all_gather", "reduce_scatter"), ZERO_2: ("all_gather", "all_reduce"), TENSORS: ()}


def _dividing(trace: Trace, text: str) -> Trace:
    """As FSDP and ZeRO-2 show it: whole models exchanged among several ranks, and shards alone."""
    size, gradients = trace.world_size or 1, trace.memory.gradient_bytes or 0
    exchanged = (
        Collective(kind=kind, num_bytes=size * gradients, world_size=size, count=1)
        for kind in EXCHANGED[text]
    )
    is_sharded = size == 1 or text != ZERO_2
    return replace(trace, is_sharded=is_sharded, collectives=tuple(exchanged) if size > 1 else ())


def test_a_distributed_script_is_profiled_alone_as_well(worlds):
    trace, asked, heard = worlds(TORCHRUN, lambda size: 256 // size, world_size=8)
    assert asked == [8, 1]
    assert (trace.batch_size, trace.world_size) == (32, 8)
    assert trace.work_elsewhere == RankWork(
        world_size=1, batch_size=256, accumulation=1, flops=make_trace().flops
    )
    assert heard.steps == ["profiling train.py", "profiling train.py as one of 1"]


STRONG = Config(settings=Settings(profile={"scaling": "strong"}), origins={}, warnings=())


@pytest.mark.parametrize(
    ("text", "world_size", "settings", "worlds_asked", "elsewhere"),
    [
        (TORCHRUN, 1, DEFAULTS, [1, 2], 2),
        ("model.train()", None, DEFAULTS, [None], None),
        # It makes no group, so the second world shows nothing.
        ("os.environ.get('WORLD_SIZE')", None, DEFAULTS, [None, 2], None),
        # Who says how it scales needs no second world.
        (TORCHRUN, 8, STRONG, [8], None),
    ],
)
def test_a_script_is_profiled_in_the_worlds_that_show_something(
    worlds, text, world_size, settings, worlds_asked, elsewhere
):
    trace, asked, _ = worlds(text, lambda _: 64, world_size=world_size, settings=settings)
    assert asked == worlds_asked
    assert (trace.work_elsewhere and trace.work_elsewhere.world_size) == elsewhere


def test_where_the_second_world_fails_the_first_counts(worlds):
    trace, asked, heard = worlds(TORCHRUN, lambda size: 32 if size == 8 else None, world_size=8)
    assert (asked, trace.work_elsewhere) == ([8, 1], None)
    assert "how it scales is assumed" in " ".join(heard.notes)


@pytest.mark.parametrize("settings", [DEFAULTS, STRONG])
def test_a_script_that_shards_is_the_trace_of_one_of_two(worlds, settings):
    trace, asked, _ = worlds(FSDP, lambda _: 64, settings=settings)
    assert asked == [None, 2]
    assert (trace.world_size, trace.is_sharded) == (2, True)
    assert trace.work_elsewhere.world_size == 1
    assert [type(warning) for warning in trace.warnings] == [World]


def test_a_script_whose_state_is_shared_among_several_alone_is_the_trace_of_one_of_two(worlds):
    trace, asked, _ = worlds(ZERO_2, lambda _: 64)
    assert (trace.world_size, trace.is_sharded, asked) == (2, False, [None, 2])
    assert [type(warning) for warning in trace.warnings] == [World]


@pytest.mark.parametrize(("world_size", "profiles"), [(1, [1, 2]), (8, [8])])
def test_whose_world_is_asked_for_keeps_it(worlds, world_size, profiles):
    trace, asked, _ = worlds(FSDP, lambda _: 64, world_size=world_size)
    assert (trace.world_size, asked, trace.warnings) == (world_size, profiles, ())


def test_who_divides_layers_is_known_alone(worlds):
    trace, asked, _ = worlds(TENSORS, lambda _: 64)
    assert (trace.world_size, trace.is_sharded, asked) == (1, True, [None, 2])


def test_where_two_ranks_cannot_shard_the_first_counts(worlds):
    trace, _, heard = worlds(FSDP, lambda size: None if size == 2 else 64)
    assert (trace.world_size, trace.is_sharded) == (1, True)
    assert "cannot be profiled" in " ".join(heard.notes)
