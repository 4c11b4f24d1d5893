// Every program in docs/language.md is valid and reads back equal.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <iterator>
#include <regex>
#include <sstream>

#include "graph/ir/check.h"
#include "graph/ir/imports.h"
#include "graph/ir/text.h"
#include "graph/op/register.h"
#include "loop/scalar_ops.h"
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

// The heads of a file's functions as the page has them, without names: "map[T](list[T]) -> T".
std::vector<std::string> heads(const std::string& text) {
  static const std::regex head(R"(fn @([^{]*) \{)"), parameter(R"(%[a-z_]+: )");
  std::vector<std::string> out;
  for (std::sregex_iterator at(text.begin(), text.end(), head), end; at != end; ++at) {
    const std::string found = (*at)[1];
    if (found.find('%') != std::string::npos) {
      out.push_back(std::regex_replace(found, parameter, ""));
    }
  }
  return out;
}

TEST(LanguagePage, ItsTablesHaveFunctionsOfTheStandardLibrary) {
  std::ifstream in("docs/language.md");
  std::vector<std::string> known;
  for (const std::string& name : std_names()) {
    const std::vector<std::string> more = heads(std::string(*find_std_file(name)));
    known.insert(known.end(), more.begin(), more.end());
  }
  static const std::regex row(R"(\| `([a-z_]+\[[^`]*\]\([^`]*\) -> [^`]*)` \|.*)");
  std::string line;
  size_t rows = 0;
  while (std::getline(in, line)) {
    std::smatch match;
    if (!std::regex_match(line, match, row)) continue;
    ++rows;
    EXPECT_NE(std::ranges::find(known, match[1].str()), known.end()) << line;
  }
  EXPECT_EQ(rows, 14u);
}

// The functions of the grammar of kernels are the operations of scalars that aren't signs.
TEST(LanguagePage, HasEveryFunctionOfKernels) {
  std::stringstream page;
  page << std::ifstream("docs/language.md").rdbuf();
  std::smatch block;
  const std::string text = page.str();
  ASSERT_TRUE(std::regex_search(text, block, std::regex(R"(FUNCTION   =([a-z0-9_ \n]*)\n\n)")));
  std::istringstream words(block[1]);
  const std::vector<std::string> found{std::istream_iterator<std::string>(words), {}};
  std::vector<std::string> expected;
  for (const auto& table : {loop::unary_ops(), loop::binary_ops()}) {
    for (const loop::ScalarOpInfo& op : table) {
      if (std::isalpha(op.word[0])) expected.emplace_back(op.word);
    }
  }
  EXPECT_THAT(found, testing::UnorderedElementsAreArray(expected));
}

}  // namespace
}  // namespace tenon::graph
