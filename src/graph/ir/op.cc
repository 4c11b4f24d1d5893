#include "graph/ir/op.h"

#include <algorithm>

#include "graph/ir/name_text.h"
#include "object/reflect.h"

namespace tenon::graph {

// ---- the context of type rules ----

namespace {

const Operator& entry_of(const Call& call) {
  const Operator* op = OperatorTable::global().find(call.callee);
  TENON_ASSERT(op, "there is no operator '", call.callee, "'");
  return *op;
}

}  // namespace

InferContext::InferContext(const Call& call, std::function<Dim(std::string_view hint)> fresh)
    : call_(call), op_(entry_of(call)), fresh_(std::move(fresh)) {}

bool InferContext::has(size_t i) const {
  return i < call_.args.size() && call_.args[i];
}

TypeRef InferContext::type(size_t i) const {
  return i < call_.args.size() ? type_of(call_.args[i]) : unit_type();
}

std::string InferContext::operand_text(size_t i) const {
  if (op_.operands.empty()) return cat("operand ", i);
  const size_t last = op_.operands.size() - 1;
  if (i < last || (i == last && op_.operands[last].arity != OperandSpec::kVariadic)) {
    return cat("operand '", op_.operands[i].name, "'");
  }
  return cat("operand '", op_.operands[last].name, "' ", i - last);
}

void InferContext::require_dtypes() const {
  for (size_t i = 0; i < call_.args.size() && !op_.operands.empty(); ++i) {
    const TypeRef t = type(i);
    const auto* tensor = type_as<TensorType>(t);
    const auto* scalar = type_as<ScalarType>(t);
    if (!tensor && !scalar) continue;
    const DataType dtype = tensor ? tensor->dtype : scalar->dtype;
    const OperandSpec& spec = op_.operands[std::min(i, op_.operands.size() - 1)];
    if (contains(spec.dtypes, dtype)) continue;
    fail(cat(operand_text(i), " is ", to_text(dtype), ", expected ", describe(spec.dtypes)));
  }
}

const TensorType& InferContext::tensor(size_t i) const {
  if (!has(i)) fail(cat(operand_text(i), " is absent"));
  TypeRef t = type(i);
  if (const auto* s = type_as<ScalarType>(t)) {
    auto as_tensor = tensor_type(s->dtype, {});
    if (s->value_known) as_tensor = with_values(as_tensor, {s->value});
    scalars_.push_back(as_tensor);
    return *as_tensor;
  }
  const auto* tensor = type_as<TensorType>(t);
  if (!tensor) {
    fail(cat(operand_text(i), " is ", to_text(t), "; it must be a tensor or a scalar",
             same_type(t, string_type()) ? " (string_equal and string_concat take strings)" : ""));
  }
  if (tensor->rank == kUnknownRank) {
    fail(cat(
        operand_text(i), " is ", to_text(t),
        ", whose rank isn't known: pass it to a function with a parameter of this type, or bind "
        "its dimensions with match_shape"));
  }
  if (!tensor->dims_known) {
    fail(cat(operand_text(i), " is ", to_text(t),
             ", whose dimensions aren't known: bind them with match_shape first"));
  }
  return *tensor;  // kept alive by the operand
}

Any InferContext::attr(const char* name, AttrKind kind) const {
  if (const Any* given = call_.attrs.find(name)) return *given;
  for (const AttrSpec& spec : op_.attrs) {
    if (std::string_view(spec.name) == name) return spec.default_value;
  }
  fail(cat("attribute '", name, "' (", kind_name(kind), ") is missing"));
}

int64_t InferContext::attr_int(const char* name) const {
  return attr(name, AttrKind::kInt).as<int64_t>();
}
double InferContext::attr_float(const char* name) const {
  return attr(name, AttrKind::kFloat).as<double>();
}
bool InferContext::attr_bool(const char* name) const {
  return attr(name, AttrKind::kBool).as<bool>();
}
String InferContext::attr_string(const char* name) const {
  return attr(name, AttrKind::kString).as<String>();
}
DataType InferContext::attr_dtype(const char* name) const {
  return attr(name, AttrKind::kDType).as<DataType>();
}
std::vector<int64_t> InferContext::attr_ints(const char* name) const {
  return attr(name, AttrKind::kInts).as<Array<int64_t>>().to_vector();
}
std::vector<double> InferContext::attr_floats(const char* name) const {
  return attr(name, AttrKind::kFloats).as<Array<double>>().to_vector();
}
Dim InferContext::attr_dim(const char* name) const {
  return attr(name, AttrKind::kDim).as<Dim>();
}
std::vector<Dim> InferContext::attr_dims(const char* name) const {
  return attr(name, AttrKind::kDims).as<Array<Dim>>().to_vector();
}
bool InferContext::has_attr(const char* name) const {
  const Any* given = call_.attrs.find(name);
  return given && !given->is_none();
}

void InferContext::fail(const std::string& what) const {
  throw Error(ErrorKind::Usage, cat("operator '", call_.callee, "': ", what));
}

int64_t InferContext::axis(int64_t value, int64_t rank) const {
  if (value < -rank || value >= rank) {
    fail(rank == 0 ? cat("axis ", value, " of a tensor of rank 0, which has none")
                   : cat("axis ", value, " is outside ", -rank, "..", rank - 1, " of rank ", rank));
  }
  return value < 0 ? value + rank : value;
}

Dim InferContext::fresh(std::string_view hint) {
  return fresh_(hint);
}

void InferContext::require(CheckKind kind, const Dim& a, const Dim& b, const std::string& message) {
  for (const auto& c : conditions_) {
    if (c->kind == kind && c->left == a && c->right == b) return;
  }
  auto check = make<Check>();
  check->kind = kind;
  check->left = a;
  check->right = b;
  check->message = cat(call_.callee, ": ", message);
  conditions_.push_back(check);
}

void InferContext::require_equal(const Dim& a, const Dim& b, const std::string& message) {
  if (a == b || proves_equal(a, b)) return;
  if (proves_differ(a, b)) fail(cat(message, ": ", to_text(a), " and ", to_text(b), " differ"));
  require(CheckKind::kEqual, a, b, message);
}

void InferContext::require_less_equal(const Dim& a, const Dim& b, const std::string& message) {
  if (proves_less_equal(a, b)) return;
  if (proves_less_equal(b + 1, a)) {
    fail(cat(message, ": ", to_text(a), " is greater than ", to_text(b)));
  }
  require(CheckKind::kLessEqual, a, b, message);
}

Dim InferContext::broadcast(const Dim& a, const Dim& b, const std::string& message) {
  if (a == b || b.is_const(1) || proves_equal(a, b)) return a;
  if (a.is_const(1)) return b;
  if (a.is_const() && b.is_const()) {
    throw Error(ErrorKind::Usage, cat("operator '", call_.callee, "': ", message, ": ", to_text(a),
                                      " and ", to_text(b), " differ and neither is 1"))
        .expected(cat("both ", to_text(a), ", both ", to_text(b), ", or one of them 1"));
  }
  require(CheckKind::kBroadcast, a, b, message);
  return bcast(a, b);
}

std::vector<Dim> InferContext::broadcast_shapes(const std::vector<std::vector<Dim>>& shapes) {
  size_t rank = 0;
  for (const auto& s : shapes) rank = std::max(rank, s.size());
  std::vector<Dim> out(rank, Dim(1));
  for (const auto& s : shapes) {
    for (size_t i = 0; i < s.size(); ++i) {
      Dim& d = out[rank - s.size() + i];
      d = broadcast(d, s[i],
                    cat("sizes of axis -", static_cast<int64_t>(s.size() - i), " to broadcast"));
    }
  }
  return out;
}

// ---- the context of lowerings ----

LowerContext::LowerContext(const Call& call, std::vector<Ref<const loop::Buffer>> inputs,
                           std::vector<Ref<const loop::Buffer>> outputs)
    : info_(call,
            [](std::string_view hint) -> Dim {
              TENON_ASSERT(false, "a lowering asks for a fresh size '", hint, "'");
              return 0;
            }),
      inputs_(std::move(inputs)),
      outputs_(std::move(outputs)) {
  TENON_ASSERT(inputs_.size() == call.args.size(), call.callee, ": ", inputs_.size(),
               " buffers for ", call.args.size(), " operands");
}

const Ref<const loop::Buffer>& LowerContext::input(size_t i) const {
  TENON_ASSERT(i < inputs_.size() && inputs_[i], info_.call().callee, ": operand ", i,
               " is absent");
  return inputs_[i];
}

const Ref<const loop::Buffer>& LowerContext::output(size_t i) const {
  TENON_ASSERT(i < outputs_.size(), info_.call().callee, ": no output ", i);
  return outputs_[i];
}

loop::ComputeRef LowerContext::compute(const std::vector<Ref<const loop::Stage>>& stages) const {
  auto c = make<loop::Compute>();
  for (const auto& b : inputs_) {
    if (b) c->inputs.push_back(b);
  }
  c->stages = Array<Ref<const loop::Stage>>(stages);
  c->outputs = Array<Ref<const loop::Buffer>>(outputs_);
  return c;
}

// ---- the table ----

OperatorTable& OperatorTable::global() {
  static OperatorTable table;
  return table;
}

const Operator* OperatorTable::find(std::string_view name) const {
  const int64_t* i = index_.find(String(name));
  return i ? entries_[static_cast<size_t>(*i)].get() : nullptr;
}

// What other languages call operators.
static constexpr OtherWord kOperatorsElsewhere[] = {{"lt", "less"},
                                                    {"le", "less_equal"},
                                                    {"gt", "greater"},
                                                    {"ge", "greater_equal"},
                                                    {"eq", "equal"},
                                                    {"ne", "not_equal"},
                                                    {"plus", "add"},
                                                    {"minus", "sub"},
                                                    {"times", "mul"},
                                                    {"multiply", "mul"},
                                                    {"divide", "div"},
                                                    {"subtract", "sub"},
                                                    {"power", "pow"},
                                                    {"dot", "matmul"},
                                                    {"mm", "matmul"},
                                                    {"bmm", "matmul"},
                                                    {"length", "array_length"},
                                                    {"len", "array_length"},
                                                    {"append", "array_push"},
                                                    {"push", "array_push"},
                                                    {"astype", "cast"},
                                                    {"view", "reshape"},
                                                    {"permute", "transpose"},
                                                    {"max", "maximum"},
                                                    {"min", "minimum"}};

const Operator& OperatorTable::get(std::string_view name) const {
  if (const Operator* op = find(name)) return *op;
  Error e(ErrorKind::Usage, cat("there is no operator '", name, "'"));
  e.help("`tenon ops --ir` lists the operators");
  std::vector<std::string> names, with_word;  // `and` is a word of logical_and
  for (const Operator* op : all()) {
    names.emplace_back(op->name);
    if (cat("_", op->name, "_").find(cat("_", name, "_")) != std::string::npos) {
      with_word.emplace_back(op->name);
    }
  }
  const auto other = std::ranges::find(kOperatorsElsewhere, name, &OtherWord::elsewhere);
  if (other != std::end(kOperatorsElsewhere)) {
    with_word.insert(with_word.begin(), std::string(other->here));
  }
  if (with_word.empty() || with_word.size() > 4) {
    suggest_word(&e, name, kOperatorsElsewhere, names);
  } else {
    e.help(cat("did you mean ", tenon::join(with_word, " or "), "?"));
  }
  throw e;
}

const Operator* OperatorTable::find_sign(std::string_view sign) const {
  for (const auto& op : entries_) {
    if (!sign.empty() && op->sign == sign) return op.get();
  }
  return nullptr;
}

std::vector<const Operator*> OperatorTable::all() const {
  std::vector<const Operator*> out;
  for (const auto& e : entries_) out.push_back(e.get());
  std::sort(out.begin(), out.end(), [](const Operator* a, const Operator* b) {
    return std::string_view(a->name) < std::string_view(b->name);
  });
  return out;
}

}  // namespace tenon::graph
