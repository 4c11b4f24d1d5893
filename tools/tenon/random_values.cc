#include "tools/tenon/random_values.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "device/device.h"
#include "loop/scalar.h"
#include "loop/scalar_tensor.h"
#include "object/array.h"
#include "object/string_tensor.h"
#include "support/error.h"
#include "support/poll.h"
#include "tools/tenon/available_memory.h"
#include "tools/tenon/number_text.h"
#include "tools/tenon/tensor_text.h"

namespace tenon::tool {
namespace {

using Kind = vm::SignatureType::Kind;

constexpr size_t kElements = 2;  // of arrays and lists
constexpr size_t kMostDepth = 32;
constexpr size_t kMostValues = 10'000;  // in one input

// The bounds of "random:LOW..HIGH", for integers and for floats.
struct Range {
  int64_t low = 0, high = 1;
  double low_float = -1, high_float = 1;
};

Range parse_range(std::string_view spec, DataType dtype) {
  Range range;
  if (spec == "random") return range;
  spec.remove_prefix(std::string_view("random:").size());
  const size_t dots = spec.find("..");
  const bool two = dots != std::string_view::npos;
  const std::string_view first = spec.substr(0, dots), second = two ? spec.substr(dots + 2) : "";
  if (two && dtype.is_float()) {
    const auto low = parse_float(first, dtype), high = parse_float(second, dtype);
    if (low && high && std::isfinite(*low) && std::isfinite(*high) && *low <= *high) {
      range.low_float = *low;
      range.high_float = *high;
      return range;
    }
  } else if (two) {
    const auto low = parse_integer(first, dtype), high = parse_integer(second, dtype);
    const bool ordered = low && high &&
                         (dtype == u64 ? static_cast<uint64_t>(*low) <= static_cast<uint64_t>(*high)
                                       : *low <= *high);
    if (ordered) {
      range.low = *low;
      range.high = *high;
      return range;
    }
  }
  throw Error(ErrorKind::Usage, cat("'", spec, "' is not a range"))
      .expected(
          cat("LOW..HIGH, such as random:0..9, with LOW not above HIGH, both ", numbers_of(dtype)));
}

// Both parts of complex numbers lie within the range.
Tensor random_tensor(const std::vector<int64_t>& shape, DataType dtype, const Range& range,
                     std::mt19937_64& generator) {
  Tensor tensor = allocate_tensor(shape, dtype);
  dtype = part_of(dtype);
  const auto bytes = static_cast<size_t>(dtype.bytes());
  auto *out = static_cast<char*>(tensor.data()), *const end = out + tensor.bytes();
  const uint64_t span = static_cast<uint64_t>(range.high) - static_cast<uint64_t>(range.low);
  constexpr uint64_t kExact = uint64_t{1} << 53;  // integers up to here are doubles
  Ticker ticker;
  for (; out < end; out += bytes) {
    // The generator's numbers are the same everywhere; the library's distributions are not.
    ticker.tick();
    const uint64_t drawn = generator();
    const double unit = static_cast<double>(drawn >> 11) * 0x1p-53;
    if (dtype.is_float()) {
      loop::scalar_store(dtype, out,
                         loop::float_bits(std::lerp(range.low_float, range.high_float, unit)));
      continue;
    }
    const uint64_t above = span < kExact
                               ? static_cast<uint64_t>(unit * static_cast<double>(span + 1))
                           : span == UINT64_MAX ? drawn
                                                : drawn % (span + 1);
    const uint64_t value = static_cast<uint64_t>(range.low) + above;
    std::memcpy(out, &value, bytes);
  }
  return tensor;
}

// Refuses a tensor that is larger than the memory that is left. The system would grant it, and end
// the process while it is filled.
void require_memory(const vm::Param& param, DataType dtype, const std::vector<int64_t>& shape) {
  const auto most = static_cast<double>(available_memory());
  double bytes = static_cast<double>(dtype.bytes());
  for (const int64_t size : shape) bytes *= static_cast<double>(size);
  if (bytes <= most) return;
  const auto text = [](double size) { return cat(std::round(size / (1 << 20)), " MB"); };
  throw Error(ErrorKind::Runtime, cat("not enough memory for input '", param.name, "'"))
      .found(cat(text(bytes), " for ", tensor_type_text(dtype, shape)))
      .expected(cat("at most the ", text(most), " available"))
      .help("give smaller sizes with --dim or --shape");
}

bool mentions(const vm::SignatureType& type, std::string_view data_type) {
  return (type.kind == Kind::Adt && type.name == data_type) ||
         std::ranges::any_of(type.parts,
                             [&](const auto& part) { return mentions(part, data_type); });
}

// The constructor with the most fields that doesn't contain its type; none if all do.
std::optional<size_t> outermost(const DataTypes::Instance& instance, const std::string& name) {
  std::optional<size_t> best;
  for (size_t i = 0; i < instance.fields.size(); ++i) {
    const auto again = [&](const vm::SignatureType& field) { return mentions(field, name); };
    if (std::ranges::any_of(instance.fields[i], again)) continue;
    if (!best || instance.fields[i].size() > instance.fields[*best].size()) best = i;
  }
  return best;
}

[[noreturn]] void refuse(const vm::Param& param, const std::string& found) {
  throw Error(ErrorKind::Usage, cat("input '", param.name, "' has no random values"))
      .found(found)
      .help(cat("give its value: --input ", param.name, "='...'"));
}

void refuse_range(const vm::Param& param, std::string_view spec) {
  if (spec == "random") return;
  throw Error(ErrorKind::Usage, cat("--input ", param.name, "=", spec, " has no effect on strings"))
      .found(vm::to_text(param.type))
      .expected(cat("--input ", param.name, "=random: words of 3 to 8 letters"));
}

}  // namespace

Tensor filled_tensor(const vm::Param& param, const Any& number, const GivenSizes& sizes,
                     std::vector<std::string>* chosen) {
  const bool any_rank = param.type.rank < 0 && !sizes.shapes.contains(param.name);
  const std::vector<int64_t> shape =
      any_rank ? std::vector<int64_t>() : random_shape(param, sizes, chosen);
  const Tensor one = loop::scalar_tensor(param.type.dtype, number);
  require_memory(param, param.type.dtype, shape);
  Tensor out = allocate_tensor(shape, param.type.dtype);
  const auto bytes = static_cast<size_t>(one.bytes());
  Ticker ticker;
  for (int64_t i = 0; i < out.count(); ++i) {
    ticker.tick();
    std::memcpy(out.data_as<char>() + static_cast<size_t>(i) * bytes, one.data(), bytes);
  }
  return out;
}

Any RandomValues::value(const vm::Param& param, std::string_view spec,
                        std::vector<std::string>* chosen) {
  Making making{param, spec, chosen};
  return value(param.type, 0, &making);
}

Any RandomValues::value(const vm::SignatureType& type, size_t depth, Making* making) {
  if (depth > kMostDepth || ++making->values > kMostValues) {
    refuse(making->param, cat(vm::to_text(making->param.type), ", whose values are too large"));
  }
  if (type.kind == Kind::Tensor) return tensor(type, depth, making);
  if (type.kind == Kind::Scalar) return scalar(type.dtype, making->spec);
  if (type.kind == Kind::Adt) return cell(type, depth + 1, making);
  if (is_string(type)) {
    refuse_range(making->param, making->spec);
    return Any(String(word()));
  }
  if (type.kind == Kind::Tuple) {
    if (type.parts.empty()) return {};
    return Array<Any>(values(type.parts, depth + 1, making));
  }
  if (type.kind == Kind::Array) {
    const std::vector<vm::SignatureType> elements(kElements, type.parts[0]);
    return Array<Any>(values(elements, depth + 1, making));
  }
  refuse(making->param, vm::to_text(type));
}

std::vector<Any> RandomValues::values(const std::vector<vm::SignatureType>& types, size_t depth,
                                      Making* making) {
  std::vector<Any> out;
  out.reserve(types.size());
  for (const vm::SignatureType& type : types) out.push_back(value(type, depth, making));
  return out;
}

Any RandomValues::cell(const vm::SignatureType& type, size_t depth, Making* making) {
  const DataTypes::Instance* instance = types_.find(type);
  if (!instance) refuse(making->param, vm::to_text(type));
  if (instance->is_list) {
    const std::vector<vm::SignatureType> elements(kElements, type.parts[0]);
    const std::vector<Any> items = values(elements, depth, making);
    Any out = CellObj::of(kNil, size_t{0});
    for (size_t i = items.size(); i-- > 0;) {
      out = CellObj::of(kCons, std::vector{items[i], std::move(out)});
    }
    return out;
  }
  const auto tag = outermost(*instance, type.name);
  if (!tag) refuse(making->param, vm::to_text(*instance->definition));
  const std::vector<vm::SignatureType>& types = instance->fields[*tag];
  if (types.empty()) return CellObj::of(static_cast<int64_t>(*tag), size_t{0});
  return CellObj::of(static_cast<int64_t>(*tag), values(types, depth, making));
}

Any RandomValues::scalar(DataType dtype, std::string_view spec) {
  const Range range = parse_range(spec, dtype);
  const Tensor one = random_tensor({}, dtype.is_float() ? f64 : i64, range, generator_);
  if (dtype.is_bool()) return Any(*one.data_as<int64_t>() != 0);
  return dtype.is_float() ? Any(*one.data_as<double>()) : Any(*one.data_as<int64_t>());
}

Any RandomValues::tensor(const vm::SignatureType& type, size_t depth, Making* making) {
  const vm::Param& param = making->param;
  vm::Param shaped{param.name, type};
  if (depth > 0 && !type.dims_known && !sizes_.shapes.contains(param.name)) {
    const std::string note = cat("those of tensors in ", param.name);
    std::vector<std::string>& chosen = *making->chosen;
    if (std::ranges::find(chosen, note) == chosen.end()) chosen.push_back(note);
    const size_t rank = type.rank < 0 ? 1 : static_cast<size_t>(type.rank);
    shaped.type = vm::SignatureType::tensor(
        type.dtype, std::vector<vm::SignatureDim>(rank, vm::SignatureDim::constant(1)));
  }
  const std::vector<int64_t> shape = random_shape(shaped, sizes_, making->chosen);
  require_memory(param, type.dtype, shape);
  if (type.dtype != string_elements) {
    const Range range = parse_range(making->spec, part_of(type.dtype));
    return random_tensor(shape, type.dtype, range, generator_);
  }
  refuse_range(param, making->spec);
  std::vector<std::string> words(static_cast<size_t>(element_count(shape).value_or(0)));
  Ticker ticker;
  for (std::string& one : words) {
    ticker.tick();
    one = word();
  }
  const std::vector<std::string_view> views(words.begin(), words.end());
  return string_tensor(shape, views);
}

std::string RandomValues::word() {
  std::string out(3 + generator_() % 6, 'a');
  for (char& letter : out) letter = static_cast<char>('a' + generator_() % 26);
  return out;
}

}  // namespace tenon::tool
