// The offers of all libraries, in order of preference.
#pragma once

#include <vector>

#include "graph/ir/interfaces.h"

namespace tenon::graph {

// They hold no state and live as long as the process.
const std::vector<Offer*>& all_offers();

}  // namespace tenon::graph
