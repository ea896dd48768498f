#pragma once

#include <nanobind/nanobind.h>

void register_queue(nanobind::module_ &module);
