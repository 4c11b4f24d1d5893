// generator_coverage COUNT FIRST: what generated programs FIRST to FIRST + COUNT - 1 reach, and how
// often: opcodes, forms of instructions that the dispatch loop has (vm/interp/handlers.def), rules
// of the verifier that a changed program breaks alone, and, where the compiler is built, places
// where compiled code goes on after a call. Exits with 1 if there is one that none reaches.
#include <cstdio>
#include <map>
#include <set>
#include <string>

#include "arguments.h"
#include "instruction_generator.h"
#include "near_miss.h"
#include "support/error.h"
#include "support/text.h"
#include "vm/builtin/register.h"
#include "vm/interp/dispatch.h"
#include "vm/interp/program.h"
#ifdef TENON_FUZZ_COMPILER
#include "codegen/llvm/bytecode_flow.h"
#endif

namespace tenon::fuzz {
namespace {

using vm::Handler;
using vm::Opcode;

struct Form {
  Handler handler;
  const char* name;
  uint32_t instructions;
};
constexpr Form kForms[] = {
#define TENON_HANDLER(identifier, instructions) {Handler::identifier, #identifier, instructions},
#include "vm/interp/handlers.def"
};

// What can't be reached in a function that returns, or isn't what its name says.
const std::map<std::string, std::string, std::less<>> kExcepted = {
    {"fatal", "ends the call with an error"},
    {"Fatal", "ends the call with an error"},
    {"LoadConst", "the pre-decoder makes it a Move"},
};

class Coverage {
 public:
  Coverage() {
    for (const vm::OpcodeInfo& info : vm::all_opcodes()) opcodes_[std::string(info.mnemonic)] = 0;
    for (const Form& form : kForms) {
      forms_[form.name] = 0;
      form_at_.emplace(vm::Dispatch::address_of(form.handler), &form);
    }
    for (const vm::Rule rule : vm::all_rules()) {
      if (unbreakable(rule).empty()) rules_[std::string(rule_name(rule))] = 0;
    }
#ifdef TENON_FUZZ_COMPILER
    for (const vm::OpcodeInfo& info : vm::all_opcodes()) {
      if (codegen::is_call({&info, {}})) continuations_[std::string(info.mnemonic)] = 0;
    }
#endif
  }

  void add(uint64_t number) {
    Choices choices(number);
    const GeneratedUnit made = make_unit(choices, Reach::Found);
    const auto program = vm::Program::from_unit(made.unit);
    ++forms_["Exit"];
    for (size_t f = 0; f < made.unit.functions.size(); ++f) {
      add_function(made, program->decoded().functions[f], f);
    }
    for (const vm::Rule rule : vm::all_rules()) add_rule(choices, rule, made.unit);
  }

  // Prints the tables; returns how many rows are empty.
  int print() const {
    return print("opcode", opcodes_) + print("form of the dispatch loop", forms_) +
           print("rule of the verifier", rules_) +
           print("continuation of compiled code, after", continuations_);
  }

 private:
  using Table = std::map<std::string, long, std::less<>>;

  void add_function(const GeneratedUnit& made, const vm::FunctionCode& code, size_t f) {
    const std::vector<bool>& reached = made.reached[f];
    const vm::FunctionUnit& function = made.unit.functions[f];
    uint32_t done = 0;  // instructions that the Op before runs, from its own on
    for (uint32_t at = 0, i = 0; i < reached.size(); ++i) {
      vm::Instruction in;
      vm::decode(function.code, at, &in);
      at += in.words();
      if (done > 0) --done;
      if (!reached[i]) continue;
      ++opcodes_[std::string(in.info->mnemonic)];
      if (done > 0) continue;
      const Form& form = *form_at_.at(code.entry[i].handler);
      ++forms_[form.name];
      done = form.instructions;
    }
#ifdef TENON_FUZZ_COMPILER
    const codegen::BytecodeFlow flow(function);
    for (const codegen::FlowBlock& block : flow.blocks) {
      if (!block.resumes || block.end == 0 || block.end > reached.size()) continue;
      const uint32_t next = flow.blocks[*block.resumes].first;
      // The end of a function, which is behind its lines, is reached if it returns.
      if (reached[block.end - 1] && (next >= reached.size() || reached[next])) {
        ++continuations_[std::string(flow.instructions[block.end - 1].info->mnemonic)];
      }
    }
#endif
  }

  void add_rule(Choices& choices, vm::Rule rule, vm::Unit unit) {
    vm::VerifyContext context;
    if (!break_rule(choices, rule, unit, context)) return;
    try {
      vm::verify(unit, context);
    } catch (const Error& e) {
      if (names_rule(e, rule)) ++rules_[std::string(rule_name(rule))];
    }
  }

  static int print(const char* what, const Table& table) {
    int empty = 0;
    for (const auto& [name, count] : table) {
      const auto excepted = kExcepted.find(name);
      const bool is_missed = count == 0 && excepted == kExcepted.end();
      empty += is_missed;
      std::printf("%8ld %s %s%s\n", count, what, name.c_str(),
                  is_missed                              ? ": none"
                  : count || excepted == kExcepted.end() ? ""
                                                         : cat(": ", excepted->second).c_str());
    }
    return empty;
  }

  Table opcodes_, forms_, rules_, continuations_;
  std::map<const void*, const Form*> form_at_;  // by their code
};

}  // namespace
}  // namespace tenon::fuzz

int main(int argc, char** argv) {
  using namespace tenon;
  using namespace tenon::fuzz;
  const Arguments arguments = read_arguments(argc, argv, Arguments::Files::None);
  vm::register_builtins();
  Coverage coverage;
  for (uint64_t number = arguments.first; number < arguments.end; ++number) coverage.add(number);
  const int missed = coverage.print();
  std::printf("%llu programs: %d rows that none reaches\n",
              static_cast<unsigned long long>(arguments.count()), missed);
  return missed ? 1 : 0;
}
