// For growth.py: json_both_ways FILE.tn writes a module as JSON and reads it back,
// json_both_ways FILE.json reads a value.
#include <cstdio>
#include <fstream>
#include <sstream>

#include "driver/compile.h"
#include "graph/ir/check.h"
#include "graph/ir/module.h"
#include "graph/ir/text.h"
#include "json/object_json.h"
#include "support/error.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: json_both_ways FILE.tn|FILE.json\n");
    return 2;
  }
  std::stringstream text;
  text << std::ifstream(argv[1]).rdbuf();
  try {
    tenon::driver::initialise();
    if (std::string_view(argv[1]).ends_with(".json")) {
      (void)tenon::from_json(text.str());
      return 0;
    }
    const auto module = tenon::graph::parse_module(text.str(), argv[1]);
    const tenon::Any read = tenon::from_json(tenon::to_json(tenon::Any(module)));
    tenon::graph::check_module(read.as<tenon::graph::Module>());
  } catch (const tenon::Error& error) {
    std::fprintf(stderr, "%s", error.render().c_str());
    return 2;
  }
}
