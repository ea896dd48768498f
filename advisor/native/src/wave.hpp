// Occupancy and wave scaling; knows nothing of Python. The formulas, their notation and their sources are in
// ../reference.py, which this file must agree with.
#pragma once

#include <cstddef>
#include <cstdint>

namespace advisor {

// What one SM can hold. The order is that of LIMIT_COLUMNS in ../arrays.py.
struct OccupancyLimits {
    std::int64_t max_threads;
    std::int64_t max_blocks;
    std::int64_t max_registers;
    std::int64_t max_registers_per_thread;
    std::int64_t max_shared_bytes;
    std::int64_t max_shared_bytes_per_block;
    std::int64_t reserved_shared_bytes_per_block;
    std::int64_t register_unit;
    std::int64_t shared_unit_bytes;
    std::int64_t warp_allocation_unit;
    std::int64_t warp_size;
};

inline constexpr std::size_t num_limits = 11;
static_assert(sizeof(OccupancyLimits) == num_limits * sizeof(std::int64_t));

struct Gpu {
    std::int64_t num_sms;
    double base_clock_hz;
    double memory_bytes_per_s;
    double peak_flops_per_s;
    OccupancyLimits limits;
};

struct Kernel {
    std::int64_t blocks;
    std::int64_t threads_per_block;
    std::int64_t registers_per_thread;
    std::int64_t shared_bytes;
    double duration_s;
    double intensity_flops_per_byte;  // NaN where it is not known
};

// Columns of `size` kernels, owned by the caller.
struct KernelColumns {
    std::size_t size;
    const std::int64_t *blocks;
    const std::int64_t *threads_per_block;
    const std::int64_t *registers_per_thread;
    const std::int64_t *shared_bytes;
    const double *duration_s;
    const double *intensity_flops_per_byte;

    Kernel operator[](std::size_t k) const;
};

// Columns of `size` GPUs, owned by the caller; `limits` has num_limits values a GPU.
struct GpuColumns {
    std::size_t size;
    const std::int64_t *num_sms;
    const double *base_clock_hz;
    const double *memory_bytes_per_s;
    const double *peak_flops_per_s;
    const std::int64_t *limits;

    Gpu operator[](std::size_t g) const;
};

enum class WaveForm { automatic, exact, large };
enum class Unlaunchable { raise, nan };

// Blocks of the kernel one SM holds at the same time; 0 if it cannot launch at all.
std::int64_t resident_blocks(const Kernel &kernel, const OccupancyLimits &limits) noexcept;

// Writes [K, G] values to `resident`. Throws std::invalid_argument naming the value out of range.
void count_resident_blocks(const KernelColumns &kernels, const GpuColumns &gpus, std::int64_t *resident);

// Writes [K, G] seconds to `time_s`. Throws std::invalid_argument naming the value out of range.
void scale_kernels(const KernelColumns &kernels, const GpuColumns &origin, const GpuColumns &destinations,
                   WaveForm form, Unlaunchable unlaunchable, double *time_s);

}  // namespace advisor
