// Parts of an axis between which an expression's comparisons change, such as those that tell the
// operands of a concatenation apart. Private to the schedule_*.cc files.
#pragma once

#include <vector>

#include "loop/affine.h"

namespace tenon::loop {

struct AxisPart {
  int64_t begin, end;
  ExprRef body;  // equal to the whole expression for begin <= v < end
};

// The parts of `axis`, in order, for comparisons of its variable plus or minus a number with a
// number. One part with `body` itself if there is none, if the extent isn't known, or if there
// would be more than a schedule should have.
std::vector<AxisPart> parts_of(const ExprRef& body, const VarRange& axis);

}  // namespace tenon::loop
