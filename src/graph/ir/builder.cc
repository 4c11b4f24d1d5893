#include "graph/ir/builder.h"

#include <algorithm>
#include <utility>

#include "graph/ir/condition.h"
#include "graph/ir/free_names.h"
#include "graph/ir/instantiate.h"
#include "graph/ir/intrinsic.h"
#include "graph/ir/name_text.h"
#include "loop/scalar_tensor.h"
#include "support/poll.h"

namespace tenon::graph {

namespace {

bool mentions(const TypeRef& type, const SymbolSet& symbols) {
  SymbolSet names;
  collect_symbols(type, &names);
  return std::ranges::any_of(names, [&](const std::string& n) { return symbols.contains(n); });
}

}  // namespace

Builder::Builder(Signatures signatures) : signatures_(std::move(signatures)), scopes_(1) {}

void Builder::at(Span span) {
  span_ = std::move(span);
}

Operand Builder::param(std::string_view name, TypeRef type) {
  if (scopes_.size() > 1 || !scopes_[0].bindings.empty()) {
    throw Error(ErrorKind::Usage, span_, cat("the parameter ", name_text(name), " comes too late"))
        .expected("the parameters of a function before everything else in it");
  }
  require_countable(type, span_);
  bind_symbols(type);
  auto v = make<Var>();
  v->name = name;
  v->type = std::move(type);
  params_.push_back(v);
  return v;
}

// ---- symbols ----

bool Builder::in_scope(std::string_view symbol) const {
  return bound_symbols_.find(symbol) != bound_symbols_.end();
}

std::vector<std::string> Builder::symbols() const {
  return {bound_symbols_.begin(), bound_symbols_.end()};
}

void Builder::bind_symbol(const std::string& name) {
  if (in_scope(name)) return;
  bound_symbols_.insert(name);
  used_symbols_.insert(name);
  scopes_.back().symbols.push_back(name);
}

void Builder::bind_symbols(const TypeRef& type) {
  SymbolSet names;
  collect_binding_symbols(type, &names);
  for (const std::string& n : names) bind_symbol(n);
}

Dim Builder::fresh_symbol(std::string_view hint) {
  if (avoided_) {
    const SymbolSet symbols = free_names(*std::exchange(avoided_, nullptr)).symbols;
    used_symbols_.insert(symbols.begin(), symbols.end());
  }
  std::string base(hint.empty() ? std::string_view("d") : hint);
  std::string name = base;
  while (used_symbols_.find(name) != used_symbols_.end()) {
    name = cat(base, "_", next_symbol_[base]++);
  }
  used_symbols_.insert(name);
  return Dim::symbol(name);
}

// ---- binding ----

Inferred Builder::infer(const ExprRef& value) {
  InferOptions options;
  options.signatures = &signatures_;
  options.fresh = [this](std::string_view hint) { return fresh_symbol(hint); };
  options.in_scope = [this](std::string_view name) { return in_scope(name); };
  options.symbols = [this] { return symbols(); };
  try {
    return infer_type(value, options);
  } catch (Error& e) {
    e.at(span_);
    throw;
  }
}

VarRef Builder::push(ExprRef value, TypeRef type, std::string_view hint) {
  poll();
  TENON_ASSERT(!span_.empty(), "a binding without a span: call Builder::at first");
  require_countable(type, span_);
  auto v = make<Var>();
  v->name = hint;
  v->type = std::move(type);
  auto b = make<Binding>();
  b->var = v;
  b->value = std::move(value);
  b->span = span_;
  definitions_[v.get()] = {v, b->value};
  scopes_.back().bindings.push_back(b);
  return v;
}

ExprRef Builder::definition_of(const Operand& operand) const {
  auto it = definitions_.find(operand.get());
  return it == definitions_.end() ? nullptr : it->second.value;
}

void Builder::push_checks(const std::vector<Ref<const Check>>& conditions) {
  for (const auto& c : conditions) check(c->kind, c->left, c->right, c->message);
}

void Builder::check(CheckKind kind, const Dim& left, const Dim& right, std::string_view message) {
  if (proved(kind, left, right)) return;
  if (refuted(kind, left, right)) {
    throw Error(ErrorKind::Usage, span_,
                cat(message, ": ", to_text(left), " and ", to_text(right), " don't agree"));
  }
  std::string key = check_key(kind, left, right);
  if (checked_.find(key) != checked_.end()) return;
  auto c = make<Check>();
  c->kind = kind;
  c->left = left;
  c->right = right;
  c->message = message;
  bind_typed(c, unit_type());
}

// Refines the arguments of known functions to the sizes that the parameters require.
ExprRef Builder::refine_arguments(const ExprRef& value) {
  const auto* call = value.as<Call>();
  if (!call) return value;
  if (call->kind == CalleeKind::kOperator) return take_tensors(*call);
  TypeRef callee;
  if (call->kind == CalleeKind::kGlobal) {
    callee = signatures_.functions.get_or(call->callee, nullptr);
  } else if (call->kind == CalleeKind::kClosure) {
    callee = type_of(call->closure);
  }
  const auto* f = type_as<FunctionType>(callee);
  if (!f || f->params.size() != call->args.size()) return value;
  Ref<Call> changed;
  for (size_t i = 0; i < call->args.size(); ++i) {
    const auto* want = type_as<TensorType>(f->params[i]);
    TypeRef arg_type = type_of(call->args[i]);
    const auto* have = type_as<TensorType>(arg_type);
    if (!want || !have || !want->dims_known || have->dims_known) continue;
    if (have->dtype != want->dtype) continue;  // refused with a better message
    if (have->rank != kUnknownRank && have->rank != want->rank) continue;
    std::vector<Dim> dims;
    for (const Dim& d : want->dims) {
      dims.push_back(d.is_const()
                         ? d
                         : fresh_symbol(d.kind() == DimKind::kSymbol ? d.node().name.view()
                                                                     : std::string_view("d")));
    }
    if (!changed) changed = make<Call>(*call);
    changed->args.set(i, match_shape(call->args[i], dims));
  }
  return changed ? ExprRef(changed) : value;
}

// Operators that aren't elementwise have tensors of rank 0 in place of scalars.
ExprRef Builder::take_tensors(const Call& call) {
  const Operator* op = OperatorTable::global().find(call.callee);
  const auto is_scalar = [](const Operand& arg) { return arg && type_of(arg).is<ScalarType>(); };
  if (!op || op->element || std::ranges::none_of(call.args, is_scalar)) return share(&call);
  auto changed = make<Call>(call);
  changed->args =
      call.args.map([&](const Operand& arg) { return is_scalar(arg) ? tensor_of(arg) : arg; });
  return changed;
}

Operand Builder::tensor_of(const Operand& scalar) {
  const auto* type = type_of(scalar).as<ScalarType>();
  TENON_ASSERT(type, "an operand that isn't a scalar");
  if (const auto* known = scalar.as<Constant>()) {
    return constant(loop::scalar_tensor(type->dtype, known->value).as_read_only());
  }
  if (!type->value_known) return bind_stated(of_element_call(scalar));
  return bind_stated(values_call(with_values(tensor_type(type->dtype, {}), {type->value})));
}

Operand Builder::bind_stated(const Ref<const Call>& call, std::string_view hint) {
  return bind_typed(call, call->result_type, hint);
}

// Matches `raw`, whose type omits sizes that are only known at run time, with `type`.
Operand Builder::match_fresh(const Operand& raw, const TypeRef& type) {
  if (const auto* t = type_as<TensorType>(type)) {
    return t->dims_known ? match_shape(raw, t->dims.to_vector()) : raw;
  }
  if (const auto* u = type_as<TupleType>(type)) {
    std::vector<Operand> fields;
    for (size_t i = 0; i < u->fields.size(); ++i) {
      Operand f = field(raw, static_cast<int64_t>(i));
      fields.push_back(same_type(type_of(f), u->fields[i]) ? f : match_fresh(f, u->fields[i]));
    }
    return tuple(fields);
  }
  return raw;
}

Operand Builder::bind(ExprRef value, std::string_view hint) {
  value = refine_arguments(value);
  Inferred r = infer(value);
  push_checks(r.conditions);
  if (!r.fresh.empty() && mentions(r.type, r.fresh)) {
    return match_fresh(bind_typed(std::move(value), r.known(), hint), r.type);
  }
  return bind_typed(std::move(value), r.type, hint);
}

Operand Builder::bind_as(ExprRef value, TypeRef stated, std::string_view hint) {
  value = refine_arguments(value);
  Inferred r = infer(value);
  push_checks(r.conditions);
  TypeRef known = r.known();
  if (!is_subtype(known, stated, signatures_.variances())) {
    throw Error(ErrorKind::Usage, span_,
                cat("the type stated for ", hint.empty() ? "this value" : cat("%", hint),
                    " differs from the inferred type"))
        .found(to_text(stated), "stated")
        .expected(to_text(known), "inferred")
        .help(
            "a stated type may be less precise than the inferred one; match_shape and check make "
            "it more precise");
  }
  SymbolSet names;
  collect_symbols(stated, &names);
  for (const std::string& n : names) {
    if (in_scope(n) || value.is<MatchShape>()) continue;
    throw Error(ErrorKind::Usage, span_, cat("the symbol ", n, " is not bound here"));
  }
  // An operator's kernel is made for the inferred type; as one that is more precise, that fits
  // wherever the stated one does.
  const auto* call = value.as<Call>();
  const bool is_kernel = call && call->kind == CalleeKind::kOperator;
  if (is_kernel && !is_subtype(stated, known, signatures_.variances())) stated = known;
  return bind_typed(std::move(value), std::move(stated), hint);
}

Operand Builder::bind_typed(ExprRef value, TypeRef type, std::string_view hint) {
  VarRef v = push(value, std::move(type), hint);
  if (const auto* c = value.as<Check>()) {
    std::string key = check_key(c->kind, c->left, c->right);
    checked_.insert(key);
    scopes_.back().checks.push_back(key);
  } else if (const auto* m = value.as<MatchShape>()) {
    for (const Dim& d : m->dims) {
      if (d.kind() == DimKind::kSymbol) bind_symbol(d.node().name.str());
    }
  }
  return v;
}

// ---- calls ----

Operand Builder::op(std::string_view name, const std::vector<Operand>& args, Attrs attrs) {
  const Operator* entry = OperatorTable::global().find(name);
  try {
    if (entry) attrs = complete_attrs(*entry, attrs);
  } catch (Error& e) {
    e.at(span_);
    throw;
  }
  return bind(make_call(CalleeKind::kOperator, name, args, std::move(attrs)));
}

std::vector<Operand> Builder::ops(std::string_view name, const std::vector<Operand>& args,
                                  Attrs attrs) {
  Operand all = op(name, args, std::move(attrs));
  TypeRef t = type_of(all);
  const auto* u = type_as<TupleType>(t);
  if (!u) return {all};
  std::vector<Operand> out;
  // If the tuple was just built for its fresh sizes, its fields are available.
  const auto& bindings = scopes_.back().bindings;
  if (!bindings.empty() && bindings.back()->var == all) {
    if (const auto* made = bindings.back()->value.as<Tuple>()) {
      out = made->fields.to_vector();
      scopes_.back().bindings.pop_back();
      return out;
    }
  }
  for (size_t i = 0; i < u->fields.size(); ++i) out.push_back(field(all, static_cast<int64_t>(i)));
  return out;
}

Operand Builder::call_global(std::string_view name, const std::vector<Operand>& args,
                             const std::vector<TypeRef>& type_args) {
  auto c = make<Call>();
  c->kind = CalleeKind::kGlobal;
  c->callee = String(name);
  c->args = Array<Operand>(args);
  c->type_args = Array<TypeRef>(type_args);
  return bind(c);
}

Operand Builder::call_closure(const Operand& closure, const std::vector<Operand>& args) {
  auto c = make<Call>();
  c->kind = CalleeKind::kClosure;
  c->closure = closure;
  c->args = Array<Operand>(args);
  return bind(c);
}

Operand Builder::call_packed(std::string_view name, const std::vector<Operand>& args,
                             TypeRef result, Attrs attrs) {
  return bind(make_call(CalleeKind::kPacked, name, args, std::move(attrs), std::move(result)));
}

Operand Builder::tuple(const std::vector<Operand>& fields) {
  auto t = make<Tuple>();
  t->fields = Array<Operand>(fields);
  return bind(t);
}

Operand Builder::field(const Operand& tuple, int64_t index) {
  auto f = make<Field>();
  f->tuple = tuple;
  f->index = index;
  return bind(f);
}

Operand Builder::match_shape(const Operand& value, const std::vector<Dim>& dims) {
  auto m = make<MatchShape>();
  m->value = value;
  m->dims = Array<Dim>(dims);
  return bind(m);
}

Operand Builder::match_elements(const Operand& value, const std::vector<Dim>& elements) {
  auto m = make<MatchShape>();
  m->value = value;
  m->dims = Array<Dim>(elements);
  m->elements = true;
  return bind(m);
}

std::vector<Dim> Builder::elements_of(const Operand& value) {
  TypeRef t = type_of(value);
  int64_t count = 1;
  if (const auto* x = type_as<TensorType>(t)) {
    if (x->value_known) return x->values.to_vector();
    if (!x->dims_known || x->rank > 1 || (x->rank == 1 && !x->dims[0].is_const())) {
      throw Error(ErrorKind::Usage, span_, "the number of sizes in this tensor isn't known")
          .found(to_text(t))
          .expected("an integer tensor of rank 0, or of rank 1 and constant length");
    }
    if (x->rank == 1) count = *x->dims[0].as_const();
  } else if (const auto* s = type_as<ScalarType>(t)) {
    if (s->value_known) return {s->value};
  } else if (const auto* h = type_as<ShapeType>(t)) {
    if (h->dims_known) return h->dims.to_vector();
    if (h->rank == kUnknownRank) {
      throw Error(ErrorKind::Usage, span_, "the rank of this shape isn't known").found(to_text(t));
    }
    count = h->rank;
  } else {
    throw Error(ErrorKind::Usage, span_, "sizes come from an integer tensor, a shape or an i64")
        .found(to_text(t));
  }
  if (auto known = elements_.find(value.get()); known != elements_.end()) return known->second;
  if (count > kMaxCarriedValues) {
    throw Error(ErrorKind::Usage, span_, "too many sizes in this tensor")
        .found(to_text(t))
        .expected(cat("at most ", kMaxCarriedValues));
  }
  std::string hint = "d";
  if (const auto* v = value.as<Var>(); v && !v->name.empty()) hint = v->name.str();
  for (char& c : hint) {
    if (!isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  if (!isalpha(static_cast<unsigned char>(hint[0])) && hint[0] != '_') hint = "d" + hint;
  std::vector<Dim> elements;
  for (int64_t i = 0; i < count; ++i) {
    elements.push_back(fresh_symbol(count == 1 ? hint : cat(hint, "_", i)));
  }
  match_elements(value, elements);
  elements_[value.get()] = elements;
  scopes_.back().matched.push_back(value.get());
  return elements;
}

Operand Builder::refine(const Operand& value, const TypeRef& type, const std::string& what) {
  TypeRef have = type_of(value);
  const auto* from = type_as<TensorType>(have);
  const auto* to = type_as<TensorType>(type);
  Operand out = value;
  if (from && to && to->dims_known && !from->dims_known && from->dtype == to->dtype) {
    out = match_shape(value, to->dims.to_vector());
    have = type_of(out);
  }
  std::vector<Ref<const Check>> conditions;
  require_fit(have, type, what, signatures_.variances(), &conditions, span_);
  push_checks(conditions);
  return out;
}

// ---- blocks ----

void Builder::begin_block() {
  scopes_.emplace_back();
}

VarRef Builder::block_var(std::string_view name, TypeRef type) {
  bind_symbols(type);
  auto v = make<Var>();
  v->name = name;
  v->type = std::move(type);
  return v;
}

BlockRef Builder::finish_block(const Operand& result) {
  auto block = make<Block>();
  Scope& s = scopes_.back();
  block->bindings = Array<Ref<const Binding>>(s.bindings);
  block->result = result;
  leave_block();
  return block;
}

void Builder::leave_block() {
  const Scope& s = scopes_.back();
  for (const std::string& n : s.symbols) bound_symbols_.erase(bound_symbols_.find(n));
  for (const std::string& k : s.checks) checked_.erase(checked_.find(k));
  for (const Expr* e : s.matched) elements_.erase(e);
  scopes_.pop_back();
  if (scopes_.empty()) scopes_.emplace_back();
}

BlockRef Builder::block(const Body& body) {
  const Span at = span_;
  const size_t open = scopes_.size();
  begin_block();
  try {
    const BlockRef made = finish_block(body());
    span_ = at;
    return made;
  } catch (...) {
    while (scopes_.size() > open) leave_block();
    span_ = at;
    throw;
  }
}

Operand Builder::if_(const Operand& condition, const Body& then_body, const Body& else_body) {
  auto e = make<If>();
  e->condition = condition;
  e->then_block = block(then_body);
  e->else_block = block(else_body);
  return bind(e);
}

Operand Builder::loop(const std::vector<std::string>& names, const std::vector<TypeRef>& types,
                      const std::vector<Operand>& init, const LoopBody& condition,
                      const LoopBody& body) {
  TENON_ASSERT(names.size() == types.size() && types.size() == init.size(),
               "a loop needs a name, a type and an initial value per variable");
  auto e = make<Loop>();
  std::vector<Operand> vars;
  for (size_t i = 0; i < names.size(); ++i) {
    auto v = make<Var>();
    v->name = names[i];
    v->type = types[i];
    e->vars.push_back(v);
    e->init.push_back(refine(init[i], types[i], cat("the initial value of %", names[i])));
    vars.push_back(v);
  }
  e->condition = block([&] { return condition(vars); });
  e->body =
      block([&] { return refine(body(vars), loop_type(types), "the result of the loop's body"); });
  return bind(e);
}

Operand Builder::function(std::string_view self_name, const std::vector<std::string>& names,
                          const std::vector<TypeRef>& types, TypeRef result, const LoopBody& body) {
  TENON_ASSERT(names.size() == types.size(), "a function needs a name and a type per parameter");
  auto f = make<FunctionExpr>();
  f->span = span_;
  f->name = self_name;
  f->result_type = result;
  f->body = block([&] {
    std::vector<Operand> vars;
    for (size_t i = 0; i < names.size(); ++i) {
      VarRef v = block_var(names[i], types[i]);
      f->params.push_back(v);
      vars.push_back(v);
    }
    if (!self_name.empty()) {
      auto self = make<Var>();
      self->name = self_name;
      self->type = type_of(*f);
      f->self = self;
      vars.push_back(self);
    }
    return refine(body(vars), result, "the function's result");
  });
  return bind(f, self_name);
}

FunctionRef Builder::make_function(std::string_view name, const Operand& result,
                                   TypeRef result_type, Attrs attrs, Array<String> type_params) {
  TENON_ASSERT(scopes_.size() == 1, "a block is still open");
  auto f = make<FunctionExpr>();
  f->name = name;
  f->type_params = std::move(type_params);
  f->params = Array<VarRef>(params_);
  f->result_type = std::move(result_type);
  f->attrs = std::move(attrs);
  f->span = span_;
  f->body = finish_block(result);
  params_.clear();
  definitions_.clear();
  used_symbols_.clear();
  avoided_ = nullptr;
  next_symbol_.clear();
  return f;
}

FunctionRef Builder::finish(std::string_view name, const Operand& result, Attrs attrs,
                            Array<String> type_params) {
  SymbolSet bound;
  for (const VarRef& p : params_) collect_binding_symbols(p->type, &bound);
  TypeRef type =
      erase_symbols(type_of(result), [&](std::string_view n) { return bound.contains(n); });
  return make_function(name, result, type, std::move(attrs), std::move(type_params));
}

FunctionRef Builder::finish_as(std::string_view name, const Operand& result, TypeRef result_type,
                               Attrs attrs, Array<String> type_params) {
  Operand refined = refine(result, result_type, cat("the result of @", name));
  return make_function(name, refined, std::move(result_type), std::move(attrs),
                       std::move(type_params));
}

}  // namespace tenon::graph
