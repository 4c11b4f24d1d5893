#include "report/memory_walk.h"

#include <algorithm>
#include <array>
#include <set>

#include "library/signatures/signatures.h"
#include "object/shape.h"
#include "object/tensor.h"
#include "support/error.h"
#include "support/text.h"

namespace tenon::report::memory {
namespace {

using vm::Arg;
using vm::ArgKind;
using vm::Opcode;
using vm::operand;

constexpr uint32_t kReturn = UINT32_MAX;  // the offset of the join of results
constexpr size_t kMaxAmounts = 32;
constexpr size_t kMaxRegisters = size_t{1} << 22;  // of the states that are kept

}  // namespace

void Amounts::add(const Dim& amount) {
  for (const Dim& other : all_) {
    if (proves_less_equal(amount, other)) return;
  }
  std::erase_if(all_, [&](const Dim& other) { return proves_less_equal(other, amount); });
  if (all_.size() == kMaxAmounts) {
    all_.back() = max(all_.back(), amount);
  } else {
    all_.push_back(amount);
  }
}

Walk::Walk(Analysis* analysis, Component* component, size_t function, State arguments,
           StorageTable storages)
    : analysis_(*analysis),
      component_(component),
      function_(function),
      code_(analysis->unit().functions[function]),
      storages_(std::move(storages)),
      entered_with_(storages_.size()) {
  analysis_.count_steps(code_.register_count / 16);
  Instruction in;
  std::set<uint32_t> reached_from_above = {0};  // by the call
  for (uint32_t at = 0; vm::decode(code_.code, at, &in); at += in.words()) {
    for (const vm::Word word : in.operands) {
      if (Arg(word).is(ArgKind::Label)) ++labels_[Arg(word).index()];
    }
    if (!in.info->ends()) reached_from_above.insert(at + in.words());
  }
  for (auto& [label, ways] : labels_) ways += reached_from_above.contains(label);
  arguments.resize(code_.register_count);
  states_.emplace(0, std::move(arguments));
  pending_.insert(0);
}

void Walk::run() {
  while (!pending_.empty()) {
    const uint32_t at = *pending_.begin();
    pending_.erase(pending_.begin());
    follow(at, states_.at(at));
  }
  collects_ = true;
  for (const auto& [at, state] : states_) {
    record(storages_.total(live_in(state)));
    follow(at, state);
  }
  TENON_ASSERT(pending_.empty(), "the states of '", code_.name, "' are not settled");
}

Summary Walk::summary() && {
  Summary out;
  out.peaks = std::move(peaks_);
  out.returns = returned_.has_value();
  if (returned_) out.result = returned_->front();
  out.storages = std::move(storages_);
  return out;
}

// From a label to the next, or to the end of the path.
void Walk::follow(uint32_t at, State state) {
  Instruction in;
  for (const uint32_t start = at; vm::decode(code_.code, at, &in); at += in.words()) {
    if (at != start && labels_.contains(at)) return flow(at, state);
    analysis_.count_steps(1);
    const int growths = storages_.growths();
    const bool goes_on = step(in, at, &state);
    if (storages_.growths() != growths) follow_all();
    if (!goes_on) return;
    for (uint32_t word = 0; word < in.operands.size(); ++word) {
      if (in.arg(word).is(ArgKind::Label)) flow(in.arg(word).index(), state);
    }
    if (in.info->ends()) return;
  }
}

void Walk::flow(uint32_t to, const State& state) {
  analysis_.count_steps(1 + state.size() / 16);
  if (states_.size() * state.size() > kMaxRegisters) throw Unanalysed();
  const auto [known, is_new] = states_.try_emplace(to, state);
  if (!is_new && labels_.at(to) == 1) {
    // What one way leads to has that way's state: joining it with an earlier one would hide that a
    // loop's variable grows.
    if (std::ranges::equal(known->second, state, same)) return;
    known->second = state;
  } else if (!is_new) {
    const JoinContext context{&storages_,
                              &analysis_.unknowns(),
                              to,
                              place(to),
                              cat("turns(", place(to), ")"),
                              cat("how often the loop at ", source(to), " turns in all")};
    const int growths = storages_.growths();
    if (!join(context, &known->second, state)) return;
    if (storages_.growths() != growths) follow_all();
  }
  pending_.insert(to);
}

// What the registers keep.
Storages Walk::live_in(const State& state) {
  analysis_.count_steps(1 + state.size() / 16);
  return live(state);
}

void Walk::follow_all() {
  for (const auto& [at, state] : states_) pending_.insert(at);
}

void Walk::return_value(const ValueRef& value) {
  if (!returned_) {
    returned_ = State{value};
    return;
  }
  const JoinContext context{&storages_,
                            &analysis_.unknowns(),
                            kReturn,
                            cat("@", code_.name),
                            cat("calls(@", code_.name, ")"),
                            cat("how often @", code_.name, " is called")};
  const int growths = storages_.growths();
  join(context, &*returned_, State{value});
  if (storages_.growths() != growths) follow_all();
}

std::string Walk::place(uint32_t at) const {
  return cat("@", code_.name, ".L", at);
}

std::string Walk::source(uint32_t at) const {
  std::string text;
  for (const vm::CodeSpan& span : code_.spans) {
    if (span.offset > at) break;
    text = to_text(analysis_.unit().spans[span.span]);
  }
  return text.empty() ? place(at) : cat(place(at), " (", text, ")");
}

Dim Walk::unknown(const char* what, uint32_t at, uint32_t index, const std::string& meaning) {
  const std::string suffix = index ? cat(".", index) : "";
  return analysis_.unknowns().symbol(cat(what, "(", place(at), suffix, ")"),
                                     cat(meaning, " at ", source(at)));
}

void Walk::call_packed(const Instruction& in, uint32_t at, State* state) {
  const vm::PackedName& callee =
      analysis_.unit().packed[in.arg(operand(Opcode::CallPacked, "callee")).index()];
  Value result;
  if (!callee.kernel) {
    // A function of the host may keep its arguments in its result, and allocate.
    const library::Signature* signature = library::find_signature(callee.name);
    Storages kept;
    if (!signature || signature->keeps_arguments) {
      for (const vm::Word word : in.list()) {
        memory::add(&kept, keeps(value(Arg(word), *state)));
      }
    }
    std::vector<ValueRef> results;
    const auto allocate = [&] {
      const auto index = static_cast<uint32_t>(results.size());
      Dim bytes = unknown("bytes", at, index, cat("the bytes of what ", callee.name, " returns"));
      if (signature) {  // it has one storage, which may be an argument's
        for (const StorageId storage : kept) bytes = max(bytes, storages_[storage].bytes);
      }
      results.push_back(made_storage(storages_.at(at, index, bytes)));
    };
    if (!signature) {
      if (!in.arg(operand(Opcode::CallPacked, "dst")).is_none()) allocate();
    } else if (!signature->writes_results) {
      for (const library::Parameter& parameter : signature->results) {
        Value part;
        part.own = kept;
        parameter.kind == library::ValueKind::Tensor ? allocate()
                                                     : results.push_back(made(std::move(part)));
      }
    }
    if (!signature) result.own = kept;
    if (collects_) {
      Storages all = live_in(*state);
      for (const ValueRef& one : results) memory::add(&all, keeps(one));
      record(storages_.total(all));
    }
    if (results.size() > 1) {
      result.fields = std::move(results);
    } else if (results.size() == 1) {
      memory::add(&result.own, keeps(results[0]));
    }
  }
  release(in, state);
  put_result(in, made(std::move(result)), state);
}

bool Walk::call(const Instruction& in, uint32_t at, State* state) {
  const bool tail = in.info->ends();
  const bool of_closure = in.info->has_operand(vm::OperandKind::Use);
  constexpr uint32_t kCallee = operand(Opcode::Call, "callee"),
                     kTailCallee = operand(Opcode::TailCall, "callee");
  static_assert(kCallee == operand(Opcode::CallClosure, "callee") &&
                kTailCallee == operand(Opcode::TailCallClosure, "callee"));
  const Arg target = in.arg(tail ? kTailCallee : kCallee);
  const Storages before = live_in(*state);
  State arguments;
  std::optional<size_t> callee;
  if (of_closure) {
    const ValueRef closure = value(target, *state);
    if (closure && closure->function && closure->fields) {
      callee = closure->function;
      arguments = *closure->fields;
    } else {
      arguments.push_back(closure);
    }
  } else {
    callee = target.index();
  }
  for (const vm::Word word : in.list()) arguments.push_back(value(Arg(word), *state));
  release(in, state);
  if (tail) state->assign(state->size(), nullptr);
  const bool fits = callee && arguments.size() == analysis_.unit().functions[*callee].params.size();
  if (fits && component_ && component_->contains(*callee)) {
    return call_member(in, at, *callee, arguments, state, before);
  }
  if (!fits || analysis_.is_active(*callee)) {
    call_unknown(in, at, arguments, state);
    return true;
  }

  const Storages remaining = live_in(*state);
  Storages passed;  // in the order of their first use, which makes equal calls equal
  std::map<StorageId, StorageId> index;
  StorageTable storages;
  for (ValueRef& argument : arguments) {
    argument = with_storages(argument, [&](StorageId storage) {
      const auto [entry, is_new] = index.emplace(storage, static_cast<StorageId>(passed.size()));
      if (is_new) {
        passed.push_back(storage);
        storages.add(
            {.bytes = storages_[storage].bytes,
             .held = storages_[storage].held || std::ranges::binary_search(remaining, storage)});
      }
      return Storages{entry->second};
    });
  }
  const auto summary = analysis_.call(*callee, arguments, storages);
  const Dim held = storages_.total(remaining);
  for (const Dim& peak : summary->peaks) record(held + peak);
  if (!summary->returns) return false;
  ValueRef result = with_storages(summary->result, [&](StorageId storage) {
    if (storage < passed.size()) return Storages{passed[storage]};
    return Storages{storages_.at(at, storage, summary->storages[storage].bytes)};
  });
  if (tail) {
    return_value(result);
  } else {
    put_result(in, std::move(result), state);
  }
  return true;
}

// A closure of which nothing is known, or one that leads to recursion.
void Walk::call_unknown(const Instruction& in, uint32_t at, const State& arguments, State* state) {
  Value result;
  for (const ValueRef& argument : arguments) memory::add(&result.own, keeps(argument));
  Storages all = live_in(*state);
  memory::add(&all, result.own);
  record(storages_.total(all) + unknown("peak", at, 0, "what the closure takes that is called"));
  const Dim kept = unknown("bytes", at, 0, "the bytes of what the closure returns");
  memory::add(&result.own, {storages_.at(at, 0, kept)});
  if (in.info->ends()) {
    return_value(made(std::move(result)));
  } else {
    put_result(in, made(std::move(result)), state);
  }
}

bool Walk::call_member(const Instruction& in, uint32_t at, size_t callee, const State& arguments,
                       State* state, const Storages& before) {
  Storages passed;
  for (const ValueRef& argument : arguments) memory::add(&passed, keeps(argument));
  const bool tail = in.info->ends();
  if (tail) {
    const size_t shared = callee == function_ ? entered_with_ : 0;
    component_->enter_by_tail_call(callee, arguments, storages_, shared, function_, at);
  } else {
    if (collects_) waiting_.add(storages_.total(before));
    State held = arguments;
    for (ValueRef& argument : held) {
      argument = with_storages(argument, [](StorageId) { return Storages{Component::kHeld}; });
    }
    component_->enter(callee, held);
  }
  const ValueRef* result = component_->result(callee);
  if (!result) return false;
  ValueRef mapped = with_storages(*result, [&](StorageId storage) {
    if (storage == Component::kMade) return Storages{storages_.at(at, 0, component_->made_bytes())};
    return tail ? Storages{Component::kHeld} : passed;
  });
  if (tail) {
    return_value(mapped);
  } else {
    put_result(in, std::move(mapped), state);
    record(storages_.total(live_in(*state)));
  }
  return true;
}

}  // namespace tenon::report::memory
