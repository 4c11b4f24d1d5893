// Programs and machines through the C interface.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <fstream>
#include <thread>

#include "c_api/entry.h"
#include "object/array.h"
#include "object/registry.h"
#include "vm/asm/assemble.h"
#include "vm/executable/write_file.h"

extern "C" int tenon_test_c_executable(const void* data, size_t size);

namespace tenon {
namespace {

using testing::HasSubstr;

constexpr char kProgram[] = R"(
const = tensor[2; f32] hex "0000803f00000040"
func @main(x: tensor[batch, 3; f32], n: i64) -> (tensor[batch, 3; f32], i64) {
  results "same", "next"
  %1 = add %1, 1
  %0 = alloc_tuple %0!, %1
  ret %0!
}
func @weights() -> tensor[2; f32] {
  ret #0
}
func @depth(n: i64) -> i64 {
  if %0, bottom
  %0 = sub %0, 1
  %0 = call @depth, %0
  ret %0
bottom:
  ret 0
}
func @spin() -> any {
again:
  goto again
}
func @cells() -> any {
again:
  %0 = alloc_adt 1, %0!
  goto again
}
local func @hidden() -> any {
  ret _
}
)";

struct Out {
  tenon_any value = TENON_NONE_VALUE;
  ~Out() { tenon_any_release(&value); }
  operator tenon_any*() { return &value; }
  const AnyView& view() const { return c_api::view(&value); }
};

std::string bytes_of(std::string_view text) {
  return vm::write_to_bytes(vm::assemble(text));
}

struct CProgram : testing::Test {
  std::string bytes = bytes_of(kProgram);
  Out program, machine, result;

  void SetUp() override {
    ASSERT_EQ(tenon_program_from_bytes(bytes.data(), bytes.size(), nullptr, program), 0);
    ASSERT_EQ(tenon_machine_create(program, machine), 0);
  }
  std::string call(const char* function, std::vector<tenon_any> args = {}) {
    auto n = static_cast<int32_t>(args.size());
    if (tenon_machine_call(machine, function, args.data(), n, result) == 0) return "no error";
    return tenon_last_error();
  }
  std::string with_limits(tenon_limits limits, const char* function,
                          std::vector<tenon_any> args = {}) {
    if (tenon_machine_set_limits(machine, &limits) != 0) return tenon_last_error();
    return call(function, std::move(args));
  }
  static tenon_any integer(int64_t i) {
    tenon_any a = TENON_NONE_VALUE;
    a.type_index = TENON_INT;
    a.v.i = i;
    return a;
  }
};

TEST_F(CProgram, IsUsedFromC) {
  EXPECT_EQ(tenon_test_c_executable(bytes.data(), bytes.size()), 0);
}

TEST_F(CProgram, ListsWhatCanBeCalled) {
  Out names;
  ASSERT_EQ(tenon_program_functions(program, names), 0);
  auto list = names.view().as<Array<Any>>();
  std::vector<std::string> texts;
  for (const Any& name : list) texts.push_back(name.as<std::string>());
  EXPECT_THAT(texts, testing::ElementsAre("main", "weights", "depth", "spin", "cells"));
}

TEST_F(CProgram, KeepsItsFile) {
  const tenon_text file = tenon_program_file(program);
  EXPECT_EQ(std::string_view(file.data, file.size), bytes);
  EXPECT_EQ(tenon_program_file(machine).data, nullptr);
}

TEST_F(CProgram, TellsItsSignature) {
  int32_t params = -1, results = -1;
  ASSERT_EQ(tenon_program_signature(program, "main", &params, &results), 0);
  EXPECT_EQ(params, 2);
  EXPECT_EQ(results, 2);
  ASSERT_EQ(tenon_program_signature(program, "main", nullptr, nullptr), 0);
  tenon_value_info x{}, n{}, same{}, weights{};
  for (tenon_value_info* info : {&x, &n, &same, &weights}) info->size = sizeof *info;
  ASSERT_EQ(tenon_program_param(program, "main", 0, &x), 0);
  EXPECT_STREQ(x.name.data, "x");
  EXPECT_STREQ(x.type.data, "tensor[batch, 3; f32]");
  EXPECT_EQ(x.kind, TENON_TENSOR);
  EXPECT_EQ(DataType(x.dtype), f32);
  ASSERT_EQ(x.rank, 2);
  EXPECT_EQ(x.dims[0], -1);
  EXPECT_EQ(x.dims[1], 3);
  EXPECT_STREQ(x.symbols[0].data, "batch");
  ASSERT_EQ(tenon_program_param(program, "main", 1, &n), 0);
  EXPECT_EQ(n.kind, TENON_INT);
  EXPECT_EQ(n.dims, nullptr);
  ASSERT_EQ(tenon_program_result(program, "main", 0, &same), 0);
  EXPECT_STREQ(same.name.data, "same");
  ASSERT_EQ(tenon_program_result(program, "weights", 0, &weights), 0);
  EXPECT_EQ(weights.name.size, 0u);
  EXPECT_EQ(weights.rank, 1);
}

TEST_F(CProgram, RefusesQuestionsWithoutAnAnswer) {
  tenon_value_info info{};
  EXPECT_EQ(tenon_program_param(program, "main", 0, &info), -1);
  EXPECT_THAT(tenon_last_error(), HasSubstr("set its first member to sizeof(tenon_value_info)"));
  info.size = sizeof info;
  EXPECT_EQ(tenon_program_param(program, "main", 2, &info), -1);
  EXPECT_THAT(tenon_last_error(), HasSubstr("a number below 2"));
  EXPECT_EQ(tenon_program_result(program, "main", -1, &info), -1);
  EXPECT_EQ(tenon_program_param(program, "hidden", 0, &info), -1);
  EXPECT_THAT(tenon_last_error(), HasSubstr("has no function 'hidden'"));
  EXPECT_EQ(tenon_program_signature(program, nullptr, nullptr, nullptr), -1);
  EXPECT_EQ(tenon_program_param(program, "main", 0, nullptr), -1);
  EXPECT_EQ(tenon_program_signature(machine, "main", nullptr, nullptr), -1);
  EXPECT_THAT(tenon_last_error(), HasSubstr("found     tenon.Machine"));
  EXPECT_EQ(tenon_machine_cancel(program), -1);
  EXPECT_THAT(tenon_last_error(), HasSubstr("found     tenon.Program"));
  EXPECT_EQ(tenon_machine_create(nullptr, result), -1);
}

TEST_F(CProgram, RunsAndAnswersAgainAfterEveryError) {
  Out x;
  int64_t shape[2] = {2, 3};
  ASSERT_EQ(tenon_tensor_create(shape, 2, f32, kCpu, x), 0);
  EXPECT_EQ(call("main", {x.value, integer(4)}), "no error");
  auto results = result.view().as<Array<Any>>();
  EXPECT_EQ(results[1].as<int64_t>(), 5);
  EXPECT_THAT(call("main", {x.value}), HasSubstr("wrong number of arguments"));
  EXPECT_THAT(call("absent"), HasSubstr("has no function 'absent'"));
  EXPECT_THAT(call("main", {x.value, x.value}), HasSubstr("input 'n' does not fit"));
  EXPECT_EQ(tenon_machine_call(machine, nullptr, nullptr, 0, result), -1);
  EXPECT_EQ(tenon_machine_call(machine, "main", nullptr, 2, result), -1);
  EXPECT_EQ(tenon_machine_call(machine, "weights", nullptr, 0, nullptr), -1);
  EXPECT_EQ(call("weights"), "no error");
  EXPECT_EQ(result.view().as<Tensor>().data_as<float>()[1], 2);
}

TEST_F(CProgram, ArgumentsAreReadOnlyInWhatComesBack) {
  Out x;
  int64_t shape[2] = {2, 3};
  ASSERT_EQ(tenon_tensor_create(shape, 2, f32, kCpu, x), 0);
  ASSERT_EQ(call("main", {x.value, integer(4)}), "no error");
  Out element;
  ASSERT_EQ(tenon_array_get(result, 0, element), 0);
  DLManagedTensor* managed = nullptr;
  EXPECT_EQ(tenon_tensor_to_dlpack(element, &managed), -1);
  EXPECT_THAT(tenon_last_error(), HasSubstr("read-only"));
  DLManagedTensorVersioned* versioned = nullptr;
  ASSERT_EQ(tenon_tensor_to_dlpack_versioned(element, &versioned), 0);
  EXPECT_TRUE(versioned->flags & DLPACK_FLAG_BITMASK_READ_ONLY);
  versioned->deleter(versioned);
}

TEST_F(CProgram, LimitsStopCalls) {
  tenon_limits limits = TENON_NO_LIMITS;
  limits.fuel = 1000;
  EXPECT_THAT(with_limits(limits, "spin"), HasSubstr("ran out of fuel"));
  limits = TENON_NO_LIMITS;
  limits.deadline_ns = 20'000'000;
  EXPECT_THAT(with_limits(limits, "spin"), HasSubstr("ran past its deadline"));
  limits = TENON_NO_LIMITS;
  limits.memory = 1 << 20;
  EXPECT_THAT(with_limits(limits, "cells"), HasSubstr("exceed its memory limit"));
  limits = TENON_NO_LIMITS;
  limits.depth = 10;
  EXPECT_THAT(with_limits(limits, "depth", {integer(10)}), HasSubstr("at most 10 frames"));
  limits = TENON_NO_LIMITS;
  limits.stack_bytes = 1 << 16;
  EXPECT_THAT(with_limits(limits, "depth", {integer(100'000)}), HasSubstr("ran out of stack"));
  limits = TENON_NO_LIMITS;
  EXPECT_EQ(with_limits(limits, "depth", {integer(100'000)}), "no error");
}

TEST_F(CProgram, LimitsThatAreNoneAreRefused) {
  EXPECT_EQ(tenon_machine_set_limits(machine, nullptr), -1);
  tenon_limits limits = TENON_NO_LIMITS;
  limits.fuel = -2;
  EXPECT_THAT(with_limits(limits, "weights"), HasSubstr("a limit is negative"));
  limits = TENON_NO_LIMITS;
  limits.memory = 0;
  EXPECT_THAT(with_limits(limits, "weights"), HasSubstr("the memory limit of a call is 0"));
  limits = TENON_NO_LIMITS;
  limits.stack_bytes = INT64_MAX;
  EXPECT_THAT(with_limits(limits, "weights"), HasSubstr("no address space for a stack"));
  limits = TENON_NO_LIMITS;
  limits.threads = -1;
  EXPECT_THAT(with_limits(limits, "weights"), HasSubstr("the number of threads is negative"));
  for (size_t size : {size_t{0}, sizeof limits - 1, sizeof limits - 4, sizeof limits + 8}) {
    limits = TENON_NO_LIMITS;
    limits.size = static_cast<uint32_t>(size);
    EXPECT_THAT(with_limits(limits, "weights"), HasSubstr("a size that this library doesn't know"));
  }
  EXPECT_EQ(call("depth", {integer(100'000)}), "no error");
}

TEST_F(CProgram, AFunctionIsAValueWithLimits) {
  Out depth, spin;
  ASSERT_EQ(tenon_program_function(program, "depth", nullptr, depth), 0);
  tenon_limits limits = TENON_NO_LIMITS;
  limits.fuel = 1000;
  ASSERT_EQ(tenon_program_function(program, "spin", &limits, spin), 0);
  const tenon_any n = integer(2000);
  tenon_any_release(program);
  tenon_any_release(machine);
  EXPECT_EQ(tenon_function_call(depth, &n, 1, result), 0);
  EXPECT_EQ(tenon_function_call(spin, nullptr, 0, result), -1);
  EXPECT_THAT(tenon_last_error(), HasSubstr("at most 1000 function entries"));
}

TEST_F(CProgram, FunctionsThatAreNoneAreRefused) {
  Out function;
  EXPECT_EQ(tenon_program_function(program, "hidden", nullptr, function), -1);
  EXPECT_THAT(tenon_last_error(), HasSubstr("has no function 'hidden'"));
  tenon_limits limits = TENON_NO_LIMITS;
  limits.size = 1;
  EXPECT_EQ(tenon_program_function(program, "spin", &limits, function), -1);
  EXPECT_EQ(tenon_program_function(program, nullptr, nullptr, function), -1);
  EXPECT_EQ(tenon_program_function(machine, "spin", nullptr, function), -1);
  EXPECT_EQ(tenon_program_function(program, "spin", nullptr, nullptr), -1);
  EXPECT_EQ(tenon_function_cancel(nullptr), -1);
  EXPECT_EQ(tenon_function_cancel(program), -1);
  EXPECT_THAT(tenon_last_error(), HasSubstr("not a function of a program"));
}

TEST_F(CProgram, AFunctionIsCancelledFromAnotherThread) {
  Out spin;
  ASSERT_EQ(tenon_program_function(program, "spin", nullptr, spin), 0);
  EXPECT_EQ(tenon_function_cancel(spin), 0);  // nothing runs: nothing happens
  std::atomic<bool> stop{false};
  std::thread other([&] {
    while (!stop) tenon_function_cancel(spin);
  });
  EXPECT_EQ(tenon_function_call(spin, nullptr, 0, result), -1);
  EXPECT_THAT(tenon_last_error(), HasSubstr("the call was cancelled"));
  stop = true;
  other.join();
}

TEST_F(CProgram, AMachineMayBeReleasedInItsOwnCall) {
  Out releases;
  auto release = [](void* context, const tenon_any*, int32_t, tenon_any*) {
    tenon_any_release(static_cast<tenon_any*>(context));
    return 0;
  };
  ASSERT_EQ(tenon_function_create(release, &machine.value, nullptr, releases), 0);
  ASSERT_EQ(tenon_function_register("test.release", releases, 0), 0);
  const std::string calls = bytes_of(
      "packed $test.release\nfunc @f() -> i64 {\n _ = call_packed $test.release\n ret 7\n}");
  Out other;
  ASSERT_EQ(tenon_program_from_bytes(calls.data(), calls.size(), nullptr, other), 0);
  ASSERT_EQ(tenon_machine_create(other, machine), 0);
  EXPECT_EQ(call("f"), "no error");
  EXPECT_EQ(result.view().as<int64_t>(), 7);
  EXPECT_EQ(machine.value.type_index, TENON_NONE);
  unregister_function("test.release");
}

TEST_F(CProgram, IsCancelledFromAnotherThread) {
  EXPECT_EQ(tenon_machine_cancel(machine), 0);  // nothing runs: nothing happens
  EXPECT_EQ(call("weights"), "no error");
  std::atomic<bool> stop{false};
  std::thread other([&] {
    while (!stop) tenon_machine_cancel(machine);
  });
  EXPECT_THAT(call("spin"), HasSubstr("the call was cancelled"));
  stop = true;
  other.join();
  EXPECT_EQ(call("weights"), "no error");
}

// The host's check of the next test: the third one says to stop.
std::atomic<int> host_checks{0};
std::thread::id asked_thread;
int stop_at_third_check() {
  if (std::this_thread::get_id() != asked_thread) return 1;
  if (++host_checks < 3) return 0;
  tenon_error_set(TENON_ERROR_RUNTIME, "the host has had enough");
  return -1;
}

TEST_F(CProgram, AsksTheHostOnRequestAndGoesOnOrStops) {
  Out spin;
  ASSERT_EQ(tenon_program_function(program, "spin", nullptr, spin), 0);
  ASSERT_EQ(tenon_host_check_set(stop_at_third_check), 0);
  asked_thread = std::this_thread::get_id();
  for (const tenon_any* callee : {&machine.value, &spin.value}) {
    EXPECT_EQ(tenon_host_check_request(callee), 0);  // nothing runs: nothing happens
    host_checks = 0;
    std::atomic<bool> stop{false};
    std::thread other([&] {
      while (!stop) tenon_host_check_request(callee);
    });
    if (callee == &machine.value) {
      EXPECT_THAT(call("spin"), HasSubstr("the host has had enough"));
    } else {
      EXPECT_EQ(tenon_function_call(callee, nullptr, 0, result), -1);
      EXPECT_THAT(tenon_last_error(), HasSubstr("the host has had enough"));
    }
    stop = true;
    other.join();
    EXPECT_EQ(host_checks, 3);
  }
  EXPECT_EQ(tenon_host_check_set(nullptr), 0);
  EXPECT_EQ(call("weights"), "no error");
  Out host;
  const auto nothing = [](void*, const tenon_any*, int32_t, tenon_any*) { return 0; };
  ASSERT_EQ(tenon_function_create(nothing, nullptr, nullptr, host), 0);
  EXPECT_EQ(tenon_host_check_request(host), 0);
  EXPECT_EQ(tenon_host_check_request(program), -1);
  EXPECT_THAT(tenon_last_error(), HasSubstr("machine"));
}

// ---- cells ----

constexpr char kTrees[] = R"(
type tree[T] { Leaf, Node(tree[T], T, tree[T]) }
type wrapped { Wrapped(opaque["a, b"], (i64, i64)), Last }
func @sum(t: tree[i64], n: i64) -> i64 {
  %2 = get_tag %0
  if_eq %2, 0, node
  ret %1
node:
  if_eq %2, 1, other
  %3 = get_field %0, 1
  %1 = add %1, %3
  %0 = get_field %0, 0
  tail_call @sum, %0, %1
other:
  fatal #0
}
func @field(t: tree[i64], index: i64) -> any {
  %0 = get_field %0, %1
  ret %0
}
const = "unknown tag"
)";

struct CCells : testing::Test {
  std::string bytes = bytes_of(kTrees);
  Out program, machine, result;

  void SetUp() override {
    ASSERT_EQ(tenon_program_from_bytes(bytes.data(), bytes.size(), nullptr, program), 0)
        << tenon_last_error();
    ASSERT_EQ(tenon_machine_create(program, machine), 0);
  }
  static tenon_any integer(int64_t i) { return CProgram::integer(i); }
  std::string call(const char* function, const tenon_any& tree, int64_t n) {
    const tenon_any args[] = {tree, integer(n)};
    if (tenon_machine_call(machine, function, args, 2, result) == 0) return "no error";
    return tenon_last_error();
  }
};

TEST_F(CCells, ConstructorsAreFoundByName) {
  Out types;
  ASSERT_EQ(tenon_program_types(program, types), 0);
  const auto definitions = types.view().as<Array<Any>>();
  const auto find = [&](const char* name) {
    int64_t tag = -1;
    size_t fields = 99;
    for (const Any& definition : definitions) {
      const auto text = definition.as<std::string>();
      if (tenon_constructor_find({text.data(), text.size()}, name, &tag, &fields)) break;
    }
    return std::pair(tag, fields);
  };
  using Found = std::pair<int64_t, size_t>;
  EXPECT_EQ(find("Leaf"), Found(0, 0));
  EXPECT_EQ(find("Node"), Found(1, 3));
  // Names and commas within the types of fields are none of constructors.
  EXPECT_EQ(find("Wrapped"), Found(0, 2));
  EXPECT_EQ(find("Last"), Found(1, 0));
  for (const char* none : {"", "T", "tree", "i64", "Nod", "Node(", "Nodes", "a", "Leaf "}) {
    EXPECT_EQ(find(none), Found(-1, 99)) << none;
  }
  // Any text is read within its bounds.
  for (const char* text : {"", "{", "{ A(", "{ \"", "{ \"\\", "} A {", "{ ) A }", "{ A(\"}"}) {
    int64_t tag = -1;
    size_t fields = 99;
    EXPECT_EQ(tenon_constructor_find({text, std::strlen(text)}, "A", &tag, &fields), 0) << text;
  }
}

TEST_F(CCells, TheProgramTellsItsDataTypes) {
  Out types;
  ASSERT_EQ(tenon_program_types(program, types), 0);
  const auto list = types.view().as<Array<Any>>();
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[0].as<std::string>(), "tree[T] { Leaf, Node(tree[T], T, tree[T]) }");
}

TEST_F(CCells, AreMadeReadAndPassed) {
  Out leaf, node;
  ASSERT_EQ(tenon_cell_create(0, nullptr, 0, leaf), 0);
  const tenon_any fields[] = {leaf.value, integer(7), leaf.value};
  ASSERT_EQ(tenon_cell_create(1, fields, 3, node), 0);
  int64_t tag = -1;
  size_t size = 0;
  const tenon_any* read = tenon_cell_view(node, &tag, &size);
  ASSERT_NE(read, nullptr);
  EXPECT_EQ(tag, 1);
  EXPECT_EQ(size, 3u);
  EXPECT_EQ(read[1].v.i, 7);
  EXPECT_EQ(read[0].v.object, leaf.value.v.object);
  EXPECT_EQ(call("sum", node.value, 1), "no error");
  EXPECT_EQ(result.value.v.i, 8);
  const tenon_any none = TENON_NONE_VALUE;
  EXPECT_EQ(tenon_cell_view(&none, &tag, &size), nullptr);
  EXPECT_EQ(tag, -1);
  EXPECT_EQ(size, 0u);
  EXPECT_EQ(tenon_cell_view(nullptr, nullptr, nullptr), nullptr);
  EXPECT_EQ(tenon_cell_create(-1, nullptr, 0, leaf), -1);
  EXPECT_EQ(tenon_cell_create(0, nullptr, 1, leaf), -1);
  EXPECT_EQ(tenon_cell_create(0, nullptr, 0, nullptr), -1);
  EXPECT_EQ(tenon_cell_create(0, fields, size_t{1} << 61, leaf), -1);
}

TEST_F(CCells, OfNoConstructorAreErrors) {
  Out odd, small;
  ASSERT_EQ(tenon_cell_create(99, nullptr, 0, odd), 0);
  EXPECT_THAT(call("sum", odd.value, 1), HasSubstr("unknown tag"));
  const tenon_any field = integer(1);
  ASSERT_EQ(tenon_cell_create(1, &field, 1, small), 0);
  EXPECT_THAT(call("sum", small.value, 1),
              AllOf(HasSubstr("an index is out of range"), HasSubstr("an index into 1 element")));
  for (const int64_t index : {int64_t{-1}, int64_t{1}, INT64_MAX, INT64_MIN}) {
    EXPECT_THAT(call("field", small.value, index), HasSubstr("an index is out of range"));
  }
  EXPECT_THAT(call("sum", integer(1), 1), HasSubstr("does not fit"));
}

TEST_F(CCells, MayBeNestedToAnyDepth) {
  Out node;
  constexpr int64_t kDepth = 1'000'000;
  ASSERT_EQ(tenon_cell_create(0, nullptr, 0, node), 0);
  for (int64_t i = 0; i < kDepth; ++i) {
    const tenon_any fields[] = {node.value, integer(1), integer(0)};
    ASSERT_EQ(tenon_cell_create(1, fields, 3, node), 0);
  }
  EXPECT_EQ(call("sum", node.value, 0), "no error");
  EXPECT_EQ(result.value.v.i, kDepth);
}

TEST(CPrograms, BytesThatAreNoneAreDamagedAndMissingFilesAreNot) {
  Out program, error;
  EXPECT_EQ(tenon_program_from_bytes("no program", 10, nullptr, program), -1);
  tenon_error_take(error);
  EXPECT_EQ(tenon_error_kind(error), TENON_ERROR_DAMAGED);
  EXPECT_EQ(tenon_program_from_bytes(nullptr, 10, nullptr, program), -1);
  tenon_load_options options = TENON_LOAD_DEFAULTS;
  options.flags = 64;
  EXPECT_EQ(tenon_program_from_bytes("x", 1, &options, program), -1);
  EXPECT_THAT(tenon_last_error(), HasSubstr("unknown flags"));
  EXPECT_EQ(tenon_program_load("/nowhere/x.tnx", program), -1);
  tenon_error_take(error);
  EXPECT_EQ(tenon_error_kind(error), TENON_ERROR_USAGE);
  EXPECT_EQ(tenon_program_load(nullptr, program), -1);
  EXPECT_EQ(program.value.type_index, TENON_NONE);
}

TEST(CPrograms, AreLoadedFromFiles) {
  std::string path = testing::TempDir() + "c_api.tnx", bytes = bytes_of(kProgram);
  std::ofstream(path, std::ios::binary) << bytes;
  Out program;
  EXPECT_EQ(tenon_program_load(path.c_str(), program), 0);
  Out untrusted;
  tenon_load_options options = TENON_LOAD_DEFAULTS;
  options.flags = TENON_UNTRUSTED;
  EXPECT_EQ(tenon_program_load_with(path.c_str(), &options, untrusted), 0);
  std::remove(path.c_str());
}

TEST(CPrograms, AreLoadedWithinLimits) {
  const std::string bytes = bytes_of(kProgram);
  Out program;
  auto error_of = [&](tenon_load_options options) -> std::string {
    if (tenon_program_from_bytes(bytes.data(), bytes.size(), &options, program) == 0) return "";
    return tenon_last_error();
  };
  tenon_load_options options = TENON_LOAD_DEFAULTS;
  options.memory = 1 << 20;
  options.deadline_ns = int64_t{60} * 1000 * 1000 * 1000;
  EXPECT_EQ(error_of(options), "");
  options.memory = static_cast<int64_t>(bytes.size());  // for the copy, and nothing else
  EXPECT_THAT(error_of(options), HasSubstr("exceeds its memory limit"));
  options.memory = 0;
  EXPECT_THAT(error_of(options), HasSubstr("use -1 for none"));
  options.memory = -1;
  options.deadline_ns = 0;
  EXPECT_THAT(error_of(options), HasSubstr("ran past its deadline"));
  options = TENON_LOAD_DEFAULTS;
  options.size = 4;
  EXPECT_THAT(error_of(options), HasSubstr("set its first member to sizeof(tenon_load_options)"));
}

TEST(CPrograms, GetTheWeightsThatTheirFilesLeaveOut) {
  const std::string bytes =
      bytes_of("const \"w\" = late tensor[2; f32]\nfunc @main() -> any {\n ret #0\n}\n");
  Out program, machine, weight, name, weights, result;
  auto error_of = [&](const tenon_any* given) -> std::string {
    tenon_load_options options = TENON_LOAD_DEFAULTS;
    options.weights = given;
    if (tenon_program_from_bytes(bytes.data(), bytes.size(), &options, program) == 0) return "";
    return tenon_last_error();
  };
  EXPECT_THAT(error_of(nullptr), HasSubstr("found     no w"));

  const int64_t shape[] = {2};
  ASSERT_EQ(tenon_tensor_create(shape, 1, f32, kCpu, weight), 0);
  static_cast<float*>(tenon_tensor_view(&weight.value)->data)[1] = 3;
  ASSERT_EQ(tenon_string_create("w", 1, name), 0);
  ASSERT_EQ(tenon_map_create(&name.value, &weight.value, 1, weights), 0);
  EXPECT_EQ(error_of(&weights.value), "");
  ASSERT_EQ(tenon_machine_create(program, machine), 0);
  ASSERT_EQ(tenon_machine_call(machine, "main", nullptr, 0, result), 0);
  EXPECT_EQ(result.view().as<Tensor>().data_as<float>()[1], 3);

  ASSERT_EQ(tenon_tensor_create(shape, 1, i32, kCpu, weight), 0);
  ASSERT_EQ(tenon_map_create(&name.value, &weight.value, 1, weights), 0);
  EXPECT_THAT(error_of(&weights.value), HasSubstr("expected  tensor[2; f32]"));
  ASSERT_EQ(tenon_map_create(&name.value, &name.value, 1, weights), 0);
  EXPECT_THAT(error_of(&weights.value),
              HasSubstr("the weights are not a map from names to tensors"));
  EXPECT_THAT(error_of(&weight.value),
              HasSubstr("the weights are not a map from names to tensors"));
}

TEST(CPrograms, HaveTheNameOfTheOptionsInErrors) {
  const std::string bytes = bytes_of(kProgram);
  Out program, result;
  tenon_load_options options = TENON_LOAD_DEFAULTS;
  options.name = "encoder\n";
  ASSERT_EQ(tenon_program_from_bytes(bytes.data(), bytes.size(), &options, program), 0);
  ASSERT_NE(tenon_program_signature(program, "none", nullptr, nullptr), 0);
  EXPECT_THAT(std::string(tenon_last_error()), HasSubstr("encoder\\n"));
}

TEST(CPrograms, OfAnEarlierVersionOfTheOptionsHaveNoWeights) {
  const std::string bytes = bytes_of(kProgram);
  Out program, junk;
  tenon_load_options options = TENON_LOAD_DEFAULTS;
  options.size = offsetof(tenon_load_options, weights);
  options.weights = junk;  // not a map, and not read
  EXPECT_EQ(tenon_program_from_bytes(bytes.data(), bytes.size(), &options, program), 0);
}

TEST(CPrograms, UntrustedOnesGetFunctionsForFilesAndNoLibrary) {
  Out program;
  auto load = [&](std::string_view text, int32_t flags) {
    std::string bytes = bytes_of(text);
    tenon_load_options options = TENON_LOAD_DEFAULTS;
    options.flags = flags;
    if (tenon_program_from_bytes(bytes.data(), bytes.size(), &options, program) == 0) {
      return "loaded";
    }
    return tenon_last_error();
  };
  register_typed("test.for_us", [] { return 2; });
  constexpr std::string_view calls = "packed $test.for_us\nfunc @f() {\n ret 1\n}";
  EXPECT_STREQ(load(calls, 0), "loaded");
  EXPECT_THAT(load(calls, TENON_UNTRUSTED), HasSubstr("no function test.for_us"));
  constexpr std::string_view needs = "library \"onednn\"\nfunc @f() {\n ret 1\n}";
  EXPECT_THAT(load(needs, TENON_UNTRUSTED), HasSubstr("the required library onednn"));
  unregister_function("test.for_us");
}

}  // namespace
}  // namespace tenon
