#include "codegen/bytecode/result_tensors.h"

#include "graph/ir/intrinsic.h"
#include "graph/ir/walk.h"

namespace tenon::codegen {

using namespace graph;  // NOLINT: this file is about graph IR only

namespace {

class Finder {
 public:
  explicit Finder(const BlockRef& body) {
    for (const auto& binding : body->bindings) values_[binding->var.get()] = binding->value;
    count_uses(body);
    if (auto* tuple = value_of(body->result).as<Tuple>()) {
      for (size_t i = 0; i < tuple->fields.size(); ++i) add(i, tuple->fields[i]);
    } else {
      add(0, body->result);
    }
  }

  ResultTensors out;

 private:
  void count_uses(const BlockRef& block) {
    for (const auto& binding : block->bindings) {
      for_each_operand(binding->value, [&](const Operand& operand) { ++uses_[operand.get()]; });
      for_each_block(binding->value, [&](const BlockRef& inner) { count_uses(inner); });
    }
    ++uses_[block->result.get()];
  }

  // What the body's block binds the operand to; null for anything else.
  ExprRef value_of(const Operand& operand) const {
    auto it = values_.find(operand.as<Var>());
    return it == values_.end() ? ExprRef() : it->second;
  }

  void add(size_t index, Operand operand) {
    // A view is made of its source, whose memory it shares.
    for (;;) {
      const ExprRef value = value_of(operand);
      if (!value) return;
      const auto intrinsic = memory_intrinsic(value);
      if (intrinsic == MemoryIntrinsic::kTensor) {
        return add_tensor(index, operand.as<Var>(), *value.as<Call>());
      } else if (intrinsic == MemoryIntrinsic::kReshape) {
        operand = value.as<Call>()->args[0];
      } else if (auto* match = value.as<MatchShape>()) {
        operand = match->value;
      } else {
        return;
      }
    }
  }

  void add_tensor(size_t index, const Var* tensor, const Call& call) {
    auto* storage = call.args[0].as<Var>();
    const ExprRef made = value_of(call.args[0]);
    if (!made || memory_intrinsic(made) != MemoryIntrinsic::kStorage) return;
    const bool is_on_host = device_of_storage(*made.as<Call>()) == 0;
    if (!is_on_host || uses_[storage] != 1 || !(offset_of_tensor(call) == Dim(0))) return;
    if (out.index.emplace(tensor, static_cast<int64_t>(index)).second) out.storages.insert(storage);
  }

  std::unordered_map<const Var*, ExprRef> values_;
  std::unordered_map<const Object*, int64_t> uses_;
};

}  // namespace

ResultTensors result_tensors(const FunctionExpr& function) {
  return std::move(Finder(function.body).out);
}

}  // namespace tenon::codegen
