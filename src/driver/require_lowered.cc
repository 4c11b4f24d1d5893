#include "driver/require_lowered.h"

#include "driver/compile.h"
#include "graph/ir/intrinsic.h"
#include "graph/ir/packed_call.h"
#include "graph/ir/rewrite.h"
#include "graph/ir/walk.h"
#include "support/error.h"

namespace tenon::driver {
namespace {

// The passes that every level runs.
std::vector<std::string> required_passes() {
  std::vector<std::string> names;
  for (const Step& step : all_passes()) {
    if (step.level == 0) names.push_back(step.name);
  }
  return names;
}

bool returns_by_value(const graph::Call& call, const graph::TypeRef& type) {
  if (graph::is_unit(type)) return false;
  if (call.kind == graph::CalleeKind::kKernel) return true;
  return call.kind == graph::CalleeKind::kPacked && !graph::memory_intrinsic(call) &&
         graph::awaits_destination(call);
}

// What a binding holds that code generation doesn't know; empty if it knows all of it.
std::string not_lowered(const graph::Binding& binding) {
  const graph::ExprRef& value = binding.value;
  const graph::TypeRef& type = binding.var->type;
  if (value.is<graph::FunctionExpr>()) return "a function literal";
  const auto* call = value.as<graph::Call>();
  if (!call) return "";
  if (const graph::Operator* op = graph::operator_of(value);
      op && !(op->element && type.is<graph::ScalarType>())) {
    return cat("the operator ", printable(call->callee));
  }
  return returns_by_value(*call, type)
             ? cat(printable(call->callee), ", which has no memory for its result")
             : "";
}

void require_lowered(const graph::BlockRef& block, const String& function) {
  for (const auto& binding : block->bindings) {
    if (const std::string found = not_lowered(*binding); !found.empty()) {
      throw Error(ErrorKind::Usage, binding->span,
                  "the passes that ran leave what code can't be generated for")
          .found(cat("in @", printable(function), ": ", found))
          .expected(cat("the passes ", join(required_passes(), ", "), " in this order"))
          .help(
              "the option `passes` replaces all passes: take the names that the function "
              "tenon.list_passes returns (in Python tenon.transform.list_passes), and add yours");
    }
    graph::for_each_block(binding->value,
                          [&](const graph::BlockRef& inner) { require_lowered(inner, function); });
  }
}

}  // namespace

void require_lowered(const graph::Module& module) {
  for (const auto& [name, function] : module->functions) require_lowered(function->body, name);
}

}  // namespace tenon::driver
