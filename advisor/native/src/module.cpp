// The compiled half of advisor.native: one register_* function a topic.
#include <nanobind/nanobind.h>

#include "register_queue.hpp"
#include "register_wave.hpp"

NB_MODULE(_native, module) {
    module.doc() = "Occupancy, wave scaling and a cluster's queue, compiled.";
    register_queue(module);
    register_wave(module);
}
