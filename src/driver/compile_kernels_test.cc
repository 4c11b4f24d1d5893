// Loading untrusted files whose kernels are compiled from their computes.
#include "driver/compile_kernels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <functional>

#include "driver/functions.h"
#include "object/library.h"
#include "support/error_testing.h"
#include "support/stack_testing.h"
#include "support/text.h"
#include "vm/asm/assemble.h"
#include "vm/interp/program.h"

namespace tenon::driver {
namespace {

using testing::HasSubstr;

// Loads a program that calls the kernel @k of `computes`, and returns the error as text.
std::string load(const std::string& computes, const WorkLimits& limits = {}) {
  static const Module library = define_library("tenon_compiler", register_compiler_functions);
  vm::Unit unit = vm::assemble(
      "kernel $k\nfunc @main(x: any, y: any) {\n  _ = call_packed $k, %0, %1\n  ret _\n}\n");
  unit.computes = computes;
  vm::ProgramOptions options;
  options.trusted = false;
  options.limits = limits;
  return failure_of([&] { vm::Program::from_unit(unit, options); });
}

size_t peak_memory() {
  rusage use{};
  getrusage(RUSAGE_SELF, &use);
  return static_cast<size_t>(use.ru_maxrss) << 10;
}

TEST(LoadComputes, TheObjectsThatAreReadCountForTheMemoryLimit) {
  std::string computes;
  for (int i = 0; i < 20'000; ++i) {
    computes +=
        cat("compute @k", i == 0 ? "" : cat(i), "(%x: tensor[n; f32]) -> (%y) {\n",
            "map %y: tensor[n; f32] at [%i] { ((%x[%i] * 1.5 + 2.5) * %x[%i]) * 3.5 }\n}\n");
  }
  const size_t limit = size_t{32} << 20, before = peak_memory();
  EXPECT_THAT(load(computes, {.memory = limit, .deadline = std::chrono::seconds(60)}),
              HasSubstr("exceeds its memory limit"));
#ifndef __SANITIZE_THREAD__  // whose shadow of the memory counts as memory of the process
  EXPECT_LT(peak_memory() - before, 3 * limit);
#else
  static_cast<void>(before);
#endif
}

TEST(LoadComputes, ExtentsThatOverflowAreAnErrorThatNamesTheKernel) {
  const std::string error = load(
      "compute @k(%x: tensor[n; f32]) -> (%y) {\nreduce sum %y: tensor[n; f32] at [%i] over "
      "[%k < 9223372036854775807, %l < 9223372036854775807] { %x[%i] }\n}\n");
  EXPECT_THAT(error, HasSubstr("can't be compiled"));
  EXPECT_THAT(error, HasSubstr("found     kernel 'k': a size overflows 64 bits in a product"));
}

// A kernel whose element is the last of `levels` values, each computed from the one before.
std::string kernel_of_chain(int levels, const std::function<std::string(int)>& value) {
  std::string body = "$0 = %x[%i]\n";
  for (int i = 1; i < levels; ++i) body += cat("$", i, " = ", value(i), "\n");
  return cat(
      "kernel @k(%x: tensor[n; f32]) -> (%y: tensor[n; f32]) {\nfor %i from 0 count dim(n) {\n",
      body, "%y[%i] = $", levels - 1, "\n}\n}\n");
}

TEST(LoadComputes, DeepExpressionsNeedNoStackOfTheLoadingThread) {
  auto sum = [](int i) { return cat("$", i - 1, i % 2 ? " + 1.5" : " * 1.5"); };
  auto select = [](int i) { return cat("select($0 < ", i, ".5, ", i, ".0, $", i - 1, ")"); };
  std::string nested = "%x[%i]";
  for (int i = 0; i < 90; ++i) nested = cat("(", nested, " + 1.5)");
  nested = cat("compute @k(%x: tensor[n; f32]) -> (%y) {\nmap %y: tensor[n; f32] at [%i] { ",
               nested, " }\n}\n");
  const std::string index_chain = [] {
    std::string text = "$0 = %i\n";
    for (int i = 1; i < 1900; ++i) {
      text += cat("$", i, " = ", i % 2 ? "min($" : "mod($", i - 1, ", ", 100'000 + i, ")\n");
    }
    return cat(
        "kernel @k(%x: tensor[n; f32]) -> (%y: tensor[n; f32]) {\nvector %i from 0 count 4 {\n",
        text, "%y[%i] = %x[checked($1899, n)]\n}\n}\n");
  }();
  for (const size_t kilobytes : {64, 128, 512, 1024}) {
    on_thread_with_stack(kilobytes << 10, [&] {
      EXPECT_EQ(load(kernel_of_chain(1990, sum)), "no error") << kilobytes;
      EXPECT_EQ(load(kernel_of_chain(900, select)), "no error") << kilobytes;
      EXPECT_EQ(load(nested), "no error") << kilobytes;
      EXPECT_EQ(load(index_chain), "no error") << kilobytes;
      EXPECT_THAT(load(kernel_of_chain(2100, sum)), HasSubstr("nests expressions too deeply"));
    });
  }
}

}  // namespace
}  // namespace tenon::driver
