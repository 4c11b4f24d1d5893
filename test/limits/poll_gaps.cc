// How late Tenon's own code notices that it is to stop: the longest CPU time between two polls
// (support/poll.h) of readers, writers, passes, kernels and library functions, each on much work.
//
//   poll_gaps [--check] [MODEL.onnx]
//
// prints a line per kind of work; --check fails if one is longer than 50 ms, unless it is LLVM's,
// LLD's or, up to half a second, RE2's; or if a library function that files may call has no case.
// CPU time, and one thread, so that a busy machine doesn't change the answer.
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "device/call_context.h"
#include "device/parallel.h"
#include "driver/compile.h"
#include "driver/open.h"
#include "evaluate/reference_evaluator.h"
#include "graph/ir/check.h"
#include "graph/ir/text.h"
#include "json/object_json.h"
#include "library/signatures/signatures.h"
#include "library_cases.h"
#include "object/array.h"
#include "object/reflect.h"
#include "object/registry.h"
#include "object/string_tensor.h"
#include "support/error.h"
#include "support/text.h"
#include "vm/asm/assemble.h"
#include "vm/asm/disassemble.h"
#include "vm/builtin/register.h"
#include "vm/executable/read_file.h"
#include "vm/executable/write_file.h"
#include "vm/interp/program.h"

namespace tenon {
namespace {

// The longest gap that is allowed, and whose work it is if not Tenon's own.
struct Allowance {
  double ms;
  const char* of;
};
constexpr Allowance kOwn{50, ""}, kRe2{500, "  (RE2)"}, kLlvm{1e9, "  (LLVM, LLD)"};

constexpr double kLongEnough = 1000;  // ms of a library function until it is stopped

double cpu_ms() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) * 1e-6;
}

class Meter final : public CallContext {
 public:
  void poll() override {
    const double now = cpu_ms();
    longest_ = std::max(longest_, now - last_);
    last_ = now;
    ++polls_;
    if (is_over()) throw Error(ErrorKind::Runtime, "stopped");
  }
  bool count_memory(size_t) override { return true; }
  void discount_memory(size_t) override {}
  void fail_memory(size_t) override { throw Error(ErrorKind::Runtime, "no memory is refused"); }
  Ref<StorageObj> allocate(size_t bytes, size_t) override { return heap_storage(bytes); }
  bool may_write(const Tensor& tensor) const override { return !tensor.read_only(); }

  // `limit`: ms after which the work is stopped.
  void start(double limit = 1e9) {
    first_ = last_ = cpu_ms();
    longest_ = 0;
    polls_ = 0;
    limit_ = limit;
  }
  // Does work that may be stopped. Releasing what it made then isn't interrupted.
  template <class Work>
  void stop_at_limit(const Work& work) {
    try {
      work();
    } catch (const Error&) {
      if (!is_over()) throw;
      last_ = cpu_ms();
    }
    limit_ = 1e9;
  }
  // Prints the work since `start`, and starts anew.
  void report(const std::string& work, const Allowance& allowed = kOwn) {
    poll();
    const bool is_late = longest_ > allowed.ms;
    std::printf("%-52s %8.0f ms %8ld polls %8.2f ms%s%s\n", work.c_str(), last_ - first_,
                polls_ - 1, longest_, allowed.of, is_late ? "  too long" : "");
    failures_ += is_late;
    start();
  }
  void complain(const std::string& what) {
    std::printf("%s\n", what.c_str());
    ++failures_;
  }
  int failures() const { return failures_; }

 private:
  bool is_over() const { return last_ - first_ > limit_; }

  double first_ = 0, last_ = 0, longest_ = 0, limit_ = 1e9;
  long polls_ = 0;
  int failures_ = 0;
};

// A function of many operators on symbolic shapes, with constants that fold.
std::string long_program(int operators) {
  std::string text = "fn @main(%x: tensor[n, 64; f32]) -> tensor[n, 64; f32] {\n  %v0 = relu(%x)\n";
  for (int i = 1; i <= operators; ++i) {
    const int before = i - 1;
    if (i % 5 == 0) {
      text += cat("  %v", i, " = softmax(%v", before, ", axis=1)\n");
    } else if (i % 5 == 1) {
      text += cat("  %c", i, " = add(tensor[f32]{", i, ".0}, tensor[f32]{1.0})\n  %v", i,
                  " = add(%v", before, ", %c", i, ")\n");
    } else {
      text += cat("  %v", i, " = tanh(%v", before, ")\n");
    }
  }
  return cat(text, "  %v", operators, "\n}\n");
}

std::string long_assembly(int instructions) {
  std::string text = "func @main(n: i64) -> i64 {\n";
  for (int i = 0; i < instructions; ++i) text += cat("  %", i % 100 + 1, " = add %0, ", i, "\n");
  return text + "  ret %1\n}\n";
}

Tensor numbers(std::vector<int64_t> shape) {
  Tensor t = Tensor::empty(shape, f32);
  int64_t n = 1;
  for (int64_t d : shape) n *= d;
  for (int64_t i = 0; i < n; ++i) t.data_as<float>()[i] = static_cast<float>(i * 7919 % n);
  return t;
}

Any call(std::string_view name, const std::vector<Any>& arguments) {
  std::vector<AnyView> views(arguments.begin(), arguments.end());
  Any result;
  if (find_function(name).call(views.data(), static_cast<int32_t>(views.size()), &result) != 0)
    throw take_error();
  return result;
}

driver::CompileOptions one_thread() {
  driver::CompileOptions options;
  options.threads = 1;
  options.check_after_each = false;
  return options;
}

void passes(Meter& meter, const graph::Module& module) {
  driver::CompileOptions options = one_thread();
  options.after_pass = [&](std::string_view pass, const graph::Module&, double) {
    meter.report(cat("pass ", pass));
  };
  meter.start();
  (void)driver::run_passes(module, options);
}

void code(Meter& meter, const graph::Module& module) {
  const graph::Module lowered = driver::run_passes(module, one_thread());
  meter.start();
  const vm::Unit unit = driver::generate_code(lowered, one_thread());
  meter.report("schedules, code, link", kLlvm);
  const std::string file = vm::write_to_bytes(unit);
  meter.report("write an executable");
  vm::Program::load_bytes(file, {});
  meter.report("read, verify, link it");
}

void readers_and_passes(Meter& meter) {
  meter.start();
  const std::string text = long_program(6000);
  meter.start();
  const graph::Module module = graph::parse_module(text, "long.tn");
  meter.report("parse a program");
  graph::check_module(module);
  meter.report("check it");
  const std::string printed = graph::to_text(module);
  meter.report("print it");
  const std::string json = to_json(module);
  meter.report("to JSON");
  (void)from_json(json);
  meter.report("from JSON");
  passes(meter, module);
  code(meter, graph::parse_module(long_program(600), "short.tn"));

  const std::string assembly = long_assembly(500000);
  meter.start();
  const vm::Unit unit = vm::assemble(assembly, "long.tna");
  meter.report("assemble");
  (void)vm::disassemble(unit);
  meter.report("disassemble");
  const std::string file = vm::write_to_bytes(unit);
  meter.report("write much code");
  vm::ProgramOptions untrusted;
  untrusted.trusted = false;
  vm::Program::load_bytes(file, untrusted);
  meter.report("read, verify, link it");
}

void kernels(Meter& meter) {
  struct Kernel {
    const char *name, *expression, *result;
    std::vector<std::vector<int64_t>> shapes;
  };
  const Kernel all[] = {
      {"matmul", "matmul(%a, %b)", "tensor[1500, 1500; f32]", {{1500, 1500}, {1500, 1500}}},
      {"conv",
       "conv(%a, %b, pads=[1, 1, 1, 1])",
       "tensor[4, 64, 128, 128; f32]",
       {{4, 64, 128, 128}, {64, 64, 3, 3}}},
      {"tanh", "tanh(%a)", "tensor[20000000; f32]", {{20000000}}},
      {"add", "add(%a, %b)", "tensor[50000000; f32]", {{50000000}, {50000000}}},
      {"reduce_sum, all axes", "reduce_sum(%a, axes=[0, 1])", "tensor[f32]", {{10000, 10000}}},
      {"reduce_sum, first axis",
       "reduce_sum(%a, axes=[0])",
       "tensor[10000; f32]",
       {{10000, 10000}}},
      {"softmax", "softmax(%a, axis=1)", "tensor[4, 10000000; f32]", {{4, 10000000}}},
      {"cumsum", "cumsum(%a, axis=0)", "tensor[40000000; f32]", {{40000000}}},
      {"transpose", "transpose(%a, perm=[1, 0])", "tensor[8000, 8000; f32]", {{8000, 8000}}},
  };
  for (const Kernel& k : all) {
    std::string parameters;
    std::vector<Any> inputs;
    for (const std::vector<int64_t>& shape : k.shapes) {
      const char name = static_cast<char>('a' + inputs.size());
      parameters += cat(inputs.empty() ? "%" : ", %", name, ": tensor[");
      for (const int64_t& d : shape) parameters += cat(d, &d == &shape.back() ? "; f32]" : ", ");
      inputs.emplace_back(numbers(shape));
    }
    const std::string text =
        cat("fn @main(", parameters, ") -> ", k.result, " { ", k.expression, " }\n");
    const graph::Module module = graph::parse_module(text, "kernel.tn");
    graph::ReferenceEvaluator evaluator(codegen::host_target());
    const graph::FunctionRef main = *module->functions.find("main");
    (void)evaluator.run(module, main, inputs);  // compiles the kernel
    meter.start();
    (void)evaluator.run(module, main, inputs);
    meter.report(cat("kernel of ", k.name));
  }
}

// Each case, and that every function that files may call has one.
void library(Meter& meter) {
  const std::vector<LibraryCase> cases = library_cases();
  for (const LibraryCase& c : cases) {
    const std::vector<Any> arguments = c.arguments();
    Any result;  // released after the report, as what the caller holds is
    meter.start(kLongEnough);
    meter.stop_at_limit([&] { result = call(c.function, arguments); });
    meter.report(cat(c.function, c.what.empty() ? "" : " ", c.what), c.in_re2 ? kRe2 : kOwn);
  }
  for (const library::Signature& s : library::kSignatures) {
    if (s.for_files && std::ranges::find(cases, s.name, &LibraryCase::function) == cases.end())
      meter.complain(cat(s.name, " has no case (test/limits/library_cases.cc)"));
  }
}

void texts(Meter& meter) {
  Array<Any> array;
  for (int64_t i = 0; i < 5000000; ++i) array.push_back(i);
  const String text(std::string(100000000, 'a'));
  const Tensor strings = string_tensor(std::vector<int64_t>{1}, {{text.view()}});
  meter.start();
  (void)repr(array, 100);
  (void)repr(text, 100);
  meter.report("the beginning of their texts");
  const std::string_view content(strings.data_as<char>(), content_bytes(strings));
  (void)string_tensor_of_content(strings.shape(), content);
  meter.report("read a tensor of strings");
}

int run(int argc, char** argv) {
  bool check = false;
  std::string model;
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--check") {
      check = true;
    } else {
      model = argv[i];
    }
  }
  driver::initialise();
  vm::register_builtins();
  Meter meter;
  const CallContext::Scope scope(&meter);
  const ThreadsScope threads(1);
  std::printf("%-52s %11s %14s %11s\n", "work", "CPU time", "", "longest gap");
  readers_and_passes(meter);
  kernels(meter);
  library(meter);
  texts(meter);
  if (!model.empty()) {
    meter.start();
    const graph::Module module = driver::read_module(driver::open_source(model));
    meter.report("import the model");
    passes(meter, module);
    code(meter, module);
  }
  return check && meter.failures() > 0 ? 1 : 0;
}

}  // namespace
}  // namespace tenon

int main(int argc, char** argv) {
  try {
    return tenon::run(argc, argv);
  } catch (const tenon::Error& e) {
    std::fprintf(stderr, "%s\n", e.render().c_str());
    return 2;
  }
}
