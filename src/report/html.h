// The report: one HTML page about a program, which needs nothing else (`tenon report`).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "report/peak.h"
#include "report/timeline.h"
#include "vm/isa/unit.h"

namespace tenon::report {

struct Report {
  std::string title;                                       // the file
  std::vector<std::pair<std::string, std::string>> facts;  // first of all; see facts.h
  const vm::Unit* unit = nullptr;                          // may be null
  const Timeline* timeline = nullptr;                      // null if nothing was run
  Peak peak;
  struct Limit {
    std::string name, used, allowed;
  };
  std::vector<Limit> limits;  // empty if they are not known
};

// The report of a recording: `unit` may be null. Both must outlive it.
Report report_of(std::string title, const vm::Unit* unit, const Timeline& timeline,
                 const Peak& peak);

// Throws Damaged if the unit's graph is not one.
std::string to_html(const Report& report);

}  // namespace tenon::report
