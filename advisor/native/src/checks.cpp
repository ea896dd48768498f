#include "checks.hpp"

#include <array>
#include <cmath>
#include <limits>
#include <sstream>
#include <stdexcept>

namespace advisor {
namespace {

// Products of two such counts fit 64 bits.
constexpr std::int64_t max_count = std::numeric_limits<std::int32_t>::max();

struct LimitRange {
    const char *name;
    std::int64_t least;
};

constexpr std::array<LimitRange, num_limits> limit_ranges{{
    {"max_threads", 1},
    {"max_blocks", 1},
    {"max_registers", 1},
    {"max_registers_per_thread", 1},
    {"max_shared_bytes", 0},
    {"max_shared_bytes_per_block", 0},
    {"reserved_shared_bytes_per_block", 0},
    {"register_unit", 1},
    {"shared_unit_bytes", 1},
    {"warp_allocation_unit", 1},
    {"warp_size", 1},
}};

template <typename Value>
[[noreturn]] void refuse(const char *name, const char *noun, std::size_t index, Value value,
                         const std::string &rule) {
    std::ostringstream message;
    message << name << " of " << noun << ' ' << index << " is " << value << ": " << rule;
    throw std::invalid_argument(message.str());
}

void check_least(const char *name, const std::int64_t *values, std::size_t size, std::int64_t least) {
    for (std::size_t k = 0; k < size; ++k) {
        if (values[k] < least) {
            refuse(name, "kernel", k, values[k], "must be " + std::to_string(least) + " or more");
        }
    }
}

void check_count(const char *name, std::int64_t value, std::size_t g, std::int64_t least) {
    if (value < least || value > max_count) {
        refuse(name, "GPU", g, value,
               "must be " + std::to_string(least) + " to " + std::to_string(max_count));
    }
}

void check_positive(const char *name, const double *values, std::size_t size) {
    for (std::size_t g = 0; g < size; ++g) {
        if (!std::isfinite(values[g]) || values[g] <= 0.0) {
            refuse(name, "GPU", g, values[g], "must be finite and positive");
        }
    }
}

}  // namespace

void check_kernels(const KernelColumns &kernels) {
    check_least("blocks", kernels.blocks, kernels.size, 1);
    check_least("threads_per_block", kernels.threads_per_block, kernels.size, 1);
    check_least("registers_per_thread", kernels.registers_per_thread, kernels.size, 0);
    check_least("shared_bytes", kernels.shared_bytes, kernels.size, 0);
    for (std::size_t k = 0; k < kernels.size; ++k) {
        const double duration_s = kernels.duration_s[k];
        if (!std::isfinite(duration_s) || duration_s < 0.0) {
            refuse("duration_s", "kernel", k, duration_s, "must be finite, 0 or more");
        }
    }
    for (std::size_t k = 0; k < kernels.size; ++k) {
        const double intensity = kernels.intensity_flops_per_byte[k];
        if (intensity < 0.0) {
            refuse("intensity_flops_per_byte", "kernel", k, intensity, "must be 0 or more");
        }
    }
}

void check_gpus(const GpuColumns &gpus) {
    for (std::size_t g = 0; g < gpus.size; ++g) {
        check_count("num_sms", gpus.num_sms[g], g, 1);
    }
    check_positive("base_clock_hz", gpus.base_clock_hz, gpus.size);
    check_positive("memory_bytes_per_s", gpus.memory_bytes_per_s, gpus.size);
    check_positive("peak_flops_per_s", gpus.peak_flops_per_s, gpus.size);
    for (std::size_t column = 0; column < num_limits; ++column) {
        for (std::size_t g = 0; g < gpus.size; ++g) {
            const LimitRange &range = limit_ranges[column];
            check_count(range.name, gpus.limits[g * num_limits + column], g, range.least);
        }
    }
}

void check_origin(const GpuColumns &origin) {
    if (origin.size != 1) {
        throw std::invalid_argument("num_gpus of origin is " + std::to_string(origin.size) +
                                    ": must be 1");
    }
}

}  // namespace advisor
