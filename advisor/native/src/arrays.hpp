// numpy arrays in and out, for the register_* functions.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <memory>
#include <string>
#include <type_traits>

namespace advisor {

template <typename Value, std::size_t Dims = 1>
using Array = nanobind::ndarray<const Value, nanobind::ndim<Dims>, nanobind::c_contig, nanobind::device::cpu>;

// An attribute that holds an array; the caller keeps the result for as long as the core reads it.
template <typename Value, std::size_t Dims = 1>
Array<Value, Dims> read(nanobind::handle object, const char *name) {
    try {
        return nanobind::cast<Array<Value, Dims>>(object.attr(name), /* convert = */ false);
    } catch (const nanobind::cast_error &) {
        const std::string type = std::is_same_v<Value, double> ? "float64" : "int64";
        const std::string message = std::string(name) + " must be a C-contiguous numpy array of " + type +
                                    " with " + std::to_string(Dims) + " dimension(s)";
        throw nanobind::type_error(message.c_str());
    }
}

// A numpy array that owns `values`.
template <typename Value, std::size_t Dims>
nanobind::ndarray<nanobind::numpy, Value, nanobind::ndim<Dims>> to_numpy(std::unique_ptr<Value[]> values,
                                                                      const std::size_t (&shape)[Dims]) {
    Value *data = values.get();
    nanobind::capsule owner(data, [](void *pointer) noexcept { delete[] static_cast<Value *>(pointer); });
    values.release();
    return {data, Dims, shape, owner};
}

}  // namespace advisor
