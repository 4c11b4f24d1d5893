#include "library_arguments.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <string>

#include "object/array.h"
#include "object/shape.h"
#include "object/string_tensor.h"
#include "object/tensor.h"
#include "support/error.h"

namespace tenon::fuzz {
namespace {

using library::ValueKind;
using Arguments = std::vector<Any>;
using Dims = std::vector<int64_t>;

constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
constexpr DataType kNumbers[] = {f32, f64, i64, i32, u8, boolean, i8, u16, u64, f16, bf16};
constexpr DataType kOthers[] = {i4, u2, f8e4m3fn, string_elements};
constexpr std::string_view kTexts[] = {"",
                                       " ",
                                       "a",
                                       "b",
                                       "a b  c",
                                       ",",
                                       "a,b,,c",
                                       "\xc3\xa9",
                                       "\xe1\xba\x9e",
                                       "\xc4\xb0",
                                       "1",
                                       "-2.5",
                                       "1e",
                                       "  7.0  ",
                                       "nan",
                                       "inf",
                                       "1e999",
                                       "0x1p3",
                                       "true",
                                       "\xf0\x9f\x98\x80"};
constexpr std::string_view kPatterns[] = {"a*", "[a-z]+", "(a|b)*,", "\\pL", "(", "a{1000}", "."};

// Whose last byte is the last one before a guard page, or before what a sanitizer guards.
Ref<StorageObj> exact_storage(size_t bytes) {
  size_t alignment = 64;
  while (bytes % alignment != 0) alignment /= 2;
  void* memory = aligned_alloc(alignment, std::max<size_t>(1, bytes));
  if (!memory) throw Error(ErrorKind::Runtime, "no memory for an argument");
  auto storage = make<StorageObj>();
  storage->data = memory;
  storage->size = std::max<size_t>(1, bytes);
  storage->free = [](StorageObj* made) { free(made->data); };
  return storage;
}

class Maker {
 public:
  explicit Maker(Choices& choices) : choices_(choices) {
    constexpr int64_t kSizes[] = {1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 33};
    for (int64_t& size : sizes_) size = choices_.of(kSizes);
  }

  Any value(const library::Parameter& parameter) {
    if (choices_.one_in(24)) return anything();
    if (parameter.optional && choices_.one_in(2)) return Any();
    switch (parameter.kind) {
      case ValueKind::Tensor:
        return tensor(dtype(), dims(choices_.below(4)));
      case ValueKind::Int:
        return integer();
      case ValueKind::Float:
        return number();
      case ValueKind::Bool:
        return static_cast<int64_t>(choices_.below(choices_.one_in(16) ? 4 : 2));
      case ValueKind::Shape:
        return Shape(dims(choices_.below(4)));
      case ValueKind::Array:
        return array();
      case ValueKind::Any:
        return anything();
      case ValueKind::Choice:
        return static_cast<int64_t>(choices_.below(parameter.choices.count + 1));
      case ValueKind::String:
        return String(choices_.one_in(2) ? choices_.of(kTexts) : choices_.of(kPatterns));
      case ValueKind::Dtype:
        return dtype();
    }
    return Any();
  }

  // Of any kind and size.
  Any anything() {
    switch (choices_.below(10)) {
      case 0:
        return Any();
      case 1:
        return integer();
      case 2:
        return number();
      case 3:
        return dtype();
      case 4:
        return String(choices_.of(kTexts));
      case 5:
        return Shape(dims(choices_.below(kMaxRank + 1)));
      case 6:
        return array();
      case 7:
        return strings(dims(choices_.below(3)));
      case 8:  // without elements, so dimensions cost nothing
        return tensor(dtype(), {0, choices_.of(Dims{1, INT32_MAX, kMost})});
      default:
        return tensor(dtype(), dims(choices_.below(7)));
    }
  }

  int64_t integer() {
    constexpr int64_t kSpecial[] = {kLeast, kMost, INT32_MIN, INT32_MAX, -3, -2, -1, 100};
    return choices_.one_in(4) ? choices_.of(kSpecial) : static_cast<int64_t>(choices_.below(6));
  }
  double number() {
    constexpr double kSpecial[] = {0, -1, 1, 0.5, 6, 1e300, -1e-300};
    constexpr double kLimits[] = {std::numeric_limits<double>::infinity(),
                                  std::numeric_limits<double>::quiet_NaN()};
    return choices_.one_in(8) ? choices_.of(kLimits) : choices_.of(kSpecial);
  }
  DataType dtype() {
    if (choices_.one_in(16)) return choices_.of(kOthers);
    return choices_.one_in(3) ? choices_.of(kNumbers) : choices_.of(std::span(kNumbers, 4));
  }
  // One of the few sizes of this call, so that they often agree.
  int64_t size() { return choices_.one_in(24) ? 0 : choices_.of(sizes_); }
  int64_t below(int64_t n) {
    return static_cast<int64_t>(choices_.below(static_cast<uint64_t>(n)));
  }
  bool one_in(uint64_t n) { return choices_.one_in(n); }
  int64_t activation() { return below(static_cast<int64_t>(library::kActivations.count)); }
  Dims dims(uint64_t rank) {
    Dims out;
    int64_t elements = 1;
    for (uint64_t i = 0; i < rank; ++i) {
      const int64_t d = elements > 20'000 ? 1 : size();
      out.push_back(d);
      elements *= d;
    }
    return out;
  }
  Array<Any> array() {
    Array<Any> out;
    for (uint64_t i = choices_.below(4); i > 0; --i) out.push_back(integer());
    return out;
  }

  // With elements that small functions of integers produce, or, seldom, any bits.
  Tensor tensor(DataType dtype, const Dims& shape) {
    if (dtype == string_elements) return strings(shape);
    const size_t bytes = static_cast<size_t>(*byte_count(shape, dtype));
    // Inputs of a host may be unaligned.
    const size_t offset = choices_.one_in(16) ? 1 : 0;
    Ref<StorageObj> storage = exact_storage(bytes + offset);
    auto* data = static_cast<uint8_t*>(storage->data) + offset;
    const bool any_bits = choices_.one_in(12);
    for (size_t i = 0; i < bytes; ++i)
      data[i] = any_bits ? static_cast<uint8_t>(choices_.below(256)) : 0;
    if (!any_bits) fill(dtype, data, bytes);
    const Tensor made = offset ? Tensor::view(data, shape, dtype, std::move(storage), false)
                               : Tensor::over(std::move(storage), 0, dtype, shape);
    if (choices_.one_in(8)) return made.as_constant();
    return choices_.one_in(16) ? made.as_read_only() : made;
  }
  template <class T>
  Tensor list(DataType dtype, const std::vector<T>& values, const Dims& shape) {
    Ref<StorageObj> storage = exact_storage(values.size() * sizeof(T));
    std::copy(values.begin(), values.end(), static_cast<T*>(storage->data));
    return Tensor::over(std::move(storage), 0, dtype, shape);
  }
  template <class T>
  Tensor list(DataType dtype, const std::vector<T>& values) {
    return list(dtype, values, {static_cast<int64_t>(values.size())});
  }
  Dims integers(uint64_t n) {
    Dims out;
    for (uint64_t i = 0; i < n; ++i) out.push_back(integer());
    return out;
  }
  String text() { return String(choices_.of(kTexts)); }
  // Numbers only, seldom others.
  Tensor numerals(const Dims& shape) {
    constexpr std::string_view kNumerals[] = {"1", "-2", "  7  ", "0", "127", "255", "-0", "65536"};
    StringTensorBuilder builder(shape);
    for (int64_t i = element_count(shape).value_or(0); i > 0; --i)
      builder.append(choices_.one_in(64) ? choices_.of(kTexts) : choices_.of(kNumerals));
    return builder.finish();
  }
  Tensor strings(const Dims& shape) {
    StringTensorBuilder builder(shape);
    for (int64_t i = element_count(shape).value_or(0); i > 0; --i)
      builder.append(choices_.of(kTexts));
    return builder.finish();
  }
  // The numbers from 0 to n - 1, shuffled.
  Shape permutation(size_t n) {
    Dims out(n);
    for (size_t i = 0; i < n; ++i) {
      out[i] = static_cast<int64_t>(i);
      std::swap(out[i], out[choices_.below(i + 1)]);
    }
    return Shape(out);
  }

 private:
  void fill(DataType dtype, uint8_t* data, size_t bytes) {
    const auto set = [&](auto like) {
      for (size_t i = 0; i + sizeof like <= bytes; i += sizeof like) {
        const auto value =
            static_cast<decltype(like)>(static_cast<int64_t>(choices_.below(13)) - 4);
        std::memcpy(data + i, &value, sizeof value);
      }
    };
    if (dtype == f32) return set(float());
    if (dtype == f64) return set(double());
    if (dtype == i64 || dtype == u64) return set(int64_t());
    if (dtype == i32) return set(int32_t());
    for (size_t i = 0; i < bytes; ++i) data[i] = static_cast<uint8_t>(choices_.below(2));
  }

  Choices& choices_;
  int64_t sizes_[3];
};

// ---- arguments that fit together ----

Dims permuted(const Dims& dims, const Shape& perm) {
  Dims out(dims.size());
  for (size_t i = 0; i < dims.size(); ++i) out[static_cast<size_t>(perm[i])] = dims[i];
  return out;
}

Any optional(Maker& m, const Dims& shape) {
  return m.one_in(2) ? Any() : Any(m.tensor(f32, shape));
}

Arguments convolution(Maker& m) {
  const auto spatial = static_cast<size_t>(1 + m.below(3));
  const int64_t groups = m.one_in(3) ? 1 + m.below(4) : 1;
  const int64_t channels = groups * (1 + m.below(9)), filters = groups * (1 + m.below(17));
  Dims x = {1 + m.below(2)}, weights, out = x, strides, dilations, begins, ends;
  for (size_t i = 0; i < spatial; ++i) {
    const int64_t window = m.one_in(2) ? 3 : 1 + m.below(4);
    strides.push_back(m.one_in(3) ? 2 : 1);
    dilations.push_back(m.one_in(6) ? 2 : 1);
    begins.push_back(m.below(3));
    ends.push_back(m.below(3));
    const int64_t extent = (window - 1) * dilations[i] + 1;
    x.push_back(extent + m.below(spatial == 3 ? 4 : 14));
    weights.push_back(window);
    out.push_back((x.back() + begins[i] + ends[i] - extent) / strides[i] + 1);
  }
  x.push_back(channels);
  weights.insert(weights.end(), {channels / groups, filters});
  out.push_back(filters);
  begins.insert(begins.end(), ends.begin(), ends.end());
  return {m.tensor(f32, x),
          m.tensor(f32, weights),
          optional(m, {filters}),
          optional(m, out),
          m.tensor(f32, out),
          Shape(strides),
          Shape(dilations),
          Shape(begins),
          groups,
          m.activation(),
          m.number(),
          m.number(),
          m.below(2)};
}

Arguments matmul(Maker& m) {
  const auto rank = static_cast<size_t>(2 + m.below(3));
  const int64_t wide = m.one_in(2) ? 16 * (1 + m.below(4)) : 1 + m.below(40);
  const int64_t rows = 1 + m.below(40), depth = 1 + m.below(70);
  Dims a, b, out;
  for (size_t i = 2; i < rank; ++i) {
    const int64_t n = 1 + m.below(3);
    a.push_back(m.one_in(4) ? 1 : n);
    b.push_back(m.one_in(4) ? 1 : n);
    out.push_back(std::max(a.back(), b.back()));
  }
  a.insert(a.end(), {rows, depth});
  b.insert(b.end(), {depth, wide});
  out.insert(out.end(), {rows, wide});
  const Shape of_a = m.permutation(rank), of_b = m.permutation(rank);
  return {m.tensor(f32, permuted(a, of_a)),
          m.tensor(f32, permuted(b, of_b)),
          optional(m, {wide}),
          optional(m, out),
          m.tensor(f32, out),
          of_a,
          of_b,
          m.activation(),
          m.number(),
          m.number()};
}

Arguments attention(Maker& m) {
  const int64_t batch = 1 + m.below(2), heads = 1 + m.below(3), n = 1 + m.below(40);
  const int64_t depth = 1 + m.below(40), keys = 1 + m.below(140), width = 1 + m.below(40);
  const Shape q = m.permutation(4), k = m.permutation(4), v = m.permutation(4),
              out = m.permutation(4);
  Any mask;
  if (m.one_in(2)) {
    Dims shape = {batch, heads, n, keys};
    for (int64_t& d : shape) d = m.one_in(3) ? 1 : d;
    mask = m.tensor(f32, shape);
  }
  return {m.tensor(f32, permuted({batch, heads, n, depth}, q)),
          m.tensor(f32, permuted({batch, heads, depth, keys}, k)),
          m.tensor(f32, permuted({batch, heads, keys, width}, v)),
          mask,
          m.tensor(f32, permuted({batch, heads, n, width}, out)),
          q,
          k,
          v,
          out,
          m.number()};
}

Arguments trees(Maker& m) {
  const int64_t nodes = 1 + m.below(9), features = 1 + m.below(4), leaves = 1 + m.below(5);
  const int64_t weights = 1 + m.below(9), outputs = 1 + m.below(4), roots = 1 + m.below(4);
  const auto branch = [&](int64_t after) {
    if (after + 1 < nodes && m.one_in(2)) return after + 1 + m.below(nodes - after - 1);
    return -1 - m.below(leaves);
  };
  std::vector<int32_t> table, root, leaf = {0}, targets;
  for (int64_t i = 0; i < nodes; ++i) {
    for (const int64_t v : {m.below(features), m.below(8), branch(i), branch(i)})
      table.push_back(static_cast<int32_t>(v));
  }
  for (int64_t i = 0; i < roots; ++i) root.push_back(static_cast<int32_t>(branch(-1)));
  for (int64_t i = 0; i < leaves; ++i)
    leaf.push_back(static_cast<int32_t>(leaf.back() + m.below(weights - leaf.back() + 1)));
  for (int64_t i = 0; i < weights; ++i) targets.push_back(static_cast<int32_t>(m.below(outputs)));
  const DataType type = m.one_in(2) ? f32 : f64;
  return {m.tensor(type, {m.size(), features}),
          m.list(i32, table, {nodes, 4}),
          m.tensor(type, {nodes}),
          m.list(i32, root, {roots}),
          m.list(i32, leaf, {leaves + 1}),
          m.list(i32, targets, {weights}),
          m.tensor(type, {weights}),
          outputs,
          m.below(3)};
}

Arguments boxes(Maker& m) {
  const int64_t batch = 1 + m.below(2), n = m.size();
  const auto scalar = [&](DataType type) { return m.one_in(2) ? Any() : Any(m.tensor(type, {})); };
  return {m.tensor(f32, {batch, n, 4}),
          m.tensor(f32, {batch, 1 + m.below(3), n}),
          m.tensor(i64, {1}),
          scalar(f32),
          scalar(f32),
          m.below(2)};
}

// Unigrams from the pool's begin on, then bigrams.
Arguments ngrams(Maker& m) {
  const int64_t ones = m.below(5), twos = m.below(4), outputs = 1 + m.below(6);
  std::vector<int64_t> pool, columns;
  for (int64_t i = 0; i < ones + 2 * twos; ++i) pool.push_back(i);
  for (int64_t i = 0; i < ones + twos; ++i) columns.push_back(m.below(outputs));
  const int64_t most = twos ? 2 : 1 + m.below(2);
  std::vector<int64_t> starts = {0, ones};
  starts.resize(static_cast<size_t>(most));
  return {m.tensor(i64, {m.size(), m.size()}),
          m.list(i64, pool),
          m.list(i64, starts),
          m.list(i64, columns),
          1 + m.below(most),
          most,
          m.one_in(4) ? m.integer() : m.below(3),
          outputs};
}

Arguments fourier(Maker& m) {
  Dims shape = {m.size(), m.size(), 1 + m.below(2)};
  return {m.tensor(m.one_in(2) ? f32 : f64, shape), m.one_in(2) ? m.size() : m.integer(),
          m.below(3) - 1, m.below(2), m.below(2)};
}

Arguments determinant(Maker& m) {
  const int64_t n = m.size();
  return {m.tensor(m.one_in(2) ? f32 : f64, {m.size(), n, n})};
}

Arguments coupling(Maker& m) {
  const int64_t classes = 1 + m.below(6);
  return {m.tensor(m.one_in(2) ? f32 : f64, {m.size(), classes * (classes - 1) / 2}), classes};
}

Arguments topk(Maker& m) {
  const Dims shape = m.dims(static_cast<uint64_t>(1 + m.below(3)));
  return {m.tensor(m.dtype(), shape), m.one_in(8) ? m.integer() : m.below(shape.back() + 1),
          int64_t{-1}, m.below(2), m.below(2)};
}

Arguments compress(Maker& m) {
  const Dims shape = m.dims(static_cast<uint64_t>(1 + m.below(3)));
  const int64_t axis = m.below(static_cast<int64_t>(shape.size()));
  const int64_t n = shape[static_cast<size_t>(axis)];
  return {m.tensor(m.dtype(), shape), m.tensor(boolean, {m.one_in(4) ? m.size() : n}), axis,
          m.below(2)};
}

Arguments append(Maker& m) {
  const Dims shape = m.dims(static_cast<uint64_t>(1 + m.below(3)));
  const DataType type = m.dtype();
  return {m.tensor(type, shape), m.tensor(type, Dims(shape.begin() + 1, shape.end()))};
}

Arguments copy_to(Maker& m) {
  const Dims shape = m.dims(static_cast<uint64_t>(m.below(4)));
  const DataType type = m.dtype();
  return {m.tensor(type, shape), m.tensor(type, shape)};
}

Arguments shape_of(Maker& m) {
  return {m.list(i64, m.dims(static_cast<uint64_t>(m.below(5))))};
}

Arguments reshape(Maker& m) {
  Dims from = m.dims(static_cast<uint64_t>(m.below(5))), to = from;
  if (m.one_in(2)) to = m.integers(static_cast<uint64_t>(m.below(5)));
  if (!to.empty() && m.one_in(2)) to.front() = -1;
  return {m.list(i64, to), m.list(i64, m.one_in(4) ? m.integers(from.size()) : from), m.below(2)};
}

Arguments slice(Maker& m) {
  const Dims shape = m.dims(static_cast<uint64_t>(1 + m.below(4)));
  const auto n = static_cast<uint64_t>(m.below(static_cast<int64_t>(shape.size()) + 1));
  Dims axes;
  for (uint64_t i = 0; i < n; ++i) axes.push_back(static_cast<int64_t>(i));
  return {m.list(i64, shape), m.list(i64, m.integers(n)), m.list(i64, m.integers(n)),
          m.one_in(3) ? Any() : Any(m.list(i64, axes)),
          m.one_in(3) ? Any() : Any(m.list(i64, m.integers(n)))};
}

Arguments range_count(Maker& m) {
  const DataType type = m.dtype();
  if (type != i64) return {m.tensor(type, {}), m.tensor(type, {}), m.tensor(type, {})};
  return {m.list(i64, m.integers(1), {}), m.list(i64, m.integers(1), {}),
          m.list(i64, m.integers(1), {})};
}

Arguments taken(Maker& m) {
  const int64_t n = 1 + m.below(9);
  std::vector<int64_t> indices;
  for (int64_t i = m.below(9); i > 0; --i) indices.push_back(m.below(n));
  return {m.strings({n}), m.list(i64, indices)};
}

Arguments two_texts(Maker& m) {
  return {m.text(), m.text()};
}

// Of the functions on texts, whose first operands are lists of strings.
Arguments texts(Maker& m, const library::Signature& function) {
  Arguments out;
  const Dims shape = m.one_in(4) ? m.dims(2) : Dims{m.size()};
  for (const library::Parameter& p : function.operands) {
    const bool is_list = p.name != "indices" && function.name != "tenon.text.format";
    out.push_back(function.name == "tenon.text.parse" ? m.numerals(shape)
                  : is_list             ? m.strings(m.one_in(6) ? Dims{m.size()} : shape)
                  : p.name == "indices" ? m.tensor(i64, shape)
                                        : m.tensor(m.dtype(), shape));
  }
  for (const library::Parameter& p : function.attributes) out.push_back(m.value(p));
  return out;
}

using Recipe = Arguments (*)(Maker&);
const std::map<std::string_view, Recipe> kRecipes = {
    {"onednn.convolution", convolution},
    {"onednn.matmul", matmul},
    {"onednn.attention", attention},
    {"tenon.tree_ensemble", trees},
    {"tenon.pairwise_coupling", coupling},
    {"tenon.non_max_suppression", boxes},
    {"tenon.text.ngrams", ngrams},
    {"tenon.dft", fourier},
    {"tenon.det", determinant},
    {"tenon.topk", topk},
    {"tenon.compress", compress},
    {"tenon.append", append},
    {"tenon.shape.reshape", reshape},
    {"tenon.shape.slice", slice},
    {"tenon.shape.range_count", range_count},
    {"tenon.text.take", taken},
    {"vm.tensor_copy_to", copy_to},
    {"vm.tensor_to_shape", shape_of},
    {"vm.string_equal", two_texts},
    {"vm.string_concat", two_texts},
};

Arguments any_arguments(Maker& m, const library::Signature& function) {
  Arguments out;
  for (const library::Parameter& p : function.operands) out.push_back(m.value(p));
  if (function.writes_results) {
    for (const library::Parameter& p : function.results) out.push_back(m.value(p));
  }
  for (const library::Parameter& p : function.attributes) out.push_back(m.value(p));
  return out;
}

void require(bool holds, std::string_view name, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "recipe of %.*s (test/fuzz/library_arguments.cc): %s\n",
               static_cast<int>(name.size()), name.data(), what);
  std::abort();
}

bool check_recipes() {
  for (const auto& [name, recipe] : kRecipes) {
    const bool exists = std::ranges::find(library::kSignatures, name, &library::Signature::name) !=
                        std::end(library::kSignatures);
    require(exists, name, "no library function has this name");
  }
  return true;
}

// What fits together, where that is known.
Arguments fitting_arguments(Maker& m, const library::Signature& function) {
  [[maybe_unused]] static const bool checked = check_recipes();
  const auto recipe = kRecipes.find(function.name);
  Arguments out = recipe != kRecipes.end()     ? recipe->second(m)
                  : function.library == "text" ? texts(m, function)
                                               : any_arguments(m, function);
  require(out.size() == function.arity(), function.name, "not as many values as its signature has");
  return out;
}

}  // namespace

std::vector<Any> make_arguments(Choices& choices, const library::Signature& function) {
  Maker maker(choices);
  if (choices.one_in(8)) return any_arguments(maker, function);
  Arguments out = fitting_arguments(maker, function);
  if (choices.one_in(3) && !out.empty()) {
    const Arguments others = any_arguments(maker, function);
    const auto at = choices.below(out.size());
    out[at] = choices.one_in(2) ? others[at] : maker.anything();
  }
  return out;
}

}  // namespace tenon::fuzz
