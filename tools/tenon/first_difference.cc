#include "tools/tenon/first_difference.h"

#include "object/array.h"
#include "tools/tenon/program_file.h"
#include "vm/interp/machine.h"

namespace tenon::tool {
namespace {

using graph::BlockRef;
using graph::FunctionRef;
using graph::Operand;

class Cutter {
 public:
  Cutter(const graph::Module& module, const std::string& function,
         const driver::CompileOptions& options, const std::vector<Any>& inputs)
      : module_(module), name_(function), options_(options), inputs_(inputs) {}

  // The results of the compiled function if it returned `wanted`.
  std::vector<Any> results(const std::vector<Operand>& wanted) const {
    const FunctionRef whole = *module_->functions.find(name_);
    std::vector<Ref<const graph::Binding>> bindings(whole->body->bindings.begin(),
                                                    whole->body->bindings.end());
    std::vector<graph::TypeRef> types;
    for (const Operand& operand : wanted) {
      types.push_back(graph::without_known_values(graph::type_of(operand)));
    }
    auto type = make<graph::TupleType>(Array<graph::TypeRef>(types));
    auto tuple = make<graph::Var>(String("values"), graph::TypeRef(type));
    auto binding = make<graph::Binding>(tuple, make<graph::Tuple>(Array<Operand>(wanted)));
    binding->span = Span::node("(values)");
    bindings.push_back(binding);
    auto cut = make<graph::FunctionExpr>(*whole);
    cut->body = make<graph::Block>(Array<Ref<const graph::Binding>>(bindings), Operand(tuple));
    cut->result_type = graph::TypeRef(type);
    cut->attrs = {};
    Map<String, FunctionRef> functions = module_->functions;
    functions.set(String(name_), FunctionRef(cut));
    vm::Machine machine(compile_in_memory(
        graph::make_module(functions, module_->kernels, module_->adts), options_, "cut"));
    const std::vector<AnyView> views(inputs_.begin(), inputs_.end());
    const auto values = machine.call(name_, views).as<Array<Any>>();
    return {values.begin(), values.end()};
  }

 private:
  const graph::Module& module_;
  const std::string& name_;
  const driver::CompileOptions& options_;
  const std::vector<Any>& inputs_;
};

}  // namespace

std::optional<FirstDifference> first_difference(const graph::Module& module,
                                                const std::string& function,
                                                const driver::CompileOptions& options,
                                                const std::vector<Any>& inputs,
                                                const std::vector<InterpretedValue>& expected,
                                                const Tolerance& tolerance) {
  const Cutter cutter(module, function, options, inputs);
  std::vector<Operand> all;
  for (const InterpretedValue& e : expected) all.emplace_back(e.binding->var);
  const std::vector<Any> found = cutter.results(all);
  for (size_t i = 0; i < expected.size(); ++i) {
    const Difference d = compare_values(found[i], expected[i].value, tolerance);
    if (!d.equal) return FirstDifference{expected[i].binding->span, d};
  }
  auto difference_at = [&](size_t i) {
    return compare_values(cutter.results({all[i]})[0], expected[i].value, tolerance);
  };
  size_t low = 0, high = expected.size();
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (difference_at(middle).equal) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low == expected.size()) return std::nullopt;
  return FirstDifference{expected[low].binding->span, difference_at(low)};
}

}  // namespace tenon::tool
