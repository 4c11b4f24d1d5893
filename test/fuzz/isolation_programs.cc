// isolation_programs COUNT FIRST: generates programs FIRST to FIRST + COUNT - 1 as vm_programs
// does, and runs them as files from untrusted senders, three times each. Before each call, the same
// function is called with arguments of a secret byte, and memory that is new or freed is filled
// with it. The first two runs have the same secret, the third another one: what a program returns,
// and its errors, must not depend on it, nor contain it. No call may change its arguments, whatever
// contains them, nor results of earlier calls. Programs can call functions that write to every
// tensor that they may, and that return tensors of the host. Exits with 0 if there is no finding. A
// program depends only on its number.
#include <cstdio>
#include <cstring>
#include <functional>

#include "arguments.h"
#include "bounds.h"
#include "content.h"
#include "filled_memory.h"
#include "instruction_generator.h"
#include "object/array.h"
#include "object/cell.h"
#include "object/registry.h"
#include "object/string_tensor.h"
#include "vm/asm/disassemble.h"
#include "vm/builtin/register.h"
#include "vm/executable/write_file.h"
#include "vm/interp/machine.h"

namespace tenon::fuzz {
namespace {

constexpr unsigned char kSecrets[] = {0xb6, 0xb6, 0xd9};
constexpr unsigned char kPublic = 0x11;   // what the caller's own arguments consist of
constexpr unsigned char kWritten = 0x77;  // what the program writes through test.write
constexpr size_t kRun = 8;                // so many bytes of a secret are no coincidence

Tensor bytes_of(std::initializer_list<int64_t> shape, DataType dtype, unsigned char byte) {
  Tensor t = Tensor::empty(shape, dtype);
  std::memset(t.data(), byte, static_cast<size_t>(t.bytes()));
  return t;
}

Tensor strings_of(unsigned char byte) {
  const int64_t shape[] = {3};
  StringTensorBuilder made{std::span<const int64_t>(shape)};
  // The secret isn't UTF-8; a letter stands for it.
  for (size_t n : {size_t{1}, size_t{20}, size_t{300}}) {
    made.append(std::string(n, static_cast<char>('a' + byte % 26)));
  }
  return made.finish();
}

// A value of the given byte; which kind of value depends on the choices alone.
Any value_of(Choices& choices, unsigned char byte, int depth = 0) {
  int64_t number = 0;
  std::memset(&number, byte, sizeof number);
  switch (choices.below(depth < 3 ? 12 : 9)) {
    case 0:
      return Any();
    case 1:
      return Any(static_cast<int64_t>(choices.below(4)));
    case 2:
      return Any(number);
    case 3:
      return Any(bytes_of({2, 3}, f32, byte));
    case 4:
      return Any(bytes_of({static_cast<int64_t>(choices.below(300))}, u8, byte));
    case 5:
      return Any(bytes_of({7, 1000}, i64, byte));
    case 6:
      return Any(strings_of(byte));
    case 7:
      return Any(String(std::string(choices.below(100), static_cast<char>('a' + byte % 26))));
    case 8: {
      const int64_t dims[] = {2, 3};
      return Any(Shape(std::span<const int64_t>(dims)));
    }
    case 9: {
      std::vector<Any> fields;
      for (uint64_t n = choices.below(4); n > 0; --n) {
        fields.push_back(value_of(choices, byte, depth + 1));
      }
      return Any(CellObj::of(static_cast<int64_t>(choices.below(3)), fields));
    }
    default: {
      Array<Any> array;
      for (uint64_t n = choices.below(5); n > 0; --n) {
        array.push_back(value_of(choices, byte, depth + 1));
      }
      return Any(array);
    }
  }
}

// What the programs find registered.
struct Host {
  Tensor tensor = bytes_of({16}, u8, kPublic);

  void register_functions() const {
    const FunctionFlags for_files{.for_files = true};
    register_typed(
        "test.write",
        [](const Any& value) {
          const auto tensor = value.try_as<Tensor>();
          if (!tensor || !*tensor || tensor->read_only() || is_string_tensor(*tensor)) return false;
          std::memset(tensor->data(), kWritten, static_cast<size_t>(tensor->bytes()));
          return true;
        },
        for_files);
    register_typed(
        "test.host_tensor", [this] { return tensor; }, for_files);
    register_typed(
        "test.host_tensors",
        [this] {
          return Array<Any>{Any(tensor), Any(Array<Any>{Any(tensor)})};
        },
        for_files);
  }
};

// A value that a program must not change, and what it consisted of.
struct Kept {
  Any value;
  std::string content;
};

struct Counts {
  long calls = 0, values = 0, errors = 0, closures = 0, vary = 0;
};

class Caller {
 public:
  Caller(const Ref<vm::Program>& program, uint64_t number, unsigned char secret, const Host& host,
         Counts* counts)
      : program_(program),
        machine_(program, limits()),
        number_(number),
        secret_(secret),
        counts_(counts) {
    keep(Any(host.tensor));
  }

  // What all calls gave, as text; a finding in `problem`.
  std::string content, problem;

  void call_all() {
    const auto& functions = program_->unit().functions;
    for (uint32_t f = 0; f < functions.size() && problem.empty(); ++f) {
      for (uint64_t round = 0; round < 4 && problem.empty(); ++round) {
        call_with_secret(f, round);
        call(f, round);
      }
    }
  }

 private:
  static vm::Limits limits() {
    vm::Limits limits;
    limits.fuel = 5000;
    limits.memory = 16 << 20;
    limits.depth = 200;
    limits.threads = 1;
    return limits;
  }

  std::vector<Any> arguments(uint32_t function, uint64_t round, unsigned char byte) const {
    Choices choices(number_ * 1000 + function * 10 + round);
    std::vector<Any> out;
    for (size_t n = program_->unit().functions[function].params.size(); n > 0; --n) {
      out.push_back(value_of(choices, byte));
    }
    return out;
  }

  // Another caller's call, of which nothing may be left.
  void call_with_secret(uint32_t function, uint64_t round) {
    const std::vector<Any> args = arguments(function, round, secret_);
    const std::vector<AnyView> views(args.begin(), args.end());
    try {
      machine_.call(function, views);
    } catch (const Error&) {
    }
  }

  void call(uint32_t function, uint64_t round) {
    const std::vector<Any> args = arguments(function, round, kPublic);
    const std::vector<AnyView> views(args.begin(), args.end());
    const size_t kept = kept_.size();
    for (const Any& arg : args) keep(arg);
    ++counts_->calls;
    take([&] { return machine_.call(function, views); });
    check_kept(cat("function ", function, ", round ", round));
    kept_.erase(kept_.begin() + static_cast<std::ptrdiff_t>(kept),
                kept_.begin() + static_cast<std::ptrdiff_t>(kept + args.size()));
  }

  // Runs a call, keeps its result, and calls the closures in it.
  void take(const std::function<Any()>& call, bool is_closure = false) {
    Any result;
    try {
      result = call();
      ++counts_->values;
    } catch (const Error& e) {
      ++counts_->errors;
      if (e.kind() == ErrorKind::Internal) problem = e.render();
      content += cat("error ", e.render(), "\n");
      return;
    }
    append_content(result, &content);
    content += '\n';
    keep(result);
    if (is_closure) return;
    const auto* array = result.as_object<ArrayObj>();
    if (!array) return;
    for (const Any& element : std::span(array->begin(), static_cast<size_t>(array->size))) {
      const auto* closure = vm::ClosureObj::of_program(element, nullptr);
      if (!closure) continue;
      ++counts_->closures;
      const auto free = static_cast<size_t>(closure->code->params) - closure->captures().size();
      Choices choices(number_ + free);
      std::vector<Any> args;
      while (args.size() < free) args.push_back(value_of(choices, kPublic));
      const std::vector<AnyView> views(args.begin(), args.end());
      take(
          [&] {
            Any out;
            if (element.as<Function>().call(views.data(), static_cast<int32_t>(views.size()), &out))
              throw take_error();
            return out;
          },
          /*is_closure=*/true);
    }
  }

  void keep(const Any& value) { kept_.push_back({value, content_of(value)}); }

  void check_kept(const std::string& where) {
    for (size_t i = 0; i < kept_.size() && problem.empty(); ++i) {
      if (content_of(kept_[i].value) == kept_[i].content) continue;
      problem = cat(where, " changes value ", i, ": an argument or an earlier result");
    }
  }

  const Ref<vm::Program>& program_;
  vm::Machine machine_;
  const uint64_t number_;
  const unsigned char secret_;
  Counts* counts_;
  std::vector<Kept> kept_;
};

std::string run(const std::string& file, uint64_t number, const Host& host, Counts* counts) {
  std::string contents[std::size(kSecrets)];
  for (size_t i = 0; i < std::size(kSecrets); ++i) {
    fill_memory_with(kSecrets[i]);
    vm::ProgramOptions options;
    options.trusted = false;
    const Ref<vm::Program> program = vm::Program::load_bytes(file, options);
    Counts other;
    Caller caller(program, number, kSecrets[i], host, i == 0 ? counts : &other);
    caller.call_all();
    if (!caller.problem.empty()) return caller.problem;
    contents[i] = std::move(caller.content);
    const std::string secret(kRun, static_cast<char>(kSecrets[i]));
    if (contents[i].find(secret) != std::string::npos) return "a result has bytes of the host";
  }
  if (contents[0] != contents[1]) {
    ++counts->vary;  // tenon.random without a seed
  } else if (contents[0] != contents[2]) {
    const auto differ = std::mismatch(contents[0].begin(), contents[0].end(), contents[2].begin(),
                                      contents[2].end());
    return cat("results depend on memory that the program doesn't own, from byte ",
               differ.first - contents[0].begin(), " on");
  }
  return "";
}

}  // namespace
}  // namespace tenon::fuzz

int main(int argc, char** argv) {
  using namespace tenon;
  using namespace tenon::fuzz;
  const Arguments arguments = read_arguments(argc, argv, Arguments::Files::None);
  vm::register_builtins();
  const Host host;
  host.register_functions();
  set_bounds(60);
  Counts counts;
  for (uint64_t number = arguments.first; number < arguments.end; ++number) {
    begin_mutant(number);
    Choices choices(number);
    std::string problem;
    vm::Unit unit;
    try {
      unit = make_unit(choices).unit;
      problem = run(vm::write_to_bytes(unit), number, host, &counts);
    } catch (const Error& error) {
      problem = error.render();
    }
    if (!problem.empty()) {
      finding(cat("program ", number, ": ", problem, "\n", vm::disassemble(unit)));
    }
  }
  end_mutants();
  std::printf(
      "%llu programs: %ld calls and %ld of closures, %ld values, %ld errors; %ld programs vary by "
      "themselves; %ld findings\n",
      static_cast<unsigned long long>(arguments.count()), counts.calls, counts.closures,
      counts.values, counts.errors, counts.vary, Bounds::findings);
  return Bounds::findings ? 1 : 0;
}
