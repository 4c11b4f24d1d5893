// Compares computed with expected values of any kind.
#pragma once

#include <string>

#include "object/any.h"
#include "report/compare_tensors.h"

namespace tenon::tool {

using report::compare;
using report::Criterion;
using report::Difference;
using report::NodeCriteria;
using report::Tolerance;

// The same as `compare` for any values: floats within the tolerance, tuples, arrays and cells field
// by field, others structurally. A function equals only itself.
Difference compare_values(const Any& found, const Any& expected, const Criterion& criterion);

}  // namespace tenon::tool
