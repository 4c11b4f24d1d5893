#include "graph/ir/walk.h"

#include "graph/ir/pattern.h"

namespace tenon::graph {

std::vector<VarRef> block_variables(const ExprRef& value) {
  std::vector<VarRef> out;
  if (const auto* loop = value.as<Loop>()) {
    out.assign(loop->vars.begin(), loop->vars.end());
  } else if (const auto* match = value.as<Match>()) {
    for (const PatternRef& pattern : match->patterns) {
      const std::vector<VarRef> bound = variables_of(*pattern);
      out.insert(out.end(), bound.begin(), bound.end());
    }
  }
  return out;
}

void collect_symbols(const ExprRef& value, SymbolSet* symbols) {
  const auto types = [&](const Array<TypeRef>& list) {
    for (const TypeRef& type : list) collect_symbols(type, symbols);
  };
  if (const auto* call = value.as<Call>()) {
    collect_symbols(call->attrs, symbols);
    if (call->result_type) collect_symbols(call->result_type, symbols);
    types(call->type_args);
  } else if (const auto* made = value.as<Construct>()) {
    types(made->type_args);
  } else if (const auto* closure = value.as<Closure>()) {
    types(closure->type_args);
  } else if (const auto* size = value.as<Size>()) {
    tenon::collect_symbols(size->size, symbols);
  } else if (const auto* match = value.as<MatchShape>()) {
    for (const Dim& dim : match->dims) tenon::collect_symbols(dim, symbols);
  } else if (const auto* check = value.as<Check>()) {
    tenon::collect_symbols(check->left, symbols);
    tenon::collect_symbols(check->right, symbols);
  }
}

}  // namespace tenon::graph
