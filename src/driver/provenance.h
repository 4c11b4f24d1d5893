// What an executable records of its making, for people: its source, the sizes that were fixed, and
// the options. It has no time and no path, so that the same input makes the same bytes.
//
// The record is JSON:
//
//   {"source": "bert.onnx", "bytes": 438123, "xxh64": "f2a4...", "dims": {"batch": 1},
//    "shapes": {"x": [1, 3]}, "level": 2, "cpu": ["x86-64-v3"],
//    "target": "x86_64-unknown-linux-gnu", "libraries": true, "fold_limit": 4096}
//
// `source` to `shapes`, the origin, are there if the module was read from a file or stream. After
// `libraries` (whether they are used) come the other options of options.def that aren't the
// default.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "driver/compile.h"
#include "driver/open.h"
#include "object/map.h"

namespace tenon::driver {

// The origin of a module, for CompileOptions::origin: an object of JSON.
std::string origin_of(const Source& source, const onnx::ImportOptions& options = {});

// The record of a compilation with these options. Throws Usage if options.origin is not what
// origin_of returns.
std::string provenance_of(const CompileOptions& options);

// The record as plain data. A file may hold anything: what is not an object of JSON is empty.
Map<String, Any> provenance_data(std::string_view record);

// The record for people, a line each; what is not as described above is left out.
std::vector<std::string> provenance_lines(std::string_view record);

}  // namespace tenon::driver
