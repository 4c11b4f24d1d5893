#include "graph/ir/expr.h"

#include "loop/scalar.h"
#include "object/reflect.h"

namespace tenon::graph {

// graph::Field hides the Field of reflection.
using TableField = ::tenon::Field;

const TypeInfo& Expr::type_info() {
  static const TypeInfo info = tenon::type_of<Expr>("graph.Expr", {});
  return info;
}

const TypeInfo& Var::type_info() {
  static const TableField fields[] = {field("name", &Var::name, kIgnored),
                                      field("type", &Var::type)};
  static const TypeInfo info =
      tenon::type_of<Var>("graph.Var", fields, &Expr::type_info(), kVariable);
  return info;
}

const TypeInfo& Constant::type_info() {
  static const TableField fields[] = {field("value", &Constant::value),
                                      field("type", &Constant::type),
                                      field("name", &Constant::name, kIgnored)};
  static const TypeInfo info =
      tenon::type_of<Constant>("graph.Constant", fields, &Expr::type_info());
  return info;
}

const TypeInfo& Binding::type_info() {
  static const TableField fields[] = {field("value", &Binding::value),
                                      field("var", &Binding::var, kBinds),
                                      field("span", &Binding::span, kIgnored)};
  static const TypeInfo info = tenon::type_of<Binding>("graph.Binding", fields);
  return info;
}

const TypeInfo& Block::type_info() {
  static const TableField fields[] = {field("bindings", &Block::bindings),
                                      field("result", &Block::result, kOptional)};
  static const TypeInfo info = tenon::type_of<Block>("graph.Block", fields);
  return info;
}

const TypeInfo& Call::type_info() {
  static constexpr const char* kKinds[] = {"operator", "global", "closure", "kernel", "packed"};
  static const TableField fields[] = {
      field("kind", &Call::kind, kKinds),
      field("callee", &Call::callee),
      field("closure", &Call::closure, kOptional),
      field("args", &Call::args, kOptional),
      field("attrs", &Call::attrs),
      field("result_type", &Call::result_type, kOptional),
      field("type_args", &Call::type_args),
  };
  static const TypeInfo info = tenon::type_of<Call>("graph.Call", fields, &Expr::type_info());
  return info;
}

const TypeInfo& FunctionExpr::type_info() {
  static const TableField fields[] = {
      field("name", &FunctionExpr::name, kIgnored),
      field("self", &FunctionExpr::self, kBinds | kOptional),
      field("type_params", &FunctionExpr::type_params),
      field("params", &FunctionExpr::params, kBinds),
      field("result_type", &FunctionExpr::result_type),
      field("body", &FunctionExpr::body),
      field("attrs", &FunctionExpr::attrs),
      field("span", &FunctionExpr::span, kIgnored),
  };
  static const TypeInfo info =
      tenon::type_of<FunctionExpr>("graph.Function", fields, &Expr::type_info());
  return info;
}

const TypeInfo& If::type_info() {
  static const TableField fields[] = {field("condition", &If::condition),
                                      field("then_block", &If::then_block),
                                      field("else_block", &If::else_block)};
  static const TypeInfo info = tenon::type_of<If>("graph.If", fields, &Expr::type_info());
  return info;
}

const TypeInfo& Loop::type_info() {
  static const TableField fields[] = {
      field("init", &Loop::init, kOptional), field("vars", &Loop::vars, kBinds),
      field("condition", &Loop::condition), field("body", &Loop::body)};
  static const TypeInfo info = tenon::type_of<Loop>("graph.Loop", fields, &Expr::type_info());
  return info;
}

const TypeInfo& Pattern::type_info() {
  static constexpr const char* kKinds[] = {"any", "variable", "constant", "constructor", "tuple"};
  static const TableField fields[] = {
      field("kind", &Pattern::kind, kKinds), field("var", &Pattern::var, kBinds | kOptional),
      field("constant", &Pattern::constant, kOptional), field("constructor", &Pattern::constructor),
      field("fields", &Pattern::fields)};
  static const TypeInfo info = tenon::type_of<Pattern>("graph.Pattern", fields);
  return info;
}

const TypeInfo& Match::type_info() {
  static const TableField fields[] = {field("value", &Match::value),
                                      field("patterns", &Match::patterns),
                                      field("arms", &Match::arms)};
  static const TypeInfo info = tenon::type_of<Match>("graph.Match", fields, &Expr::type_info());
  return info;
}

const TypeInfo& Tuple::type_info() {
  static const TableField fields[] = {field("fields", &Tuple::fields, kOptional)};
  static const TypeInfo info = tenon::type_of<Tuple>("graph.Tuple", fields, &Expr::type_info());
  return info;
}

const TypeInfo& Field::type_info() {
  static const TableField fields[] = {field("tuple", &Field::tuple), field("index", &Field::index)};
  static const TypeInfo info = tenon::type_of<Field>("graph.Field", fields, &Expr::type_info());
  return info;
}

const TypeInfo& Construct::type_info() {
  static const TableField fields[] = {field("constructor", &Construct::constructor),
                                      field("type_args", &Construct::type_args),
                                      field("fields", &Construct::fields, kOptional)};
  static const TypeInfo info =
      tenon::type_of<Construct>("graph.Construct", fields, &Expr::type_info());
  return info;
}

const TypeInfo& Closure::type_info() {
  static const TableField fields[] = {field("function", &Closure::function),
                                      field("type_args", &Closure::type_args),
                                      field("captures", &Closure::captures, kOptional)};
  static const TypeInfo info = tenon::type_of<Closure>("graph.Closure", fields, &Expr::type_info());
  return info;
}

const TypeInfo& Size::type_info() {
  static const TableField fields[] = {field("size", &Size::size)};
  static const TypeInfo info = tenon::type_of<Size>("graph.Size", fields, &Expr::type_info());
  return info;
}

const TypeInfo& MatchShape::type_info() {
  static const TableField fields[] = {field("value", &MatchShape::value),
                                      field("dims", &MatchShape::dims),
                                      field("elements", &MatchShape::elements)};
  static const TypeInfo info =
      tenon::type_of<MatchShape>("graph.MatchShape", fields, &Expr::type_info());
  return info;
}

const TypeInfo& Check::type_info() {
  static const TableField fields[] = {field("kind", &Check::kind, kCheckNames),
                                      field("left", &Check::left), field("right", &Check::right),
                                      field("message", &Check::message)};
  static const TypeInfo info = tenon::type_of<Check>("graph.Check", fields, &Expr::type_info());
  return info;
}

// ---- operands ----

Ref<const Size> make_size(const Dim& size) {
  auto made = make<Size>();
  made->size = size;
  return made;
}

Ref<const Call> make_call(CalleeKind kind, std::string_view callee, Array<Operand> args,
                          Attrs attrs, TypeRef result_type) {
  return make<Call>(kind, String(callee), Operand(), std::move(args), std::move(attrs),
                    std::move(result_type), Array<TypeRef>());
}

TypeRef type_of(const Operand& operand) {
  if (const auto* v = operand.as<Var>()) return v->type;
  if (const auto* c = operand.as<Constant>()) return c->type;
  TENON_ASSERT(!operand, "an operand is a variable or a constant");
  return unit_type();
}

const TensorType* known_tensor(const Operand& operand) {
  return known_tensor(type_of(operand));  // the operand keeps its type alive
}

TypeRef type_of(const FunctionExpr& function) {
  auto t = make<FunctionType>();
  t->type_params = function.type_params;
  t->params = function.params.map([](const VarRef& p) { return p->type; });
  t->result = function.result_type;
  return t;
}

namespace {

template <class T>
std::vector<Dim> elements(const Tensor& t) {
  const T* data = t.data_as<T>();
  std::vector<Dim> out;
  for (int64_t i = 0; i < t.count(); ++i) out.emplace_back(static_cast<int64_t>(data[i]));
  return out;
}

// The elements of a small integer tensor as numbers, or nullopt if types don't carry them.
std::optional<std::vector<Dim>> carried_values(const Tensor& t) {
  DataType d = t.dtype();
  if (t.rank() > 1 || t.count() > kMaxCarriedValues || !t.compact() ||
      t.device().device_type != kDLCPU) {
    return std::nullopt;
  }
  if (d == i64) return elements<int64_t>(t);
  if (d == i32) return elements<int32_t>(t);
  if (d == i16) return elements<int16_t>(t);
  if (d == i8) return elements<int8_t>(t);
  if (d == u8) return elements<uint8_t>(t);
  if (d == boolean) {  // any byte but 0 is true
    std::vector<Dim> truths;
    for (int64_t i = 0; i < t.count(); ++i) truths.emplace_back(t.data_as<uint8_t>()[i] != 0);
    return truths;
  }
  if (d == u16) return elements<uint16_t>(t);
  if (d == u32) return elements<uint32_t>(t);
  return std::nullopt;  // u64 doesn't fit an expression
}

Operand make_constant(Any value, TypeRef type, std::string_view name = "") {
  auto c = make<Constant>();
  c->value = std::move(value);
  c->type = std::move(type);
  c->name = name;
  return c;
}

}  // namespace

Operand constant(Tensor value, std::string_view name) {
  std::vector<Dim> dims(value.shape().begin(), value.shape().end());
  auto type = tensor_type(value.dtype(), dims);
  if (auto values = carried_values(value)) type = with_values(type, *values);
  return make_constant(std::move(value), type, name);
}

Operand constant_int(int64_t value, DataType dtype) {
  TENON_ASSERT(dtype.is_int() && wrap_to(dtype, value) == value, value, " is not a scalar of ",
               to_text(dtype));
  auto t = make<ScalarType>();
  t->dtype = dtype;
  t->value_known = dtype == i64;
  if (t->value_known) t->value = value;
  return make_constant(value, t);
}

Operand constant_bool(bool value) {
  return make_constant(value, scalar_type(boolean));
}

Operand constant_float(DataType dtype, double value) {
  TENON_ASSERT(dtype.is_float(), "a float scalar of ", to_text(dtype));
  // A NaN is stored as given, since narrowing loses payload bits on some machines.
  if (value == value) value = loop::round_to(dtype, value);
  return make_constant(value, scalar_type(dtype));
}

Operand constant_shape(const Shape& value) {
  return make_constant(value, shape_type(std::vector<Dim>(value.begin(), value.end())));
}

Operand constant_string(std::string_view value) {
  return make_constant(String(value), string_type());
}

namespace {

void collect_symbols_of_value(const Any& value, SymbolSet* symbols, int depth) {
  if (Dim::accepts(value)) {
    tenon::collect_symbols(value.as<Dim>(), symbols);
  } else if (value.type_index == TypeIndex::Array && depth < kMaxNesting) {
    for (const Any& item : value.as<Array<Any>>()) {
      collect_symbols_of_value(item, symbols, depth + 1);
    }
  }
}

}  // namespace

Array<Dim> kernel_integers(const Call& call) {
  const Any* integers = call.attrs.find(kIntegersAttr);
  return integers ? integers->as<Array<Dim>>() : Array<Dim>();
}

void collect_symbols(const Attrs& attrs, SymbolSet* symbols) {
  for (const auto& [_, value] : attrs) collect_symbols_of_value(value, symbols, 0);
}

namespace {

bool truth_of(const Attrs& attrs, const char* name, bool absent) {
  const Any* value = attrs.find(name);
  return value ? value->as<bool>() : absent;
}

}  // namespace

bool FunctionExpr::is_primitive() const {
  return truth_of(attrs, kPrimitiveAttr, false);
}
bool FunctionExpr::is_fused() const {
  return truth_of(attrs, kFusedAttr, false);
}
bool FunctionExpr::is_exported() const {
  return !is_primitive() && truth_of(attrs, kExportAttr, true);  // a kernel isn't called by hosts
}
bool FunctionExpr::may_be_inlined() const {
  return truth_of(attrs, kInlineAttr, true);
}
Array<String> FunctionExpr::result_names() const {
  const Any* names = attrs.find(kResultsAttr);
  return names ? names->as<Array<String>>() : Array<String>();
}

std::string negative_size(std::string_view size) {
  return cat("a size computed from data is negative: ", size);
}

std::string check_failure(const Check& check, std::string_view message, std::string_view left,
                          std::string_view right) {
  const std::string_view what = message.empty() ? "a check fails" : message;
  std::string begin = cat(what, ": found ", left);
  switch (check.kind) {
    case CheckKind::kEqual:
      return cat(begin, " and ", right, ", which must be equal");
    case CheckKind::kLessEqual:
      // A constant isn't what was found.
      if (check.left.is_const())
        return cat(what, ": found ", right, ", which must be at least ", left);
      return cat(begin, ", which must be at most ", right);
    case CheckKind::kBroadcast:
      return cat(begin, " and ", right, ", which must be equal or one of them 1");
  }
  return begin;
}

namespace {

Any substitute(const Any& attr, const DimSubstitution& map) {
  if (Dim::accepts(attr)) return Any(tenon::substitute(attr.as<Dim>(), map));
  if (attr.type_index != TypeIndex::Array) return attr;
  return Any(attr.as<Array<Any>>().map([&](const Any& item) { return substitute(item, map); }));
}

}  // namespace

Attrs substitute(const Attrs& attrs, const DimSubstitution& map) {
  Attrs out;
  for (const auto& [name, attr] : attrs) out.set(name, substitute(attr, map));
  return out;
}

}  // namespace tenon::graph
