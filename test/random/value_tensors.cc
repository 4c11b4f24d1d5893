#include "support/text.h"
#include "value_maker.h"

namespace tenon::random_programs {

using Kind = Type::Kind;

DataType ValueMaker::tensor_element() {
  static const DataType all[] = {i64, i64, f32, f32, i32, boolean, u8};
  return all[r_.between(0, std::size(all) - 1)];
}

std::string ValueMaker::size() {
  const int64_t choice = r_.between(0, 3);
  if (choice < 2 && !symbols_.empty()) {
    const std::string& symbol = r_.pick(symbols_);
    return r_.between(0, 4) < 2 ? cat(symbol, "*", r_.between(2, 4)) : symbol;
  }
  return choice % 2 == 0 ? "2" : "3";
}

Type ValueMaker::tensor_type(DataType dtype, size_t rank) {
  std::vector<std::string> dims;
  for (size_t i = 0; i < rank; ++i) dims.push_back(size());
  return Type::tensor(dtype, std::move(dims));
}

std::string ValueMaker::tensor_literal(const Type& type) {
  const std::string shape = cat("[", join(type.dims, ", "), "]");
  if (type.has_symbols()) {
    return bind(cat("full(", tensor_literal(Type::tensor(type.dtype, {})), ", shape=", shape, ")"));
  }
  int64_t count = 1;
  for (const std::string& dim : type.dims) count *= std::stoll(dim);
  std::vector<std::string> elements;
  for (; count > 0; --count) {
    const int64_t least = type.dtype.is_unsigned_int() ? 0 : -4;
    elements.push_back(type.dtype.is_bool()
                           ? (r_.coin() ? "true" : "false")
                           : cat(r_.between(least, 5), type.dtype.is_float() ? ".5" : ""));
  }
  return cat(text_of(type), "{", join(elements, ", "), "}");
}

// Sums, products and their like only of integers: in floats, their order may differ.
std::string ValueMaker::tensor(const Type& type, int depth) {
  const bool is_integer = !type.dtype.is_float() && !type.dtype.is_bool();
  switch (r_.between(0, 9)) {
    case 0:
    case 1:
    case 2:
      return moved(type, depth);
    case 3: {
      if (!is_integer) break;
      Type of = type;
      const auto axis = static_cast<size_t>(r_.between(0, type.dims.size()));
      of.dims.insert(of.dims.begin() + static_cast<int64_t>(axis), size());
      return bind(cat("reduce_sum(", value(of, depth - 1), ", axes=[", axis, "])"));
    }
    case 4: {
      if (!is_integer || type.dims.empty()) break;
      const std::string x = value(type, depth - 1);
      return bind(cat("cumsum(", x, ", axis=", r_.between(0, type.dims.size() - 1),
                      r_.coin() ? ", reverse=true" : "", ")"));
    }
    case 5: {
      if (!is_integer || type.dims.size() != 2) break;
      const std::string inner = size();
      const std::string a = value(Type::tensor(type.dtype, {type.dims[0], inner}), depth - 1);
      return bind(cat("matmul(", a, ", ",
                      value(Type::tensor(type.dtype, {inner, type.dims[1]}), depth - 1), ")"));
    }
    default:
      break;
  }
  return elementwise(type, depth);
}

std::string ValueMaker::elementwise(const Type& type, int depth) {
  // An operand may have fewer axes.
  const auto operand = [&](DataType dtype) {
    const int64_t cut = r_.between(0, 3) == 0 ? r_.between(0, type.dims.size()) : 0;
    return value(Type::tensor(dtype, {type.dims.begin() + cut, type.dims.end()}), depth - 1);
  };
  const auto whole = [&](DataType dtype) {
    return value(Type::tensor(dtype, type.dims), depth - 1);
  };
  const auto two = [&](DataType dtype) {
    const std::string a = whole(dtype), b = operand(dtype);
    return r_.coin() ? call_of({a, b}) : call_of({b, a});
  };
  const DataType dtype = type.dtype;
  switch (r_.between(0, 5)) {
    case 0: {
      const std::string condition = operand(boolean), x = whole(dtype);
      return bind(cat("where(", condition, ", ", x, ", ", operand(dtype), ")"));
    }
    case 1:
      return bind(cat("cast(", whole(tensor_element()), ", dtype=", to_text(dtype), ")"));
    case 2: {
      if (dtype.is_bool()) return bind(cat("logical_not(", whole(dtype), ")"));
      static const std::vector<const char*> names = {"neg", "abs", "relu", "sign"};
      return bind(cat(r_.pick(names), "(", whole(dtype), ")"));
    }
    default: {
      static const std::vector<const char*> truths = {"logical_and", "logical_or", "logical_xor"};
      static const std::vector<const char*> comparisons = {"less", "greater_equal", "equal",
                                                           "not_equal"};
      static const std::vector<const char*> floats = {"add", "sub", "minimum", "maximum"};
      static const std::vector<const char*> integers = {
          "add", "sub", "mul", "minimum", "maximum", "bitwise_and", "bitwise_xor"};
      if (!dtype.is_bool()) return bind(r_.pick(dtype.is_float() ? floats : integers) + two(dtype));
      if (r_.coin()) return bind(r_.pick(truths) + two(dtype));
      DataType compared = tensor_element();
      if (compared.is_bool()) compared = i64;
      return bind(r_.pick(comparisons) + two(compared));
    }
  }
}

// The elements of other tensors.
std::string ValueMaker::moved(const Type& type, int depth) {
  const std::string shape = shape_text(type);
  const std::vector<std::string>& dims = type.dims;
  const auto of = [&](std::vector<std::string> other) {
    return value(Type::tensor(type.dtype, std::move(other)), depth - 1);
  };
  switch (r_.between(0, 7)) {
    case 0: {
      // From a scalar, which isn't of every type: a function of it is generated for each.
      const std::string s = value(Type::scalar(type.dtype), depth - 1);
      const std::string t = bind(cat("to_tensor(", s, ")"));
      return dims.empty() ? t : bind(cat("full(", t, ", shape=", shape, ")"));
    }
    case 1:
      return bind(cat("expand(", of({}), ", shape=", shape, ")"));
    case 2: {
      if (dims.size() == 2)
        return bind(cat("transpose(", of({dims[1], dims[0]}), ", perm=[1, 0])"));
      std::vector<std::string> more = dims;
      more.insert(more.begin() + r_.between(0, dims.size()), "1");
      return bind(cat("reshape(", of(more), ", shape=", shape, ")"));
    }
    case 3: {
      if (dims.empty()) break;
      std::vector<std::string> larger = dims, starts(dims.size(), "0");
      if (dims[0] != "2") break;
      larger[0] = "3";
      if (r_.coin()) starts[0] = "1";
      return bind(
          cat("slice(", of(larger), ", starts=[", join(starts, ", "), "], sizes=", shape, ")"));
    }
    case 4: {
      if (dims.empty() || dims[0] != "3") break;
      std::vector<std::string> first = dims, second = dims;
      first[0] = "1";
      second[0] = "2";
      return bind(cat("concat(", of(first), ", ", of(second), ", axis=0)"));
    }
    case 5: {
      if (dims.empty()) break;
      std::vector<std::string> from = dims;
      from[0] = "3";
      const std::string indices =
          bind(cat("full(tensor[i64]{", r_.between(0, 2), "}, shape=[", dims[0], "])"));
      return bind(cat("gather(", of(from), ", ", indices, ")"));
    }
    case 6: {
      // Through a function that doesn't say its result's dimensions.
      if (dims.empty()) break;
      const std::string unsized = unsized_text(type);
      const std::string name = cat("@unsized_", to_text(type.dtype), "_", dims.size());
      without_sizes_.insert(
          cat("fn ", name, "(%x: ", unsized, ") -> ", unsized, " attrs(inline=false) { %x }\n"));
      const std::string same = bind(cat(name, "(", of(dims), ")"));
      return bind(cat("match_shape(", same, ", ", shape, ")"));
    }
    default:
      break;
  }
  return elementwise(type, depth);
}

std::string ValueMaker::from_tensor(DataType dtype, int depth) {
  const bool is_element =
      dtype == i64 || dtype == f32 || dtype == i32 || dtype == boolean || dtype == u8;
  const int64_t choice = r_.between(0, dtype == i64 ? 4 : 0);
  if (choice == 0 && is_element) {
    return bind(cat("to_scalar(", value(Type::tensor(dtype, {}), depth - 1), ")"));
  }
  if (choice == 1 && !symbols_.empty()) return bind(cat("add(size(", r_.pick(symbols_), "), 1)"));
  if (choice == 2) {
    // How many elements are true.
    const std::string mask = value(tensor_type(boolean, 1), depth - 1), count = fresh().substr(1);
    const std::string places = bind(cat("nonzero(", mask, ")"));
    line(cat(fresh(), " = match_shape(", places, ", [1, ", count, "])"));
    return bind(cat("mul(size(", count, "), 1)"));
  }
  if (choice == 3) {
    // A size that a number determines.
    const std::string i = bind(cat("mod(", value(Type::scalar(i64), depth - 1), ", 5)"));
    const std::string x = value(Type::tensor(i64, {}), depth - 1);
    const std::string many = bind(cat("full(", x, ", shape=[size_of(", i, ")])"));
    const std::string sum = bind(cat("reduce_sum(", many, ", axes=[0])"));
    return bind(cat("to_scalar(", sum, ")"));
  }
  return "";
}

}  // namespace tenon::random_programs
