#include "graph/op/strings.h"

#include <algorithm>

#include "graph/ir/rewrite.h"
#include "graph/op/rule.h"

namespace tenon::graph {
namespace {

const TensorType* strings_of(const TypeRef& type) {
  const auto* tensor = type.as<TensorType>();
  return tensor && tensor->dtype == string_elements ? tensor : nullptr;
}

bool has_strings(const TypeRef& type) {
  if (const auto* tuple = type.as<TupleType>())
    return std::ranges::any_of(tuple->fields, [](const TypeRef& t) { return has_strings(t); });
  return strings_of(type) != nullptr;
}

Operand number(int64_t value) {
  return constant(Tensor::copy_of<int64_t>({}, i64, {&value, 1}));
}

// The call's operands with numbers in place of strings.
class Numbered {
 public:
  // The strings of all operands, as one list.
  Numbered(Builder& b, const Call& call) : b_(b), call_(call) {
    for (const Operand& arg : call.args) {
      const TensorType* type = strings_of(type_of(arg));
      if (!type) continue;
      const Dim count = product(dims_of(*type));
      const Operand list = reshaped(b, arg, {count});
      all_ = all_ ? b.op("text_join", {all_, list}) : list;
      total_ = total_ + count;
    }
  }

  const Operand& all() const { return all_; }
  Operand places() const {
    return b_.op("range", {number(0), number(1)}, attrs({{"count", Any(total_.ref())}}));
  }
  Operand ranks() const { return b_.op("text_rank", {all_}); }

  // The call with each operand of strings replaced by its part of `numbers`, one per string.
  Operand call(const Operand& numbers) const {
    std::vector<Operand> args;
    Dim start = 0;
    for (const Operand& arg : call_.args) {
      const TensorType* type = strings_of(type_of(arg));
      args.push_back(type ? part(numbers, &start, dims_of(*type)) : arg);
    }
    return b_.op(call_.callee, args, call_.attrs);
  }

 private:
  Operand part(const Operand& numbers, Dim* start, const std::vector<Dim>& dims) const {
    const Dim count = product(dims);
    Operand own = numbers;
    if (!(count == total_)) {
      own = b_.op("slice", {numbers},
                  attrs({{"starts", attr_dims({*start})}, {"sizes", attr_dims({count})}}));
    }
    *start = *start + count;
    return reshaped(b_, own, dims);
  }

  Builder& b_;
  const Call& call_;
  Operand all_;
  Dim total_ = 0;
};

}  // namespace

bool computes_on_strings(const Operator& op, const Call& call) {
  if (op.expand || op.view || op.packed) return false;
  return std::ranges::any_of(call.args,
                             [](const Operand& arg) { return strings_of(type_of(arg)); });
}

Operand expand_strings(Builder& b, const Call& call, const TypeRef& result) {
  const Numbered numbered(b, call);
  if (!has_strings(result)) {
    const bool compares = OperatorTable::global().get(call.callee).kind == OpKind::kBroadcast;
    return numbered.call(compares ? numbered.ranks() : numbered.places());
  }
  const Operand moved = numbered.call(numbered.places());
  const auto take = [&](const Operand& places) {
    return b.op("text_take", {numbered.all(), places});
  };
  const auto* tuple = result.as<TupleType>();
  if (!tuple) return take(moved);
  std::vector<Operand> fields;
  for (size_t i = 0; i < tuple->fields.size(); ++i) {
    fields.push_back(take(b.field(moved, static_cast<int64_t>(i))));
  }
  return b.tuple(fields);
}

}  // namespace tenon::graph
