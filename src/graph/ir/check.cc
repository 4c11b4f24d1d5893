#include "graph/ir/check.h"

#include <algorithm>
#include <set>
#include <unordered_set>

#include "graph/ir/condition.h"
#include "graph/ir/infer.h"
#include "graph/ir/instantiate.h"
#include "graph/ir/intrinsic.h"
#include "graph/ir/name_text.h"
#include "graph/ir/pattern.h"
#include "graph/ir/walk.h"
#include "loop/kernel.h"
#include "loop/recurrence.h"
#include "object/reflect.h"
#include "object/tensor.h"

namespace tenon::graph {

namespace {

[[noreturn]] void fail(const Span& span, const std::string& message) {
  throw Error(ErrorKind::Usage, span, message);
}

std::string text_of(const Var& v) {
  return "%" + name_text(v.name.empty() ? std::string_view("_") : v.name.view());
}

class FunctionChecker {
 public:
  FunctionChecker(const Signatures& signatures, std::string_view name)
      : signatures_(signatures), name_(name) {}

  void run(const FunctionExpr& f) {
    span_ = f.span;
    if (f.self) fail(span_, cat("@", name_, ": a global function has no variable for itself"));
    function_attrs(f);
    function(f);
  }

 private:
  // The names that a block brings into scope; they are removed at its end.
  struct Level {
    std::vector<const Var*> vars;
    std::vector<std::string> symbols, checks;
  };

  class Enter {
   public:
    explicit Enter(FunctionChecker* c) : c_(c) {
      c->levels_.emplace_back();
      if (static_cast<int>(c->levels_.size()) > 2 * kMaxNesting) {
        fail(c->span_, cat("blocks are nested deeper than ", kMaxNesting, " levels"));
      }
    }
    ~Enter() {
      Level& l = c_->levels_.back();
      for (const Var* v : l.vars) c_->visible_.erase(v);
      for (const std::string& s : l.symbols) c_->symbols_.erase(c_->symbols_.find(s));
      for (const std::string& s : l.checks) c_->checks_.erase(c_->checks_.find(s));
      c_->levels_.pop_back();
    }

   private:
    FunctionChecker* c_;
  };

  // Runs `step`, whose errors get the span.
  template <class Step>
  auto here(const Step& step) {
    try {
      return step();
    } catch (Error& e) {
      e.at(span_);
      throw;
    }
  }

  // ---- functions and blocks ----

  void function(const FunctionExpr& f) {
    Enter level(this);
    for (const String& p : f.type_params) {
      if (!type_vars_.insert(p.str()).second) {
        fail(span_, cat("the type parameter ", p, " is already defined"));
      }
    }
    for (const VarRef& p : f.params) {
      if (!p) fail(span_, "a parameter is missing");
      bind_symbols(p->type);
    }
    for (const VarRef& p : f.params) define(p);
    if (f.self) {
      if (!same_type(f.self->type, type_of(f))) {
        fail(span_, cat(text_of(*f.self), " does not have the type of its function"));
      }
      define(f.self);
    }
    type(f.result_type);
    attrs(f.attrs);
    block(f.body);
    fit(type_of(f.body->result), f.result_type, "the function's result");
    for (const String& p : f.type_params) type_vars_.erase(p.str());
  }

  // Checks a block within a level that the caller opened and that has the block's own variables.
  void block(const BlockRef& b) {
    if (!b) fail(span_, "a block is missing");
    if (++blocks_ > kMaxNesting) {
      fail(span_, cat("blocks are nested deeper than ", kMaxNesting, " levels"));
    }
    for (const auto& binding : b->bindings) {
      if (!binding || !binding->var || !binding->value) fail(span_, "a binding is incomplete");
      span_ = binding->span;
      if (span_.empty())
        fail(span_, cat("the binding of ", text_of(*binding->var), " has no span"));
      this->binding(*binding);
    }
    operand(b->result);
    --blocks_;
  }

  void binding(const Binding& b) {
    if (!is_right_hand_side(b.value)) fail(span_, kNoRightHandSide);
    for_each_operand(b.value, [&](const Operand& o) { operand(o); });
    inside(b.value);
    span_ = b.span;
    if (const auto* c = b.value.as<Call>()) {
      call(*c);
      destinations(*c);
      if (memory_intrinsic(*c) == MemoryIntrinsic::kTensor) memory_.insert(b.var.get());
    }
    if (const auto* m = b.value.as<MatchShape>()) {
      for (const Dim& d : m->dims) {
        if (d.kind() == DimKind::kSymbol) bind_symbol(d.node().name.str());
      }
      for (const Dim& d : m->dims) dim(d);
    }
    if (const auto* s = b.value.as<Size>()) dim(s->size);
    if (const auto* f = b.value.as<Closure>()) {
      for (const TypeRef& t : f->type_args) type(t);
    }
    if (const auto* c = b.value.as<Check>()) {
      dim(c->left);
      dim(c->right);
    }
    Inferred r = infer(b.value);
    for (const auto& c : r.conditions) condition(*c);
    TypeRef known = r.known();
    type(b.var->type);
    if (!is_subtype(known, b.var->type, signatures_.variances())) {
      throw Error(ErrorKind::Usage, span_,
                  cat("the type of ", text_of(*b.var), " doesn't match its value"))
          .found(to_text(b.var->type))
          .expected(to_text(known), "inferred, or less");
    }
    if (const auto* c = b.value.as<Check>()) {
      levels_.back().checks.push_back(check_key(c->kind, c->left, c->right));
      checks_.insert(levels_.back().checks.back());
    }
    define(b.var);
  }

  // Checks the blocks of a right-hand side, each with the variables that it introduces.
  void inside(const ExprRef& value) {
    if (const auto* f = value.as<FunctionExpr>()) {
      if (!f->type_params.empty()) fail(span_, "a function literal has no type parameters");
      function(*f);
    } else if (const auto* i = value.as<If>()) {
      for (const BlockRef& b : {i->then_block, i->else_block}) {
        Enter level(this);
        block(b);
      }
    } else if (const auto* l = value.as<Loop>()) {
      loop(*l);
    } else if (const auto* m = value.as<Match>()) {
      if (m->patterns.size() != m->arms.size()) fail(span_, "a match needs one arm per pattern");
      for (size_t i = 0; i < m->arms.size(); ++i) {
        Enter level(this);
        if (!m->patterns[i]) fail(span_, "a pattern is missing");
        for (const VarRef& v : variables_of(*m->patterns[i])) {
          if (!v) fail(span_, "a variable is missing");
          bind_symbols(v->type);
          define(v);
        }
        block(m->arms[i]);
      }
    }
  }

  void loop(const Loop& l) {
    if (l.vars.size() != l.init.size() || !l.condition || !l.body) {
      fail(span_, "a loop needs one initial value per variable, a condition and a body");
    }
    Enter level(this);
    std::vector<TypeRef> types;
    for (const VarRef& v : l.vars) {
      define(v);
      types.push_back(v->type);
    }
    {
      Enter condition_level(this);
      block(l.condition);
    }
    Enter body_level(this);
    block(l.body);
    fit(type_of(l.body->result), loop_type(types), "the result of the loop's body");
  }

  // ---- right-hand sides ----

  Inferred infer(const ExprRef& value) {
    InferOptions options;
    options.signatures = &signatures_;
    options.fresh = [this](std::string_view hint) {
      return Dim::symbol(cat("\x01", hint, fresh_++));
    };
    options.in_scope = [this](std::string_view s) { return symbols_.find(s) != symbols_.end(); };
    return here([&] { return infer_type(value, options); });
  }

  void call(const Call& c) {
    attrs(c.attrs);
    if (c.kind == CalleeKind::kOperator) {
      const Operator* op = OperatorTable::global().find(c.callee);
      if (!op) fail(span_, cat("there is no operator '", c.callee, "'"));
      const Attrs whole = here([&] { return complete_attrs(*op, c.attrs); });
      if (!structural_equal(whole, c.attrs)) {
        fail(span_, cat("operator '", c.callee, "': its attributes aren't complete"));
      }
    } else if (c.kind != CalleeKind::kKernel && c.kind != CalleeKind::kPacked && !c.attrs.empty()) {
      fail(span_, "a function takes no attributes");
    }
    bool states = c.kind == CalleeKind::kKernel || c.kind == CalleeKind::kPacked;
    if (c.result_type && !states) fail(span_, "only kernels and packed functions state a result");
    if (c.result_type) type(c.result_type);
    if (!c.type_args.empty() && c.kind != CalleeKind::kGlobal) {
      fail(span_, "only functions of the module take type arguments");
    }
    for (const TypeRef& t : c.type_args) type(t);
  }

  // Values are immutable, so a kernel may only write to memory that was made for its result.
  void destinations(const Call& c) {
    const loop::KernelInterfaceRef* kernel =
        c.kind == CalleeKind::kKernel ? signatures_.kernels.find(c.callee) : nullptr;
    if (!kernel) return;
    for (size_t i = (*kernel)->inputs.size(); i < c.args.size(); ++i) {
      const auto* v = c.args[i].as<Var>();
      if (v && memory_.count(v) != 0) continue;
      throw Error(ErrorKind::Usage, span_, cat("kernel @", c.callee, " can't write argument ", i))
          .found(v ? text_of(*v) : "a constant", "a value, which doesn't change")
          .expected(cat("the result of packed \"", kMemoryTensor, "\""))
          .help("leave the destinations out: the call's value is then what the kernel writes");
    }
  }

  void condition(const Check& c) {
    if (proved(c.kind, c.left, c.right)) return;
    if (checks_.find(check_key(c.kind, c.left, c.right)) != checks_.end()) return;
    throw Error(ErrorKind::Usage, span_, cat(c.message, ": neither proved nor checked before"))
        .expected(cat("check ", condition_text(c.kind, c.left, c.right)));
  }

  void fit(const TypeRef& from, const TypeRef& to, const char* what) {
    std::vector<Ref<const Check>> conditions;
    require_fit(from, to, what, signatures_.variances(), &conditions, span_);
    for (const auto& c : conditions) condition(*c);
  }

  // ---- variables, constants, attributes ----

  void function_attrs(const FunctionExpr& f) {
    for (const auto& [name, value] : f.attrs) {
      if (std::ranges::find(kFunctionAttrs, name.view()) == std::end(kFunctionAttrs)) {
        const std::vector<std::string> known(std::begin(kFunctionAttrs), std::end(kFunctionAttrs));
        Error e(ErrorKind::Usage, span_,
                cat("@", name_, ": a function has no attribute ", quoted(name)));
        e.expected(tenon::join(known, ", "));
        suggest(&e, name, known);
        throw e;
      }
      if (name == kResultsAttr) continue;  // see below
      if (value.type_index == TypeIndex::Bool) continue;
      throw Error(ErrorKind::Usage, span_,
                  cat("@", name_, ": the attribute '", name, "' is not a boolean"))
          .found(type_name(value.type_index))
          .expected("true or false");
    }
    const Any* results = f.attrs.find(kResultsAttr);
    if (!results) return;
    const auto* tuple = type_as<TupleType>(f.result_type);
    const size_t count = tuple ? tuple->fields.size() : 1;
    const auto names = results->is_none() ? std::nullopt : results->try_as<Array<String>>();
    const bool named =
        names && (names->empty() || names->size() == count) &&
        std::none_of(names->begin(), names->end(), [](const String& name) { return name.empty(); });
    if (named) return;
    throw Error(
        ErrorKind::Usage, span_,
        cat("@", name_, ": the attribute '", kResultsAttr, "' doesn't name the function's results"))
        .found(names ? cat(counted(names->size(), "name")) : type_name(results->type_index))
        .expected(cat("a list of ", counted(count, "string"), ", none of them empty"));
  }

  void define(const VarRef& v) {
    if (!v) fail(span_, "a variable is missing");
    if (!bound_.insert(v.get()).second) fail(span_, cat(text_of(*v), " is bound twice"));
    type(v->type);
    visible_.insert(v.get());
    levels_.back().vars.push_back(v.get());
  }

  void operand(const Operand& o) {
    if (!o) return;
    if (const auto* v = o.as<Var>()) {
      if (visible_.count(v) == 0) fail(span_, cat(text_of(*v), " is not bound here"));
      return;
    }
    const auto* c = o.as<Constant>();
    if (!c)
      fail(span_, "an operand is neither a variable nor a constant: bind it to a variable first");
    constant(*c);
  }

  void constant(const Constant& c) {
    const Any& v = c.value;
    TypeRef expected;
    switch (v.type_index) {
      case TypeIndex::Int: {
        const auto* s = type_as<ScalarType>(c.type);
        const bool narrow = s && s->dtype.is_int() && wrap_to(s->dtype, v.as<int64_t>()) == v.v.i;
        expected = type_of(constant_int(v.as<int64_t>(), narrow ? s->dtype : i64));
        break;
      }
      case TypeIndex::Bool:
        expected = scalar_type(boolean);
        break;
      case TypeIndex::Float: {
        const auto* s = type_as<ScalarType>(c.type);
        expected = scalar_type(s && s->dtype.is_float() ? s->dtype : f64);
        break;
      }
      case TypeIndex::Shape:
        expected = type_of(constant_shape(v.as<Shape>()));
        break;
      case TypeIndex::Tensor:
        expected = type_of(graph::constant(v.as<Tensor>()));
        break;
      default:
        if (!String::accepts(v)) {
          fail(span_, cat("a constant can't hold a ", type_name(v.type_index)));
        }
        expected = type_of(constant_string(""));
    }
    if (same_type(c.type, expected)) return;
    throw Error(ErrorKind::Usage, span_, "a constant's type does not match its value")
        .found(to_text(c.type))
        .expected(to_text(expected));
  }

  void attrs(const Attrs& all) {
    for (const auto& [name, value] : all) attr(name, value, 0);
  }

  void attr(const String& name, const Any& value, int depth) {
    if (depth > kMaxNesting) fail(span_, cat("the attribute ", name, " is nested too deep"));
    if (value.type_index == TypeIndex::Array) {
      for (const Any& item : value.as<Array<Any>>()) attr(name, item, depth + 1);
    } else if (Dim::accepts(value)) {
      dim(value.as<Dim>());
    } else if (!value.is_none() && !String::accepts(value) && value.type_index != TypeIndex::Int &&
               value.type_index != TypeIndex::Bool && value.type_index != TypeIndex::Float &&
               value.type_index != TypeIndex::DataType) {
      fail(span_, cat("the attribute ", name, " can't hold a ", type_name(value.type_index)));
    }
  }

  // ---- types and symbols ----

  void bind_symbol(const std::string& name) {
    if (symbols_.find(name) != symbols_.end()) return;
    symbols_.insert(name);
    levels_.back().symbols.push_back(name);
  }

  void bind_symbols(const TypeRef& t) {
    bounded(t);
    SymbolSet names;
    collect_binding_symbols(t, &names);
    for (const std::string& n : names) bind_symbol(n);
  }

  void symbols(const SymbolSet& names) {
    for (const std::string& n : names) {
      if (symbols_.find(n) == symbols_.end()) {
        fail(span_, cat("the symbol ", n, " is not bound here"));
      }
    }
  }

  void dim(const Dim& d) {
    SymbolSet names;
    tenon::collect_symbols(d, &names);
    symbols(names);
  }

  void type(const TypeRef& t) {
    bounded(t);
    SymbolSet names;
    collect_symbols(t, &names);
    symbols(names);
    well_formed(t);
  }

  // Before anything walks the type.
  void bounded(const TypeRef& t) {
    if (!t) fail(span_, "a type is missing");
    here([&] { require_bounded(t); });
  }

  void well_formed(const TypeRef& t) {
    if (!t) fail(span_, "a type is missing");
    here([&] { require_consistent(t); });
    if (t.is<TensorType>()) {
      require_countable(t, span_);
    } else if (const auto* u = type_as<TupleType>(t)) {
      for (const TypeRef& f : u->fields) well_formed(f);
    } else if (const auto* f = type_as<FunctionType>(t)) {
      std::vector<std::string> own;  // those that don't have the name of an outer one
      for (const String& p : f->type_params) {
        if (type_vars_.insert(p.str()).second) own.push_back(p.str());
      }
      for (const TypeRef& p : f->params) well_formed(p);
      well_formed(f->result);
      for (const std::string& p : own) type_vars_.erase(p);
    } else if (const auto* a = type_as<ArrayType>(t)) {
      well_formed(a->element);
    } else if (const auto* d = type_as<AdtType>(t)) {
      const AdtDefinition* adt = signatures_.find_type(d->name);
      if (!adt) fail(span_, cat("there is no type ", d->name));
      if (adt->type_params.size() != d->args.size()) {
        fail(span_, cat("the type ", d->name, " takes ", adt->type_params.size(),
                        " type arguments, not ", d->args.size()));
      }
      for (const TypeRef& p : d->args) well_formed(p);
    } else if (const auto* v = type_as<TypeVar>(t)) {
      if (type_vars_.count(v->name.str()) == 0) {
        fail(span_, cat("the type parameter ", v->name, " is unknown here"));
      }
    }
  }

  const Signatures& signatures_;
  std::string_view name_;
  Span span_;
  std::vector<Level> levels_;
  int blocks_ = 0;
  int64_t fresh_ = 0;
  std::set<std::string> type_vars_;
  std::unordered_set<const Var*> bound_, visible_;
  std::unordered_set<const Var*> memory_;  // results of memory intrinsics
  std::multiset<std::string, std::less<>> symbols_, checks_;
};

void check_adts(const Module& module) {
  std::set<std::string> constructors;
  for (const auto& [_, adt] : prelude()) {
    for (const auto& c : adt->constructors) constructors.insert(c->name.str());
  }
  for (const auto& [name, adt] : module->adts) {
    auto bad = [&, n = name](const std::string& what) { fail({}, cat("type ", n, ": ", what)); };
    if (prelude().contains(name)) bad("the prelude has a type of this name");
    if (adt->name != name) bad(cat("it is named ", adt->name));
    if (adt->constructors.empty()) bad("it has no constructor");
    for (const auto& c : adt->constructors) {
      for (const TypeRef& field : c->fields) check_field(field, c->name, {});
      if (!constructors.insert(c->name.str()).second) {
        bad(cat("there is another constructor ", c->name));
      }
    }
  }
}

void check_kernel(const String& name, const loop::KernelInterfaceRef& kernel) {
  if (!kernel) fail({}, cat("kernel @", name, " is missing"));
  try {
    if (auto* compute = kernel.as<loop::Compute>()) {
      loop::check_whole(*compute);
    } else if (auto* repeated = kernel.as<loop::Recurrence>()) {
      loop::check(*repeated);
    } else {
      loop::check(*kernel.as<loop::Kernel>());
    }
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::Internal) throw;
    throw broken_kernel(cat("kernel @", name), {}, e);
  }
}

}  // namespace

Error broken_kernel(std::string_view what, const Span& span, const Error& broken) {
  Error error(ErrorKind::Usage, span, cat(what, " breaks a rule"));
  for (const Error::Row& row : broken.rows()) {
    // The kernel's text, unless the reader has it.
    if (row.label != "found" || span.file.empty()) error.row(row.label, row.text, row.note);
  }
  return error;
}

void check_field(const TypeRef& field, std::string_view constructor, const Span& span) {
  SymbolSet symbols;
  collect_symbols(field, &symbols);
  if (!symbols.empty()) {
    throw Error(
        ErrorKind::Usage, span,
        cat("a field of ", constructor, " has the size ", symbols[0], ", which nothing binds"))
        .found(to_text(field))
        .expected("sizes that are numbers, or only a rank: tensor[rank=1; f32]")
        .help("match_shape binds the sizes of a field that is taken out of a value");
  }
  require_countable(field, span);
}

void check_module(const Module& module) {
  check_adts(module);
  for (const auto& [name, kernel] : module->kernels) check_kernel(name, kernel);
  for (const auto& [name, f] : module->functions) {
    if (!f) fail({}, cat("function @", name, " is missing"));
  }
  Signatures signatures = Signatures::of(module);
  for (const auto& [name, f] : module->functions) FunctionChecker(signatures, name).run(*f);
}

}  // namespace tenon::graph
