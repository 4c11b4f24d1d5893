#include "graph/pass/gather_fields.h"

#include <map>
#include <set>
#include <unordered_map>

#include "graph/ir/rewrite.h"

namespace tenon::graph {
namespace {

// The fields of each tuple that a function reads.
using Readings = std::unordered_map<const Object*, std::set<int64_t>>;

void collect(const Block& block, Readings* readings) {
  for (const auto& binding : block.bindings) {
    if (const auto* field = binding->value.as<Field>()) {
      (*readings)[field->tuple.get()].insert(field->index);
    }
    for_each_block(binding->value, [&](const BlockRef& inner) { collect(*inner, readings); });
  }
}

class Gatherer : public Rewriter {
 protected:
  void enter(const FunctionRef& function) override {
    readings_.clear();
    collect(*function->body, &readings_);
  }
  void before(const Binding& binding) override { now_ = binding.value; }

  Operand rewrite(const VarRef& var, const ExprRef& value) override {
    const auto* field = value.as<Field>();
    if (!field) return keep(var, value);
    // Of the program that is rewritten, since the operand may have been replaced.
    const Operand& tuple = now_.as<Field>()->tuple;
    if (const auto at = read_.find(tuple.get()); at != read_.end()) {
      return at->second.at(field->index);
    }
    if (!is_changed_in_place(var->type)) return keep(var, value);
    std::map<int64_t, Operand>& read = read_[tuple.get()];
    for (const int64_t index : readings_.at(tuple.get())) {
      read[index] = builder().field(field->tuple, index);
    }
    tuples_.back().push_back(tuple.get());
    return read.at(field->index);
  }

  void open_block() override { tuples_.emplace_back(); }
  void close_block() override {
    for (const Object* tuple : tuples_.back()) read_.erase(tuple);
    tuples_.pop_back();
  }

 private:
  Readings readings_;
  // The fields of the tuples that the present blocks have read.
  std::unordered_map<const Object*, std::map<int64_t, Operand>> read_;
  std::vector<std::vector<const Object*>> tuples_;  // of each of these blocks
  ExprRef now_;                                     // before its operands were replaced
};

}  // namespace

Module gather_fields(const Module& module, PassContext& /*cx*/) {
  return Gatherer().run(module);
}

}  // namespace tenon::graph
