// The compiled half of advisor.native: one register_* function a topic.
#include <nanobind/nanobind.h>

#include "register_wave.hpp"

NB_MODULE(_native, module) {
    module.doc() = "Occupancy and wave scaling, compiled.";
    register_wave(module);
}
