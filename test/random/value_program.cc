#include "value_program.h"

#include "support/text.h"
#include "value_maker.h"

namespace tenon::random_programs {
namespace {

using Kind = Type::Kind;

class ProgramMaker : public ValueMaker {
 public:
  using ValueMaker::ValueMaker;

  std::string program() {
    out_ = kLibrary;
    symbols_.clear();
    for (int64_t n = r_.between(1, 3); n > 0; --n) types_.push_back(define(types_.size()));
    for (const Definition& type : types_) out_ += text_of(type);
    for (int64_t n = r_.between(1, 4); n > 0; --n) add_function();
    add_main();
    for (const std::string& function : without_sizes_) out_ += function;
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
    symbols_.clear();
    if (counts) params.push_back({fresh(), Type::scalar(i64)});
    if (r_.between(0, 2) == 0) {
      symbols_ = {"n", "m"};
      symbols_.resize(static_cast<size_t>(r_.between(1, 2)));
      params.push_back({fresh(), Type::tensor(tensor_element(), symbols_)});
    }
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
    if (!counts) add({name, types, result, symbols_});
    if (counts) {
      begin_function(name + "_few", {params.begin() + 1, params.end()}, result);
      std::vector<std::string> args{cat(r_.between(0, 4))};
      for (size_t i = 1; i < params.size(); ++i) args.push_back(params[i].name);
      end(cat(name, call_of(args)));
      add({name + "_few", {types.begin() + 1, types.end()}, result, symbols_});
    }
  }

  // Makes the function known to those after it, and its type and those of its closures.
  void add(Callee callee) {
    std::vector<Type> parts = callee.params;
    parts.push_back(callee.result);
    if (!callee.symbols.empty()) parts.clear();
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
    symbols_ = {"n", "m"};
    params.push_back({fresh(), Type::tensor(tensor_element(), {"n", "m"})});
    params.push_back({fresh(), Type::tensor(tensor_element(), {"m"})});
    std::vector<Type> parts;
    for (int64_t n = r_.between(2, 4); n > 0; --n) parts.push_back(any_type(3, false));
    const Type result = Type::of(Kind::Tuple, parts);
    begin_function("@main", params, result);
    end(list_of(operands(parts, 6)));
  }
};

}  // namespace

std::string value_program(uint64_t seed) {
  return ProgramMaker(seed).program();
}

}  // namespace tenon::random_programs
