#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "library/signatures/signatures.h"
#include "support/text.h"

namespace tenon::library {
namespace {

std::string_view kind_name(ValueKind kind) {
  switch (kind) {
    case ValueKind::Tensor:
      return "tensor";
    case ValueKind::Int:
      return "int";
    case ValueKind::Float:
      return "float";
    case ValueKind::Bool:
      return "bool";
    case ValueKind::Shape:
      return "shape";
    case ValueKind::Array:
      return "array";
    case ValueKind::String:
      return "string";
    case ValueKind::Dtype:
      return "dtype";
    case ValueKind::Any:
      return "any";
    case ValueKind::Choice:
      break;
  }
  return "choice";
}

std::string text_of(const Parameter& p) {
  std::string text = cat(p.name, p.optional ? "?" : "");
  if (p.kind == ValueKind::Choice) {
    text += ": ";
    for (size_t i = 0; i < p.choices.count; ++i) {
      text += cat(i ? "\\|" : "", "\"", p.choices.names[i], "\"");
    }
  } else if (p.kind != ValueKind::Tensor) {
    text += cat(": ", kind_name(p.kind));
  }
  return text;
}

std::string list(const Parameters& parameters) {
  std::vector<std::string> texts;
  for (const Parameter& p : parameters) texts.push_back(text_of(p));
  return join(texts, ", ");
}

std::string row(const Signature& s) {
  std::vector<std::string> arguments;
  for (const std::string& part : {list(s.operands), list(s.attributes)}) {
    if (!part.empty()) arguments.push_back(part);
  }
  const std::string results = list(s.results);
  return cat("| `", s.name, "(", join(arguments, "; "), ")`", results.empty() ? "" : " → ", results,
             " | ", to_text(s.effect), " | ", s.summary, s.prepares ? "; prepares" : "", " |\n");
}

// The text of docs/packed-functions.md.
std::string document() {
  std::string out =
      "# Packed functions\n\n"
      "Generated from `src/library/signatures/signatures.h`; don't edit.\n\n"
      "The functions that Tenon's libraries register by name. `packed \"NAME\"(...)` calls one "
      "from a\n"
      "program: operands first, then attributes by name. An operand is a tensor unless its kind "
      "is\n"
      "given; `?` marks one that may be absent. What an effect allows is in `docs/semantics.md`. "
      "A\n"
      "function that prepares makes what later calls need, such as packed weights, before the "
      "first.\n";
  std::string_view library = "none yet";
  for (const Signature& s : kSignatures) {
    if (s.library != library) {
      library = s.library;
      out += library.empty() ? std::string("\n## In the runtime\n\n")
                             : cat("\n## In the library \"", library, "\"\n\n");
      out += "| function | effect | what it does |\n| --- | --- | --- |\n";
    }
    out += row(s);
  }
  return out;
}

// With TENON_BLESS=1, writes the file instead.
TEST(Document, IsWhatTheTableSays) {
  const char* path = "docs/packed-functions.md";
  if (std::getenv("TENON_BLESS") != nullptr) std::ofstream(path) << document();
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  EXPECT_EQ(text.str(), document()) << "run this test with TENON_BLESS=1";
}

TEST(Signatures, HaveNamesOfTheirOwn) {
  for (const Signature& s : kSignatures) EXPECT_EQ(find_signature(s.name), &s) << s.name;
}

TEST(Signatures, GiveEachArgumentAPosition) {
  const Signature& matmul = signature("onednn.matmul");
  EXPECT_EQ(argument(signature("onednn.matmul"), "a"), 0u);
  EXPECT_EQ(argument(signature("onednn.matmul"), "out"), 4u);
  EXPECT_EQ(argument(signature("onednn.matmul"), "beta"), 9u);
  EXPECT_EQ(matmul.arity(), 10u);
  // A result that is returned is not an argument.
  EXPECT_EQ(signature("tenon.topk").position("values"), signature("tenon.topk").arity());
}

}  // namespace
}  // namespace tenon::library
