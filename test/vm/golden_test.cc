// Runs test/golden/vm/data/*.tna: assembly whose comments state calls and their results.
//
//   ; call NAME(VALUE, ...) = VALUE      a value as assembly writes constants; (a, b) for a tuple
//   ; call NAME(VALUE, ...) fails: TEXT  the error contains the text
//   ; refused RULE: TEXT                 the file violates that rule of the verifier
//
// Every file must also survive: text -> unit -> text -> unit, and unit -> .tnx -> unit. What was
// read back runs groups of calls on two threads. TENON_BLESS=1 rewrites the results of calls.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "library/algorithms/register.h"
#include "library/ml/register.h"
#include "library/text/register.h"
#include "object/array.h"
#include "object/cell.h"
#include "object/registry.h"
#include "object/shape.h"
#include "object/tensor.h"
#include "support/text.h"
#include "vm/asm/assemble.h"
#include "vm/asm/constant_text.h"
#include "vm/asm/disassemble.h"
#include "vm/builtin/register.h"
#include "vm/executable/verify.h"
#include "vm/executable/write_file.h"
#include "vm/interp/machine.h"

namespace tenon::vm {
namespace {

constexpr char kFolder[] = "test/golden/vm/data";

std::string value_text(const AnyView& v) {
  if (const auto* array = v.as_object<ArrayObj>()) {
    std::string out = "(";
    for (int64_t i = 0; i < array->size; ++i) {
      out += (i ? ", " : "") + value_text(array->begin()[i]);
    }
    return out + ")";
  }
  if (const auto* cell = v.as_object<CellObj>()) {
    std::string out = cat("cell ", cell->tag, "(");
    for (int64_t i = 0; i < cell->size; ++i) out += (i ? ", " : "") + value_text(cell->begin()[i]);
    return out + ")";
  }
  if (v.type_index == TypeIndex::Function) return "function";
  if (v.type_index == TypeIndex::Storage) return "storage";
  return constant_text(v, 64);
}

Any parse_value(LineCursor& in) {
  if (!in.take('(')) return parse_constant(in);
  Array<Any> fields;
  if (!in.take(')')) {
    do fields.push_back(parse_value(in));
    while (in.take(','));
    in.need(')');
  }
  return Any(fields);
}

// Errors align columns, so runs of spaces count as one.
std::string squeezed(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c != ' ' || out.empty() || out.back() != ' ') out += c;
  }
  return out;
}

// The host functions and options for the files.
ProgramOptions options_for_files() {
  static const bool once = [] {
    register_builtins();
    register_algorithms();
    register_ml();
    register_text();
    register_typed("test.add", [](int64_t a, int64_t b) { return a + b; });
    register_typed("test.fail", [](const Any&) -> int64_t {
      throw Error(ErrorKind::Runtime, "the host refuses");
    });
    register_typed("test.call", [](const Function& f, const Any& x) { return f(x); });
    register_typed("test.none", [] {});
    register_typed("test.address", [](const AnyView& a) {
      return static_cast<int64_t>(reinterpret_cast<intptr_t>(a.object()));
    });
    register_typed("test.address_of_elements", [](const Tensor& t) {
      return static_cast<int64_t>(reinterpret_cast<intptr_t>(t.data()));
    });
    // Through C, like values from a host.
    register_function("test.same", Function::from_c(
                                       [](void*, const AnyView* args, int32_t, Any* result) {
                                         *result = Any(args[0]);
                                         return 0;
                                       },
                                       nullptr, nullptr));
    return true;
  }();
  (void)once;
  return {};
}

struct GoldenFile : testing::TestWithParam<std::filesystem::path> {
  std::vector<std::string> lines;
  std::string text;

  void SetUp() override {
    std::ifstream in(GetParam());
    text.assign(std::istreambuf_iterator<char>(in), {});
    for (std::string_view rest = text; !rest.empty();) {
      size_t end = rest.find('\n');
      lines.emplace_back(rest.substr(0, end));
      rest = end == std::string_view::npos ? "" : rest.substr(end + 1);
    }
  }

  std::string call(Machine& m, LineCursor& in) {
    std::string name = in.name_or_string();
    std::vector<Any> args;
    in.need('(');
    if (!in.take(')')) {
      do args.push_back(parse_value(in));
      while (in.take(','));
      in.need(')');
    }
    try {
      std::vector<AnyView> views(args.begin(), args.end());
      return cat("= ", value_text(m.call(name, std::span<const AnyView>(views))));
    } catch (const Error& e) {
      return "fails: " + e.render();
    }
  }
};

TEST_P(GoldenFile, DoesWhatItSays) {
  Unit unit = assemble(text, GetParam().string());
  std::string printed = disassemble(unit);
  EXPECT_EQ(disassemble(assemble(printed)), printed);

  bool refused = false;
  for (const std::string& line : lines) {
    LineCursor in(GetParam().string(), line, 0);
    if (!line.starts_with("; refused ")) continue;
    refused = true;
    size_t colon = line.find(':');
    std::string rule = line.substr(10, colon - 10);
    try {
      verify(unit);
      ADD_FAILURE() << "the verifier passes it";
    } catch (const Error& e) {
      EXPECT_THAT(e.render(), testing::HasSubstr(cat("rule      ", rule, ", docs/isa.md")));
      EXPECT_THAT(e.render(), testing::HasSubstr(line.substr(colon + 2)));
      EXPECT_EQ(e.kind(), ErrorKind::Damaged);
    }
    // A file with the same damage and valid hashes can't be loaded.
    EXPECT_THROW(Program::load_bytes(write_to_bytes(unit)), Error);
  }
  if (refused) return;

  ProgramOptions options = options_for_files();
  Machine m(Program::from_unit(unit, options));
  std::string bytes = write_to_bytes(unit);
  Ref<Program> loaded = Program::load_bytes(bytes, options);
  EXPECT_EQ(write_to_bytes(loaded->unit()), bytes);
  Machine from_file(loaded, {.threads = 2}, {.inter_op = 2});

  bool bless = std::getenv("TENON_BLESS") != nullptr;
  std::string blessed;
  int calls = 0;
  for (size_t i = 0; i < lines.size(); ++i) {
    std::string line = lines[i];
    if (line.starts_with("; call ")) {
      ++calls;
      LineCursor in(GetParam().string(), std::string_view(lines[i]).substr(7),
                    static_cast<int32_t>(i + 1));
      std::string result = call(m, in);
      std::string expected(std::string_view(line).substr(7 + in.position()));
      expected.erase(0, expected.find_first_not_of(' '));
      bool fails = expected.starts_with("fails: ");
      if (bless && !fails) {
        line = line.substr(0, 7 + in.position()) + " " + result;
      } else if (fails) {
        EXPECT_THAT(result, testing::StartsWith("fails: ")) << line;
        EXPECT_THAT(squeezed(result), testing::HasSubstr(squeezed(expected.substr(7)))) << line;
      } else {
        EXPECT_EQ(result, expected) << line;
      }
      in.set_position(0);
      EXPECT_EQ(call(from_file, in), result) << "from the file, " << line;
    }
    blessed += line + "\n";
  }
  EXPECT_GT(calls, 0) << "the file calls nothing";
  if (bless) std::ofstream(GetParam()) << blessed;
}

std::vector<std::filesystem::path> files() {
  std::vector<std::filesystem::path> out;
  for (const auto& e : std::filesystem::directory_iterator(kFolder)) {
    if (e.path().extension() == ".tna") out.push_back(e.path());
  }
  std::sort(out.begin(), out.end());
  return out;
}

INSTANTIATE_TEST_SUITE_P(Vm, GoldenFile, testing::ValuesIn(files()), [](const auto& info) {
  std::string name = info.param.stem().string();
  for (char& c : name) {
    if (!LineCursor::is_name_byte(c) || c == '.') c = '_';
  }
  return name;
});

// Each rule that assembly can violate has a file that violates it.
TEST(GoldenFiles, BreakEveryRuleOfCode) {
  std::string all;
  for (const auto& path : files()) {
    std::ifstream in(path);
    all.append(std::istreambuf_iterator<char>(in), {});
  }
  // These rules concern the file around the code; vm/executable tests them.
  const std::vector<Rule> elsewhere = {Rule::OpcodeSince, Rule::ConstantForm, Rule::KernelClosed,
                                       Rule::SignatureText, Rule::TableSize};
  for (Rule rule : all_rules()) {
    if (std::find(elsewhere.begin(), elsewhere.end(), rule) != elsewhere.end()) continue;
    EXPECT_THAT(all, testing::HasSubstr(cat("; refused ", rule_name(rule), ":")));
  }
}

// Each instruction appears in a file.
TEST(GoldenFiles, UseEveryInstruction) {
  std::vector<bool> used(256);
  for (const auto& path : files()) {
    std::ifstream in(path);
    Unit unit = assemble(std::string{std::istreambuf_iterator<char>(in), {}}, path.string());
    for (const FunctionUnit& f : unit.functions) {
      Instruction i;
      for (uint32_t at = 0; decode(f.code, at, &i); at += i.words()) {
        used[static_cast<size_t>(i.opcode())] = true;
      }
    }
  }
  for (const OpcodeInfo& info : all_opcodes()) {
    EXPECT_TRUE(used[static_cast<size_t>(info.opcode)]) << std::string_view(info.mnemonic);
  }
}

}  // namespace
}  // namespace tenon::vm
