// Elements that a reduction may leave out: those that a condition replaces by its identity, as
// around an image. Private to the schedule_*.cc files.
#pragma once

#include "loop/nest.h"

namespace tenon::loop {

struct Range {
  ExprRef begin, end;
};

// A body that counts where all conditions hold; elsewhere, it is the reduction's identity.
struct Guarded {
  std::vector<ExprRef> conditions;
  ExprRef body;
};
Guarded guarded(const Work& w);
ExprRef with_conditions(const Guarded& g, const Work& w);

// The f of a condition on integers that holds where f >= 0; null for other conditions, and where f
// may wrap.
ExprRef not_negative(const ExprRef& condition);
// The bounds of `v` within which f = c * v + rest isn't negative, where c isn't 0 and `rest` is
// free of v.
Range where_not_negative(int64_t c, const ExprRef& rest, const Range& range);

// The ranges of the reduced variables, as far as conditions bound them; these leave `body`, which
// is w's at first. None of the ranges depends on `along`, which may be null.
std::vector<Range> restricted_ranges(const Work& w, const Var* along, ExprRef* body);

// The places along an axis where conditions hold for all reduced elements.
struct InnerPlaces {
  Range range;
  std::vector<ExprRef> not_negative;  // the f of each condition
};
// Nullopt if a condition isn't of the form c * v + .. >= 0, where v is the axis' variable, or reads
// elements: another condition may guard those.
std::optional<InnerPlaces> inner_places(const Work& w, const Axis& axis,
                                        const std::vector<ExprRef>& conditions);

// Serial loops over `axes`, each within its range.
StmtRef loops_within(std::span<const Axis> axes, const std::vector<Range>& ranges, StmtRef body);

// The padding of a product's operand guards the whole product, so that it can bound the loops.
ExprRef with_padding_outside(const ExprRef& body);

}  // namespace tenon::loop
