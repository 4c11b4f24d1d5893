// Converts values to JSON and back, and preserves sharing.
//
//   {"tenon": 1, "root": VALUE, "nodes": [NODE, ...]}
//
// VALUE is null, true, 3, 1.5, "text", or one of
//
//   {"float": "0x7ff8000000000000"}  for floats that JSON can't express
//   {"bytes": "00ff"}  {"dtype": "f32"}  {"device": "cpu:0"}  {"shape": [2, 3]}  {"node": 7}
//
// NODE is one of
//
//   {"$type": KEY, FIELD: VALUE, ...}  {"array": [VALUE...]}  {"map": [[VALUE, VALUE], ...]}
//   {"tensor": DTYPE, "shape": [...], "data": BASE64}
//
// A node refers only to nodes before it, so that reading and writing need no recursion. Omitted
// fields have their defaults.
#pragma once

#include <climits>
#include <string>
#include <string_view>

#include "object/any.h"
#include "support/error.h"

namespace tenon {

// Throws Usage for values that can't be written: functions, run-time modules, objects of types
// without a field table, tensors on devices.
std::string to_json(const AnyView& value, int indent = 0);
// Throws an error of `kind` with line and column for anything that `to_json` doesn't write: an
// unknown type or field, a value that a field can't hold, a forward reference; also where objects
// with fields nest deeper than `max_depth`, for callers that walk them by recursion.
Any from_json(std::string_view text, ErrorKind kind = ErrorKind::Usage,
              std::string_view source = "JSON", int max_depth = INT_MAX);

}  // namespace tenon
