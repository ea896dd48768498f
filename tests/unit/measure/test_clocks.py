"""CUDA's clock on a made-up GPU: a stream of limited depth, a host that takes time to launch."""

from collections import deque
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from advisor.payload import operator_timing  # noqa: E402
from advisor.payload.operator_timing import CpuClock, CudaClock, HostTooSlowError  # noqa: E402

CLOCK_HZ = 1e9


class Gpu:
    """Launches take host time; kernels run one after the other; the host waits while the stream is full."""

    def __init__(self, *, launch_s: float, kernel_s: float, kernels: int = 1, depth: int = 1000) -> None:
        self.now_s = 0.0
        self.free_at_s = 0.0
        self.pending: deque[float] = deque()
        self.launch_s, self.kernel_s, self.kernels, self.depth = launch_s, kernel_s, kernels, depth

    def submit(self, duration_s: float) -> float:
        if len(self.pending) >= self.depth:
            self.now_s = max(self.now_s, self.pending[0])
        while self.pending and self.pending[0] <= self.now_s:
            self.pending.popleft()
        self.free_at_s = max(self.free_at_s, self.now_s) + duration_s
        self.pending.append(self.free_at_s)
        return self.free_at_s

    def launch(self, number: int) -> None:  # noqa: ARG002
        for _ in range(self.kernels):
            self.now_s += self.launch_s
            self.submit(self.kernel_s)

    def synchronize(self) -> None:
        self.now_s = max(self.now_s, self.free_at_s)

    def sleep(self, cycles: int) -> None:
        self.submit(cycles / CLOCK_HZ)

    def event(self, *, enable_timing: bool) -> SimpleNamespace:
        assert enable_timing
        event = SimpleNamespace()
        event.record = lambda: setattr(event, "at_s", self.submit(0.0))
        event.query = lambda: event.at_s <= self.now_s
        event.synchronize = self.synchronize
        event.elapsed_time = lambda end: (end.at_s - event.at_s) * 1e3
        return event


@pytest.fixture
def on(monkeypatch):
    def install(gpu: Gpu) -> CudaClock:
        cuda = SimpleNamespace(
            Event=gpu.event,
            synchronize=gpu.synchronize,
            _sleep=gpu.sleep,
            get_device_properties=lambda _: SimpleNamespace(L2_cache_size=4 * 2**20, clock_rate=1e6),
        )
        monkeypatch.setattr(operator_timing, "torch", SimpleNamespace(cuda=cuda))
        monkeypatch.setattr(operator_timing, "time", SimpleNamespace(perf_counter=lambda: gpu.now_s))
        return CudaClock()

    return install


@pytest.mark.parametrize(
    ("kernel_s", "kernels", "num_calls"),
    [
        (2e-6, 1, 200),
        (5e-3, 1, 3),  # large kernels need no head start
        (2e-6, 300, 200),  # calls that fill the stream are timed fewer at once
    ],
)
def test_kernels_are_timed_without_the_host(on, kernel_s, kernels, num_calls):
    gpu = Gpu(launch_s=8e-6, kernel_s=kernel_s, kernels=kernels)
    assert on(gpu).time_s(gpu.launch, num_calls) == pytest.approx(kernels * kernel_s)


def test_a_call_that_no_head_start_covers_is_told(on):
    gpu = Gpu(launch_s=8e-6, kernel_s=2e-6, kernels=5000)
    with pytest.raises(HostTooSlowError):
        on(gpu).time_s(gpu.launch, 1)


def test_the_head_start_follows_the_case(on):
    gpu = Gpu(launch_s=8e-6, kernel_s=2e-6)
    clock = on(gpu)
    clock.time_s(gpu.launch, 200)
    assert clock._head_start_s == pytest.approx(2 * 200 * 8e-6)
    clock.time_s(gpu.launch, 1)
    assert clock._head_start_s == operator_timing._SHORTEST_HEAD_START_S


def test_what_the_gpu_tells_of_itself(on):
    clock = on(Gpu(launch_s=1e-6, kernel_s=1e-6))
    assert (clock.cache_bytes, clock._clock_hz) == (4 * 2**20, CLOCK_HZ)


def test_a_gpu_that_tells_nothing(monkeypatch):
    cuda = SimpleNamespace(get_device_properties=lambda _: SimpleNamespace())
    monkeypatch.setattr(operator_timing, "torch", SimpleNamespace(cuda=cuda))
    clock = CudaClock()
    assert clock.cache_bytes > 0
    assert clock._clock_hz > 1e9


def test_the_cpu_counts_all_calls(monkeypatch):
    threads = torch.get_num_threads()
    try:
        clock = CpuClock()
        assert torch.get_num_threads() == 1
    finally:
        torch.set_num_threads(threads)
    numbers: list[int] = []
    # Seconds pass with calls alone.
    monkeypatch.setattr(
        operator_timing, "time", SimpleNamespace(perf_counter=lambda: 10.0 + 2.0 * len(numbers))
    )
    assert clock.time_s(numbers.append, 50) == pytest.approx(2.0)
    assert numbers == list(range(50))
