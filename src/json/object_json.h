// Values as JSON, both ways, with what they share.
//
//   {"tenon": 1, "root": VALUE, "nodes": [NODE, ...]}
//
// VALUE is null, true, 3, 1.5, "text" or one of {"float": "0x7ff8000000000000"} (what JSON can't
// write), {"bytes": "00ff"}, {"dtype": "float32"}, {"device": "cpu:0"}, {"shape": [2, 3]}, {"node":
// 7}. NODE is {"$type": KEY, FIELD: VALUE, ...}, {"array": [VALUE...]}, {"map": [[VALUE, VALUE],
// ...]} or
// {"tensor": DTYPE, "shape": [...], "data": BASE64}; it refers only to nodes before it, so that
// reading and writing need no recursion. A field that is left out has its default.
#pragma once

#include <string>
#include <string_view>

#include "object/any.h"
#include "support/error.h"

namespace tenon {

// A Usage error for what has no form: functions, modules, types without a table, device tensors.
std::string to_json(const AnyView& value, int indent = 0);
// Errors of `kind` with line and column for anything that `to_json` doesn't write: an unknown type,
// a field that it doesn't have or that can't hold the value, a reference forward.
Any from_json(std::string_view text, ErrorKind kind = ErrorKind::Usage,
              std::string_view source = "JSON");

}  // namespace tenon
