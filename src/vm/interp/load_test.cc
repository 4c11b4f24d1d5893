// The cost of loading, and its limits, for any file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <functional>
#include <ostream>
#include <string>

#include "object/tensor.h"
#include "support/text.h"
#include "vm/asm/assemble.h"
#include "vm/executable/write_file.h"
#include "vm/interp/machine.h"
#include "vm/interp/program_testing.h"

namespace tenon::vm {
namespace {

using testing::HasSubstr;

FunctionUnit returning(std::string name) {
  FunctionUnit f;
  f.name = std::move(name);
  f.code = assemble("func @f() {\n ret 1\n}\n").functions[0].code;
  return f;
}

// ---- files that grow in one way ----

Unit of_functions(int n) {
  Unit unit;
  FunctionUnit f = returning("");
  for (int i = 0; i < n; ++i) {
    f.name = cat("f", i);
    unit.functions.push_back(f);
  }
  return unit;
}

// Sixteen bytes whose libstdc++ std::hash (MurmurHash64A with a fixed seed) is the same for every
// argument: the second half cancels the first.
std::string colliding_name(uint64_t first_half) {
  constexpr uint64_t kMul = (uint64_t{0xc6a4a793} << 32) + uint64_t{0x5bd1e995};
  constexpr uint64_t kSeed = 0xc70f6907u;
  uint64_t inverse = kMul;  // modulo 2^64, by Newton's method
  for (int i = 0; i < 6; ++i) inverse *= 2 - kMul * inverse;
  auto mixed = [](uint64_t v) { return v ^ v >> 47; };
  const uint64_t state = ((kSeed ^ 16 * kMul) ^ mixed(first_half * kMul) * kMul) * kMul;
  const uint64_t second_half = mixed((state ^ 12345) * inverse) * inverse;
  std::string name(16, '\0');
  std::memcpy(name.data(), &first_half, 8);
  std::memcpy(name.data() + 8, &second_half, 8);
  return name;
}

Unit of_colliding_names(int n) {
  Unit unit;
  FunctionUnit f = returning("");
  for (uint64_t i = 0; unit.functions.size() < static_cast<size_t>(n); ++i) {
    f.name = colliding_name(0x6161616161616161 + i * 0x10001);
    bool printable = true;
    for (unsigned char c : f.name) printable = printable && c >= 0x20 && c != 0x7f;
    if (printable) unit.functions.push_back(f);
  }
#if defined(__GLIBCXX__)
  const std::hash<std::string_view> hash;
  EXPECT_EQ(hash(unit.functions[0].name), hash(unit.functions[1].name));
#endif
  return unit;
}

Unit of_constants(int n) {
  Unit unit = of_functions(1);
  for (int i = 0; i < n; ++i) unit.add_constant(Any(cat("a constant's text, number ", i)));
  return unit;
}

Unit of_packed_names(int n) {
  Unit unit = of_functions(1);
  for (int i = 0; i < n; ++i) unit.packed.push_back({"test.nothing", false, Effect::Pure});
  return unit;
}

Unit of_spans(int n) {
  std::string text;
  for (int i = 0; i < n; ++i) text += cat("span \"a.tn\" ", i + 1, " 1\n");
  text += "func @f() {\n";
  for (int i = 0; i < n; ++i) text += cat(" at ", i, "\n %0 = load_int 1\n");
  return assemble(text + " ret 1\n}\n");
}

// Calls with every argument at its last use.
Unit of_last_uses(int n) {
  std::string text = "packed $test.nothing\nfunc @f() {\n _ = call_packed $test.nothing";
  for (int i = 0; i < n; ++i) text += cat(", %", i, "!");
  return assemble(text + "\n ret 1\n}\n");
}

Unit of_cases(int n) {
  std::string text = "func @f(x: i64) {\n switch %0, a";
  for (int i = 0; i < n; ++i) text += cat(", ", i, ": a");
  return assemble(text + "\na:\n ret 1\n}\n");
}

Unit of_matched_dims(int n) {
  std::string text = "func @f(x: any) {\n";
  for (int i = 0; i < n; ++i) text += " match_shape %0, =1, *, ->%1\n";
  return assemble(text + " ret 1\n}\n");
}

struct Kind {
  const char* name;
  Unit (*make)(int n);
  int n;  // size of the smaller file, which takes milliseconds
};
std::ostream& operator<<(std::ostream& out, const Kind& kind) {
  return out << kind.name;
}

class Loading : public testing::TestWithParam<Kind> {
 protected:
  static ProgramOptions untrusted() {
    ProgramOptions options;
    options.trusted = false;
    options.allow_missing = true;
    return options;
  }
  static double seconds_to_load(const std::string& bytes) {
    auto now = [] {
      timespec t{};
      clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
      return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
    };
    double best = 1e9;
    for (int i = 0; i < 3; ++i) {
      const double begin = now();
      Program::load_bytes(bytes, untrusted());
      best = std::min(best, now() - begin);
    }
    return best;
  }
};

INSTANTIATE_TEST_SUITE_P(Files, Loading,
                         testing::Values(Kind{"functions", of_functions, 4000},
                                         Kind{"colliding_names", of_colliding_names, 4000},
                                         Kind{"constants", of_constants, 10000},
                                         Kind{"packed_names", of_packed_names, 10000},
                                         Kind{"spans", of_spans, 10000},
                                         Kind{"last_uses", of_last_uses, 8000},
                                         Kind{"cases", of_cases, 4000},
                                         Kind{"matched_dims", of_matched_dims, 10000}),
                         [](const auto& info) { return info.param.name; });

TEST_P(Loading, TakesTimeInProportion) {
  const std::string small = write_to_bytes(GetParam().make(GetParam().n));
  const std::string large = write_to_bytes(GetParam().make(GetParam().n * 8));
  const double once = seconds_to_load(small), again = seconds_to_load(large);
  // A factor of 64 would be quadratic.
  EXPECT_LT(again, 24 * once + 0.002) << once;
}

TEST_P(Loading, TakesTheMemoryThatItCounts) {
  const std::string bytes = write_to_bytes(GetParam().make(GetParam().n * 8));
  ProgramOptions options = untrusted();
  options.limits.memory = 24 * bytes.size() + (size_t{1} << 16);
  const size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;
  const Ref<Program> program = Program::load_bytes(bytes, options);
  const size_t taken = mallinfo2().uordblks + mallinfo2().hblkhd - before;
  size_t counted = options.limits.memory;
  while (counted > 1024) {  // to a quarter: finds the smallest limit that suffices
    ProgramOptions less = options;
    less.limits.memory = counted * 3 / 4;
    if (failure_of([&] { Program::load_bytes(bytes, less); }) != "no error") break;
    counted = less.limits.memory;
  }
  EXPECT_LT(taken, 2 * counted + (size_t{1} << 18)) << counted << " for " << bytes.size();
}

// ---- limits ----

TEST(LoadLimits, EndLoadingWithAnErrorThatNamesTheFile) {
  const std::string bytes = write_to_bytes(of_functions(3000));
  ProgramOptions memory;
  memory.read.name = "big.tnx";
  memory.limits.memory = 100000;
  const std::string error = failure_of([&] { Program::load_bytes(bytes, memory); });
  EXPECT_THAT(error, HasSubstr("loading big.tnx exceeds its memory limit"));
  EXPECT_THAT(error, HasSubstr("at most 100000 bytes"));
  ProgramOptions deadline;
  deadline.limits.deadline = std::chrono::nanoseconds(0);
  EXPECT_THAT(failure_of([&] { Program::load_bytes(bytes, deadline); }),
              HasSubstr("loading <memory> ran past its deadline"));
  const std::atomic<bool> stop = true;
  ProgramOptions cancelled;
  cancelled.limits.cancel = &stop;
  EXPECT_THAT(failure_of([&] { Program::load_bytes(bytes, cancelled); }),
              HasSubstr("loading <memory> was cancelled"));
}

TEST(Untrusted, AFileThatBecomesShorterHarmsNobody) {
  const std::string path = testing::TempDir() + "tenon_truncated.tnx";
  std::string text = "const \"w\" = tensor[20000; u8] hex \"";
  for (int i = 0; i < 20000; ++i) text += "07";
  text += "\"\nfunc @main() -> any {\n %0 = call @copy\n ret %0\n}\n";
  text += "func @copy() -> any {\n %0 = device_copy #0, cpu:0\n ret %0\n}\n";
  save(assemble(text), path);
  ProgramOptions options;
  options.trusted = false;
  Machine machine(Program::load(path, options));
  ASSERT_EQ(truncate(path.c_str(), 0), 0);
  const Any copy = machine.call("main");
  EXPECT_EQ(copy.as<Tensor>().data_as<uint8_t>()[19999], 7);
  std::filesystem::remove(path);
}

TEST(LateWeights, AreBoundWhenTheProgramIsLoaded) {
  const std::string bytes = write_to_bytes(
      assemble("const \"w\" = late tensor[2; f32]\nfunc @main() -> any {\n ret #0\n}\n"));
  EXPECT_THAT(failure_of([&] { Program::load_bytes(bytes); }), HasSubstr("no w"));
  const Tensor w = Tensor::empty({2}, f32);
  w.data_as<float>()[1] = 3;
  ProgramOptions options;
  options.weights = [&](std::string_view name) { return name == "w" ? w : Tensor(); };
  Machine machine(Program::load_bytes(bytes, options));
  EXPECT_EQ(machine.call("main").as<Tensor>().data_as<float>()[1], 3);
}

TEST(LateWeights, TheirCopiesCountForTheMemoryLimit) {
  std::string text;
  for (int i = 0; i < 4; ++i) {
    text += cat("const \"w", i, "\" = late tensor[1000000; u8] align 4096\n");
  }
  const Unit unit = assemble(text + "func @main() -> any {\n ret #0\n}\n");
  const std::string bytes = write_to_bytes(unit);
  const Tensor weights = Tensor::empty({1'000'100}, u8);
  ProgramOptions options;
  options.weights = [&](std::string_view) {  // less aligned than the constants require
    return Tensor::view(weights.data_as<char>() + 1, std::vector<int64_t>{1'000'000}, u8,
                        weights.ref());
  };
  const std::string path = testing::TempDir() + "tenon_late_weights.tnx";
  save(unit, path);
  auto failures = [&](size_t memory) {
    options.limits.memory = memory;
    return std::vector{failure_of([&] { Program::load(path, options); }),
                       failure_of([&] { Program::load_bytes(bytes, options); }),
                       failure_of([&] { Program::from_unit(unit, options); })};
  };
  EXPECT_THAT(failures(size_t{3} << 20), testing::Each(HasSubstr("exceeds its memory limit")));
  EXPECT_THAT(failures(size_t{5} << 20), testing::Each("no error"));
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace tenon::vm
