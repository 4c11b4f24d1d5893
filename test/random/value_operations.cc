#include "value_maker.h"

#include "support/text.h"

namespace tenon::random_programs {

using Kind = Type::Kind;

std::string ValueMaker::made(const Type& type, int depth) {
  switch (type.kind) {
    case Kind::Scalar:
      return computed(type.dtype, depth);
    case Kind::String:
      return bind(cat("string_concat", call_of(operands({type, type}, depth - 1))));
    case Kind::Tensor:
      return tensor(type, depth);
    case Kind::Tuple:
      return bind(list_of(operands(type.parts, depth - 1)));
    case Kind::Function: {
      if (type.parts.size() == 2 && r_.between(0, 3) == 0) {
        const std::string x = value(type.parts[1], depth - 1);
        return bind(cat("@always(", x, ")"), &type);
      }
      for (const Callee& callee : functions_) {
        if (!callee.symbols.empty() || !(callee.result == type.parts.back()) || r_.coin()) continue;
        std::vector<Type> rest(type.parts.begin(), type.parts.end() - 1);
        if (callee.params == rest) return bind(callee.name);
        rest.insert(rest.begin(), callee.params.empty() ? type : callee.params[0]);
        if (callee.params != rest) continue;
        const std::string first = value(rest[0], depth - 1);
        return bind(cat("closure ", callee.name, "(", first, ")"));
      }
      return function(type, depth);
    }
    case Kind::Array:
      return array(type, depth);
    case Kind::List:
      if (r_.between(0, 2) == 0) {
        const Type element = any_type(1, false);
        const std::string f = value(Type::of(Kind::Function, {element, type.parts[0]}), depth - 1);
        const std::string xs = value(Type::of(Kind::List, {element}), depth - 1);
        return bind(cat("@map(", f, ", ", xs, ")"));
      }
      return constructed(type, constructors(type)[1], depth - 1);
    default: {
      const std::vector<Constructor> all = constructors(type);
      return constructed(type, all[r_.between(0, all.size() - 1)], depth - 1);
    }
  }
}

std::string ValueMaker::array(const Type& type, int depth) {
  const auto element = [&] { return value(type.parts[0], depth - 1); };
  switch (r_.between(0, 3)) {
    case 0: {
      std::vector<std::string> items;
      for (int64_t n = r_.between(0, 3); n > 0; --n) items.push_back(element());
      return bind(cat("array[", text_of(type.parts[0]), "]", call_of(items)));
    }
    case 1: {
      const std::string a = value(type, depth - 1);
      return bind(cat("array_push(", a, ", ", element(), ")"));
    }
    case 2: {
      const std::string a = value(type, depth - 1), i = value(Type::scalar(i64), depth - 1);
      return bind(cat("@set(", a, ", ", i, ", ", element(), ")"));
    }
    default:
      return bind(cat("array_concat", call_of(operands({type, type}, depth - 1))));
  }
}

std::string ValueMaker::computed(DataType dtype, int depth) {
  const Type type = Type::scalar(dtype);
  const auto two = [&](const Type& of) { return call_of(operands({of, of}, depth - 1)); };
  const auto pick = [&](std::vector<const char*> names) {
    return std::string(names[r_.between(0, names.size() - 1)]);
  };
  const int64_t choice = r_.between(0, 9);
  if (r_.between(0, 3) == 0) {
    if (std::string found = from_tensor(dtype, depth); !found.empty()) return found;
  }
  if (dtype.is_bool()) {
    if (choice == 0) return bind(cat("string_equal", two(Type::of(Kind::String, {}))));
    if (choice < 4) return bind(pick({"logical_and", "logical_or", "logical_xor"}) + two(type));
    Type other = scalar();
    if (other.dtype.is_bool()) other = Type::scalar(i64);
    return bind(pick({"less", "less_equal", "greater", "greater_equal", "equal", "not_equal"}) +
                two(other));
  }
  if (choice == 0) {
    const std::string c = value(Type::scalar(boolean), depth - 1);
    const std::vector<std::string> xy = operands({type, type}, depth - 1);
    return bind(cat("where(", c, ", ", xy[0], ", ", xy[1], ")"));
  }
  if (choice <= 2) {
    return bind(cat("cast(", value(scalar(), depth - 1), ", dtype=", to_text(dtype), ")"));
  }
  if (dtype.is_float()) return bind(pick({"add", "sub", "mul", "div"}) + two(type));
  if (dtype == i64 && choice == 3) {
    const Type of = Type::of(Kind::Array, {any_type(1, false)});
    return bind(cat("array_length(", value(of, depth - 1), ")"));
  }
  if (choice == 4) {
    const std::vector<std::string> xy = operands({type, type}, depth - 1);
    const std::string odd =
        bind(cat("bitwise_or(", xy[1], ", ", dtype == i64 ? "1" : cat(to_text(dtype), "(1)"), ")"));
    return bind(cat(pick({"div", "mod", "rem", "floor_div"}), "(", xy[0], ", ", odd, ")"));
  }
  if (choice == 5) {
    return bind(
        cat(pick({"neg", "abs", "bitwise_not", "sign", "relu"}), "(", value(type, depth - 1), ")"));
  }
  return bind(pick({"add", "sub", "mul", "minimum", "maximum", "bitwise_and", "bitwise_or",
                    "bitwise_xor", "shift_left", "shift_right"}) +
              two(type));
}

}  // namespace tenon::random_programs
