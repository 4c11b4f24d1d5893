#include "tools/tenon/first_difference.h"

#include "object/array.h"
#include "tools/tenon/program_file.h"
#include "vm/interp/machine.h"

namespace tenon::tool {

using graph::FunctionRef;
using graph::Operand;

std::vector<Any> compute(const CalledFunction& function, const std::vector<Operand>& values) {
  const graph::Module& module = function.module;
  const FunctionRef whole = *module->functions.find(function.name);
  std::vector<Ref<const graph::Binding>> bindings = whole->body->bindings.to_vector();
  std::vector<graph::TypeRef> types;
  for (const Operand& value : values) {
    types.push_back(graph::without_known_values(graph::type_of(value)));
  }
  const graph::TypeRef type = graph::tuple_type(types);
  auto tuple = make<graph::Var>(String("values"), type);
  auto binding = make<graph::Binding>(tuple, make<graph::Tuple>(Array<Operand>(values)));
  binding->span = Span::node("(values)");
  bindings.push_back(binding);
  auto cut = make<graph::FunctionExpr>(*whole);
  cut->body = make<graph::Block>(Array<Ref<const graph::Binding>>(bindings), Operand(tuple));
  cut->result_type = type;
  cut->attrs = {};
  Map<String, FunctionRef> functions = module->functions;
  functions.set(String(function.name), FunctionRef(cut));
  vm::Machine machine(compile_in_memory(
      graph::make_module(functions, module->kernels, module->adts), function.options, "cut"));
  const std::vector<AnyView> views(function.inputs.begin(), function.inputs.end());
  return machine.call(function.name, views).as<Array<Any>>().to_vector();
}

std::optional<FirstDifference> first_difference(const CalledFunction& function,
                                                const std::vector<ExpectedValue>& expected,
                                                const Criterion& criterion) {
  std::vector<Operand> values;
  for (const ExpectedValue& e : expected) values.push_back(e.value);
  const auto compared = [&](size_t i, const Any& found) {
    return compare_values(found, expected[i].expected, criterion);
  };
  const std::vector<Any> found = compute(function, values);
  for (size_t i = 0; i < expected.size(); ++i) {
    const Difference d = compared(i, found[i]);
    if (!d.equal) return FirstDifference{i, d};
  }
  return first_fused_difference(function, values, compared);
}

std::optional<FirstDifference> first_fused_difference(
    const CalledFunction& function, const std::vector<Operand>& values,
    const std::function<Difference(size_t index, const Any& found)>& compare) {
  const auto difference_at = [&](size_t i) {
    return compare(i, compute(function, {values[i]})[0]);
  };
  size_t low = 0, high = values.size();
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (difference_at(middle).equal) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low == values.size()) return std::nullopt;
  return FirstDifference{low, difference_at(low), true};
}

}  // namespace tenon::tool
