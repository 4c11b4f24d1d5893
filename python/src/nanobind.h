// nanobind with its conversions of the standard library. Nothing else includes nanobind: a file
// without one of these headers would convert std::string, say, as a bound class, which fails, and
// the linker would keep the code of that file or another's.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>

namespace tenon::python {

namespace nb = nanobind;

}  // namespace tenon::python
