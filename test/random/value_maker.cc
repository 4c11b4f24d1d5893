#include "value_maker.h"

#include <algorithm>

#include "support/text.h"

namespace tenon::random_programs {

using Kind = Type::Kind;

std::string list_of(const std::vector<std::string>& items) {
  return cat("(", tenon::join(items, ", "), items.size() == 1 ? ",)" : ")");
}

std::string call_of(const std::vector<std::string>& args) {
  return cat("(", tenon::join(args, ", "), ")");
}

Type ValueMaker::scalar() {
  static const DataType all[] = {i64, i64, i64, boolean, f64, f32, i8,
                                 i16, i32, u8,  u16,     u32, u64, f16};
  return Type::scalar(all[r_.between(0, std::size(all) - 1)]);
}

Type ValueMaker::any_type(int depth, bool functions) {
  if (functions && depth > 0 && !used_.empty() && r_.between(0, 3) == 0) return r_.pick(used_);
  const int64_t choice = depth <= 0 ? 0 : r_.between(0, functions ? 12 : 11);
  const auto part = [&] { return any_type(depth - 1, functions); };
  switch (choice) {
    case 3:
      return Type::of(Kind::String, {});
    case 4:
      return Type::of(Kind::Tuple, {part(), part()});
    case 5:
      return Type::of(Kind::Option, {part()});
    case 6:
      return Type::of(Kind::List, {part()});
    case 7:
      return Type::of(Kind::Array, {part()});
    case 8:
    case 9: {
      if (types_.empty()) return scalar();
      const Definition& type = types_[r_.between(0, types_.size() - 1)];
      if (!functions && has_functions(type)) return scalar();
      std::vector<Type> args;
      for (size_t i = 0; i < type.parameters; ++i) args.push_back(part());
      return Type::data(type.name, std::move(args));
    }
    case 10:
    case 11:
      return tensor_type(tensor_element(), static_cast<size_t>(r_.between(0, 2)));
    case 12:
      return Type::of(Kind::Function, {part(), part()});
    default:
      return scalar();
  }
}

bool ValueMaker::has_functions(const Definition& type) const {
  for (const Constructor& c : type.constructors) {
    for (const Type& field : c.fields) {
      if (text_of(field).find("fn(") != std::string::npos || text_of(field).find("data") == 0)
        return true;
    }
  }
  return false;
}

std::vector<Constructor> ValueMaker::constructors(const Type& type) const {
  if (type.kind == Kind::Option) return {{"None", {}}, {"Some", {type.parts[0]}}};
  if (type.kind == Kind::List) return {{"Nil", {}}, {"Cons", {type.parts[0], type}}};
  if (type.kind != Kind::Data) return {};
  for (const Definition& d : types_) {
    if (d.name == type.name) return d.instance(type.parts);
  }
  return {};
}

void ValueMaker::line(const std::string& text) {
  out_ += std::string(2 * levels_, ' ') + text + "\n";
}

std::string ValueMaker::fresh() {
  return cat("%v", ++names_);
}

std::string ValueMaker::bind(const std::string& value, const Type* stated) {
  const std::string name = fresh();
  line(cat(name, stated ? ": " + text_of(*stated) : "", " = ", value));
  return name;
}

void ValueMaker::begin(const std::string& head) {
  line(head + " {");
  ++levels_;
  marks_.push_back(scope_.size());
}

void ValueMaker::end(const std::string& result, const std::string& tail) {
  line(result);
  --levels_;
  scope_.resize(marks_.back());
  marks_.pop_back();
  line(tail);
}

std::string ValueMaker::known(const std::string& name, const Type& type) {
  if (name[0] == '%') scope_.push_back({name, type});
  return name;
}

std::optional<std::string> ValueMaker::variable(const Type& type) {
  std::vector<const Variable*> found;
  for (const Variable& v : scope_) {
    if (v.type == type) found.push_back(&v);
  }
  if (found.empty()) return std::nullopt;
  const size_t late =
      found.size() - 1 - static_cast<size_t>(r_.between(0, std::min<int64_t>(2, found.size() - 1)));
  return found[late]->name;
}

std::string ValueMaker::literal(DataType dtype) {
  if (dtype.is_bool()) return r_.coin() ? "true" : "false";
  if (dtype.is_float()) {
    const std::string number = cat(r_.between(-20, 20), r_.coin() ? ".5" : ".25");
    return dtype == f32 ? number : cat(to_text(dtype), "(", number, ")");
  }
  static const char* const edges[] = {"127", "-128", "32767", "2147483647", "-9223372036854775808"};
  std::string number = cat(r_.between(dtype.is_unsigned_int() ? 0 : -3, 12));
  if (dtype == i64 && r_.between(0, 9) == 0) number = edges[r_.between(0, 4)];
  if (dtype == i8 && r_.between(0, 4) == 0) number = edges[r_.between(0, 1)];
  if (dtype == u8 && r_.between(0, 4) == 0) number = "255";
  if (dtype == u64 && r_.between(0, 4) == 0) number = "18446744073709551615";
  return dtype == i64 ? number : cat(to_text(dtype), "(", number, ")");
}

std::string ValueMaker::least(const Type& type) {
  switch (type.kind) {
    case Kind::Scalar:
      return literal(type.dtype);
    case Kind::String: {
      static const char* const texts[] = {"\"\"", "\"a\"", "\"b c\"", "\"\\n\\\"\""};
      return texts[r_.between(0, 3)];
    }
    case Kind::Tensor:
      return tensor_literal(type);
    case Kind::Array:
      return bind(cat("array[", text_of(type.parts[0]), "]()"));
    case Kind::Function:
      return function(type, 0);
    case Kind::Tuple:
      return bind(list_of(operands(type.parts, 0)));
    default: {
      // Values of a few cells: the first constructor has no value of its own type.
      const std::vector<Constructor> all = constructors(type);
      const bool more = nested_ < 3 && r_.between(0, 2) != 0;
      ++nested_;
      const std::string out = constructed(type, more ? r_.pick(all) : all[0], 0);
      --nested_;
      return out;
    }
  }
}

std::vector<std::string> ValueMaker::operands(const std::vector<Type>& types, int depth) {
  std::vector<std::string> out;
  for (const Type& type : types) out.push_back(value(type, depth));
  return out;
}

std::string ValueMaker::constructed(const Type& type, const Constructor& c, int depth) {
  const std::vector<std::string> fields = operands(c.fields, depth);
  std::vector<std::string> args;
  for (const Type& arg : type.parts) args.push_back(text_of(arg));
  const bool states = !args.empty() && r_.coin();
  const std::string made = cat(c.name, states ? cat("[", tenon::join(args, ", "), "]") : "",
                               fields.empty() ? "" : call_of(fields));
  return bind(made, states ? nullptr : &type);
}

std::string ValueMaker::function(const Type& type, int depth, bool takes_any_sizes) {
  const std::string name = fresh();
  std::vector<std::string> params, matches;
  std::vector<Variable> added;
  for (size_t i = 0; i + 1 < type.parts.size(); ++i) {
    const Type& taken = type.parts[i];
    added.push_back({fresh(), taken});
    const std::string& param = added.back().name;
    // A symbol in a function's type is its own, which the result may mention.
    const bool has_symbols = std::ranges::any_of(taken.dims, [](const std::string& d) {
      return d.find_first_not_of("0123456789") != d.npos;
    });
    if (takes_any_sizes && taken.kind == Type::Kind::Tensor && !taken.dims.empty() &&
        !has_symbols) {
      const std::string any = fresh();
      params.push_back(cat(any, ": ", unsized_text(taken)));
      matches.push_back(cat(param, " = match_shape(", any, ", ", shape_text(taken), ")"));
    } else {
      params.push_back(cat(param, ": ", text_of(taken)));
    }
  }
  begin(cat(name, " = fn(", tenon::join(params, ", "), ") -> ", text_of(type.parts.back())));
  for (const std::string& match : matches) line(match);
  scope_.insert(scope_.end(), added.begin(), added.end());
  end(value(type.parts.back(), depth - 1));
  return name;
}

std::string ValueMaker::value(const Type& type, int depth) {
  if (depth <= 0 || --budget_ <= 0) {
    const auto found = variable(type);
    return found && r_.between(0, 3) != 0 ? *found : least(type);
  }
  const auto found = variable(type);
  if (found && r_.between(0, 4) == 0) return *found;
  switch (r_.between(0, 11)) {
    case 0:
      return known(branch(type, depth), type);
    case 1:
    case 2:
      return known(matched(type, depth), type);
    case 3:
      return known(looped(type, depth), type);
    case 4:
      return known(called(type, depth), type);
    case 5:
      return known(taken(type, depth), type);
    case 6:
      return known(folded(type, depth), type);
    default:
      return known(made(type, depth), type);
  }
}

std::string ValueMaker::branch(const Type& type, int depth) {
  const std::string condition = value(Type::scalar(boolean), depth - 1), name = fresh();
  begin(cat(name, ": ", text_of(type), " = if ", condition));
  // One of two functions that meet may take more.
  const bool is_wide = type.kind == Type::Kind::Function && r_.coin();
  const std::string first = is_wide ? function(type, depth - 1, true) : value(type, depth - 1);
  line(first);
  --levels_;
  scope_.resize(marks_.back());
  line("} else {");
  ++levels_;
  end(value(type, depth - 1));
  return name;
}

std::string ValueMaker::looped(const Type& type, int depth) {
  const std::string first = value(type, depth - 1), name = fresh(), i = fresh(), x = fresh();
  begin(cat(name, " = loop (", i, ": i64 = 0, ", x, ": ", text_of(type), " = ", first,
            ") while { less(", i, ", ", r_.between(0, 4), ") }"));
  scope_.push_back({i, Type::scalar(i64)});
  scope_.push_back({x, type});
  const std::string next = value(type, depth - 1), more = bind(cat("add(", i, ", 1)"));
  end(cat("(", more, ", ", next, ")"));
  return bind(name + ".1");
}

std::string ValueMaker::called(const Type& type, int depth) {
  std::vector<Callee> fitting;
  for (const Callee& callee : functions_) {
    Sizes sizes;
    if (!find_sizes(callee.result, type, &sizes)) continue;
    for (const std::string& symbol : callee.symbols) sizes.try_emplace(symbol, size());
    fitting.push_back({callee.name, {}, type});
    for (const Type& param : callee.params)
      fitting.back().params.push_back(with_sizes(param, sizes));
  }
  for (const Variable& v : scope_) {
    if (v.type.kind != Kind::Function || !(v.type.parts.back() == type)) continue;
    fitting.push_back({v.name, {v.type.parts.begin(), v.type.parts.end() - 1}, type});
  }
  if (!fitting.empty() && r_.between(0, 3) != 0) {
    const Callee callee = fitting[r_.between(0, fitting.size() - 1)];
    return bind(cat(callee.name, call_of(operands(callee.params, depth - 1))));
  }
  const Type argument = any_type(1, false);
  const Type of_function = Type::of(Kind::Function, {argument, type});
  switch (r_.between(0, 2)) {
    case 0: {
      const std::string f = value(of_function, depth - 1);
      return bind(cat(f, call_of({value(argument, depth - 1)})));
    }
    case 1: {
      const Type between = scalar();
      const std::string f = value(Type::of(Kind::Function, {between, type}), depth - 1);
      const std::string g = value(Type::of(Kind::Function, {argument, between}), depth - 1);
      const std::string both = bind(cat("@compose(", f, ", ", g, ")"));
      return bind(cat(both, call_of({value(argument, depth - 1)})));
    }
    default: {
      const std::string x = value(type, depth - 1);
      const std::string f = value(Type::of(Kind::Function, {type, type}), depth - 1);
      return bind(cat("@iterate(", r_.between(0, 3), ", ", f, ", ", x, ")"));
    }
  }
}

std::string ValueMaker::taken(const Type& type, int depth) {
  switch (r_.between(0, 4)) {
    case 0: {
      const std::string xs = value(Type::of(Kind::List, {type}), depth - 1);
      return bind(cat("@head(", xs, ", ", value(type, depth - 1), ")"));
    }
    case 1: {
      const std::string o = value(Type::of(Kind::Option, {type}), depth - 1);
      return bind(cat("@or(", o, ", ", value(type, depth - 1), ")"));
    }
    case 2: {
      const std::string a = value(Type::of(Kind::Array, {type}), depth - 1);
      const std::string i = value(Type::scalar(i64), depth - 1);
      return bind(cat("@get(", a, ", ", i, ", ", value(type, depth - 1), ")"));
    }
    case 3:
      return bind(cat("@id(", value(type, depth - 1), ")"));
    default: {
      const Type other = any_type(1, false);
      const bool first = r_.coin();
      const Type pair = Type::of(Kind::Tuple, {first ? type : other, first ? other : type});
      const std::string t = value(pair, depth - 1);
      return bind(cat(t, first ? ".0" : ".1"));
    }
  }
}

std::string ValueMaker::folded(const Type& type, int depth) {
  const Type element = any_type(1, true);
  const std::string xs = value(Type::of(Kind::List, {element}), depth - 1);
  const std::string f = value(Type::of(Kind::Function, {type, element, type}), depth - 1);
  const std::string start = value(type, depth - 1);
  return bind(cat("@fold(", f, ", ", start, ", ", xs, ")"));
}

}  // namespace tenon::random_programs
