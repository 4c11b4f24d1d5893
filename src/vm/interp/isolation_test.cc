// What a program may read and write: an untrusted program never sees memory contents of others, and
// nothing writes to memory that the machine didn't allocate for its program in this call.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "device/device.h"
#include "object/array.h"
#include "object/module.h"
#include "object/tensor.h"
#include "vm/asm/assemble.h"
#include "vm/interp/machine.h"
#include "vm/interp/program_testing.h"

namespace tenon::vm {
namespace {

using testing::HasSubstr;

constexpr char kSecret = 0x5a;

ProgramOptions untrusted() {
  ProgramOptions options;
  options.trusted = false;
  return options;
}

Tensor bytes_of(int64_t n) {
  Tensor t = Tensor::empty({n}, u8);
  std::fill_n(t.data_as<char>(), n, kSecret);
  return t;
}

bool all_zero(const Any& value) {
  const auto t = value.as<Tensor>();
  const char* data = t.data_as<char>();
  return std::all_of(data, data + t.bytes(), [](char c) { return c == 0; });
}

constexpr char kReads[] = R"(
func @keep(x: any) -> i64 {
  %1 = device_copy %0, cpu:0
  ret 0
}
func @fresh(n: i64) -> any {
  %0 = new_tensor cpu:0, u8, %0
  ret %0!
}
func @part(n: i64, offset: i64) -> any {
  %2 = alloc_storage %0, 64, cpu:0
  %3 = sub %0, %1
  %0 = alloc_tensor %2!, %1, u8, %3
  ret %0!
}
func @within(x: any, n: i64) -> any {
  %2 = device_copy %0, cpu:0
  kill %2
  %0 = new_tensor cpu:0, u8, %1
  ret %0!
}
)";

TEST(Isolation, NewMemoryOfAnUntrustedProgramIsZero) {
  Machine m(program_of(assemble(kReads), untrusted()));
  for (int64_t n : {1, 63, 300, 60'000, 300'000, 20 << 20}) {
    m.call("keep", bytes_of(n));  // an earlier call's input, whose block is free again
    EXPECT_TRUE(all_zero(m.call("fresh", n))) << n;
    m.call("keep", bytes_of(n));
    EXPECT_TRUE(all_zero(m.call("part", n, n / 2))) << n;
    EXPECT_TRUE(all_zero(m.call("within", bytes_of(n), n))) << n;
    Tensor freed = bytes_of(n);  // the host's, freed
    freed = {};
    Machine other(program_of(assemble(kReads), untrusted()));
    EXPECT_TRUE(all_zero(other.call("fresh", n))) << n;
  }
}

TEST(Isolation, AnUntrustedProgramFindsNothingInTheCallersOutput) {
  Machine m(program_of(assemble("func @main(n: i64) -> tensor[n; u8] {\n"
                                "  %1 = alloc_result 0, cpu:0, u8, %0\n  ret %1!\n}"),
                       untrusted()));
  const Any n(int64_t{300}), out(bytes_of(300));
  const AnyView args[] = {n}, outputs[] = {out};
  EXPECT_TRUE(all_zero(m.call_into("main", args, outputs)));
  EXPECT_TRUE(all_zero(out)) << "which is the output itself";
}

TEST(Isolation, AKeptResultDoesNotShareTheMemoryOfAnOutput) {
  Machine m(
      program_of(assemble("func @value(x: any) -> any {\n  ret %0\n}\n"
                          "func @main(n: i64) -> (tensor[n; u8], array[tensor[n; u8]],"
                          " fn() -> tensor[n; u8]) {\n"
                          "  %1 = alloc_result 0, cpu:0, u8, %0\n"
                          "  %2 = alloc_tuple %1\n"
                          "  %3 = alloc_closure @value, %1\n"
                          "  %4 = alloc_tuple %1!, %2!, %3!\n"
                          "  ret %4!\n}")));
  const Any n(int64_t{300}), out(bytes_of(300));
  const AnyView args[] = {n}, outputs[] = {out, Any(), Any()};
  const auto results = m.call_into("main", args, outputs).as<Array<Any>>();
  EXPECT_EQ(results[0].v.object, out.v.object);
  const auto in_array = results[1].as<Array<Any>>()[0].as<Tensor>();
  const auto in_closure = results[2].as<Function>()().as<Tensor>();
  EXPECT_NE(in_array.data(), out.as<Tensor>().data());
  EXPECT_NE(in_closure.data(), out.as<Tensor>().data());
}

TEST(Isolation, TrustedProgramsDoNotPay) {
  Machine m(program_of(assemble(kReads)));
  m.call("keep", bytes_of(300'000));
  EXPECT_FALSE(all_zero(m.call("fresh", 300'000)));
}

TEST(Isolation, AFunctionOfAnUntrustedProgramIsClearedForOnTheMachineOfAnother) {
  Machine m(program_of(assemble(R"(
    func @call(f: any, x: any) -> any {
      %1 = device_copy %1!, cpu:0
      kill %1
      %1 = call_closure %0
      ret %1!
    })")));
  Ref<Program> other = program_of(assemble("func @f() -> any {\n"
                                           "  %0 = new_tensor cpu:0, u8, 300000\n  ret %0!\n}"),
                                  untrusted());
  EXPECT_TRUE(all_zero(m.call("call", other->function("f"), bytes_of(300'000))));
}

TEST(Isolation, AnInputThatDoesNotFitAFunctionOfAnotherProgramIsNamed) {
  Machine m(
      program_of(assemble("func @call(f: any, x: any) -> any {\n"
                          "  %2 = call_closure %0, %1\n  ret %2!\n}")));
  Ref<Program> other = program_of(assemble(R"(
    func @area(x: tensor[n, 2; f32]) -> i64 {
      match_tensor %0, f32, ->%1, =2
      ret %1!
    })"));
  try {
    m.call("call", other->function("area"), Tensor::empty({4, 3}, f32));
    ADD_FAILURE() << "no error";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::Usage);
    EXPECT_THAT(e.render(), HasSubstr("error: input 'x' does not fit <memory>\n"
                                      "  expected  tensor[n, 2; f32]\n"
                                      "  found     tensor[4, 3; f32]   axis 1\n"));
  }
}

// $host.write writes as kernels and library functions may: only where `may_write` allows it.
constexpr char kWrites[] = R"(
packed $host.write
packed $host.own
func @write(x: any) {
  _ = call_packed $host.write, %0
  ret _
}
func @write_in(x: any) {
  %0 = get_field %0, 0
  _ = call_packed $host.write, %0
  ret _
}
func @write_result() {
  %0 = call_packed $host.own
  _ = call_packed $host.write, %0
  ret _
}
func @keeper(x: any) -> any {
  %0 = alloc_closure @write, %0
  ret %0!
}
func @kept() -> any {
  %0 = new_tensor cpu:0, u8, 4
  %0 = alloc_closure @write, %0!
  ret %0!
}
func @run(f: any) {
  _ = call_closure %0
  ret _
}
func @run_last(f: any) -> any {
  tail_call_closure %0!
}
func @storage() -> any {
  %0 = alloc_storage 4, 64, cpu:0
  ret %0!
}
func @write_over(s: any) {
  %0 = alloc_tensor %0, 0, u8, 4
  _ = call_packed $host.write, %0
  ret _
}
func @fresh() -> any {
  %0 = new_tensor cpu:0, u8, 4
  ret %0!
}
func @own() {
  %0 = new_tensor cpu:0, u8, 4
  %1 = alloc_tuple %0
  %1 = get_field %1, 0
  _ = call_packed $host.write, %1
  ret _
}
)";

class Writing : public testing::Test {
 protected:
  Tensor host = Tensor::empty({4}, u8);
  Ref<Program> program = [this] {
    Function write = Function::from_typed([](const Tensor& t) {
      if (t.read_only()) throw Error(ErrorKind::Runtime, "it is read-only");
      t.data_as<char>()[0] = kSecret;
    });
    Function own = Function::from_typed([this] { return host; });
    ProgramOptions options;
    options.modules = {Module(
        "test", "host", [=](std::string_view name) { return name == "host.write" ? write : own; })};
    return program_of(assemble(kWrites), options);
  }();
  Machine m{program};

  void SetUp() override { host.data_as<char>()[0] = 0; }
  void refuses(const char* function, const Any& argument) {
    EXPECT_THAT(failure_of([&] { m.call(function, argument); }), HasSubstr("read-only"))
        << function;
    EXPECT_EQ(host.data_as<char>()[0], 0) << function;
  }
};

TEST_F(Writing, TheCallersTensorsAreReadOnlyWhereverTheyLie) {
  refuses("write", Any(host));
  refuses("write_in", Any(Array<Any>{Any(host)}));
  EXPECT_THAT(failure_of([&] { m.call("write_result"); }), HasSubstr("read-only"));
  EXPECT_EQ(host.data_as<char>()[0], 0);
}

TEST_F(Writing, SoIsWhatEarlierCallsAllocated) {
  Any earlier = m.call("fresh");
  refuses("write_in", Any(Array<Any>{earlier}));
  refuses("write_over", m.call("storage"));
  for (const char* run : {"run", "run_last"}) refuses(run, m.call("kept"));
  EXPECT_THAT(failure_of([&] { m.call("kept").as<Function>()(); }), HasSubstr("read-only"));
}

TEST_F(Writing, AndWhatAnotherProgramAllocated) {
  Ref<Program> other = program_of(assemble(R"(
    func @pass(f: any) {
      %1 = new_tensor cpu:0, u8, 4
      _ = call_closure %0, %1
      ret _
    }
    func @fresh() -> any {
      %0 = new_tensor cpu:0, u8, 4
      ret %0!
    })"));
  Machine theirs(other);
  EXPECT_THAT(failure_of([&] { theirs.call("pass", program->function("write")); }),
              HasSubstr("read-only"));
  Ref<Program> asks = program_of(assemble(R"(
    func @ask(f: any, write: any) {
      %0 = call_closure %0
      _ = call_closure %1, %0
      ret _
    })"));
  Machine between(asks);
  EXPECT_THAT(failure_of([&] {
                between.call("ask", other->function("fresh"), program->function("write"));
              }),
              HasSubstr("read-only"));
}

TEST_F(Writing, WhatTheCallAllocatedMayBeWritten) {
  m.call("own");
}

}  // namespace
}  // namespace tenon::vm
