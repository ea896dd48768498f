#pragma once

#include <nanobind/nanobind.h>

void register_wave(nanobind::module_ &module);
