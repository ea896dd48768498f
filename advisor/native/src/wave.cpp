#include "wave.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "checks.hpp"

namespace advisor {
namespace {

constexpr std::int64_t max_threads_per_block = 1024;
constexpr std::int64_t max_registers_per_block = 65'536;
constexpr std::int64_t launch_partitions = 4;
constexpr std::int64_t large_waves = 20;

// Both for value >= 0; written so that a value near the top of its type does not overflow.
constexpr std::int64_t ceil_div(std::int64_t value, std::int64_t unit) {
    return value / unit + (value % unit != 0 ? 1 : 0);
}
constexpr std::int64_t round_up(std::int64_t value, std::int64_t unit) {
    return ceil_div(value, unit) * unit;
}

std::int64_t blocks_by_registers(std::int64_t warps_per_block, std::int64_t registers_per_thread,
                                 const OccupancyLimits &limits) noexcept {
    if (registers_per_thread == 0) {
        return limits.max_blocks;
    }
    if (registers_per_thread > limits.max_registers_per_thread) {
        return 0;
    }
    const std::int64_t per_warp =
        round_up(registers_per_thread * limits.warp_size, limits.register_unit);
    // The launch check assumes four partitions everywhere; ../reference.py says why.
    if (round_up(warps_per_block, launch_partitions) > max_registers_per_block / per_warp) {
        return 0;
    }
    const std::int64_t partitions = limits.warp_allocation_unit;
    const std::int64_t resident_warps = limits.max_registers / per_warp / partitions * partitions;
    return resident_warps / warps_per_block;
}

std::int64_t blocks_by_shared_memory(std::int64_t shared_bytes, const OccupancyLimits &limits) noexcept {
    if (shared_bytes > limits.max_shared_bytes_per_block) {
        return 0;
    }
    const std::int64_t per_block =
        round_up(shared_bytes + limits.reserved_shared_bytes_per_block, limits.shared_unit_bytes);
    return per_block == 0 ? limits.max_blocks : limits.max_shared_bytes / per_block;
}

// g of the paper.
double memory_weight(double intensity, double ridge) noexcept {
    if (std::isnan(intensity)) {
        return 1.0;
    }
    return intensity < ridge ? 1.0 - intensity / (2.0 * ridge) : ridge / (2.0 * intensity);
}

double ceil_ratio(std::int64_t blocks, std::int64_t destination_size, std::int64_t origin_size) noexcept {
    return static_cast<double>(ceil_div(blocks, destination_size)) /
           static_cast<double>(ceil_div(blocks, origin_size));
}

// base^exponent with the exponents that kernels of unknown intensity have settled without std::pow.
double power(double base, double exponent) noexcept {
    if (exponent == 0.0) {
        return 1.0;
    }
    return exponent == 1.0 ? base : std::pow(base, exponent);
}

// Origin over destination.
struct Ratios {
    double memory;
    double clock;
};

// What one kernel meets on one GPU.
struct Side {
    std::int64_t num_sms;
    std::int64_t wave_size;
};

double exact_factor(std::int64_t blocks, double g, Side origin, Side destination, Ratios ratios) noexcept {
    const double wave_size =
        static_cast<double>(destination.wave_size) / static_cast<double>(origin.wave_size);
    return ceil_ratio(blocks, destination.wave_size, origin.wave_size) *
           power(ratios.memory * wave_size, g) * power(ratios.clock, 1.0 - g);
}

double large_factor(double g, Side origin, Side destination, Ratios ratios) noexcept {
    const double wave_size =
        static_cast<double>(origin.wave_size) / static_cast<double>(destination.wave_size);
    return power(ratios.memory, g) * power(wave_size * ratios.clock, 1.0 - g);
}

double small_factor(std::int64_t blocks, double g, Side origin, Side destination, Ratios ratios) noexcept {
    return power(ratios.clock * ceil_ratio(blocks, destination.num_sms, origin.num_sms), 1.0 - g);
}

double scale_factor(std::int64_t blocks, double g, Side origin, Side destination, Ratios ratios,
                    WaveForm form) noexcept {
    if (form == WaveForm::automatic) {
        if (blocks < origin.wave_size && blocks < destination.wave_size) {
            return small_factor(blocks, g, origin, destination, ratios);
        }
        const std::int64_t full_waves = blocks / std::max(origin.wave_size, destination.wave_size);
        form = full_waves >= large_waves ? WaveForm::large : WaveForm::exact;
    }
    return form == WaveForm::large ? large_factor(g, origin, destination, ratios)
                                   : exact_factor(blocks, g, origin, destination, ratios);
}

std::vector<Gpu> unpack(const GpuColumns &columns) {
    std::vector<Gpu> gpus;
    gpus.reserve(columns.size);
    for (std::size_t g = 0; g < columns.size; ++g) {
        gpus.push_back(columns[g]);
    }
    return gpus;
}

Side side_of(const Kernel &kernel, const Gpu &gpu) noexcept {
    return {gpu.num_sms, gpu.num_sms * resident_blocks(kernel, gpu.limits)};
}

[[noreturn]] void refuse_not_resident(std::size_t k, const std::string &where) {
    throw std::invalid_argument("wave size of kernel " + std::to_string(k) +
                                " is 0: no block of it can be resident on " + where);
}

double scale_kernel(const Kernel &kernel, Side on_origin, Side on_destination, const Gpu &origin,
                    const Gpu &destination, WaveForm form) noexcept {
    if (on_destination.wave_size == 0) {
        return std::numeric_limits<double>::quiet_NaN();
    }
    const double ridge = destination.peak_flops_per_s / destination.memory_bytes_per_s;
    const double g = memory_weight(kernel.intensity_flops_per_byte, ridge);
    const Ratios ratios{origin.memory_bytes_per_s / destination.memory_bytes_per_s,
                        origin.base_clock_hz / destination.base_clock_hz};
    return scale_factor(kernel.blocks, g, on_origin, on_destination, ratios, form) * kernel.duration_s;
}

}  // namespace

Kernel KernelColumns::operator[](std::size_t k) const {
    return {blocks[k],       threads_per_block[k], registers_per_thread[k],
            shared_bytes[k], duration_s[k],        intensity_flops_per_byte[k]};
}

Gpu GpuColumns::operator[](std::size_t g) const {
    Gpu gpu{num_sms[g], base_clock_hz[g], memory_bytes_per_s[g], peak_flops_per_s[g], {}};
    std::memcpy(&gpu.limits, limits + g * num_limits, sizeof(OccupancyLimits));
    return gpu;
}

std::int64_t resident_blocks(const Kernel &kernel, const OccupancyLimits &limits) noexcept {
    if (kernel.threads_per_block > std::min(max_threads_per_block, limits.max_threads)) {
        return 0;
    }
    const std::int64_t warps_per_block = ceil_div(kernel.threads_per_block, limits.warp_size);
    const std::int64_t max_warps = limits.max_threads / limits.warp_size;
    return std::min({max_warps / warps_per_block, limits.max_blocks,
                     blocks_by_registers(warps_per_block, kernel.registers_per_thread, limits),
                     blocks_by_shared_memory(kernel.shared_bytes, limits)});
}

void count_resident_blocks(const KernelColumns &kernels, const GpuColumns &gpus, std::int64_t *resident) {
    check_kernels(kernels);
    check_gpus(gpus);
    const std::vector<Gpu> rows = unpack(gpus);
    for (std::size_t k = 0; k < kernels.size; ++k) {
        const Kernel kernel = kernels[k];
        for (const Gpu &gpu : rows) {
            *resident++ = resident_blocks(kernel, gpu.limits);
        }
    }
}

void scale_kernels(const KernelColumns &kernels, const GpuColumns &origin, const GpuColumns &destinations,
                   WaveForm form, Unlaunchable unlaunchable, double *time_s) {
    check_origin(origin);
    check_kernels(kernels);
    check_gpus(destinations);
    check_gpus(origin);
    const Gpu from = origin[0];
    const std::vector<Gpu> rows = unpack(destinations);
    for (std::size_t k = 0; k < kernels.size; ++k) {
        const Kernel kernel = kernels[k];
        const Side on_origin = side_of(kernel, from);
        if (on_origin.wave_size == 0) {
            refuse_not_resident(k, "the origin");
        }
        for (std::size_t g = 0; g < rows.size(); ++g) {
            const Side on_destination = side_of(kernel, rows[g]);
            if (on_destination.wave_size == 0 && unlaunchable == Unlaunchable::raise) {
                refuse_not_resident(k, "destination " + std::to_string(g));
            }
            *time_s++ = scale_kernel(kernel, on_origin, on_destination, from, rows[g], form);
        }
    }
}

}  // namespace advisor
