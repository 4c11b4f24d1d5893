#include "graph/pass/simplify.h"

#include <unordered_map>

#include "graph/ir/rewrite.h"
#include "graph/pass/simplify_rules.h"
#include "object/reflect.h"

namespace tenon::graph {
namespace {

// Bindings made so far that a later equal one may share, innermost block last.
class Available {
 public:
  void open() { scopes_.emplace_back(); }
  void close() { scopes_.pop_back(); }

  Operand find(const Call& call) const {
    const uint64_t key = hash(call);
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
      auto [begin, end] = scope->equal_range(key);
      for (auto it = begin; it != end; ++it) {
        if (same(*it->second.first, call)) return it->second.second;
      }
    }
    return Operand();
  }
  void add(const Call* call, const Operand& result) {
    scopes_.back().emplace(hash(*call), std::pair(Ref<const Call>(call), result));
  }

 private:
  static uint64_t hash(const Call& call) {
    uint64_t h = std::hash<std::string_view>()(call.callee);
    for (const Operand& arg : call.args) {
      h = (h ^ reinterpret_cast<uintptr_t>(arg.get())) * 0x9e3779b97f4a7c15;
    }
    return h;
  }
  static bool same(const Call& a, const Call& b) {
    if (!(a.callee == b.callee) || a.args.size() != b.args.size()) return false;
    for (size_t i = 0; i < a.args.size(); ++i) {
      if (a.args[i] != b.args[i]) return false;
    }
    return structural_equal(Any(a.attrs), Any(b.attrs));
  }

  std::vector<std::unordered_multimap<uint64_t, std::pair<Ref<const Call>, Operand>>> scopes_;
};

bool proved(const Check& check) {
  switch (check.kind) {
    case CheckKind::kEqual:
      return proves_equal(check.left, check.right);
    case CheckKind::kLessEqual:
      return proves_less_equal(check.left, check.right);
    case CheckKind::kBroadcast:
      return proves_equal(check.left, check.right) || check.left.is_const(1) ||
             check.right.is_const(1);
  }
  return false;
}

class Simplifier : public Rewriter {
 protected:
  void open_block() override { available_.open(); }
  void close_block() override { available_.close(); }

  Operand rewrite(const VarRef& var, const ExprRef& value) override {
    if (auto* check = value.as<Check>(); check && proved(*check)) {
      return builder().bind_typed(make<Tuple>(Array<Operand>()), unit_type());
    }
    if (auto* field = value.as<Field>()) {
      auto definition = builder().definition_of(field->tuple);
      if (auto* tuple = definition.as<Tuple>()) return tuple->fields[field->index];
    }
    const Operator* op = operator_of(value);
    if (!op) return keep(var, value);
    auto* call = value.as<Call>();
    if (op->expand) return op->expand(builder(), *call);
    if (auto* type = var->type.as<TensorType>()) {
      if (Operand known = known_value(*type)) return known;
    }
    if (Operand simpler = apply_simplify_rules(builder(), *call, var->type)) return simpler;
    if (Operand same = available_.find(*call)) return same;
    Operand result = keep(var, value);
    available_.add(call, result);
    return result;
  }

 private:
  // The constant that the type says the value is, when it says so in numbers.
  static Operand known_value(const TensorType& type) {
    if (!type.value_known) return Operand();
    std::vector<int64_t> elements;
    for (const Dim& value : type.values) {
      auto number = value.as_const();
      if (!number) return Operand();
      elements.push_back(*number);
    }
    return constant_integers(type, elements);
  }

  Available available_;
};

}  // namespace

Operand constant_integers(const TensorType& type, const std::vector<int64_t>& elements) {
  std::vector<int64_t> shape;
  for (const Dim& dim : type.dims) shape.push_back(dim.as_const().value());
  Tensor tensor = Tensor::empty(shape, type.dtype);
  const int64_t bytes = type.dtype.bytes();
  auto* out = static_cast<char*>(tensor.data());
  // Little-endian: the low bytes of each element, as the integer dtypes store it.
  for (size_t i = 0; i < elements.size(); ++i) {
    std::memcpy(out + static_cast<int64_t>(i) * bytes, &elements[i], static_cast<size_t>(bytes));
  }
  return constant(tensor.as_read_only());
}

Module simplify(const Module& module, PassContext& cx) {
  return remove_dead_code(Simplifier().run(module), cx);
}

}  // namespace tenon::graph
