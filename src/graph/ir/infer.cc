#include "graph/ir/infer.h"

#include <mutex>

#include <string_view>

#include "graph/ir/infer_kernel_call.h"
#include "graph/ir/infer_match_shape.h"
#include "graph/ir/infer_operator_call.h"
#include "graph/ir/instantiate.h"
#include "graph/ir/name_text.h"
#include "graph/ir/packed_call.h"
#include "graph/ir/pattern.h"
#include "graph/ir/walk.h"

namespace tenon::graph {

namespace {

[[noreturn]] void fail(const std::string& message) {
  throw Error(ErrorKind::Usage, message);
}

// Throws for a name that `known` doesn't have.
template <class T>
[[noreturn]] void unknown(const char* what, const String& name, const Map<String, T>& known) {
  std::vector<std::string> names;
  for (const auto& [other, _] : known) names.push_back(other.str());
  throw no_such_global(what, "@", name, names);
}

}  // namespace

Error no_such_global(const char* what, std::string_view before, std::string_view name,
                     const std::vector<std::string>& others) {
  Error e(ErrorKind::Usage, cat("there is no ", what, " ", before, name_text(name)));
  if (OperatorTable::global().find(name)) {
    e.help(cat("an operator is called without @: ", name,
               "(...); where a function is wanted, put one around it: fn(...) -> T { ", name,
               "(...) }"));
  } else {
    suggest(&e, name, others, before);
  }
  return e;
}

std::string Signatures::shown(const String& function) const {
  const String* text = written.find(function);
  return cat("@", text ? text->str() : name_text(function));
}

Signatures Signatures::of(const Module& module) {
  Signatures s;
  for (const auto& [name, f] : module->functions) s.functions.set(name, type_of(*f));
  s.kernels = module->kernels;
  for (const auto& [_, adt] : module->adts) s.add_type(adt);
  return s;
}

struct Signatures::FoundVariances {
  std::once_flag once;
  std::optional<Variances> found;
};

const Variances& Signatures::variances() const {
  if (!variances_) return Variances::of_prelude();
  std::call_once(variances_->once, [&] { variances_->found.emplace(types_); });
  return *variances_->found;
}

void Signatures::add_type(const Ref<const AdtDefinition>& adt) {
  types_.set(adt->name, adt);
  variances_ = std::make_shared<FoundVariances>();
  for (size_t i = 0; i < adt->constructors.size(); ++i) {
    const String& name = adt->constructors[i]->name;
    if (type_of_constructor_.contains(name)) continue;
    type_of_constructor_.set(name, adt);
    place_of_constructor_.set(name, static_cast<int64_t>(i));
  }
}

const AdtDefinition* Signatures::find_type(std::string_view name) const {
  const auto* adt = types_.find(String(name));
  if (!adt) adt = prelude().find(String(name));
  return adt ? adt->get() : nullptr;
}

std::vector<std::string> Signatures::constructor_names() const {
  std::vector<std::string> names;
  for (const auto* types : {&prelude(), &types_}) {
    for (const auto& [_, adt] : *types) {
      for (const auto& c : adt->constructors) names.push_back(c->name.str());
    }
  }
  return names;
}

ConstructorRef Signatures::find_constructor(std::string_view name) const {
  const auto* adt =
      type_of_constructor_.empty() ? nullptr : type_of_constructor_.find(String(name));
  if (adt) {
    const int64_t place = place_of_constructor_.at(String(name));
    return {adt->get(), (*adt)->constructors[static_cast<size_t>(place)].get(), place};
  }
  for (const auto& [_, adt] : prelude()) {
    int64_t place = 0;
    for (const auto& c : adt->constructors) {
      if (c->name == name) return {adt.get(), c.get(), place};
      ++place;
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

TypeRef erase(const TypeRef& type, const SymbolSet& symbols) {
  return erase_symbols(type, [&](std::string_view name) { return !symbols.contains(name); });
}

namespace {

// ---- right-hand sides ----

class Inference {
 public:
  explicit Inference(const InferOptions& options) : options_(options) {}

  Inferred of(const ExprRef& value) {
    TENON_ASSERT(value, "a binding without a right-hand side");
    if (!is_right_hand_side(value)) fail(kNoRightHandSide);
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
      case Closure::kTypeIndex:
        out_.type = closure(*value.as<Closure>());
        break;
      case Size::kTypeIndex:
        out_.type = size(*value.as<Size>());
        break;
      case MatchShape::kTypeIndex:
        out_.type = infer_match_shape(*value.as<MatchShape>());
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
    SymbolSet names, own;
    collect_symbols(value, &names);
    if (const auto* m = value.as<MatchShape>()) {
      for (const Dim& d : m->dims) {
        if (d.kind() == DimKind::kSymbol) own.add(d.node().name.view());
      }
    }
    for (const std::string& n : names) {
      if (!options_.in_scope(n) && !own.contains(n)) {
        Error e(ErrorKind::Usage, cat("the symbol ", n, " is not bound here"));
        if (options_.symbols) suggest(&e, n, options_.symbols());
        throw e;
      }
    }
  }

  TypeRef call(const Call& c) {
    switch (c.kind) {
      case CalleeKind::kOperator:
        return infer_operator_call(c, options_, &out_);
      case CalleeKind::kGlobal: {
        const TypeRef* t = options_.signatures->functions.find(c.callee);
        if (!t) unknown("function", c.callee, options_.signatures->functions);
        const std::string what = options_.signatures->shown(c.callee);
        return function_call(*with_type_args((*t).cast<const FunctionType>(), c.type_args, what), c,
                             what);
      }
      case CalleeKind::kClosure: {
        TypeRef t = type_of(c.closure);
        const auto* f = type_as<FunctionType>(t);
        if (!f) {
          throw Error(ErrorKind::Usage, "the callee is not a function")
              .found(to_text(t))
              .expected("a value of a function type, such as fn(i64) -> i64");
        }
        return function_call(*f, c, "the closure");
      }
      case CalleeKind::kKernel: {
        const loop::KernelInterfaceRef* kernel = options_.signatures->kernels.find(c.callee);
        if (!kernel) unknown("kernel", c.callee, options_.signatures->kernels);
        return infer_kernel_call(c, **kernel);
      }
      case CalleeKind::kPacked:
        if (!c.result_type) fail(cat("the packed call of '", c.callee, "' states no result type"));
        check_packed_call(c, variances());
        return c.result_type;
    }
    fail("a call of an unknown kind");
  }

  const Variances& variances() const { return options_.signatures->variances(); }

  TypeRef function_call(const FunctionType& f, const Call& c, const std::string& what) {
    Instance instance = instantiate(f, c.args, what, variances());
    for (auto& c : instance.conditions) out_.conditions.push_back(std::move(c));
    return instance.result;
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
    TypeRef both = join(a, b, variances());
    if (!both) {
      throw Error(ErrorKind::Usage, "the arms of `if` give values of different types")
          .found(to_text(b), "else")
          .expected(to_text(a), "then");
    }
    return both;
  }

  TypeRef loop(const Loop& e) {
    if (e.vars.size() != e.init.size()) fail("a loop needs one initial value per variable");
    std::vector<TypeRef> types;
    for (size_t i = 0; i < e.vars.size(); ++i) {
      types.push_back(e.vars[i]->type);
      require_fit(type_of(e.init[i]), e.vars[i]->type,
                  cat("the initial value of %", e.vars[i]->name), variances(), &out_.conditions);
    }
    check_condition(e.condition->result, "`loop`");
    TypeRef result = loop_type(types);
    // Unproved conditions are checked by bindings in the body, which its builder adds.
    std::vector<Ref<const Check>> inside;
    require_fit(type_of(e.body->result), result, "the result of the loop's body", variances(),
                &inside);
    return result;
  }

  TypeRef match(const Match& e) {
    decide(e, *options_.signatures);
    TypeRef result;
    for (size_t i = 0; i < e.arms.size(); ++i) {
      result = join_arm(result, block_type(e.arms[i]), i, variances());
    }
    return result;
  }

  static std::string field_numbers(size_t count) {
    return count == 0   ? "none: the tuple has no fields"
           : count == 1 ? "0"
                        : cat("0 to ", count - 1);
  }

  TypeRef field(const Field& e) {
    TypeRef t = type_of(e.tuple);
    const auto* u = type_as<TupleType>(t);
    if (!u) {
      throw Error(ErrorKind::Usage, "field access on a non-tuple")
          .found(to_text(t))
          .expected("a tuple");
    }
    if (e.index < 0 || e.index >= static_cast<int64_t>(u->fields.size())) {
      throw Error(ErrorKind::Usage, cat("there is no field ", e.index))
          .found(to_text(t))
          .expected(field_numbers(u->fields.size()));
    }
    return u->fields[static_cast<size_t>(e.index)];
  }

  TypeRef construct(const Construct& e) {
    ConstructorRef c = options_.signatures->find_constructor(e.constructor);
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
      require_fit(type_of(e.fields[i]), fields[i], cat(e.constructor, ": field ", i), variances(),
                  &out_.conditions);
    }
    return adt_type(c.adt->name, e.type_args.to_vector());
  }

  TypeRef closure(const Closure& e) {
    const TypeRef* found = options_.signatures->functions.find(e.function);
    if (!found) unknown("function", e.function, options_.signatures->functions);
    const std::string what = options_.signatures->shown(e.function);
    const auto function = with_type_args((*found).cast<const FunctionType>(), e.type_args, what);
    if (!function->type_params.empty()) {
      throw Error(ErrorKind::Usage, cat(what, " as a value needs type arguments"))
          .expected(cat(what, "[...] with ", counted(function->type_params.size(), "type")))
          .help("a function that is a value takes one type only");
    }
    if (e.captures.size() > function->params.size()) {
      throw Error(ErrorKind::Usage, cat(what, " has fewer parameters than the closure captures"))
          .found(cat(e.captures.size()))
          .expected(cat("at most ", function->params.size()));
    }
    Matching captured;
    for (size_t i = 0; i < e.captures.size(); ++i) {
      captured.match(function->params[i], type_of(e.captures[i]));
    }
    auto rest = make<FunctionType>();
    for (size_t i = 0; i < function->params.size(); ++i) {
      const TypeRef param = captured.apply(function->params[i]);
      if (i >= e.captures.size()) {
        rest->params.push_back(param);
      } else {
        require_fit(type_of(e.captures[i]), param, cat(what, ": capture ", i), variances(),
                    &out_.conditions);
      }
    }
    rest->result = captured.apply(function->result);
    return rest;
  }

  // The function's type for these type arguments; without any, the type as it is.
  static Ref<const FunctionType> with_type_args(const Ref<const FunctionType>& function,
                                                const Array<TypeRef>& type_args,
                                                const std::string& what) {
    if (type_args.empty()) return function;
    if (type_args.size() != function->type_params.size()) {
      throw Error(ErrorKind::Usage, cat(what, " has the wrong number of type arguments"))
          .found(cat(type_args.size()))
          .expected(cat(function->type_params.size()));
    }
    Map<String, TypeRef> types;
    for (size_t i = 0; i < type_args.size(); ++i) types.set(function->type_params[i], type_args[i]);
    auto out = make<FunctionType>();
    for (const TypeRef& param : function->params) {
      out->params.push_back(substitute_type_vars(param, types));
    }
    out->result = substitute_type_vars(function->result, types);
    return out;
  }

  TypeRef size(const Size& e) {
    auto type = make<ScalarType>();
    type->dtype = i64;
    type->value_known = true;
    type->value = e.size;
    return type;
  }

  const InferOptions& options_;
  Inferred out_;
};

}  // namespace

Inferred infer_type(const ExprRef& value, const InferOptions& options) {
  return Inference(options).of(value);
}

}  // namespace tenon::graph
