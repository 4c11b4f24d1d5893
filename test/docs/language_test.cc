// Every program in docs/language.md is valid and reads back equal.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "graph/ir/check.h"
#include "graph/ir/text.h"
#include "graph/op/register.h"
#include "object/reflect.h"

namespace tenon::graph {
namespace {

struct Example {
  std::string text;
  int line;
};

std::vector<Example> examples(const std::string& path) {
  std::ifstream in(path);
  EXPECT_TRUE(in) << path;
  std::vector<Example> out;
  std::string line;
  bool inside = false;
  for (int number = 1; std::getline(in, line); ++number) {
    if (line == "```tn") {
      out.push_back({"", number});
      inside = true;
    } else if (line == "```") {
      inside = false;
    } else if (inside) {
      out.back().text += line + "\n";
    }
  }
  return out;
}

TEST(LanguagePage, ItsProgramsAreValidAndReadBackEqual) {
  register_operators();
  register_graph_types();
  std::vector<Example> all = examples("docs/language.md");
  EXPECT_GE(all.size(), 10u);
  for (const Example& e : all) {
    try {
      Module m = parse_module(e.text, "example.tn");
      check_module(m);
      std::string text = to_text(m);
      Module back = parse_module(text, "printed.tn");
      EXPECT_TRUE(structural_equal(m, back)) << text;
      EXPECT_EQ(to_text(back), text);
    } catch (const Error& error) {
      ADD_FAILURE() << "docs/language.md:" << e.line << ": " << error.render() << "\n" << e.text;
    }
  }
}

}  // namespace
}  // namespace tenon::graph
