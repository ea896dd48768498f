// Ranges of what the core takes; worded as in ../checks.py.
#pragma once

#include "wave.hpp"

namespace advisor {

// Each throws std::invalid_argument naming the first value out of range.
void check_kernels(const KernelColumns &kernels);
void check_gpus(const GpuColumns &gpus);
void check_origin(const GpuColumns &origin);

}  // namespace advisor
