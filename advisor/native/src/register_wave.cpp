// Occupancy and wave scaling for Python: reads the columns of KernelArrays and GpuArrays (../arrays.py).
#include "register_wave.hpp"

#include <nanobind/stl/string.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "arrays.hpp"
#include "wave.hpp"

namespace nb = nanobind;

namespace {

using advisor::Array;
using advisor::read;

void check_rows(const char *name, std::size_t rows, std::size_t expected) {
    if (rows != expected) {
        throw std::invalid_argument(std::string(name) + " has " + std::to_string(rows) +
                                    " rows, must have " + std::to_string(expected));
    }
}

// Holds the arrays for as long as the core reads them: the caller may drop them while the GIL is released.
class KernelHolder {
public:
    explicit KernelHolder(nb::handle kernels)
        : blocks_(read<std::int64_t>(kernels, "blocks_K")),
          threads_(read<std::int64_t>(kernels, "threads_per_block_K")),
          registers_(read<std::int64_t>(kernels, "registers_per_thread_K")),
          shared_(read<std::int64_t>(kernels, "shared_bytes_K")),
          duration_(read<double>(kernels, "duration_s_K")),
          intensity_(read<double>(kernels, "intensity_flops_per_byte_K")) {
        check_rows("threads_per_block_K", threads_.size(), blocks_.size());
        check_rows("registers_per_thread_K", registers_.size(), blocks_.size());
        check_rows("shared_bytes_K", shared_.size(), blocks_.size());
        check_rows("duration_s_K", duration_.size(), blocks_.size());
        check_rows("intensity_flops_per_byte_K", intensity_.size(), blocks_.size());
    }

    advisor::KernelColumns columns() const {
        return {blocks_.size(), blocks_.data(),   threads_.data(),  registers_.data(),
                shared_.data(), duration_.data(), intensity_.data()};
    }

private:
    Array<std::int64_t> blocks_, threads_, registers_, shared_;
    Array<double> duration_, intensity_;
};

class GpuHolder {
public:
    explicit GpuHolder(nb::handle gpus)
        : num_sms_(read<std::int64_t>(gpus, "num_sms_G")),
          clock_(read<double>(gpus, "base_clock_hz_G")),
          memory_(read<double>(gpus, "memory_bytes_per_s_G")),
          peak_(read<double>(gpus, "peak_flops_per_s_G")),
          limits_(read<std::int64_t, 2>(gpus, "limits_GL")) {
        check_rows("base_clock_hz_G", clock_.size(), num_sms_.size());
        check_rows("memory_bytes_per_s_G", memory_.size(), num_sms_.size());
        check_rows("peak_flops_per_s_G", peak_.size(), num_sms_.size());
        check_rows("limits_GL", limits_.shape(0), num_sms_.size());
        check_rows("transposed limits_GL", limits_.shape(1), advisor::num_limits);
    }

    advisor::GpuColumns columns() const {
        return {num_sms_.size(), num_sms_.data(), clock_.data(),
                memory_.data(),  peak_.data(),    limits_.data()};
    }

private:
    Array<std::int64_t> num_sms_;
    Array<double> clock_, memory_, peak_;
    Array<std::int64_t, 2> limits_;
};

template <typename Value>
using Matrix = nb::ndarray<nb::numpy, Value, nb::ndim<2>>;

advisor::WaveForm parse_form(const std::string &form) {
    if (form == "auto") return advisor::WaveForm::automatic;
    if (form == "exact") return advisor::WaveForm::exact;
    if (form == "large") return advisor::WaveForm::large;
    throw std::invalid_argument("'" + form + "' is not a valid WaveForm");
}

advisor::Unlaunchable parse_unlaunchable(const std::string &unlaunchable) {
    if (unlaunchable == "raise") return advisor::Unlaunchable::raise;
    if (unlaunchable == "nan") return advisor::Unlaunchable::nan;
    throw std::invalid_argument("'" + unlaunchable + "' is not a valid Unlaunchable");
}

Matrix<std::int64_t> count_resident_blocks(nb::handle kernels, nb::handle gpus) {
    const KernelHolder kernel_arrays(kernels);
    const GpuHolder gpu_arrays(gpus);
    const auto rows = kernel_arrays.columns();
    const auto columns = gpu_arrays.columns();
    auto resident = std::make_unique<std::int64_t[]>(rows.size * columns.size);
    {
        nb::gil_scoped_release release;
        advisor::count_resident_blocks(rows, columns, resident.get());
    }
    return advisor::to_numpy<std::int64_t, 2>(std::move(resident), {rows.size, columns.size});
}

Matrix<double> scale_kernels(nb::handle kernels, nb::handle origin, nb::handle destinations,
                             const std::string &form, const std::string &unlaunchable) {
    const KernelHolder kernel_arrays(kernels);
    const GpuHolder origin_arrays(origin);
    const GpuHolder destination_arrays(destinations);
    const auto wave_form = parse_form(form);
    const auto on_unlaunchable = parse_unlaunchable(unlaunchable);
    const auto rows = kernel_arrays.columns();
    const auto columns = destination_arrays.columns();
    auto time_s = std::make_unique<double[]>(rows.size * columns.size);
    {
        nb::gil_scoped_release release;
        advisor::scale_kernels(rows, origin_arrays.columns(), columns, wave_form, on_unlaunchable,
                               time_s.get());
    }
    return advisor::to_numpy<double, 2>(std::move(time_s), {rows.size, columns.size});
}

}  // namespace

void register_wave(nb::module_ &module) {
    module.def("count_resident_blocks", &count_resident_blocks, nb::arg("kernels"), nb::arg("gpus"),
               "Resident blocks of every kernel on every GPU; see advisor.native.reference.");
    module.def("scale_kernels", &scale_kernels, nb::arg("kernels"), nb::arg("origin"),
               nb::arg("destinations"), nb::kw_only(), nb::arg("form") = "auto",
               nb::arg("unlaunchable") = "raise",
               "Seconds of every kernel on every destination; see advisor.native.reference.");
}
