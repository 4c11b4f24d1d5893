// Mutants of valid programs must parse or give a Usage error.
#include <gtest/gtest.h>

#include <random>

#include "graph/ir/check.h"
#include "graph/ir/operators_testing.h"
#include "graph/ir/random_module_testing.h"
#include "graph/ir/text.h"

namespace tenon::graph {
namespace {

class Mutants : public ::testing::Test {
 protected:
  Mutants() {
    register_test_operators();
    register_graph_types();
  }

  void read(const std::string& text) {
    try {
      Module m = parse_module(text, "mutant.tn");
      check_module(m);
      // A module that was parsed can be printed and parsed again.
      std::string once = to_text(m);
      if (once.find("{...}") == std::string::npos) {
        EXPECT_EQ(to_text(parse_module(once, "once.tn")), once) << text;
      }
    } catch (const Error& e) {
      EXPECT_TRUE(e.kind() == ErrorKind::Usage || e.kind() == ErrorKind::Damaged)
          << e.render() << "\n"
          << text;
    }
  }

  size_t below(size_t n) { return static_cast<size_t>(engine() % n); }

  std::mt19937_64 engine{7};
};

TEST_F(Mutants, OfRandomModules) {
  static const std::vector<std::string> words = {"%x",
                                                 "@main",
                                                 "(",
                                                 ")",
                                                 "[",
                                                 "]",
                                                 "{",
                                                 "}",
                                                 ",",
                                                 ":",
                                                 "=",
                                                 "->",
                                                 "tensor",
                                                 "fn",
                                                 "if",
                                                 "loop",
                                                 "match",
                                                 "kernel",
                                                 "n",
                                                 "0",
                                                 "-1",
                                                 "9223372036854775807",
                                                 "1e308",
                                                 "nan",
                                                 "0x7f",
                                                 "\"",
                                                 "floordiv(n, 0)",
                                                 "()",
                                                 "check",
                                                 "relu",
                                                 "dim(",
                                                 "f16",
                                                 "for",
                                                 "vector",
                                                 "$0",
                                                 "...",
                                                 "@\"\""};
  std::vector<std::string> texts;
  for (uint64_t seed = 0; seed < 40; ++seed) texts.push_back(to_text(random_module(seed)));
  for (int i = 0; i < 3000; ++i) {
    std::string t = texts[below(texts.size())];
    // Mutates one function, so that most of the text stays valid.
    for (size_t edits = 1 + below(3); edits > 0; --edits) {
      size_t at = below(t.size());
      switch (below(6)) {
        case 0:
          t[at] = static_cast<char>(engine());
          break;
        case 1:
          t.erase(at, 1 + below(8));
          break;
        case 2:
          t.insert(at, words[below(words.size())]);
          break;
        case 3:
          t.resize(at);
          break;
        case 4:
          t.insert(at, t.substr(below(t.size()), below(60)));
          break;
        default: {
          const std::string& other = texts[below(texts.size())];
          t.replace(at, below(40), other.substr(below(other.size()), below(40)));
        }
      }
      if (t.empty()) t = " ";
    }
    read(t);
  }
}

TEST_F(Mutants, LongAndDeepText) {
  const size_t n = 50000;
  auto repeated = [](std::string_view s, size_t count) {
    std::string out;
    for (size_t i = 0; i < count; ++i) out += s;
    return out;
  };
  std::string head = "fn @f(%x: i64) -> i64 { ";
  read(repeated("(", n));
  read("fn @f(%x: " + repeated("(", n));
  read("fn @f(%x: " + repeated("array[", n));
  read("fn @f(%x: tensor[" + repeated("(", n) + "n");
  read("fn @f(%x: tensor[" + repeated("-", n) + "n; f32]) -> i64 { 1 }");
  read("fn @f(%x: tensor[" + repeated("n + ", n) + "n; f32]) -> i64 { 1 }");
  read("fn @f(%x: tensor[" + repeated("(n + m) * ", 400) + "n; f32]) -> i64 { 1 }");
  read("fn @f(%x: tensor[" + repeated("min(n, ", 400) + "n; f32]) -> i64 { 1 }");
  read(head + repeated("if true { ", n));
  read(head + "%c = packed \"p\"(a=" + repeated("[", n));
  read(head + "%c = tensor[99999999; f32]{" + repeated("1, ", n));
  read(repeated("fn @f", n));
  read(repeated("{", n));
  read("kernel @k() -> () {" + repeated("{", n));
  read("kernel @k() -> () {" + repeated("let %x = (", n));
  read("kernel @k(%y: tensor[1; f32]) -> () { $0 = %y[0] + %y[0] " + [] {
    std::string s;
    for (int i = 1; i < 3000; ++i) {
      s += cat("$", i, " = $", i - 1, " + $", i - 1, "\n");
    }
    return s;
  }() + "}");
  // Repeated tuples of one value twice: the type doubles each time.
  std::string doubling = head + "%a0 = (%x, %x) ";
  for (int i = 1; i < 200; ++i) doubling += cat("%a", i, " = (%a", i - 1, ", %a", i - 1, ") ");
  read(doubling + "%x }");
  // Many bindings take linear time.
  std::string bindings = head + "%v0 = add(%x, 1) ";
  for (int i = 1; i < 5000; ++i) bindings += cat("%v", i, " = mul(%v", i - 1, ", 2)\n");
  read(bindings + "%v4999 }");
}

}  // namespace
}  // namespace tenon::graph
