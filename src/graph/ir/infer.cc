#include "graph/ir/infer.h"

#include <algorithm>

#include "graph/ir/infer_kernel_call.h"
#include "graph/ir/instantiate.h"
#include "graph/ir/intrinsic.h"
#include "graph/ir/packed_call.h"

namespace tenon::graph {

namespace {

[[noreturn]] void fail(const std::string& message) {
  throw Error(ErrorKind::Usage, message);
}

}  // namespace

Signatures Signatures::of(const Module& module) {
  Signatures s;
  for (const auto& [name, f] : module->functions) s.functions.set(name, type_of(*f));
  s.kernels = module->kernels;
  s.adts = module->adts;
  return s;
}

const AdtDefinition* find_adt(const Signatures& signatures, std::string_view name) {
  if (const auto* d = signatures.adts.find(String(name))) return d->get();
  const auto* d = prelude().find(String(name));
  return d ? d->get() : nullptr;
}

ConstructorRef find_constructor(const Signatures& signatures, std::string_view name) {
  for (const auto* adts : {&signatures.adts, &prelude()}) {
    for (const auto& [_, adt] : *adts) {
      for (const auto& c : adt->constructors) {
        if (c->name == name) return {adt.get(), c.get()};
      }
    }
  }
  return {};
}

Array<TypeRef> constructor_fields(const ConstructorRef& c, const Array<TypeRef>& type_args) {
  Map<String, TypeRef> map;
  for (size_t i = 0; i < type_args.size() && i < c.adt->type_params.size(); ++i) {
    map.set(c.adt->type_params[i], type_args[i]);
  }
  return c.constructor->fields.map([&](const TypeRef& t) { return substitute_type_vars(t, map); });
}

TypeRef Inferred::known() const {
  return erase(spelt_out ? spelt_out : type, fresh);
}

TypeRef erase(const TypeRef& type, const std::vector<std::string>& symbols) {
  return erase_symbols(type, [&](std::string_view name) {
    return std::find(symbols.begin(), symbols.end(), name) == symbols.end();
  });
}

namespace {

// ---- right-hand sides ----

class Inference {
 public:
  explicit Inference(const InferOptions& options) : options_(options) {}

  Inferred of(const ExprRef& value) {
    TENON_ASSERT(value, "a binding without a right-hand side");
    require_bound(value);
    switch (value->type_index) {
      case Call::kTypeIndex:
        out_.type = call(*value.as<Call>());
        break;
      case FunctionExpr::kTypeIndex:
        out_.type = type_of(*value.as<FunctionExpr>());
        break;
      case If::kTypeIndex:
        out_.type = if_(*value.as<If>());
        break;
      case Loop::kTypeIndex:
        out_.type = loop(*value.as<Loop>());
        break;
      case Match::kTypeIndex:
        out_.type = match(*value.as<Match>());
        break;
      case Tuple::kTypeIndex: {
        auto t = make<TupleType>();
        for (const Operand& f : value.as<Tuple>()->fields) t->fields.push_back(type_of(f));
        out_.type = t;
        break;
      }
      case Field::kTypeIndex:
        out_.type = field(*value.as<Field>());
        break;
      case Construct::kTypeIndex:
        out_.type = construct(*value.as<Construct>());
        break;
      case MatchShape::kTypeIndex:
        out_.type = match_shape(*value.as<MatchShape>());
        break;
      case Check::kTypeIndex:
        out_.type = unit_type();
        break;
      default:
        TENON_ASSERT(false, "a right-hand side of kind ", value->type_index);
    }
    TypeMeasure m = measure(out_.type);
    if (m.size > kMaxTypeSize || m.depth > kMaxNesting) {
      fail(cat("the type of this value is too large: more than ", kMaxTypeSize, " parts or ",
               kMaxNesting, " levels"));
    }
    return std::move(out_);
  }

 private:
  // Sizes in a right-hand side may use only symbols in scope, except those that match_shape binds.
  void require_bound(const ExprRef& value) {
    std::vector<std::string> names, own;
    if (const auto* c = value.as<Call>()) {
      collect_symbols(c->attrs, &names);
      if (c->result_type) collect_symbols(c->result_type, &names);
    } else if (const auto* k = value.as<Check>()) {
      tenon::collect_symbols(k->left, &names);
      tenon::collect_symbols(k->right, &names);
    } else if (const auto* m = value.as<MatchShape>()) {
      for (const Dim& d : m->dims) {
        if (d.kind() == DimKind::kSymbol) own.push_back(d.node().name.str());
        tenon::collect_symbols(d, &names);
      }
    } else if (const auto* k = value.as<Construct>()) {
      for (const TypeRef& t : k->type_args) collect_symbols(t, &names);
    }
    for (const std::string& n : names) {
      bool bound = options_.in_scope(n) || std::find(own.begin(), own.end(), n) != own.end();
      if (!bound) fail(cat("the symbol ", n, " is not bound here"));
    }
  }

  TypeRef call(const Call& c) {
    switch (c.kind) {
      case CalleeKind::kOperator:
        return operator_call(c);
      case CalleeKind::kGlobal: {
        const TypeRef* t = options_.signatures->functions.find(c.callee);
        if (!t) fail(cat("there is no function @", c.callee));
        return function_call(*type_as<FunctionType>(*t), c, cat("@", c.callee));
      }
      case CalleeKind::kClosure: {
        TypeRef t = type_of(c.closure);
        const auto* f = type_as<FunctionType>(t);
        if (!f) {
          throw Error(ErrorKind::Usage, "the callee is not a function").found(to_text(t));
        }
        return function_call(*f, c, "the closure");
      }
      case CalleeKind::kKernel: {
        const loop::KernelInterfaceRef* kernel = options_.signatures->kernels.find(c.callee);
        if (!kernel) fail(cat("there is no kernel @", c.callee));
        return infer_kernel_call(c, **kernel);
      }
      case CalleeKind::kPacked:
        if (!c.result_type) fail(cat("the packed call of '", c.callee, "' states no result type"));
        check_packed_call(c);
        return c.result_type;
    }
    fail("a call of an unknown kind");
  }

  TypeRef function_call(const FunctionType& f, const Call& c, const std::string& what) {
    Instance instance = instantiate(f, c.args, what);
    append(std::move(instance.conditions));
    return instance.result;
  }

  TypeRef operator_call(const Call& c) {
    const Operator* op = OperatorTable::global().find(c.callee);
    if (!op) {
      throw Error(ErrorKind::Usage, cat("there is no operator '", c.callee, "'"))
          .help("`tenon ops --ir` lists the operators");
    }
    check_arity(*op, c);
    InferContext cx(c, [&](std::string_view hint) {
      Dim d = options_.fresh(hint);
      out_.fresh.push_back(d.node().name.str());
      return d;
    });
    bool any_scalar = false, all_scalars = !c.args.empty();
    for (const Operand& a : c.args) {
      if (!a) continue;
      bool scalar = type_as<ScalarType>(type_of(a)) != nullptr;
      any_scalar |= scalar;
      all_scalars &= scalar;
    }
    if (any_scalar && !op->scalars) cx.fail("it takes tensors, but an operand is a scalar");
    cx.require_dtypes();
    TypeRef result = op->infer(cx);
    if (const auto* t = type_as<TensorType>(result); t && op->value && can_carry(*t)) {
      if (auto values = values_of(*op, cx, *t)) {
        if (t->dtype == i32) require_in_i32(cx, *values);
        result = with_values(share(t), *values);
      }
    }
    if (TypeRef small = with_small_sizes(result); small != result) {
      out_.spelt_out = result;
      result = small;
    }
    append(cx.conditions());
    if (any_scalar && all_scalars) return as_scalar(cx, result);
    return result;
  }

  void check_arity(const Operator& op, const Call& c) {
    size_t least = 0, most = op.operands.size();
    for (const OperandSpec& spec : op.operands) {
      if (spec.arity != OperandSpec::kOptional) ++least;
      if (spec.arity == OperandSpec::kVariadic) most = SIZE_MAX;
    }
    if (c.args.size() < least || c.args.size() > most) {
      throw Error(ErrorKind::Usage,
                  cat("operator '", op.name, "' is called with the wrong number of operands"))
          .found(cat(c.args.size()))
          .expected(most == SIZE_MAX ? cat(least, " or more")
                    : most == least  ? cat(least)
                                     : cat(least, " to ", most),
                    operand_names(op));
    }
    for (size_t i = 0; i < c.args.size(); ++i) {
      const OperandSpec& spec = op.operands[std::min(i, op.operands.size() - 1)];
      if (!c.args[i] && spec.arity == OperandSpec::kOne) {
        fail(cat("operator '", op.name, "': operand '", spec.name, "' is absent"));
      }
    }
  }

  static std::string operand_names(const Operator& op) {
    std::vector<std::string> names;
    for (const OperandSpec& spec : op.operands) {
      names.push_back(cat(spec.name, spec.arity == OperandSpec::kOptional   ? "?"
                                     : spec.arity == OperandSpec::kVariadic ? "..."
                                                                            : ""));
    }
    return tenon::join(names, ", ");
  }

  static bool can_carry(const TensorType& t) {
    if (!t.dims_known || t.rank > 1 || t.value_known) return false;
    if (!t.dtype.is_int() && !t.dtype.is_bool()) return false;
    return t.rank == 0 || (t.dims[0].is_const() && *t.dims[0].as_const() <= kMaxCarriedValues);
  }

  // Larger sizes are left to run time. Where shapes are computed from shapes, they would otherwise
  // grow without bound (in a decoder, threefold with every layer).
  static constexpr int kMaxSizeNodes = 128;

  static bool is_small(const Dim& d) {
    int count = 0;
    std::vector<const DimNode*> stack = {&d.node()};
    while (!stack.empty()) {
      const DimNode* n = stack.back();
      stack.pop_back();
      if (++count > kMaxSizeNodes) return false;
      for (const auto& a : n->args) stack.push_back(a.get());
    }
    return true;
  }

  static bool are_small(const Array<Dim>& dims) {
    return std::all_of(dims.begin(), dims.end(), is_small);
  }

  TypeRef with_small_sizes(const TypeRef& type) {
    if (const auto* u = type_as<TupleType>(type)) {
      auto out = make<TupleType>();
      bool changed = false;
      for (const TypeRef& f : u->fields) {
        out->fields.push_back(with_small_sizes(f));
        changed = changed || out->fields.back() != f;
      }
      if (!changed) return type;
      return out;
    }
    const auto* t = type_as<TensorType>(type);
    if (!t || (are_small(t->dims) && are_small(t->values))) return type;
    auto out = make<TensorType>(*t);
    if (!are_small(t->values)) {
      out->value_known = false;
      out->values.clear();
    }
    for (size_t i = 0; i < t->dims.size(); ++i) {
      if (is_small(t->dims[i])) continue;
      Dim d = options_.fresh("size");
      out_.fresh.push_back(d.node().name.str());
      out->dims.set(i, d);
    }
    return out;
  }

  // Numbers beyond 64 bits wrap at run time, which sizes can't express, so nothing is known then.
  static std::optional<std::vector<Dim>> values_of(const Operator& op, const InferContext& cx,
                                                   const TensorType& t) {
    try {
      return op.value(cx, t);
    } catch (const Error& e) {
      if (e.kind() == ErrorKind::Internal) throw;
      return std::nullopt;
    }
  }

  // Requires that i32 elements don't wrap, since the type carries them as sizes. Elements of
  // operands were checked before.
  static void require_in_i32(InferContext& cx, const std::vector<Dim>& values) {
    for (const Dim& v : values) {
      if (carried_in_i32(cx, v)) continue;
      cx.require_less_equal(INT32_MIN, v, "a size computed in i32");
      cx.require_less_equal(v, INT32_MAX, "a size computed in i32");
    }
  }

  static bool carried_in_i32(const InferContext& cx, const Dim& v) {
    return std::any_of(cx.call().args.begin(), cx.call().args.end(), [&](const Operand& a) {
      TypeRef type = type_of(a);
      const auto* t = type_as<TensorType>(type);
      return t && t->dtype == i32 && t->value_known &&
             std::find(t->values.begin(), t->values.end(), v) != t->values.end();
    });
  }

  static TypeRef as_scalar(const InferContext& cx, const TypeRef& result) {
    if (result.is<ScalarType>()) return result;  // the rule returned a scalar type
    const auto* t = type_as<TensorType>(result);
    if (!t || t->rank != 0) {
      cx.fail(cat("on scalars it gives ", to_text(result), ", which is not a scalar"));
    }
    if (!is_scalar_dtype(t->dtype)) {
      cx.fail(
          cat("on scalars it gives ", short_name(t->dtype), "; a scalar is bool, i64, f32 or f64"));
    }
    auto s = make<ScalarType>();
    s->dtype = t->dtype;
    s->value_known = t->value_known && t->dtype == i64;
    if (s->value_known) s->value = t->values[0];
    return s;
  }

  void check_condition(const Operand& condition, const char* what) {
    TypeRef t = type_of(condition);
    if (const auto* s = type_as<ScalarType>(t); s && s->dtype == boolean) return;
    if (const auto* x = type_as<TensorType>(t); x && x->dtype == boolean) {
      if (!x->dims_known && x->rank != kUnknownRank) return;  // checked at run time
      if (x->dims_known && !proves_differ(product(x->dims.to_vector()), 1)) return;
    }
    throw Error(ErrorKind::Usage, cat("the condition of ", what, " is not a boolean"))
        .found(to_text(t))
        .expected("bool, or a tensor of one bool");
  }

  TypeRef block_type(const BlockRef& b) {
    return erase_symbols(type_of(b->result), options_.in_scope);
  }

  TypeRef if_(const If& e) {
    check_condition(e.condition, "`if`");
    TypeRef a = block_type(e.then_block), b = block_type(e.else_block);
    TypeRef both = join(a, b);
    if (!both) {
      throw Error(ErrorKind::Usage, "the arms of `if` give values of different types")
          .found(to_text(a), "then")
          .found(to_text(b), "else");
    }
    return both;
  }

  TypeRef loop(const Loop& e) {
    if (e.vars.size() != e.init.size()) fail("a loop needs one initial value per variable");
    std::vector<TypeRef> types;
    for (size_t i = 0; i < e.vars.size(); ++i) {
      types.push_back(e.vars[i]->type);
      require_fit(type_of(e.init[i]), e.vars[i]->type,
                  cat("the initial value of %", e.vars[i]->name), &out_.conditions);
    }
    check_condition(e.condition->result, "`loop`");
    TypeRef result = types.size() == 1 ? types[0] : tuple_type(types);
    // Unproved conditions are checked by bindings in the body, which its builder adds.
    std::vector<Ref<const Check>> inside;
    require_fit(type_of(e.body->result), result, "the result of the loop's body", &inside);
    return result;
  }

  TypeRef match(const Match& e) {
    TypeRef t = type_of(e.value);
    const auto* a = type_as<AdtType>(t);
    if (!a) {
      throw Error(ErrorKind::Usage, "match needs a value of an algebraic data type")
          .found(to_text(t));
    }
    const AdtDefinition* adt = find_adt(*options_.signatures, a->name);
    if (!adt) fail(cat("there is no type ", a->name));
    if (e.patterns.size() != e.arms.size()) fail("a match needs one arm per pattern");
    std::vector<std::string> seen;
    bool covered = false;
    TypeRef result;
    for (size_t i = 0; i < e.patterns.size(); ++i) {
      pattern(*e.patterns[i], *adt, *a, covered, &seen);
      covered |= e.patterns[i]->constructor.empty();
      TypeRef arm = block_type(e.arms[i]);
      TypeRef both = result ? join(result, arm) : arm;
      if (!both) {
        throw Error(ErrorKind::Usage, "the arms of `match` give values of different types")
            .found(to_text(result), "before")
            .found(to_text(arm), cat("arm ", i));
      }
      result = both;
    }
    std::vector<std::string> missing;
    for (const auto& c : adt->constructors) {
      if (std::find(seen.begin(), seen.end(), c->name.view()) == seen.end()) {
        missing.push_back(c->name.str());
      }
    }
    if (!covered && !missing.empty()) {
      fail(cat("match does not cover all of ", to_text(t), ": not ", tenon::join(missing, ", "),
               "; `_` covers the rest"));
    }
    if (!result) fail(cat("match on ", to_text(t), " has no arm"));
    return result;
  }

  void pattern(const Pattern& p, const AdtDefinition& adt, const AdtType& type, bool covered,
               std::vector<std::string>* seen) {
    if (covered) fail("an arm after `_` is never reached");
    if (p.constructor.empty()) {
      if (!p.fields.empty()) fail("`_` binds no fields");
      return;
    }
    const Constructor* c = nullptr;
    for (const auto& one : adt.constructors) {
      if (one->name == p.constructor) c = one.get();
    }
    if (!c) fail(cat(p.constructor, " is not a constructor of ", adt.name));
    if (std::find(seen->begin(), seen->end(), p.constructor.view()) != seen->end()) {
      fail(cat("a second arm for ", p.constructor, " is never reached"));
    }
    seen->push_back(p.constructor.str());
    if (p.fields.size() != c->fields.size()) {
      throw Error(ErrorKind::Usage,
                  cat("the pattern ", p.constructor, " has the wrong number of fields"))
          .found(cat(p.fields.size()))
          .expected(cat(c->fields.size()));
    }
    Array<TypeRef> fields = constructor_fields({&adt, c}, type.args);
    for (size_t i = 0; i < fields.size(); ++i) {
      if (!is_subtype(fields[i], p.fields[i]->type)) {
        throw Error(ErrorKind::Usage,
                    cat("field ", i, " of ", p.constructor, " has the wrong type"))
            .found(to_text(p.fields[i]->type))
            .expected(to_text(fields[i]));
      }
    }
  }

  TypeRef field(const Field& e) {
    TypeRef t = type_of(e.tuple);
    const auto* u = type_as<TupleType>(t);
    if (!u) throw Error(ErrorKind::Usage, "field access on a non-tuple").found(to_text(t));
    if (e.index < 0 || e.index >= static_cast<int64_t>(u->fields.size())) {
      throw Error(ErrorKind::Usage, cat("there is no field ", e.index)).found(to_text(t));
    }
    return u->fields[static_cast<size_t>(e.index)];
  }

  TypeRef construct(const Construct& e) {
    ConstructorRef c = find_constructor(*options_.signatures, e.constructor);
    if (!c.adt) fail(cat("there is no constructor ", e.constructor));
    if (e.type_args.size() != c.adt->type_params.size()) {
      throw Error(ErrorKind::Usage, cat(e.constructor, " has the wrong number of type arguments"))
          .found(cat(e.type_args.size()))
          .expected(cat(c.adt->type_params.size()));
    }
    Array<TypeRef> fields = constructor_fields(c, e.type_args);
    if (e.fields.size() != fields.size()) {
      throw Error(ErrorKind::Usage, cat(e.constructor, " has the wrong number of fields"))
          .found(cat(e.fields.size()))
          .expected(cat(fields.size()));
    }
    for (size_t i = 0; i < fields.size(); ++i) {
      require_fit(type_of(e.fields[i]), fields[i], cat(e.constructor, ": field ", i),
                  &out_.conditions);
    }
    return adt_type(c.adt->name, e.type_args.to_vector());
  }

  TypeRef match_shape(const MatchShape& e) {
    TypeRef t = type_of(e.value);
    if (!e.elements || type_as<ShapeType>(t)) require_rank(e.dims.size());
    return e.elements ? match_elements(t, e.dims) : match_dims(t, e.dims);
  }

  static void require_rank(size_t rank) {
    if (rank <= static_cast<size_t>(kMaxRank)) return;
    throw Error(ErrorKind::Usage, "more dimensions than a shape has")
        .found(cat(rank))
        .expected(cat("at most ", kMaxRank));
  }

  static void refute(const Array<Dim>& known, const Array<Dim>& stated, const TypeRef& t) {
    bool differ = known.size() != stated.size();
    for (size_t i = 0; !differ && i < known.size(); ++i)
      differ = proves_differ(known[i], stated[i]);
    if (!differ) return;
    throw Error(ErrorKind::Usage, "the value can't match")
        .found(to_text(t))
        .expected(dims_text(stated));
  }

  TypeRef match_dims(const TypeRef& t, const Array<Dim>& dims) {
    if (const auto* x = type_as<TensorType>(t)) {
      if (x->dims_known) refute(x->dims, dims, t);
      if (x->rank != kUnknownRank && x->rank != static_cast<int64_t>(dims.size())) {
        throw Error(ErrorKind::Usage, "the value has the wrong rank")
            .found(to_text(t))
            .expected(dims_text(dims));
      }
      auto out = make<TensorType>(*x);
      out->rank = static_cast<int64_t>(dims.size());
      out->dims_known = true;
      out->dims = dims;
      if (x->value_known && !dims_const(dims)) {
        out->value_known = false;
        out->values.clear();
      }
      return out;
    }
    if (const auto* s = type_as<ShapeType>(t)) return match_shape_value(*s, t, dims);
    throw Error(ErrorKind::Usage, "match_shape needs a tensor or a shape").found(to_text(t));
  }

  static bool dims_const(const Array<Dim>& dims) {
    return std::all_of(dims.begin(), dims.end(), [](const Dim& d) { return d.is_const(); });
  }

  static TypeRef match_shape_value(const ShapeType& s, const TypeRef& t, const Array<Dim>& dims) {
    if (s.dims_known) refute(s.dims, dims, t);
    if (s.rank != kUnknownRank && s.rank != static_cast<int64_t>(dims.size())) {
      throw Error(ErrorKind::Usage, "the shape has the wrong rank")
          .found(to_text(t))
          .expected(dims_text(dims));
    }
    return shape_type(dims.to_vector());
  }

  TypeRef match_elements(const TypeRef& t, const Array<Dim>& elements) {
    if (const auto* s = type_as<ScalarType>(t); s && s->dtype == i64) {
      if (elements.size() != 1) {
        throw Error(ErrorKind::Usage, "a scalar has one element").found(dims_text(elements));
      }
      if (s->value_known) refute({s->value}, elements, t);
      auto out = make<ScalarType>(*s);
      out->value_known = true;
      out->value = elements[0];
      return out;
    }
    if (const auto* h = type_as<ShapeType>(t)) return match_shape_value(*h, t, elements);
    const auto* x = type_as<TensorType>(t);
    if (!x || !x->dtype.is_int()) {
      throw Error(ErrorKind::Usage,
                  "match_elements needs a small integer tensor, a shape or an i64")
          .found(to_text(t));
    }
    int64_t count = static_cast<int64_t>(elements.size());
    if (!x->dims_known || x->rank > 1 || count > kMaxCarriedValues ||
        !(x->rank == 0 ? Dim(1) : x->dims[0]).is_const(count)) {
      throw Error(ErrorKind::Usage, cat("match_elements needs a tensor of rank 0 or 1 with ", count,
                                        count == 1 ? " element" : " elements"))
          .found(to_text(t));
    }
    if (x->value_known) refute(x->values, elements, t);
    return with_values(without_values(share(x)), elements.to_vector());
  }

  void append(std::vector<Ref<const Check>> more) {
    for (auto& c : more) out_.conditions.push_back(std::move(c));
  }

  const InferOptions& options_;
  Inferred out_;
};

}  // namespace

Inferred infer_type(const ExprRef& value, const InferOptions& options) {
  return Inference(options).of(value);
}

}  // namespace tenon::graph
