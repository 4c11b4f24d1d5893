#include "import/onnx/node_context.h"

#include <algorithm>

#include "graph/ir/moved_elements.h"
#include "import/onnx/sparse_tensor.h"
#include "loop/scalar.h"
#include "object/string_tensor.h"

namespace tenon::onnx {

using graph::attr_dims;
using graph::attrs;

// ---- operands ----

Operand NodeContext::in(size_t i) const {
  if (!has(i)) invalid(cat("no operand ", i, ", counted from 0"), "an existing operand");
  return inputs_[i];
}

Operand NodeContext::opt(size_t i) const {
  return has(i) ? inputs_[i] : Operand();
}

void NodeContext::cast_inputs(DataType from, DataType to) {
  for (Operand& x : inputs_) {
    if (x && dtype(x) == from) x = cast(x, to);
  }
}

bool NodeContext::wants(size_t output) const {
  return output < node_.outputs.size() && !node_.outputs[output].empty();
}

Dims NodeContext::dims(const Operand& x) const {
  graph::TypeRef type = graph::type_of(x);
  if (graph::type_as<graph::ScalarType>(type) != nullptr) return {};
  const auto* t = graph::type_as<graph::TensorType>(type);
  if (t == nullptr) invalid(cat("an operand of type ", to_text(type)), "a tensor");
  if (!t->dims_known) {
    throw Error(ErrorKind::Usage, Span::node(node_.name), "the rank of an operand is not known")
        .found(to_text(type))
        .help(
            "give the inputs' shapes with --shape NAME=AxBxC; the result of an If has no rank if "
            "those of its branches differ");
  }
  return t->dims.to_vector();
}

DataType NodeContext::dtype(const Operand& x) const {
  graph::TypeRef type = graph::type_of(x);
  if (const auto* t = graph::type_as<graph::TensorType>(type)) return t->dtype;
  if (const auto* s = graph::type_as<graph::ScalarType>(type)) return s->dtype;
  invalid(cat("an operand of type ", to_text(type)), "a tensor");
}

// ---- operands as data ----

namespace {

// Element i as loaded by loop::scalar_load: the value of an integer, the bits of a u64.
int64_t element_bits(const Tensor& t, int64_t i) {
  return loop::scalar_load(t.dtype(), static_cast<const char*>(t.data()) + i * t.dtype().bytes());
}

}  // namespace

std::optional<Dims> NodeContext::values(const Operand& x) const {
  graph::TypeRef type = graph::type_of(x);
  const auto* t = graph::type_as<graph::TensorType>(type);
  if (t == nullptr || !t->dims_known || t->rank > 1) return std::nullopt;
  return t->value_known ? t->values.to_vector() : graph::moved_elements(b, x);
}

std::optional<Ints> NodeContext::ints(const Operand& x) const {
  Ints out;
  if (auto carried = values(x)) {
    for (const Dim& d : *carried) {
      auto c = d.as_const();
      if (!c) return std::nullopt;
      out.push_back(*c);
    }
    return out;
  }
  // For lists that are too long for a type to carry, and constants of other integer types.
  Tensor t = constant_of(x);
  if (!t || t.rank() > 1 || !(t.dtype().is_int() || t.dtype().is_bool())) return std::nullopt;
  for (int64_t i = 0; i < t.count(); ++i) {
    out.push_back(element_bits(t, i));
    if (t.dtype() == u64 && out.back() < 0) return std::nullopt;  // beyond an i64
  }
  return out;
}

Ints NodeContext::const_ints(size_t i, const char* what) const {
  auto out = ints(in(i));
  if (!out && constant_of(in(i))) {
    invalid(cat(what, " in a constant ", to_text(graph::type_of(in(i)))),
            "a list of integers, each below 2^63");
  }
  if (!out) unsupported(cat(what, " computed at run time not implemented"));
  return *out;
}

Dims NodeContext::elements(const Operand& x) const {
  if (auto carried = values(x)) return *carried;
  if (auto constant = ints(x)) return Dims(constant->begin(), constant->end());
  if (rank(x) == 1 && dims(x)[0].as_const().value_or(0) > graph::kMaxCarriedValues) {
    unsupported(cat("more than ", graph::kMaxCarriedValues, " sizes known only at run time"));
  }
  return b.elements_of(dtype(x) == i64 ? x : cast(x, i64));
}

Dims NodeContext::elements(const Operand& x, size_t count) const {
  const bool is_open = !values(x) && rank(x) == 1 && !dims(x)[0].is_const();
  return elements(is_open ? reshape(x, {static_cast<int64_t>(count)}) : x);
}

Tensor NodeContext::constant_of(const Operand& x) const {
  const auto* c = x.as<graph::Constant>();
  if (c == nullptr || !c->value.is<Tensor>()) return {};
  return c->value.as<Tensor>();
}

std::optional<double> NodeContext::number(const Operand& x) const {
  if (auto list = ints(x); list && list->size() == 1) return static_cast<double>((*list)[0]);
  Tensor t = constant_of(x);
  if (t && t.count() == 1 && is_scalar_dtype(t.dtype())) return element(t, 0);
  return std::nullopt;
}

int64_t NodeContext::to_integer(double v, const char* what) const {
  if (!(v >= -0x1p63 && v < 0x1p63)) {
    invalid(cat(what, " of ", v), "a number that fits 64 bits");
  }
  return static_cast<int64_t>(v);
}

double NodeContext::const_number(size_t i, const char* what, double otherwise) const {
  if (!has(i)) return otherwise;
  auto v = number(in(i));
  if (!v) unsupported(cat(what, " computed at run time not implemented"));
  return *v;
}

// ---- attributes ----

const Attribute* NodeContext::attr(const char* name, Attribute::Kind kind) const {
  read_.insert(name);
  const Attribute* a = node_.find(name);
  if (a != nullptr && a->kind != kind) {
    static const char* const kNames[] = {"nothing",        "a float", "an int", "a string",
                                         "a tensor",       "a graph", "floats", "ints",
                                         "strings",        "tensors", "graphs", "a sparse tensor",
                                         "sparse tensors", "a type",  "types"};
    // An empty list may have any list type.
    bool empty_list =
        a->floats.empty() && a->ints.empty() && a->strings.empty() &&
        (kind == Attribute::kInts || kind == Attribute::kFloats || kind == Attribute::kStrings) &&
        (a->kind == Attribute::kInts || a->kind == Attribute::kFloats ||
         a->kind == Attribute::kStrings || a->kind == Attribute::kUndefined);
    if (!empty_list) {
      invalid(cat("attribute '", printable(name), "' holds ", kNames[a->kind]), kNames[kind]);
    }
  }
  return a;
}

bool NodeContext::has_attr(const char* name) const {
  return node_.find(name) != nullptr;
}

int64_t NodeContext::attr_int(const char* name, int64_t otherwise) const {
  const Attribute* a = attr(name, Attribute::kInt);
  return a != nullptr ? a->i : otherwise;
}

int64_t NodeContext::attr_int(const char* name) const {
  const Attribute* a = attr(name, Attribute::kInt);
  if (a == nullptr) invalid(cat("no attribute '", name, "'"), "an int, which has no default");
  return a->i;
}

bool NodeContext::attr_bool(const char* name, bool otherwise) const {
  return attr_int(name, otherwise ? 1 : 0) != 0;
}

double NodeContext::attr_float(const char* name, double otherwise) const {
  const Attribute* a = attr(name, Attribute::kFloat);
  return a != nullptr ? a->f : otherwise;
}

std::string NodeContext::attr_string(const char* name, const char* otherwise) const {
  const Attribute* a = attr(name, Attribute::kString);
  return a != nullptr ? a->s : otherwise;
}

Ints NodeContext::attr_ints(const char* name, Ints otherwise) const {
  const Attribute* a = attr(name, Attribute::kInts);
  if (a != nullptr) return a->ints;
  return otherwise;
}

std::vector<double> NodeContext::attr_floats(const char* name,
                                             std::vector<double> otherwise) const {
  const Attribute* a = attr(name, Attribute::kFloats);
  if (a != nullptr) return a->floats;
  return otherwise;
}

std::vector<std::string> NodeContext::attr_strings(const char* name) const {
  const Attribute* a = attr(name, Attribute::kStrings);
  return a != nullptr ? a->strings : std::vector<std::string>();
}

Tensor NodeContext::attr_tensor(const char* name) const {
  const Attribute* a = attr(name, Attribute::kTensor);
  if (a == nullptr) return {};
  if (a->tensor == nullptr) invalid(cat("attribute '", name, "' holds nothing"), "a tensor");
  if (!a->tensor->tensor) unsupported(a->tensor->problem);
  return a->tensor->tensor;
}

const SparseData* NodeContext::attr_sparse(const char* name) const {
  const Attribute* a = attr(name, Attribute::kSparse);
  if (a == nullptr) return nullptr;
  if (a->sparse == nullptr) invalid(cat("attribute '", name, "' holds nothing"), "a sparse tensor");
  if (std::string problem = problem_of(*a->sparse); !problem.empty()) unsupported(problem);
  return a->sparse.get();
}

const Graph& NodeContext::attr_graph(const char* name) const {
  const Attribute* a = attr(name, Attribute::kGraph);
  if (a == nullptr || a->graph == nullptr) invalid(cat("no attribute '", name, "'"), "a graph");
  return *a->graph;
}

const ValueType* NodeContext::attr_type(const char* name) const {
  const Attribute* a = attr(name, Attribute::kType);
  return a != nullptr ? a->type.get() : nullptr;
}

DataType NodeContext::attr_dtype(const char* name, DataType otherwise) const {
  const Attribute* a = attr(name, Attribute::kInt);
  if (a == nullptr || a->i == 0) return otherwise;
  if (a->i < 0 || a->i > INT32_MAX) invalid(cat(name, "=", a->i), "the number of an element type");
  auto type = dtype_of(static_cast<int32_t>(a->i));
  if (!type) {
    unsupported(cat(name, "=", data_type_name(static_cast<int32_t>(a->i)), " is not implemented"));
  }
  return *type;
}

const Attribute* NodeContext::unread() const {
  for (const Attribute& a : node_.attributes) {
    if (read_.find(a.name) == read_.end()) return &a;
  }
  return nullptr;
}

Operands NodeContext::as_onnx(const char* op, Operands inputs) const {
  NodeContext other(b, node_, std::move(inputs), kNewestOpset, inner_graph_);
  Operands out = OpTable::global().find("", op, kNewestOpset)(other);
  read_.merge(other.read_);
  return out;
}

// ---- failures ----

void NodeContext::unsupported(const std::string& reason) const {
  throw Error(ErrorKind::Unsupported, Span::node(node_.name), reason);
}

void NodeContext::invalid(const std::string& found, const std::string& expected) const {
  throw Error(ErrorKind::Usage, Span::node(node_.name),
              cat("the ", printable(node_.op), " node breaks ONNX's rules"))
      .found(found)
      .expected(expected)
      .help("export the model again, or correct the node");
}

int64_t NodeContext::axis(int64_t value, int64_t rank) const {
  if (value < -rank || value >= rank) {
    invalid(cat("axis ", value, " of a tensor of rank ", rank),
            rank == 0 ? "no axis" : cat(-rank, " to ", rank - 1));
  }
  return value < 0 ? value + rank : value;
}

Ints NodeContext::axes(const Ints& values, int64_t rank) const {
  Ints out;
  for (int64_t v : values) {
    out.push_back(axis(v, rank));
    if (std::count(out.begin(), out.end(), out.back()) > 1)
      invalid(cat("axis ", v, " twice"), "each axis once");
  }
  return out;
}

Ints NodeContext::axes_below(int64_t rank) {
  Ints out;
  for (int64_t i = 0; i < rank; ++i) out.push_back(i);
  return out;
}

Operand NodeContext::for_axis(const Operand& axis, int64_t rank, const Ints& candidates,
                              const std::function<Operand(int64_t axis)>& make) const {
  if (candidates.empty()) invalid("an axis of a tensor of rank 0", "an operand with axes");
  Operand given = reshape(cast(axis, i64), {});
  Operand size = integer(rank);
  Operand which = op("where", {op("less", {given, integer(0)}), add(given, size), given});
  std::function<Operand(size_t)> choose = [&](size_t i) -> Operand {
    if (i + 1 == candidates.size()) {
      b.match_elements(which, {candidates[i]});
      return make(candidates[i]);
    }
    Operand here = op("equal", {which, integer(candidates[i])});
    return b.if_(
        here, [&] { return make(candidates[i]); }, [&] { return choose(i + 1); });
  };
  return choose(0);
}

Operand NodeContext::axes_mask(const Operand& axes, int64_t rank) const {
  const Dim count = dims(axes).at(0);
  return op("scatter_elements",
            {full(boolean, 0, {rank}), cast(axes, i64), full(boolean, 1, {count})},
            attrs({{"axis", 0}}));
}

void NodeContext::require_axes(const Operand& mask, size_t count) const {
  const Dim found = b.elements_of(reduce("reduce_sum", cast(mask, i64), {0}, false)).at(0);
  b.check(graph::CheckKind::kEqual, found, static_cast<int64_t>(count), "an axis is given twice");
}

Operand NodeContext::remove_masked(const Operand& x, const Operand& mask, size_t count) const {
  const int64_t rank = this->rank(x);
  if (static_cast<int64_t>(count) > rank)
    invalid(cat(count, " axes of a tensor of rank ", rank), cat("at most ", rank));
  require_axes(mask, count);
  const Operand sizes = op("shape_of", {x});
  const Operand removed = op("where", {mask, sizes, integer(1)});
  for (const Dim& size : b.elements_of(removed)) {
    b.check(graph::CheckKind::kEqual, size, 1, "the size of an axis that is removed");
  }
  const Operand kept = op("compress", {sizes, op("logical_not", {mask})}, attrs({{"axis", 0}}));
  return reshape(x, b.elements_of(b.match_shape(kept, {rank - static_cast<int64_t>(count)})));
}

Operand NodeContext::insert_masked(const Operand& x, const Operand& mask, size_t count) const {
  const int64_t rank = this->rank(x);
  require_axes(mask, count);
  if (rank == 0) return reshape(x, Dims(count, Dim(1)));
  // How many of x's axes are before each axis of the result.
  const Operand old = cast(op("logical_not", {mask}), i64);
  const Operand place = op("cumsum", {old}, attrs({{"axis", 0}, {"exclusive", true}}));
  const Operand sizes =
      op("gather", {op("shape_of", {x}), op("clip", {place, {}, integer(rank - 1)})},
         attrs({{"axis", 0}}));
  return reshape(x, b.elements_of(op("where", {mask, integer(1), sizes})));
}

// ---- building ----

Operand NodeContext::reshape(const Operand& x, const Dims& shape) const {
  if (dims(x) == shape) return x;
  return op("reshape", {x}, attrs({{"shape", attr_dims(shape)}}));
}

Operand NodeContext::transpose(const Operand& x, const Ints& perm) const {
  if (std::is_sorted(perm.begin(), perm.end())) return x;
  return op("transpose", {x}, attrs({{"perm", graph::attr_ints(perm)}}));
}

Operand NodeContext::cast(const Operand& x, DataType to) const {
  if (dtype(x) == to) return x;
  return op("cast", {x}, attrs({{"dtype", Any(to)}}));
}

Operand NodeContext::expand(const Operand& x, const Dims& shape) const {
  if (dims(x) == shape) return x;
  return op("expand", {x}, attrs({{"shape", attr_dims(shape)}}));
}

Operand NodeContext::unsqueeze(const Operand& x, const Ints& axes) const {
  Dims from = dims(x), to;
  size_t total = from.size() + axes.size(), next = 0;
  this->axes(axes, static_cast<int64_t>(total));  // throws for axes out of range
  for (size_t i = 0; i < total; ++i) {
    bool added = std::find(axes.begin(), axes.end(), static_cast<int64_t>(i)) != axes.end();
    to.push_back(added ? Dim(1) : from[next++]);
  }
  return reshape(x, to);
}

Operand NodeContext::squeeze(const Operand& x, const Ints& axes) const {
  Dims from = dims(x), to;
  for (size_t i = 0; i < from.size(); ++i) {
    if (std::find(axes.begin(), axes.end(), static_cast<int64_t>(i)) == axes.end()) {
      to.push_back(from[i]);
    } else {
      b.check(graph::CheckKind::kEqual, from[i], 1, cat("squeeze: size of axis ", i));
    }
  }
  return reshape(x, to);
}

Operand NodeContext::concat(const Operands& parts, int64_t axis) const {
  if (parts.size() == 1) return parts[0];
  return op("concat", parts, attrs({{"axis", axis}}));
}

Operand NodeContext::slice(const Operand& x, int64_t axis, const Dim& start,
                           const Dim& size) const {
  Dims sizes = dims(x), starts(sizes.size(), Dim(0));
  starts[static_cast<size_t>(axis)] = start;
  sizes[static_cast<size_t>(axis)] = size;
  return op("slice", {x}, attrs({{"starts", attr_dims(starts)}, {"sizes", attr_dims(sizes)}}));
}

Operand NodeContext::with_first_at(const Operand& x, int64_t axis) const {
  Ints perm;
  for (int64_t i = 1; i < rank(x); ++i) perm.push_back(i);
  perm.insert(perm.begin() + axis, 0);
  return transpose(x, perm);
}

// Each operator that uses such a size repeats what it takes to compute it.
static bool has_many_symbols(const Dim& size) {
  constexpr size_t kMany = 8;
  SymbolSet symbols;
  collect_symbols(size, &symbols);
  return symbols.size() > kMany;
}

Operand NodeContext::with_symbols(const Operand& x) const {
  if (!x) return x;
  const graph::TypeRef type = graph::type_of(x);
  const auto* t = graph::type_as<graph::TensorType>(type);
  if (t == nullptr || t->rank < 0) return x;
  Dims sizes;
  bool is_new = false;
  for (int64_t i = 0; i < t->rank; ++i) {
    const bool keeps = t->dims_known && !has_many_symbols(t->dims[i]);
    sizes.push_back(keeps ? t->dims[i] : b.fresh_symbol("d"));
    is_new |= !keeps;
  }
  return is_new ? b.match_shape(x, sizes) : x;
}

Operand NodeContext::reversed(const Operand& x, int64_t axis) const {
  Dims sizes = dims(x), starts(sizes.size(), Dim(0));
  Ints steps(sizes.size(), 1);
  const auto a = static_cast<size_t>(axis);
  if (sizes[a].is_const(1) || sizes[a].is_const(0)) return x;
  starts[a] = max(sizes[a] - 1, 0);
  steps[a] = -1;
  return op("slice", {x},
            attrs({{"starts", attr_dims(starts)},
                   {"sizes", attr_dims(sizes)},
                   {"steps", graph::attr_ints(steps)}}));
}

Operand NodeContext::reduce(std::string_view name, const Operand& x, const Ints& axes,
                            bool keepdims) const {
  return op(name, {x}, attrs({{"axes", graph::attr_ints(axes)}, {"keepdims", keepdims}}));
}

Operand NodeContext::scalar(DataType type, double value) const {
  if (type == string_elements) return string("");
  return graph::constant(make_tensor(type, {}, {value}));
}

Operand NodeContext::string(std::string_view value) const {
  require_utf8(value, 0, "the node's strings");
  return graph::constant(string_tensor({}, {&value, 1}));
}

Operand NodeContext::strings_tensor(const std::vector<std::string>& values) const {
  const int64_t count = static_cast<int64_t>(values.size());
  for (int64_t i = 0; i < count; ++i)
    require_utf8(values[static_cast<size_t>(i)], i, "the node's strings");
  return graph::constant(
      string_tensor({&count, 1}, std::vector<std::string_view>(values.begin(), values.end())));
}

Operand NodeContext::integer(int64_t value) const {
  return graph::constant(
      Tensor::copy_of(std::span<const int64_t>(), i64, std::span<const int64_t>(&value, 1)));
}

Operand NodeContext::full(DataType type, double value, const Dims& shape) const {
  return op("full", {scalar(type, value)}, attrs({{"shape", attr_dims(shape)}}));
}

Operand NodeContext::ints_tensor(const Ints& values) const {
  Ints shape = {static_cast<int64_t>(values.size())};
  return graph::constant(
      Tensor::copy_of(std::span<const int64_t>(shape), i64, std::span<const int64_t>(values)));
}

Operand NodeContext::dims_tensor(const Dims& values) const {
  Ints constants;
  for (const Dim& d : values) {
    if (auto c = d.as_const()) constants.push_back(*c);
  }
  if (constants.size() == values.size()) return ints_tensor(constants);
  // Only shape_of makes a tensor of sizes. The tensor whose shape is taken is never computed.
  return op("shape_of", {full(boolean, 0, values)});
}

Operand NodeContext::dim_scalar(const Dim& value) const {
  return reshape(dims_tensor({value}), {});
}

// ---- numbers ----

namespace {

// The factors of a product of sizes, with the constant factor separate.
void factors(const Dim& d, int64_t* number, Dims* out) {
  if (auto c = d.as_const()) {
    if (__builtin_mul_overflow(*number, *c, number)) {
      throw Error(ErrorKind::Usage, "a product of sizes overflows 64 bits");
    }
  } else if (d.kind() == DimKind::kMul) {
    for (const auto& f : d.node().args) factors(Dim(f), number, out);
  } else {
    out->push_back(d);
  }
}

}  // namespace

Dim divide(const Dims& dividend, const Dims& divisor) {
  int64_t over = 1, under = 1;
  Dims top, bottom, rest;
  for (const Dim& d : dividend) factors(d, &over, &top);
  for (const Dim& d : divisor) factors(d, &under, &bottom);
  for (const Dim& d : bottom) {
    auto same = std::find(top.begin(), top.end(), d);
    if (same == top.end()) {
      rest.push_back(d);
    } else {
      top.erase(same);
    }
  }
  if (under != 0 && over % under == 0) {
    over /= under;
    under = 1;
  }
  Dim above = product(top) * Dim(over), below = product(rest) * Dim(under);
  return below.is_const(1) ? above : floordiv(above, below);
}

Tensor make_tensor(DataType dtype, const Ints& shape, const std::vector<double>& values) {
  Tensor t = Tensor::empty(std::span<const int64_t>(shape), dtype);
  TENON_ASSERT(t.count() == static_cast<int64_t>(values.size()), "values of another shape");
  auto* next = static_cast<char*>(t.data());
  const DataType part = part_of(dtype);
  const auto put = [&](double v) {
    loop::scalar_store(part, next, loop::scalar_cast(part, f64, loop::float_bits(v)));
    next += part.bytes();
  };
  for (double v : values) {
    put(v);
    if (dtype.is_complex()) put(0);
  }
  return t.as_read_only();
}

double element(const Tensor& t, int64_t i) {
  return loop::as_float(loop::scalar_cast(f64, t.dtype(), element_bits(t, i)));
}

}  // namespace tenon::onnx
