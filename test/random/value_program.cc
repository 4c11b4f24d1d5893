#include "value_program.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "graph/op/rule.h"
#include "support/text.h"
#include "value_type.h"

namespace tenon::random_programs {
namespace {

using Kind = Type::Kind;

struct Variable {
  std::string name;
  Type type;
};

// A function of the module, or its parameters where it is a value.
struct Callee {
  std::string name;
  std::vector<Type> params;
  Type result;
};

// A pattern with the type of what it matches; `text` is empty for one that fits everything.
struct Pattern {
  Type type;
  std::string text;  // of a constant, or a constructor's name
  bool is_tuple = false;
  std::vector<Pattern> fields = {};
  bool is_rest = false;  // fits what constants before it leave

  bool is_open() const { return text.empty() && !is_tuple; }
};

class ProgramMaker {
 public:
  explicit ProgramMaker(uint64_t seed) : r_(seed) {}

  std::string program() {
    out_ = kLibrary;
    for (int64_t n = r_.between(1, 3); n > 0; --n) types_.push_back(define(types_.size()));
    for (const Definition& type : types_) out_ += text_of(type);
    for (int64_t n = r_.between(1, 4); n > 0; --n) add_function();
    add_main();
    return out_;
  }

 private:
  static constexpr char kLibrary[] = R"(
fn @head[T](%xs: list[T], %otherwise: T) -> T {
  match %xs { Cons(%x, _) => { %x } Nil => { %otherwise } }
}
fn @or[T](%o: option[T], %otherwise: T) -> T {
  match %o { None => { %otherwise } Some(%x) => { %x } }
}
fn @get[T](%a: array[T], %i: i64, %otherwise: T) -> T {
  %n = array_length(%a)
  %empty = equal(%n, 0)
  if %empty { %otherwise } else {
    %at = mod(%i, %n)
    array_get(%a, %at)
  }
}
fn @set[T](%a: array[T], %i: i64, %x: T) -> array[T] {
  %n = array_length(%a)
  %empty = equal(%n, 0)
  if %empty { array_push(%a, %x) } else {
    %at = mod(%i, %n)
    array_set(%a, %at, %x)
  }
}
fn @map[T, U](%f: fn(T) -> U, %xs: list[T]) -> list[U] {
  match %xs {
    Nil => { Nil }
    Cons(%x, %rest) => {
      %y = %f(%x)
      %ys = @map(%f, %rest)
      Cons(%y, %ys)
    }
  }
}
fn @fold[T, S](%f: fn(S, T) -> S, %s: S, %xs: list[T]) -> S {
  match %xs {
    Nil => { %s }
    Cons(%x, %rest) => {
      %t = %f(%s, %x)
      @fold(%f, %t, %rest)
    }
  }
}
fn @compose[A, B, C](%f: fn(B) -> C, %g: fn(A) -> B) -> fn(A) -> C {
  fn(%x: A) -> C {
    %y = %g(%x)
    %f(%y)
  }
}
fn @always[A, B](%a: A) -> fn(B) -> A { fn(%b: B) -> A { %a } }
fn @iterate[T](%n: i64, %f: fn(T) -> T, %x: T) -> T {
  %done = less(%n, 1)
  if %done { %x } else {
    %y = %f(%x)
    %m = sub(%n, 1)
    @iterate(%m, %f, %y)
  }
}
fn @id[T](%x: T) -> T { %x }
)";

  // ---- types ----

  Definition define(size_t number) {
    Definition out{cat("data", number), static_cast<size_t>(r_.between(0, 2)), {}};
    const Type self = out.of_own_parameters();
    for (int64_t c = r_.between(1, 4), i = 0; i < c; ++i) {
      Constructor made{cat("C", number, "_", i), {}};
      for (int64_t fields = r_.between(0, 3); fields > 0; --fields) {
        const int64_t choice = r_.between(0, 5);
        if (i > 0 && choice == 0) {
          made.fields.push_back(self);
        } else if (i > 0 && choice == 1) {
          made.fields.push_back(Type::of(Kind::List, {self}));
        } else if (out.parameters > 0 && choice < 5) {
          made.fields.push_back(Definition::parameter(r_.between(0, out.parameters - 1)));
        } else {
          made.fields.push_back(any_type(1, true));
        }
      }
      out.constructors.push_back(std::move(made));
    }
    return out;
  }

  Type scalar() {
    static const DataType all[] = {i64, i64, i64, boolean, f64, f32, i8,
                                   i16, i32, u8,  u16,     u32, u64, f16};
    return Type::scalar(all[r_.between(0, std::size(all) - 1)]);
  }

  // Often one that a function takes or gives, so that values fit each other.
  Type any_type(int depth, bool functions) {
    if (functions && depth > 0 && !used_.empty() && r_.between(0, 3) == 0) return r_.pick(used_);
    const int64_t choice = depth <= 0 ? 0 : r_.between(0, functions ? 10 : 9);
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
        return Type::of(Kind::Function, {part(), part()});
      default:
        return scalar();
    }
  }

  bool has_functions(const Definition& type) const {
    for (const Constructor& c : type.constructors) {
      for (const Type& field : c.fields) {
        if (text_of(field).find("fn(") != std::string::npos || text_of(field).find("data") == 0)
          return true;
      }
    }
    return false;
  }

  // The constructors of a type with their fields' types; none for one that isn't made of them.
  std::vector<Constructor> constructors(const Type& type) const {
    if (type.kind == Kind::Option) return {{"None", {}}, {"Some", {type.parts[0]}}};
    if (type.kind == Kind::List) return {{"Nil", {}}, {"Cons", {type.parts[0], type}}};
    if (type.kind != Kind::Data) return {};
    for (const Definition& d : types_) {
      if (d.name == type.name) return d.instance(type.parts);
    }
    return {};
  }

  // ---- text ----

  void line(const std::string& text) { out_ += std::string(2 * levels_, ' ') + text + "\n"; }
  std::string fresh() { return cat("%v", ++names_); }
  std::string bind(const std::string& value, const Type* stated = nullptr) {
    const std::string name = fresh();
    line(cat(name, stated ? ": " + text_of(*stated) : "", " = ", value));
    return name;
  }
  // A name for the value of the last lines, which begin with `head`.
  void begin(const std::string& head) {
    line(head + " {");
    ++levels_;
    marks_.push_back(scope_.size());
  }
  void end(const std::string& result, const std::string& tail = "}") {
    line(result);
    --levels_;
    scope_.resize(marks_.back());
    marks_.pop_back();
    line(tail);
  }
  std::string known(const std::string& name, const Type& type) {
    if (name[0] == '%') scope_.push_back({name, type});
    return name;
  }

  // ---- values ----

  std::optional<std::string> variable(const Type& type) {
    std::vector<const Variable*> found;
    for (const Variable& v : scope_) {
      if (v.type == type) found.push_back(&v);
    }
    if (found.empty()) return std::nullopt;
    const size_t late = found.size() - 1 -
                        static_cast<size_t>(r_.between(0, std::min<int64_t>(2, found.size() - 1)));
    return found[late]->name;
  }

  std::string literal(DataType dtype) {
    if (dtype.is_bool()) return r_.coin() ? "true" : "false";
    if (dtype.is_float()) {
      const std::string number = cat(r_.between(-20, 20), r_.coin() ? ".5" : ".25");
      return dtype == f32 ? number : cat(to_text(dtype), "(", number, ")");
    }
    static const char* const edges[] = {"127", "-128", "32767", "2147483647",
                                        "-9223372036854775808"};
    std::string number = cat(r_.between(dtype.is_unsigned_int() ? 0 : -3, 12));
    if (dtype == i64 && r_.between(0, 9) == 0) number = edges[r_.between(0, 4)];
    if (dtype == i8 && r_.between(0, 4) == 0) number = edges[r_.between(0, 1)];
    if (dtype == u8 && r_.between(0, 4) == 0) number = "255";
    if (dtype == u64 && r_.between(0, 4) == 0) number = "18446744073709551615";
    return dtype == i64 ? number : cat(to_text(dtype), "(", number, ")");
  }

  // A value that needs nothing.
  std::string least(const Type& type) {
    switch (type.kind) {
      case Kind::Scalar:
        return literal(type.dtype);
      case Kind::String: {
        static const char* const texts[] = {"\"\"", "\"a\"", "\"b c\"", "\"\\n\\\"\""};
        return texts[r_.between(0, 3)];
      }
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

  std::vector<std::string> operands(const std::vector<Type>& types, int depth) {
    std::vector<std::string> out;
    for (const Type& type : types) out.push_back(value(type, depth));
    return out;
  }
  static std::string list_of(const std::vector<std::string>& items) {
    return cat("(", tenon::join(items, ", "), items.size() == 1 ? ",)" : ")");
  }
  static std::string call_of(const std::vector<std::string>& args) {
    return cat("(", tenon::join(args, ", "), ")");
  }

  std::string constructed(const Type& type, const Constructor& c, int depth) {
    const std::vector<std::string> fields = operands(c.fields, depth);
    std::vector<std::string> args;
    for (const Type& arg : type.parts) args.push_back(text_of(arg));
    const bool states = !args.empty() && r_.coin();
    const std::string made = cat(c.name, states ? cat("[", tenon::join(args, ", "), "]") : "",
                                 fields.empty() ? "" : call_of(fields));
    return bind(made, states ? nullptr : &type);
  }

  // fn(%a: T) -> U { ... }
  std::string function(const Type& type, int depth) {
    const std::string name = fresh();
    std::vector<std::string> params;
    std::vector<Variable> added;
    for (size_t i = 0; i + 1 < type.parts.size(); ++i) {
      added.push_back({fresh(), type.parts[i]});
      params.push_back(cat(added.back().name, ": ", text_of(type.parts[i])));
    }
    begin(cat(name, " = fn(", tenon::join(params, ", "), ") -> ", text_of(type.parts.back())));
    scope_.insert(scope_.end(), added.begin(), added.end());
    end(value(type.parts.back(), depth - 1));
    return name;
  }

  // An operand of the type; makes bindings for it.
  std::string value(const Type& type, int depth) {
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

  std::string branch(const Type& type, int depth) {
    const std::string condition = value(Type::scalar(boolean), depth - 1), name = fresh();
    begin(cat(name, ": ", text_of(type), " = if ", condition));
    const std::string first = value(type, depth - 1);
    line(first);
    --levels_;
    scope_.resize(marks_.back());
    line("} else {");
    ++levels_;
    end(value(type, depth - 1));
    return name;
  }

  std::string looped(const Type& type, int depth) {
    const std::string first = value(type, depth - 1), name = fresh(), i = fresh(), x = fresh();
    begin(cat(name, " = loop (", i, ": i64 = 0, ", x, ": ", text_of(type), " = ", first,
              ") while { less(", i, ", ", r_.between(0, 4), ") }"));
    scope_.push_back({i, Type::scalar(i64)});
    scope_.push_back({x, type});
    const std::string next = value(type, depth - 1), more = bind(cat("add(", i, ", 1)"));
    end(cat("(", more, ", ", next, ")"));
    return bind(name + ".1");
  }

  // A call of a function of the module, or of a closure in scope.
  std::string called(const Type& type, int depth) {
    std::vector<Callee> fitting;
    for (const Callee& callee : functions_) {
      if (callee.result == type) fitting.push_back(callee);
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

  // A part of another value.
  std::string taken(const Type& type, int depth) {
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

  std::string folded(const Type& type, int depth) {
    const Type element = any_type(1, true);
    const std::string xs = value(Type::of(Kind::List, {element}), depth - 1);
    const std::string f = value(Type::of(Kind::Function, {type, element, type}), depth - 1);
    const std::string start = value(type, depth - 1);
    return bind(cat("@fold(", f, ", ", start, ", ", xs, ")"));
  }

  // By an operation of the type itself.
  std::string made(const Type& type, int depth) {
    switch (type.kind) {
      case Kind::Scalar:
        return computed(type.dtype, depth);
      case Kind::String:
        return bind(cat("string_concat", call_of(operands({type, type}, depth - 1))));
      case Kind::Tuple:
        return bind(list_of(operands(type.parts, depth - 1)));
      case Kind::Function: {
        if (type.parts.size() == 2 && r_.between(0, 3) == 0) {
          const std::string x = value(type.parts[1], depth - 1);
          return bind(cat("@always(", x, ")"), &type);
        }
        for (const Callee& callee : functions_) {
          if (!(callee.result == type.parts.back()) || r_.coin()) continue;
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
          const std::string f =
              value(Type::of(Kind::Function, {element, type.parts[0]}), depth - 1);
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

  std::string array(const Type& type, int depth) {
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

  std::string computed(DataType dtype, int depth) {
    const Type type = Type::scalar(dtype);
    const auto two = [&](const Type& of) { return call_of(operands({of, of}, depth - 1)); };
    const auto pick = [&](std::vector<const char*> names) {
      return std::string(names[r_.between(0, names.size() - 1)]);
    };
    const int64_t choice = r_.between(0, 9);
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
      const std::string odd = bind(
          cat("bitwise_or(", xy[1], ", ", dtype == i64 ? "1" : cat(to_text(dtype), "(1)"), ")"));
      return bind(cat(pick({"div", "mod", "rem", "floor_div"}), "(", xy[0], ", ", odd, ")"));
    }
    if (choice == 5) {
      return bind(cat(pick({"neg", "abs", "bitwise_not", "sign", "relu"}), "(",
                      value(type, depth - 1), ")"));
    }
    return bind(pick({"add", "sub", "mul", "minimum", "maximum", "bitwise_and", "bitwise_or",
                      "bitwise_xor", "shift_left", "shift_right"}) +
                two(type));
  }

  // ---- match ----

  std::string matched(const Type& type, int depth) {
    std::string value_text;
    std::vector<Pattern> rows;
    if (r_.between(0, 2) == 0) {
      const std::vector<Type> parts = {any_type(2, false), any_type(2, true)};
      value_text = list_of(operands(parts, depth - 1));
      rows = {{Type::of(Kind::Tuple, parts), "", true, {{parts[0], ""}, {parts[1], ""}}}};
    } else {
      Type of = any_type(2, true);
      value_text = value(of, depth - 1);
      rows = {{of, ""}};
    }
    for (int64_t n = r_.between(1, 4); n > 0 && rows.size() < 8; --n) split(&rows);
    if (rows.size() > 2 && r_.coin()) {  // the last arm takes what others leave
      rows.resize(static_cast<size_t>(r_.between(1, rows.size() - 1)));
      rows.push_back({rows[0].type, ""});
    }
    const std::string name = fresh();
    begin(cat(name, ": ", text_of(type), " = match ", value_text));
    for (const Pattern& row : rows) {
      std::vector<Variable> added;
      const std::string shown = text_of(row, &added);
      begin(shown + " =>");
      scope_.insert(scope_.end(), added.begin(), added.end());
      end(value(type, depth - 1));
    }
    --levels_;
    scope_.resize(marks_.back());
    marks_.pop_back();
    line("}");
    return name;
  }

  // Replaces one open pattern of a row by all patterns of its type.
  void split(std::vector<Pattern>* rows) {
    const size_t at = static_cast<size_t>(r_.between(0, rows->size() - 1));
    std::vector<size_t> path;
    const Pattern* open = &(*rows)[at];
    while (!open->is_open() && !open->fields.empty()) {
      path.push_back(static_cast<size_t>(r_.between(0, open->fields.size() - 1)));
      open = &open->fields[path.back()];
    }
    if (!open->is_open() || open->is_rest) return;
    std::vector<Pattern> cases;
    const Type type = open->type;
    if (type.kind == Kind::Tuple) {
      cases.push_back({type, "", true, open_fields(type.parts)});
    } else if (type == Type::scalar(boolean)) {
      cases = {{type, "true"}, {type, "false"}};
    } else if (type.kind == Kind::Scalar && !type.dtype.is_float()) {
      cases = {{type, "0"}, {type, "1"}, {type, ""}};
      cases.back().is_rest = true;
    }
    for (const Constructor& c : constructors(type)) {
      cases.push_back({type, c.name, false, open_fields(c.fields)});
    }
    if (cases.empty()) return;
    std::vector<Pattern> made;
    for (const Pattern& one : cases) {
      Pattern row = (*rows)[at];
      Pattern* part = &row;
      for (const size_t step : path) part = &part->fields[step];
      *part = one;
      made.push_back(std::move(row));
    }
    rows->erase(rows->begin() + static_cast<int64_t>(at));
    rows->insert(rows->begin() + static_cast<int64_t>(at), made.begin(), made.end());
  }

  static std::vector<Pattern> open_fields(const std::vector<Type>& types) {
    std::vector<Pattern> out;
    for (const Type& type : types) out.push_back({type, ""});
    return out;
  }

  std::string text_of(const Pattern& pattern, std::vector<Variable>* added) {
    if (pattern.is_open()) {
      if (r_.between(0, 2) == 0) return "_";
      added->push_back({fresh(), pattern.type});
      return added->back().name;
    }
    std::vector<std::string> fields;
    for (const Pattern& field : pattern.fields) fields.push_back(text_of(field, added));
    if (pattern.is_tuple) return list_of(fields);
    return pattern.text + (fields.empty() ? "" : call_of(fields));
  }
  using Text = std::string;
  static Text text_of(const Type& type) { return random_programs::text_of(type); }
  static Text text_of(const Definition& type) { return random_programs::text_of(type); }

  // ---- functions ----

  void begin_function(const std::string& name, const std::vector<Variable>& params,
                      const Type& result) {
    std::vector<std::string> shown;
    for (const Variable& p : params) shown.push_back(cat(p.name, ": ", text_of(p.type)));
    scope_.clear();
    begin(cat("fn ", name, "(", tenon::join(shown, ", "), ") -> ", text_of(result),
              r_.between(0, 3) == 0 ? " attrs(inline=false)" : ""));
    scope_ = params;
  }

  void add_function() {
    const std::string name = cat("@f", functions_.size());
    budget_ = 14;
    std::vector<Variable> params;
    std::vector<Type> types;
    const bool counts = r_.coin();
    if (counts) params.push_back({fresh(), Type::scalar(i64)});
    for (int64_t n = r_.between(1, 2); n > 0; --n) params.push_back({fresh(), any_type(2, true)});
    const Type result = counts && r_.coin() ? params.back().type : any_type(2, true);
    for (const Variable& p : params) types.push_back(p.type);
    begin_function(name, params, result);
    if (!counts) {
      end(value(result, 4));
    } else {
      recursion(name, params, result);
    }
    // Others call it with few turns.
    if (!counts) add({name, types, result});
    if (counts) {
      begin_function(name + "_few", {params.begin() + 1, params.end()}, result);
      std::vector<std::string> args{cat(r_.between(0, 4))};
      for (size_t i = 1; i < params.size(); ++i) args.push_back(params[i].name);
      end(cat(name, call_of(args)));
      add({name + "_few", {types.begin() + 1, types.end()}, result});
    }
  }

  // Makes the function known to those after it, and its type and those of its closures.
  void add(Callee callee) {
    std::vector<Type> parts = callee.params;
    parts.push_back(callee.result);
    for (const Type& part : parts) used_.push_back(part);
    for (; parts.size() > 1; parts.erase(parts.begin())) {
      used_.push_back(Type::of(Kind::Function, parts));
    }
    functions_.push_back(std::move(callee));
  }

  // Recursion on the first parameter, in tail position or not.
  void recursion(const std::string& name, const std::vector<Variable>& params, const Type& result) {
    const std::string done = bind(cat("less(", params[0].name, ", 1)"));
    begin(cat("if ", done));
    line(value(result, 2));
    --levels_;
    scope_.resize(marks_.back());
    line("} else {");
    ++levels_;
    std::vector<std::string> args{bind(cat("sub(", params[0].name, ", 1)"))};
    for (size_t i = 1; i < params.size(); ++i) args.push_back(value(params[i].type, 2));
    const std::string call = name + call_of(args);
    if (r_.coin()) {
      end(call);
    } else {
      known(bind(call), result);
      end(value(result, 3));
    }
    --levels_;
    marks_.pop_back();
    line("}");
  }

  void add_main() {
    budget_ = 60;
    std::vector<Variable> params;
    for (int64_t n = r_.between(2, 4); n > 0; --n) params.push_back({fresh(), scalar()});
    std::vector<Type> parts;
    for (int64_t n = r_.between(2, 4); n > 0; --n) parts.push_back(any_type(3, false));
    const Type result = Type::of(Kind::Tuple, parts);
    begin_function("@main", params, result);
    end(list_of(operands(parts, 6)));
  }

  graph::Random r_;
  std::string out_;
  std::vector<Definition> types_;
  std::vector<Callee> functions_;
  std::vector<Variable> scope_;
  std::vector<Type> used_;     // by functions, which are among them as values
  std::vector<size_t> marks_;  // of scope_, where blocks began
  size_t levels_ = 0, names_ = 0;
  int nested_ = 0;  // least values in each other
  int budget_ = 0;  // of values that the function may still make of others
};

}  // namespace

std::string value_program(uint64_t seed) {
  return ProgramMaker(seed).program();
}

}  // namespace tenon::random_programs
