// What a page says first of a program and of what was recorded.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "report/timeline.h"
#include "vm/isa/unit.h"

namespace tenon::report {

// Names and values, a line each. Both may be null.
std::vector<std::pair<std::string, std::string>> facts_of(const vm::Unit* unit,
                                                          const Timeline* timeline);

}  // namespace tenon::report
