#include "graph/ir/instantiate.h"

namespace tenon::graph {

void require_fit(const TypeRef& from, const TypeRef& to, const std::string& what,
                 const Variances& variances, std::vector<Ref<const Check>>* conditions,
                 const Span& span) {
  std::vector<std::pair<Dim, Dim>> unproved;
  if (!fits(from, to, variances, &unproved)) {
    throw Error(ErrorKind::Usage, span, cat(what, " has the wrong type"))
        .found(to_text(from))
        .expected(to_text(to));
  }
  for (const auto& [a, b] : unproved) {
    auto condition = make<Check>();
    condition->left = a;
    condition->right = b;
    condition->message = cat(what, ": size");
    conditions->push_back(condition);
  }
}

const Dim* Matching::find(std::string_view symbol) const {
  auto at = bound_.find(symbol);
  return at == bound_.end() ? nullptr : &at->second;
}

void Matching::bind(std::string_view symbol, const Dim& value) {
  if (!find(symbol)) bound_.emplace(symbol, value);
}

void Matching::match_dim(const Dim& param, const Dim& arg) {
  if (param.kind() == DimKind::kSymbol) bind(param.node().name.view(), arg);
}

void Matching::match_dims(const Array<Dim>& param, const Array<Dim>& arg) {
  for (size_t i = 0; i < param.size() && i < arg.size(); ++i) match_dim(param[i], arg[i]);
}

void Matching::match(const TypeRef& param, const TypeRef& arg) {
  if (!param || !arg) return;
  if (const auto* v = type_as<TypeVar>(param); v && type_params_.contains(v->name.str())) {
    const TypeRef* known = type_args_.find(v->name);
    // A type argument stands for other values, too, where it may.
    const TypeRef any = exact_parts_ > 0 ? arg : without_known_values(arg);
    if (known && functions_around_ > 0 && may_pass(*known, any, *variances_)) return;
    TypeRef both = known ? join(*known, any, *variances_) : any;
    if (both) type_args_.set(v->name, both);
    return;
  }
  if (param->type_index != arg->type_index) return;
  auto all = [&](const Array<TypeRef>& p, const Array<TypeRef>& a) {
    for (size_t i = 0; i < p.size() && i < a.size(); ++i) match(p[i], a[i]);
  };
  if (const auto* t = type_as<TensorType>(param)) {
    const auto* a = type_as<TensorType>(arg);
    match_dims(t->dims, a->dims);
    match_dims(t->values, a->values);
  } else if (const auto* s = type_as<ScalarType>(param)) {
    const auto* a = type_as<ScalarType>(arg);
    if (s->value_known && a->value_known) match_dim(s->value, a->value);
  } else if (const auto* h = type_as<ShapeType>(param)) {
    match_dims(h->dims, type_as<ShapeType>(arg)->dims);
  } else if (const auto* u = type_as<TupleType>(param)) {
    all(u->fields, type_as<TupleType>(arg)->fields);
  } else if (const auto* e = type_as<ArrayType>(param)) {
    match(e->element, type_as<ArrayType>(arg)->element);
  } else if (const auto* d = type_as<AdtType>(param)) {
    const Array<TypeRef>& args = type_as<AdtType>(arg)->args;
    for (size_t i = 0; i < d->args.size() && i < args.size(); ++i) {
      const bool exact = variances_ && (variances_->of(d->name, i) & ~kFits);
      exact_parts_ += exact ? 1 : 0;
      match(d->args[i], args[i]);
      exact_parts_ -= exact ? 1 : 0;
    }
  } else if (const auto* f = type_as<FunctionType>(param)) {
    const auto* a = type_as<FunctionType>(arg);
    ++functions_around_;
    all(f->params, a->params);
    match(f->result, a->result);
    --functions_around_;
  }
}

void Matching::match_all(const Array<TypeRef>& params, const Array<TypeRef>& args) {
  for (const bool functions : {false, true}) {
    for (size_t i = 0; i < params.size() && i < args.size(); ++i) {
      if (params[i].is<FunctionType>() == functions) match(params[i], args[i]);
    }
  }
}

TypeRef Matching::apply(const TypeRef& type) const {
  TypeRef t = substitute(type, [&](std::string_view name) -> std::optional<Dim> {
    const Dim* d = find(name);
    return d ? std::optional<Dim>(*d) : std::nullopt;
  });
  return substitute_type_vars(t, type_args_);
}

Array<TypeRef> types_of(const Array<Operand>& args) {
  return args.map([](const Operand& arg) { return type_of(arg); });
}

namespace {

bool accepts(const FunctionExpr& callee, const Array<Operand>& args, const Variances& variances,
             bool checks) {
  if (args.size() != callee.params.size()) return false;
  const TypeRef type = type_of(callee);
  const Array<TypeRef>& params = type.as<FunctionType>()->params;
  const Array<TypeRef> given = types_of(args);
  Matching m(callee.type_params, variances);
  m.match_all(params, given);
  for (size_t i = 0; i < args.size(); ++i) {
    std::vector<std::pair<Dim, Dim>> unproved;
    if (!fits(given[i], m.apply(params[i]), variances, checks ? &unproved : nullptr)) return false;
  }
  return true;
}

}  // namespace

bool can_call(const FunctionExpr& callee, const Array<Operand>& args, const Variances& variances) {
  return accepts(callee, args, variances, /*checks=*/true);
}

bool can_call_unchecked(const FunctionExpr& callee, const Array<Operand>& args,
                        const Variances& variances) {
  return accepts(callee, args, variances, /*checks=*/false);
}

Instance instantiate(const FunctionType& callee, const Array<Operand>& args,
                     const std::string& what, const Variances& variances) {
  if (args.size() != callee.params.size()) {
    throw Error(ErrorKind::Usage, cat(what, " is called with the wrong number of arguments"))
        .found(cat(args.size()))
        .expected(cat(callee.params.size()), to_text(make<FunctionType>(callee)));
  }
  const Array<TypeRef> given = types_of(args);
  Matching m(callee.type_params, variances);
  m.match_all(callee.params, given);
  Instance out;
  for (size_t i = 0; i < args.size(); ++i) {
    TypeRef param = m.apply(callee.params[i]);
    require_fit(given[i], param, cat(what, ": argument ", i), variances, &out.conditions);
    out.params.push_back(param);
  }
  for (const String& name : callee.type_params) {
    if (!m.type_args().contains(name)) {
      throw Error(ErrorKind::Usage,
                  cat(what, ": the arguments don't determine the type parameter ", name));
    }
  }
  out.result = m.apply(callee.result);
  out.type_args = m.type_args();
  return out;
}

}  // namespace tenon::graph
