// Each row of vm/isa/counterparts.def is shown by a function of
// test/golden/vm/data/counterparts.tna, which golden_test.cc runs, or by a test here.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <sstream>

#include "support/text.h"
#include "tenon/c_api.h"
#include "vm/asm/assemble.h"
#include "vm/executable/write_file.h"

namespace tenon::vm {
namespace {

constexpr char kFile[] = "test/golden/vm/data/counterparts.tna";

struct Row {
  std::string name;  // "Relax VM: Ret"
  std::string here;
};

std::vector<Row> rows() {
  return {
#define TENON_COUNTERPART(document, there, here) {document ": " there, here},
#include "vm/isa/counterparts.def"
#undef TENON_COUNTERPART
  };
}

std::string text_of_file() {
  std::ifstream in(kFile);
  return {std::istreambuf_iterator<char>(in), {}};
}

// The mnemonics in backquotes of a row.
std::set<std::string> mnemonics_in(const std::string& text) {
  std::set<std::string> out;
  for (size_t at = text.find('`'); at != std::string::npos; at = text.find('`', at + 1)) {
    const size_t end = text.find('`', at + 1);
    const std::string word = text.substr(at + 1, end - at - 1);
    for (const OpcodeInfo& info : all_opcodes()) {
      if (word == std::string_view(info.mnemonic)) out.insert(word);
    }
    at = end;
  }
  return out;
}

std::set<std::string> mnemonics_of(const FunctionUnit& function) {
  std::set<std::string> out;
  Instruction i;
  for (uint32_t at = 0; decode(function.code, at, &i); at += i.words()) {
    out.emplace(std::string_view(i.info->mnemonic));
  }
  return out;
}

// By the rows that stand above functions, the functions' names.
std::map<std::string, std::vector<std::string>> functions_by_row(const std::string& text) {
  constexpr std::string_view kRow = "; counterpart ", kFunction = "func @";
  std::map<std::string, std::vector<std::string>> out;
  std::vector<std::string> above;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(kRow)) above.push_back(line.substr(kRow.size()));
    if (!line.starts_with(kFunction)) continue;
    const std::string name = line.substr(kFunction.size(), line.find('(') - kFunction.size());
    for (const std::string& row : above) out[row].push_back(name);
    above.clear();
  }
  return out;
}

const FunctionUnit& function_of(const Unit& unit, const std::string& name) {
  return *std::ranges::find(unit.functions, name, &FunctionUnit::name);
}

// The row that assembly can't show; SkipsCallsUnderAnInstrument does.
constexpr char kInstrument[] = "Relax VM: instrument with SKIP_RUN";

TEST(Counterparts, AreEachShownByAProgramThatRuns) {
  const std::string text = text_of_file();
  const Unit unit = assemble(text, kFile);
  std::map<std::string, std::vector<std::string>> shown = functions_by_row(text);
  for (const Row& row : rows()) {
    if (row.name == kInstrument) continue;
    const auto functions = shown.extract(row.name);
    ASSERT_FALSE(functions.empty()) << "no function shows the row " << row.name;
    std::set<std::string> used;
    for (const std::string& name : functions.mapped()) {
      EXPECT_NE(text.find(cat("; call ", name, "(")), std::string::npos) << name << " isn't called";
      used.merge(mnemonics_of(function_of(unit, name)));
    }
    for (const std::string& mnemonic : mnemonics_in(row.here)) {
      EXPECT_TRUE(used.contains(mnemonic)) << row.name << " names " << mnemonic;
    }
  }
  for (const auto& [row, functions] : shown) ADD_FAILURE() << "the table has no row " << row;
}

TEST(Counterparts, SkipsCallsUnderAnInstrument) {
  const auto rows_named = std::ranges::count(rows(), kInstrument, &Row::name);
  EXPECT_EQ(rows_named, 1);
  const std::string file = write_to_bytes(assemble(R"(
func @inner(n: i64) -> i64 {
  ret %0
}
func @outer(n: i64) -> i64 {
  %0 = call @inner, %0
  ret %0
}
)",
                                                   "<memory>"));
  tenon_any program{}, machine{}, result{}, argument{};
  argument.type_index = TENON_INT;
  argument.v.i = 3;
  ASSERT_EQ(tenon_program_from_bytes(file.data(), file.size(), nullptr, &program), 0);
  ASSERT_EQ(tenon_machine_create(&program, &machine), 0);
  const tenon_instrument skip = [](void*, const tenon_call_event* event) {
    event->result->type_index = TENON_INT;
    event->result->v.i = 100;
    return static_cast<int>(TENON_INSTRUMENT_SKIP);
  };
  EXPECT_EQ(tenon_machine_call(&machine, "outer", &argument, 1, &result), 0);
  EXPECT_EQ(result.v.i, 3);
  ASSERT_EQ(tenon_machine_set_instrument(&machine, skip, nullptr, nullptr), 0);
  EXPECT_EQ(tenon_machine_call(&machine, "outer", &argument, 1, &result), 0);
  EXPECT_EQ(result.v.i, 100);
  tenon_any_release(&machine);
  tenon_any_release(&program);
}

}  // namespace
}  // namespace tenon::vm
