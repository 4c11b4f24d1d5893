// The target for what an executable's file holds for people: the graph section and the provenance.
// Reads both, prints the graph again, and makes the page and the pictures of it. Every outcome
// except text, or an error that isn't a bug of Tenon, is a finding.
#pragma once

#include <string>

#include "driver/model_graph.h"
#include "driver/provenance.h"
#include "report/facts.h"
#include "report/html.h"
#include "report/picture.h"
#include "vm/isa/unit.h"

namespace tenon::fuzz {

struct RecordOutcome {
  bool has_graph = false;
  std::string problem;  // of a finding
};

inline RecordOutcome read_records(const vm::Unit& unit) {
  RecordOutcome outcome;
  try {
    driver::provenance_data(unit.provenance);
    driver::provenance_lines(unit.provenance);
    if (unit.graph.empty()) return outcome;
    const driver::ModelGraph graph = driver::model_graph_from_json(unit.graph, "mutant.tnx");
    outcome.has_graph = true;
    const std::string once = driver::to_json(graph);
    const std::string twice = driver::to_json(driver::model_graph_from_json(once, "once.tnx"));
    if (twice != once) outcome.problem = cat("printed\n", once, "\nand read again it is\n", twice);
    for (const driver::FunctionGraph& f : graph.functions)
      report::to_dot(std::vector<report::Drawing>{{f.name, f.before}});
    report::Report page;
    page.title = "mutant.tnx";
    page.facts = report::facts_of(&unit, nullptr);
    page.unit = &unit;
    report::to_html(page);
  } catch (const Error& e) {
    if (outcome.has_graph || e.kind() == ErrorKind::Internal) outcome.problem = e.render();
  }
  return outcome;
}

}  // namespace tenon::fuzz
