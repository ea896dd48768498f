"""Occupancy and wave scaling in slow, clear Python: fallback without a compiler, and test oracle.

Shape suffixes: ``K`` kernels, ``G`` destination GPUs. Sources: occupancy as NVIDIA's CUDA Occupancy
Calculator and ``cuda_occupancy.h`` count it; wave scaling from Yu et al., "Habitat: A Runtime-Based
Computational Performance Predictor for Deep Neural Network Training", USENIX ATC'21, section on wave
scaling, and its published code for the small-kernel case.
"""

# ruff: noqa: N806 -- the capital letters are shape suffixes

import heapq
import math
import operator
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import reduce
from typing import Final

import numpy as np
from numpy.typing import NDArray

from advisor.core.values import OccupancyLimits
from advisor.native import arrays
from advisor.native.arrays import Column, GpuArrays, JobColumns, KernelArrays, Queue, Unlaunchable, WaveForm

MAX_THREADS_PER_BLOCK: Final = 1024
MAX_REGISTERS_PER_BLOCK: Final = 65_536
"""The same on every CUDA GPU, whatever an SM holds (Tegra has 32,768; we rent none)."""

LAUNCH_PARTITIONS: Final = 4
"""Partitions of an SM that the driver's launch check assumes."""

LARGE_WAVES: Final = 20
"""From this many full waves on both GPUs the large-wave form replaces the exact one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """What one kernel meets on one GPU; origin and destination are the two sides of a scaling."""

    num_sms: int
    wave_size: int
    base_clock_hz: float
    memory_bytes_per_s: float
    peak_flops_per_s: float


def resident_blocks(
    threads_per_block: int, registers_per_thread: int, shared_bytes: int, limits: OccupancyLimits
) -> int:
    """Thread blocks of a kernel that one SM holds at the same time; 0 if it cannot launch at all.

    The least of what threads, block slots, registers and shared memory allow. Threads and registers are
    given out by warp. A warp's registers round up to ``register_unit``; an SM's warps spread evenly over
    its ``warp_allocation_unit`` partitions, each with its own part of the register file. A block's shared
    memory, with what the driver reserves, rounds up to ``shared_unit_bytes``. Assumed is the largest
    shared-memory carve-out the SM offers.

    >>> from advisor.core.values import OccupancyLimits
    >>> v100 = OccupancyLimits(
    ...     max_threads=2048, max_blocks=32, max_registers=65536, max_registers_per_thread=255,
    ...     max_shared_bytes=98304, max_shared_bytes_per_block=98304,
    ...     reserved_shared_bytes_per_block=0, register_unit=256, shared_unit_bytes=256,
    ...     warp_allocation_unit=4)
    >>> resident_blocks(256, 32, 0, v100)  # 2048 threads / 256
    8
    >>> resident_blocks(256, 64, 0, v100)  # 65536 registers / (64 * 256)
    4
    """
    if threads_per_block > min(MAX_THREADS_PER_BLOCK, limits.max_threads):
        return 0
    if shared_bytes > limits.max_shared_bytes_per_block:
        return 0
    unit = limits.shared_unit_bytes
    shared_of_block = -(-(shared_bytes + limits.reserved_shared_bytes_per_block) // unit) * unit
    warps_per_block = -(-threads_per_block // limits.warp_size)
    max_warps = limits.max_threads // limits.warp_size
    return min(
        max_warps // warps_per_block,
        limits.max_blocks,
        _blocks_by_registers(warps_per_block, registers_per_thread, limits),
        limits.max_shared_bytes // shared_of_block if shared_of_block else limits.max_blocks,
    )


def occupancy(threads_per_block: int, num_resident_blocks: int, limits: OccupancyLimits) -> float:
    """Resident warps / warps the SM could hold, 0..1 (NVIDIA's theoretical occupancy)."""
    warps_per_block = -(-threads_per_block // limits.warp_size)
    return num_resident_blocks * warps_per_block / (limits.max_threads // limits.warp_size)


def memory_weight(intensity_flops_per_byte: float, ridge_flops_per_byte: float) -> float:
    """g, the weight of memory bandwidth against computation: 1 memory-bound ... 0 compute-bound.

    With arithmetic intensity x and the destination's ridge point R = peak FLOP/s / bandwidth:
    ``g = 1 - x / 2R`` for x < R, else ``R / 2x``; 1 where x is not known (NaN).

    >>> memory_weight(5.0, 10.0), memory_weight(20.0, 10.0), memory_weight(math.nan, 10.0)
    (0.75, 0.25, 1.0)
    """
    if math.isnan(intensity_flops_per_byte):
        return 1.0
    if intensity_flops_per_byte < ridge_flops_per_byte:
        return 1.0 - intensity_flops_per_byte / (2.0 * ridge_flops_per_byte)
    return ridge_flops_per_byte / (2.0 * intensity_flops_per_byte)


def scale_factor(blocks: int, g: float, origin: Side, destination: Side, form: WaveForm) -> float:
    """Time on the destination / time on the origin; ``scale_kernels`` has the formulas."""
    if form is WaveForm.AUTO:
        if blocks < origin.wave_size and blocks < destination.wave_size:
            clock = origin.base_clock_hz / destination.base_clock_hz
            return float((clock * _ceil_ratio(blocks, destination.num_sms, origin.num_sms)) ** (1.0 - g))
        num_full_waves = blocks // max(origin.wave_size, destination.wave_size)
        form = WaveForm.LARGE if num_full_waves >= LARGE_WAVES else WaveForm.EXACT
    memory = origin.memory_bytes_per_s / destination.memory_bytes_per_s
    clock = origin.base_clock_hz / destination.base_clock_hz
    if form is WaveForm.LARGE:
        compute = origin.wave_size / destination.wave_size * clock
        return float(memory**g * compute ** (1.0 - g))
    waves = _ceil_ratio(blocks, destination.wave_size, origin.wave_size)
    memory_of_wave = memory * destination.wave_size / origin.wave_size
    return float(waves * memory_of_wave**g * clock ** (1.0 - g))


def count_resident_blocks(kernels: KernelArrays, gpus: GpuArrays) -> NDArray[np.int64]:
    """``resident_blocks`` of every kernel on every GPU, shape [K, G].

    Raises ValueError: a launch or a limit is out of range; the message names it.
    """
    arrays.check_kernels(kernels)
    arrays.check_gpus(gpus)
    resident_KG = np.zeros((kernels.num_kernels, gpus.num_gpus), dtype=np.int64)
    limits = [arrays.limits_from_row(row_L) for row_L in gpus.limits_GL]
    for k in range(kernels.num_kernels):
        threads = int(kernels.threads_per_block_K[k])
        registers = int(kernels.registers_per_thread_K[k])
        shared_bytes = int(kernels.shared_bytes_K[k])
        for g in range(gpus.num_gpus):
            resident_KG[k, g] = resident_blocks(threads, registers, shared_bytes, limits[g])
    return resident_KG


def scale_kernels(
    kernels: KernelArrays, origin: GpuArrays, destinations: GpuArrays, *, form: WaveForm = WaveForm.AUTO,
    unlaunchable: Unlaunchable = Unlaunchable.RAISE,
) -> NDArray[np.float64]:  # fmt: skip
    """Seconds of every kernel on every destination by wave scaling, shape [K, G].

    A kernel of B thread blocks took T_o on the origin o and is wanted on the destination d. With the wave
    size W (SMs S x resident blocks of this kernel per SM), memory bandwidth D, base clock C and the weight
    g of ``memory_weight``::

        exact:  T_d = ceil(B/W_d) / ceil(B/W_o) * (D_o/D_d * W_d/W_o)^g * (C_o/C_d)^(1-g) * T_o
        large:  T_d = (D_o/D_d)^g * (W_o/W_d * C_o/C_d)^(1-g) * T_o
        small:  T_d = (C_o/C_d * ceil(B/S_d)/ceil(B/S_o))^(1-g) * T_o

    ``WaveForm.AUTO`` takes, kernel by kernel and destination by destination,

    - *small* where B < W_o and B < W_d: neither GPU is filled once, so residency and bandwidth, which
      assume full SMs, say nothing;
    - *large* where B >= 20 W (``LARGE_WAVES``) on both GPUs;
    - *exact* in between, where the tail effect of a last, partly filled wave matters.

    Exact / large lies between 1 / (1 + 1/n) and 1 + 1/n for n full waves, so the factor jumps by at most
    5 % where exact gives way to large; at the edge of small the jump has no such bound. The exact form has
    steps: more SMs or bandwidth can lengthen it. The large form is monotone in D, S and C at fixed g.
    ``WaveForm.EXACT`` and ``WaveForm.LARGE`` use that form for every pair.

    Args:
        kernels: measured on the origin.
        origin: exactly one GPU.
        destinations: G GPUs.
        form: which formula.
        unlaunchable: for a destination on which a kernel has no resident block (W_d = 0): raise, or NaN.

    Raises:
        ValueError: a quantity is out of range, or a kernel cannot be resident on the origin (W_o = 0) or,
            unless ``unlaunchable`` is NaN, on a destination; the message names it.
    """
    form, unlaunchable = WaveForm(form), Unlaunchable(unlaunchable)
    arrays.check_origin(origin)
    resident_KG = count_resident_blocks(kernels, destinations)
    resident_origin_K = count_resident_blocks(kernels, origin)[:, 0]
    time_s_KG = np.empty(resident_KG.shape, dtype=np.float64)
    for k in range(kernels.num_kernels):
        if resident_origin_K[k] == 0:
            raise ValueError(_not_resident(k, "the origin"))
        from_side = _side(origin, 0, int(resident_origin_K[k]))
        for g in range(destinations.num_gpus):
            to_side = _side(destinations, g, int(resident_KG[k, g]))
            if to_side.wave_size == 0 and unlaunchable is Unlaunchable.RAISE:
                raise ValueError(_not_resident(k, f"destination {g}"))
            time_s_KG[k, g] = math.nan
            if to_side.wave_size:
                intensity = float(kernels.intensity_flops_per_byte_K[k])
                weight = memory_weight(intensity, to_side.peak_flops_per_s / to_side.memory_bytes_per_s)
                factor = scale_factor(int(kernels.blocks_K[k]), weight, from_side, to_side, form)
                time_s_KG[k, g] = factor * float(kernels.duration_s_K[k])
    return time_s_KG


def _blocks_by_registers(warps_per_block: int, registers_per_thread: int, limits: OccupancyLimits) -> int:
    if registers_per_thread == 0:
        return limits.max_blocks
    if registers_per_thread > limits.max_registers_per_thread:
        return 0
    unit = limits.register_unit
    registers_per_warp = -(-registers_per_thread * limits.warp_size // unit) * unit
    # The driver admits a launch as if every partition got equally many warps, for four partitions even
    # on the P100, which has two (cuda_occupancy.h: what no other Pascal runs, the P100 does not run).
    checked_warps = -(-warps_per_block // LAUNCH_PARTITIONS) * LAUNCH_PARTITIONS
    if checked_warps > MAX_REGISTERS_PER_BLOCK // registers_per_warp:
        return 0
    partitions = limits.warp_allocation_unit
    resident_warps = limits.max_registers // registers_per_warp // partitions * partitions
    return resident_warps // warps_per_block


def _ceil_ratio(blocks: int, destination_size: int, origin_size: int) -> float:
    return -(-blocks // destination_size) / -(-blocks // origin_size)


def _side(gpus: GpuArrays, g: int, num_resident_blocks: int) -> Side:
    num_sms = int(gpus.num_sms_G[g])
    return Side(
        num_sms=num_sms,
        wave_size=num_sms * num_resident_blocks,
        base_clock_hz=float(gpus.base_clock_hz_G[g]),
        memory_bytes_per_s=float(gpus.memory_bytes_per_s_G[g]),
        peak_flops_per_s=float(gpus.peak_flops_per_s_G[g]),
    )


def _not_resident(k: int, where: str) -> str:
    return f"wave size of kernel {k} is 0: no block of it can be resident on {where}"


# A cluster's queue simulated in slow, clear Python: fallback without a compiler, and test oracle.
#
# Whatever happens at a second (ends, then submissions) comes first; then each pool starts what may start.


NEVER: Final = 2**62
LN_2: Final = 0.6931471805599453


def simulate_queue(queue: Queue) -> tuple[Column, Column]:
    """When each job starts, and each probe, if it alone is submitted beside the jobs.

    EASY backfill as Lifka 1995, conservative as Mu'alem and Feitelson 2001: a job that ends early lets others
    move forward in order of priority, never back. Priorities as of Slurm's priority/multifactor.
    """
    start_s_J = _Simulation(queue, queue.jobs).run()
    probe_start_s_K = [_probed(queue, k) for k in range(len(queue.probes.submit_s_J))]
    return np.array(start_s_J, dtype=np.int64), np.array(probe_start_s_K, dtype=np.int64)


def _probed(queue: Queue, k: int) -> int:
    """The start of a probe: that of one more job, after all that are submitted in the same second."""
    place = int(np.searchsorted(queue.jobs.submit_s_J, queue.probes.submit_s_J[k], side="right"))
    pairs = zip(queue.jobs.columns, queue.probes.columns, strict=True)
    columns = (np.insert(column, place, probe[k]) for column, probe in pairs)
    return _Simulation(queue, JobColumns.of(list(zip(*columns, strict=True)))).run()[place]


class _Profile:
    """Units that are free from each time on, by what is planned; at the end all are."""

    def __init__(self, units: int) -> None:
        self.times_s, self.free = [-NEVER], [units]

    def earliest(self, size: int, duration_s: int, now_s: int) -> int:
        """The first moment from now on at which so many units are free for so long."""
        begin_s, step = now_s, bisect_right(self.times_s, now_s) - 1
        while step < len(self.times_s) and self.times_s[step] < begin_s + duration_s:
            if self.free[step] < size:
                begin_s = self.times_s[step + 1]
            step += 1
        return begin_s

    def add(self, begin_s: int, end_s: int, size: int) -> None:
        """Plan with so many units more for a time; a negative size takes them."""
        first, last = self._step_at(begin_s), self._step_at(end_s)
        for step in range(first, last):
            self.free[step] += size
        for step in (last, first):
            if step and self.free[step] == self.free[step - 1]:
                del self.times_s[step], self.free[step]

    def forget_before(self, now_s: int) -> None:
        """Drop the steps that are over."""
        over = bisect_right(self.times_s, now_s) - 1
        del self.times_s[:over], self.free[:over]

    def _step_at(self, time_s: int) -> int:
        step = bisect_left(self.times_s, time_s)
        if step == len(self.times_s) or self.times_s[step] != time_s:
            self.times_s.insert(step, time_s)
            self.free.insert(step, self.free[step - 1])
        return step


@dataclass(slots=True)
class _User:
    """What a user has used and uses, for the fair share."""

    usage: float = 0.0
    units: int = 0
    since_s: int = 0
    factor: float = 1.0

    def accrue(self, now_s: int, half_life_s: float) -> None:
        """Usage until now in unit seconds, older usage decayed."""
        past_s = float(max(0, now_s - self.since_s))  # times may be negative, the first is compared to 0
        if half_life_s > 0:
            left = math.exp2(-past_s / half_life_s)
            self.usage = self.usage * left + self.units * (half_life_s / LN_2) * (1 - left)
        else:
            self.usage += self.units * past_s
        self.since_s = now_s


_Rank = tuple[int, int, int, int]
"""Of a waiting job: tier, priority, submission, number; the least comes first."""


@dataclass(slots=True)
class _Pool:
    """Jobs of one pool: those that wait in order, and those that run, by their planned end."""

    waiting: list[_Rank] = field(default_factory=list)
    running: list[tuple[int, int]] = field(default_factory=list)
    has_released: bool = False


class _Simulation:
    """One run of the queue. Units are counted by resource: the pools, then the partitions."""

    def __init__(self, queue: Queue, jobs: JobColumns) -> None:
        cluster, self.rules, self.backfill = queue.cluster, queue.rules, queue.backfill
        columns: Iterator[list[int]] = (column.tolist() for column in jobs.columns)
        self.submit_s, self.run_s, self.walltime_s, self.size, self.partition, self.user = columns
        self.tier, self.job_factor = cluster.tier_P.tolist(), cluster.job_factor_P.tolist()
        self.pool_of: list[int] = cluster.pool_P.tolist()
        self.units: list[int] = [*cluster.units_Q.tolist(), *cluster.units_P.tolist()]
        self.free, self.profiles = list(self.units), [_Profile(units) for units in self.units]
        self.pools = [_Pool() for _ in cluster.units_Q]
        self.users = [_User() for _ in range(queue.num_users)]
        weights = ("age_weight", "size_weight", "fair_share_weight", "partition_weight")
        self.is_ranked = any(getattr(self.rules, weight) for weight in weights)
        self.ends: list[tuple[int, int]] = []
        self.reserved_s: dict[int, int] = {}
        self.start_s = [-1] * len(self.submit_s)
        self.num_submitted, self.ranked_s = 0, -NEVER

    def run(self) -> list[int]:
        """The start of each job."""
        while (now_s := self._next_s()) < NEVER:
            while self.ends and self.ends[0][0] <= now_s:
                self._end(heapq.heappop(self.ends)[1], now_s)
            if self.is_ranked and now_s >= self.ranked_s + self.rules.period_s:
                self._rank_again(now_s)
            while self.num_submitted < len(self.submit_s) and self.submit_s[self.num_submitted] <= now_s:
                job = self.num_submitted
                insort(self.pools[self._pool(job)].waiting, self._rank(job, now_s))
                self.num_submitted += 1
            for pool in self.pools:
                if self.backfill is arrays.Backfill.CONSERVATIVE:
                    starting = self._due(pool, now_s)
                elif self.backfill is arrays.Backfill.EASY:
                    starting = self._easy(pool, now_s)
                else:
                    starting = self._in_order(pool, now_s)
                if starting:
                    pool.waiting = [rank for rank in pool.waiting if rank[-1] not in starting]
        return self.start_s

    def _next_s(self) -> int:
        submit_s = self.submit_s[self.num_submitted] if self.num_submitted < len(self.submit_s) else NEVER
        end_s = self.ends[0][0] if self.ends else NEVER
        return min(submit_s, end_s, min(self.reserved_s.values(), default=NEVER))

    def _pool(self, job: int) -> int:
        return self.pool_of[self.partition[job]]

    def _resources(self, job: int) -> tuple[int, int]:
        return self._pool(job), len(self.pools) + self.partition[job]

    def _fits(self, job: int) -> bool:
        return all(self.free[resource] >= self.size[job] for resource in self._resources(job))

    # --- Priority ---------------------------------------------------------------------------------------

    def _rank(self, job: int, now_s: int) -> _Rank:
        tier = -self.tier[self.partition[job]]
        priority = self._priority(job, now_s) if self.is_ranked else 0
        return tier, -priority, self.submit_s[job], job

    def _priority(self, job: int, now_s: int) -> int:
        rules, partition = self.rules, self.partition[job]
        age = min((now_s - self.submit_s[job]) / rules.max_age_s, 1.0)
        share = self.size[job] / self.units[self._pool(job)]
        return int(
            rules.age_weight * age
            + rules.size_weight * (1.0 - share if rules.favors_small else share)
            + rules.fair_share_weight * self.users[self.user[job]].factor
            + rules.partition_weight * self.job_factor[partition]
        )

    def _rank_again(self, now_s: int) -> None:
        self.ranked_s = now_s
        if self.rules.fair_share_weight:
            for user in self.users:
                user.accrue(now_s, self.rules.half_life_s)
            usages = sorted(user.usage for user in self.users)
            total = reduce(operator.add, usages, 0.0)  # sum() rounds otherwise from Python 3.12 on
            for user in self.users:
                if self.rules.is_fair_tree:
                    user.factor = (len(usages) - bisect_left(usages, user.usage)) / len(usages)
                else:
                    user.factor = math.exp2(-user.usage * len(usages) / total) if total > 0 else 1.0
        for pool in self.pools:
            pool.waiting = sorted(self._rank(job, now_s) for *_, job in pool.waiting)

    # --- Starting and ending ----------------------------------------------------------------------------

    def _take(self, job: int, size: int, now_s: int) -> None:
        for resource in self._resources(job):
            self.free[resource] -= size
        if self.rules.fair_share_weight:
            user = self.users[self.user[job]]
            user.accrue(now_s, self.rules.half_life_s)
            user.units += size

    def _start(self, job: int, now_s: int) -> None:
        self.start_s[job] = now_s
        self._take(job, self.size[job], now_s)
        heapq.heappush(self.ends, (now_s + self.run_s[job], job))
        insort(self.pools[self._pool(job)].running, (now_s + self.walltime_s[job], job))

    def _end(self, job: int, now_s: int) -> None:
        self._take(job, -self.size[job], now_s)
        pool, planned_s = self.pools[self._pool(job)], self.start_s[job] + self.walltime_s[job]
        del pool.running[bisect_left(pool.running, (planned_s, job))]
        if self.backfill is arrays.Backfill.CONSERVATIVE and planned_s > now_s:
            pool.has_released = True
            for resource in self._resources(job):
                self.profiles[resource].add(now_s, planned_s, self.size[job])

    def _in_order(self, pool: _Pool, now_s: int) -> set[int]:
        """Start jobs until one waits for the pool; one that waits for its partition stops only that."""
        starting: set[int] = set()
        stopped: set[int] = set()
        for *_, job in pool.waiting:
            if self.partition[job] in stopped:
                continue
            if self._fits(job):
                self._start(job, now_s)
                starting.add(job)
            elif self.free[self._pool(job)] < self.size[job]:
                break
            else:
                stopped.add(self.partition[job])
        return starting

    def _easy(self, pool: _Pool, now_s: int) -> set[int]:
        """Start jobs in order; once one has to wait, only those that do not delay it."""
        starting: set[int] = set()
        reserved: tuple[int, dict[int, int]] | None = None
        for *_, job in pool.waiting:
            if self.free[self._pool(job)] == 0 and reserved:
                break
            if not self._fits(job):
                reserved = reserved or self._reservation(pool, job)
            elif reserved is None or self._delays_not(job, now_s, *reserved):
                self._start(job, now_s)
                starting.add(job)
        return starting

    def _reservation(self, pool: _Pool, job: int) -> tuple[int, dict[int, int]]:
        """When a job fits by the planned ends of those that run, and what is spare then, by resource."""
        spare = {resource: self.free[resource] - self.size[job] for resource in self._resources(job)}
        reserved_s = NEVER
        for planned_s, other in pool.running:
            if planned_s > reserved_s:
                break
            for resource in spare.keys() & self._resources(other):
                spare[resource] += self.size[other]
            if min(spare.values()) >= 0:
                reserved_s = min(reserved_s, planned_s)
        return reserved_s, spare

    def _delays_not(self, job: int, now_s: int, reserved_s: int, spare: dict[int, int]) -> bool:
        """Whether it ends before the reservation, or takes what is spare then."""
        if now_s + self.walltime_s[job] <= reserved_s:
            return True
        taken = spare.keys() & self._resources(job)
        if any(spare[resource] < self.size[job] for resource in taken):
            return False
        for resource in taken:
            spare[resource] -= self.size[job]
        return True

    def _due(self, pool: _Pool, now_s: int) -> set[int]:
        """Give each new job its reservation, after an early end to all an earlier one; start what is due."""
        for profile in self.profiles:
            profile.forget_before(now_s)
        for *_, job in pool.waiting:
            before_s = self.reserved_s.get(job)
            if before_s is not None and (before_s == now_s or not pool.has_released):
                continue
            if before_s is not None:
                self._plan(job, before_s, self.size[job])
            begin_s, agreed_s = now_s, -1
            while agreed_s != begin_s:
                agreed_s = begin_s
                for resource in self._resources(job):
                    begin_s = self.profiles[resource].earliest(self.size[job], self.walltime_s[job], begin_s)
            self.reserved_s[job] = begin_s
            self._plan(job, self.reserved_s[job], -self.size[job])
        pool.has_released = False
        starting = {job for *_, job in pool.waiting if self.reserved_s[job] == now_s}
        for job in sorted(starting):
            del self.reserved_s[job]
            self._start(job, now_s)
        return starting

    def _plan(self, job: int, begin_s: int, size: int) -> None:
        for resource in self._resources(job):
            self.profiles[resource].add(begin_s, begin_s + self.walltime_s[job], size)
