// The memory that one function's code takes, found by following its values through its paths.
#pragma once

#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "report/memory_values.h"
#include "support/components.h"
#include "vm/isa/allocation.h"
#include "vm/isa/unit.h"

namespace tenon::report::memory {

// Amounts of which any may be the largest; none is provably at most another.
class Amounts {
 public:
  void add(const Dim& amount);
  bool empty() const { return all_.empty(); }
  auto begin() const { return all_.begin(); }
  auto end() const { return all_.end(); }
  size_t size() const { return all_.size(); }

 private:
  std::vector<Dim> all_;
};

// What a function does, called with certain arguments. The storages of its arguments come first in
// its table.
struct Summary {
  Amounts peaks;  // without what the callers hold
  bool returns = false;
  ValueRef result;
  StorageTable storages;
};

class Component;

// The analysis of a program.
class Analysis {
 public:
  explicit Analysis(const vm::Unit& unit);

  // Of a call from the host, whose arguments keep nothing. Throws Unanalysed.
  Summary call_from_host(size_t function);

  // Of a call in the code. `storages` begins with those of the arguments.
  std::shared_ptr<const Summary> call(size_t function, const State& arguments,
                                      const StorageTable& storages);

  const vm::Unit& unit() const { return unit_; }
  Unknowns& unknowns() { return unknowns_; }
  const Components& components() const { return components_; }
  // Whether a call of the function is being analysed.
  bool is_active(size_t function) const { return active_.contains(function); }
  // Counts work, instructions and registers that are looked through; throws beyond the limit.
  void count_steps(size_t steps);
  // Records the value of a symbol that `unknowns` made.
  void define(const Dim& symbol, const Dim& value) {
    definitions_.emplace(std::string(symbol.node().name.view()), value);
  }
  Dim defined(const Dim& d) const;

 private:
  Summary analyse(size_t function, const State& arguments, const StorageTable& storages);

  const vm::Unit& unit_;
  Components components_;
  Unknowns unknowns_;
  std::map<std::string, std::shared_ptr<const Summary>> known_;
  std::map<std::string, Dim, std::less<>> definitions_;
  std::set<size_t> active_;
  size_t steps_ = 0;
};

// Functions that call each other, with recursion: each is analysed once, for all its calls.
class Component {
 public:
  Component(Analysis* analysis, size_t root) : analysis_(*analysis), root_(root) {}

  // `arguments` keep kHeld only.
  Summary analyse(const State& arguments);

  // In every member's table: what its callers hold. What its result keeps beside that is kMade.
  static constexpr StorageId kHeld = 0, kMade = 1;

  bool contains(size_t function) const;
  void enter(size_t function, const State& arguments);
  // Enters it in the caller's frame: its arguments' storages, in `storages`, become the callee's.
  // The first `shared` of them are those of the callee's own table.
  void enter_by_tail_call(size_t function, const State& arguments, const StorageTable& storages,
                          size_t shared, size_t caller, uint32_t offset);
  // Null while no call is known to return. Its storages: kHeld and kMade, of `made_bytes`.
  const ValueRef* result(size_t function) const;
  Dim made_bytes() const { return made_bytes_; }

 private:
  struct Member {
    State entry;
    StorageTable storages;
    std::optional<ValueRef> result;
    Dim adds;  // to what a result keeps
  };
  Member& member(size_t function);
  // How many calls of a member are on the stack at once, and how many there are, at most.
  Dim depth_of(size_t function) const;
  Dim calls_of(size_t function) const;
  // That number, if a list bounds it: its length, and one for the empty list. `if_linear`: only
  // where that bounds all calls, and not those at once alone.
  std::optional<Dim> bound_by_list(size_t function, bool if_linear) const;
  void join_entry(size_t function, Member* member, const State& arguments);
  // Walks all members until nothing changes.
  void settle();

  Analysis& analysis_;
  size_t root_;
  std::map<size_t, Member> members_;
  std::map<std::pair<std::pair<size_t, uint32_t>, StorageId>, StorageId> passed_;
  Dim made_bytes_ = 0;
  bool changed_ = false;
};

class Walk {
 public:
  Walk(Analysis* analysis, Component* component, size_t function, State arguments,
       StorageTable storages);
  void run();

  Summary summary() &&;
  // What frames hold while they wait for a call in the component.
  const Amounts& waiting() const { return waiting_; }

 private:
  using Instruction = vm::Instruction;

  // One instruction; returns whether the next one follows.
  bool step(const Instruction& in, uint32_t at, State* state);
  bool step_size(const Instruction& in, uint32_t at, State* state);
  bool step_value(const Instruction& in, uint32_t at, State* state);
  void match(const Instruction& in, uint32_t at, State* state);
  ValueRef fresh(const Instruction& in, const vm::FreshTensor& tensor, uint32_t at,
                 const State& state);
  bool call(const Instruction& in, uint32_t at, State* state);
  void call_packed(const Instruction& in, uint32_t at, State* state);
  void call_unknown(const Instruction& in, uint32_t at, const State& arguments, State* state);
  bool call_member(const Instruction& in, uint32_t at, size_t callee, const State& arguments,
                   State* state, const Storages& before);
  void follow(uint32_t at, State state);
  void flow(uint32_t to, const State& state);
  void follow_all();  // once more, since a storage has grown
  void return_value(const ValueRef& value);

  Storages read_storages(const Instruction& in, const State& state) const;
  ValueRef value(vm::Arg arg, const State& state) const;
  Dim number(const Instruction& in, uint32_t word, uint32_t at, const State& state);
  Dims listed_numbers(const Instruction& in, uint32_t at, const State& state);
  std::optional<Dims> dims_of(const ValueRef& value) const;
  ValueRef allocated(uint32_t at, uint32_t index, const Dim& bytes, const State& state);
  Dim bytes_of(const Dims& dims, DataType dtype, uint32_t at);
  void release(const Instruction& in, State* state) const;
  static void put(vm::Arg destination, ValueRef value, State* state);
  static void put_result(const Instruction& in, ValueRef value, State* state);
  Storages live_in(const State& state);
  void record(const Dim& amount) {
    if (collects_) peaks_.add(amount);
  }
  std::string place(uint32_t at) const;   // "@f.L12"
  std::string source(uint32_t at) const;  // "@f.L12 (f.tn:3)"
  Dim unknown(const char* what, uint32_t at, uint32_t index, const std::string& meaning);

  Analysis& analysis_;
  Component* component_;
  size_t function_;
  const vm::FunctionUnit& code_;
  StorageTable storages_;
  size_t entered_with_;               // so many of these
  std::map<uint32_t, int> labels_;    // with how many ways lead to each
  std::map<uint32_t, State> states_;  // at labels
  std::set<uint32_t> pending_;
  std::optional<State> returned_;  // one register
  bool collects_ = false;
  Amounts peaks_, waiting_;
};

}  // namespace tenon::report::memory
