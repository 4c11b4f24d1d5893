#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <elf.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <thread>

#include "device/parallel.h"
#include "object/array.h"
#include "object/library.h"
#include "object/registry.h"
#include "object/shape.h"
#include "object/tensor.h"
#include "support/text.h"
#include "vm/asm/assemble.h"
#include "vm/executable/elf_check.h"
#include "vm/executable/file_format.h"
#include "vm/executable/write_file.h"
#include "vm/interp/machine.h"
#include "vm/interp/program_testing.h"

namespace tenon::vm {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kProgram[] = R"(
packed $host.call
packed $host.again
span "main.tn" 3 7
span "main.tn" 9 1 "/node"
func @add(a: i64, b: i64) -> i64 {
  %0 = add %0, %1
  ret %0
}
func @adder(a: i64) -> any {
  %0 = alloc_closure @add, %0
  ret %0!
}
func @through_host(a: any, b: any) -> i64 {
  at 0
  %2 = alloc_closure @add, %0
  at 1
  %2 = call_packed $host.call, %2!, %1
  ret %2
}
func @nest(n: i64) -> i64 {
  if %0, bottom
  %0 = sub %0, 1
  %0 = call_packed $host.again, %0
  ret %0
bottom:
  ret 0
}
func @spin() {
again:
  goto again
}
func @spinner() -> any {
  %0 = alloc_closure @spin
  ret %0!
}
func @spin_in_host(f: any) {
  _ = call_packed $host.call, %0, 1
  ret _
}
func @two(a: i64) -> i64 {
  %1 = call @add, %0, 1
  %1 = call @add, %1, 10
  ret %1
}
)";

ProgramOptions host() {
  Function call = Function::from_typed([](const Function& f, int64_t x) { return f(x); });
  Function again = Function::from_typed([](int64_t n) {
    Machine* m = Machine::current();
    return m->call("nest", n);
  });
  ProgramOptions options;
  options.modules = {Module("test", "host", [=](std::string_view name) {
    return name == "host.call" ? call : name == "host.again" ? again : Function();
  })};
  return options;
}

TEST(Closure, IsCalledBackOnTheCurrentMachine) {
  Machine m(program_of(assemble(kProgram), host()));
  EXPECT_EQ(m.call("through_host", 2, 3).as<int64_t>(), 5);
}

constexpr char kFunctionValues[] = R"(
func @number(f: fn(i64) -> i8) -> i8 {
  tail_call_closure %0, 5
}
func @truth(f: fn(i64) -> bool) -> bool {
  %0 = call_closure %0, 5
  ret %0
}
func @in_tuple(p: (i64, fn(i64) -> (i8, f32))) -> (i8, f32) {
  %0 = get_field %0, 1
  tail_call_closure %0, 5
}
func @nested(a: array[array[(i64, fn(i64) -> i8)]]) -> i8 {
  %0 = get_field %0, 0
  %0 = get_field %0, 0
  %0 = get_field %0, 1
  tail_call_closure %0, 5
}
func @in_array(a: array[fn(i64) -> i8]) -> i8 {
  %0 = get_field %0, 1
  tail_call_closure %0, 5
}
func @twice(f: fn(i64) -> fn(i64) -> i8) -> i8 {
  %0 = call_closure %0, 5
  tail_call_closure %0, 5
}
)";

// A function of the host that returns the value.
Any returning(Any value) {
  return Any(
      Function::from_packed([value](const AnyView*, int32_t, Any* result) { *result = value; }));
}

TEST(FunctionValue, OfTheHostReturnsWhatItsTypeSays) {
  Machine m(program_of(assemble(kFunctionValues)));
  EXPECT_EQ(m.call("number", returning(Any(-128))).as<int64_t>(), -128);
  EXPECT_EQ(failure_of([&] { m.call("number", returning(Any(1000))); }),
            "error: the result of a function of the host doesn't fit its declared type\n"
            "  found     1000\n"
            "  expected  i8\n"
            "  at number, instruction 0: tail_call_closure");
}

TEST(FunctionValue, IsFoundInTuplesArraysAndResults) {
  Machine m(program_of(assemble(kFunctionValues)));
  constexpr char kOfTheHost[] = "a function of the host doesn't fit its declared type";
  EXPECT_THAT(failure_of([&] { m.call("truth", returning(Any(7))); }), HasSubstr(kOfTheHost));
  const auto pair = [](Any second) { return Any(Array<Any>{Any(1), second}); };
  const Any rounded = m.call("in_tuple", pair(returning(pair(Any(0.1)))));
  EXPECT_EQ(rounded.as<Array<Any>>()[1].as<double>(), double{0.1F});
  EXPECT_THAT(failure_of([&] { m.call("in_tuple", pair(returning(pair(Any(1))))); }),
              HasSubstr(cat("result 1 of ", kOfTheHost)));
  const auto both = [&](Any value) { return Any(Array<Any>{returning(Any(1)), returning(value)}); };
  EXPECT_EQ(m.call("in_array", both(Any(7))).as<int64_t>(), 7);
  EXPECT_THAT(failure_of([&] { m.call("in_array", both(Any(1000))); }), HasSubstr(kOfTheHost));
  const Any nested(Array<Any>{Any(Array<Any>{pair(returning(Any(1000)))})});
  EXPECT_THAT(failure_of([&] { m.call("nested", nested); }), HasSubstr(kOfTheHost));
  EXPECT_EQ(m.call("twice", returning(returning(Any(7)))).as<int64_t>(), 7);
  EXPECT_THAT(failure_of([&] { m.call("twice", returning(returning(Any(1000)))); }),
              HasSubstr(kOfTheHost));
}

TEST(FunctionValue, CrossesTheBorderAnyNumberOfTimes) {
  Machine m(program_of(assemble(R"(
func @same(f: fn(i64) -> i64) -> fn(i64) -> i64 {
  ret %0
}
func @number(f: fn(i64) -> i64) -> i64 {
  tail_call_closure %0, 5
}
)")));
  Any f = returning(Any(7));
  for (int i = 0; i < 100'000; ++i) f = m.call("same", f);
  EXPECT_EQ(m.call("number", f).as<int64_t>(), 7);
}

TEST(FunctionValue, OfAnotherProgramIsHeldToItsTypeHere) {
  Machine other(program_of(assemble(R"(
func @make() -> fn(i64) -> i64 {
  %0 = alloc_closure @large
  ret %0
}
func @large(n: i64) -> i64 {
  %0 = load_int 1000
  ret %0
}
func @make_small() -> fn(i64) -> i8 {
  %0 = alloc_closure @small
  ret %0
}
func @small(n: i64) -> i8 {
  %0 = load_int 100
  ret %0
}
)")));
  Machine m(program_of(assemble(kFunctionValues)));
  EXPECT_EQ(m.call("number", other.call("make_small")).as<int64_t>(), 100);
  EXPECT_THAT(failure_of([&] { m.call("number", other.call("make")); }),
              HasSubstr("doesn't fit its declared type"));
}

TEST(Closure, OutlivesItsMachineAndRunsOnAnIdleOne) {
  Function adder;
  {
    Machine m(program_of(assemble(kProgram), host()));
    adder = m.call("adder", 40).as<Function>();
  }
  EXPECT_EQ(adder(int64_t{2}).as<int64_t>(), 42);
  std::thread([&] { EXPECT_EQ(adder(int64_t{3}).as<int64_t>(), 43); }).join();
  EXPECT_THAT(failure_of([&] { adder(); }), HasSubstr("wrong number of arguments"));
}

TEST(Nesting, EndsAtTwoHundredAndTheMachineAnswersAgain) {
  Machine m(program_of(assemble(kProgram), host()));
  EXPECT_EQ(m.call("nest", 150).as<int64_t>(), 0);
  EXPECT_THAT(failure_of([&] { m.call("nest", 250); }), HasSubstr("nested too deep"));
  EXPECT_EQ(m.call("nest", 150).as<int64_t>(), 0);
}

TEST(Nesting, SharesTheOuterCallsFuel) {
  Limits limits;
  limits.fuel = 20;
  Machine m(program_of(assemble(kProgram), host()), limits);
  EXPECT_EQ(m.call("nest", 10).as<int64_t>(), 0);
  EXPECT_THAT(failure_of([&] { m.call("nest", 30); }), HasSubstr("ran out of fuel"));
}

TEST(Nesting, SharesTheOuterCallsDeadline) {
  Limits limits;
  limits.deadline = std::chrono::milliseconds(300);
  Machine m(program_of(assemble(kProgram), host()), limits);
  Any spinner = m.call("spinner");
  Function spin_with_argument =
      Function::from_typed([f = spinner.as<Function>()](int64_t) { f(); });
  EXPECT_THAT(failure_of([&] { m.call("spin_in_host", spin_with_argument); }),
              HasSubstr("deadline"));
}

// Objects whose release calls the machine, which then runs above all live registers.
constexpr char kReleases[] = R"(
packed $host.object
func @down(n: i64) -> i64 {
  %1 = gt %0, 0
  if %1, zero
  %1 = sub %0, 1
  %1 = call @down, %1
  %0 = add %1, 1
zero:
  ret %0
}
func @object() -> any {
  %0 = call_packed $host.object
  ret %0!
}
func @overwritten(x: any) -> i64 {
  %1 = load_int 40
  %0 = load_int 2
  %0 = add %0, %1
  ret %0
}
func @moved_over(x: any) -> i64 {
  %1 = load_int 42
  %0 = move %1!
  ret %0
}
func @compared_over(x: any) -> i64 {
  %1 = load_int 42
  %0 = eq %1, 42
  if %0, no
  ret %1
no:
  ret 0
}
func @killed(x: any) -> i64 {
  %1 = load_int 42
  kill %0
  ret %1
}
func @left(x: any) -> i64 {
  %1 = load_int 42
  ret %1
}
func @dropped(x: any) -> i64 {
  %1 = load_int 42
  _ = call @through, %0!
  ret %1
}
func @replaced(x: any) -> i64 {
  %1 = load_int 42
  %0 = call @through, %1
  ret %0
}
func @through(x: any) -> any {
  ret %0!
}
)";

TEST(Nesting, AReleaseMayCallTheMachineWhereverItHappens) {
  static int released;
  Function object = Function::from_typed([] {
    return Function::from_c([](void*, const AnyView*, int32_t, Any*) { return 0; }, &released,
                            [](void*) {
                              ++released;
                              EXPECT_EQ(Machine::current()->call("down", 20).as<int64_t>(), 20);
                            });
  });
  ProgramOptions options;
  options.modules = {Module("test", "host", [=](std::string_view) { return object; })};
  for (const char* name :
       {"overwritten", "moved_over", "compared_over", "killed", "left", "dropped", "replaced"}) {
    std::string caller = cat(R"(
func @main() -> i64 {
  %1 = load_int 1000
  %0 = call @object
  %0 = call @)",
                             name, R"(, %0!
  %0 = add %0, %1
  ret %0
})");
    Machine m(program_of(assemble(cat(kReleases, caller)), options));
    released = 0;
    EXPECT_EQ(m.call("main").as<int64_t>(), 1042) << name;
    EXPECT_EQ(released, 1) << name;
  }
}

TEST(Errors, CarryFunctionSpanAndInstruction) {
  Machine m(program_of(assemble(kProgram), host()));
  std::string error = failure_of([&] { m.call("through_host", 2, "x"); });
  EXPECT_THAT(error, HasSubstr("argument 1"));
  EXPECT_THAT(error, HasSubstr("packed function host.call"));
  EXPECT_THAT(error, HasSubstr("through_host at main.tn:9:1 (/node), instruction 1: call_packed"));
}

TEST(Instrument, SeesEveryCallBeforeAndAfterAndMaySkip) {
  Machine m(program_of(assemble(kProgram), host()));
  std::vector<std::string> seen;
  m.set_instrument([&](const CallEvent& e) {
    std::string args;
    for (const AnyView& a : e.args) args += cat(" ", a.v.i);
    seen.push_back(cat(e.before ? "before " : "after ", e.callee, " in ", e.caller, args,
                       e.before ? "" : cat(" = ", e.result->v.i)));
    return CallAction::Continue;
  });
  EXPECT_EQ(m.call("two", 5).as<int64_t>(), 16);
  EXPECT_THAT(seen, ElementsAre("before add in two 5 1", "after add in two = 6",
                                "before add in two 6 10", "after add in two = 16"));

  m.set_instrument([](const CallEvent& e) {
    if (!e.before || e.args[1].v.i != 1) return CallAction::Continue;
    *e.result = Any(int64_t{100});
    return CallAction::Skip;
  });
  EXPECT_EQ(m.call("two", 5).as<int64_t>(), 110);
  m.set_instrument([](const CallEvent& e) {
    if (!e.before || e.callee != "host.call") return CallAction::Continue;
    *e.result = Any(int64_t{7});
    return CallAction::Skip;
  });
  EXPECT_EQ(m.call("through_host", 2, 3).as<int64_t>(), 7);
  m.set_instrument([](const CallEvent&) -> CallAction {
    throw Error(ErrorKind::Usage, "stopped by the instrument");
  });
  EXPECT_THAT(failure_of([&] { m.call("two", 5); }), HasSubstr("stopped by the instrument"));
  m.set_instrument(nullptr);
  EXPECT_EQ(m.call("two", 5).as<int64_t>(), 16);
}

TEST(Results, OfRegisteredFunctionsBecomeCompact) {
  // A transpose and an unaligned tensor, which kernels can't read; alone and in a tuple.
  static float data[6] = {0, 1, 2, 3, 4, 5};
  static int64_t sizes[] = {3, 2, 1, 3};
  const auto strided = [] {
    auto* managed = new DLManagedTensor{};
    managed->dl_tensor = {data, kCpu, 2, f32, sizes, sizes + 2, 0};
    managed->deleter = [](DLManagedTensor* self) { delete self; };
    return Tensor::from_dlpack(managed);
  };
  const auto unaligned = [] {
    auto* managed = new DLManagedTensor{};
    managed->dl_tensor = {data, kCpu, 1, f32, sizes, nullptr, 1};
    managed->deleter = [](DLManagedTensor* self) { delete self; };
    return Tensor::from_dlpack(managed);
  };
  ProgramOptions options;
  options.modules.push_back(
      Module("host", "test",
             Map<String, Function>{
                 {"test.strided", Function::from_typed([=] { return Any(strided()); })},
                 {"test.unaligned", Function::from_typed([=] { return Any(unaligned()); })},
                 {"test.pair", Function::from_typed([=] {
                    return Any(Array<Any>{strided(), 1});
                  })},
             }));
  Machine m(program_of(assemble(R"(
    packed $test.strided
    packed $test.unaligned
    packed $test.pair
    func @strided() -> any {
      %0 = call_packed $test.strided
      ret %0!
    }
    func @unaligned() -> any {
      %0 = call_packed $test.unaligned
      ret %0!
    }
    func @field() -> any {
      %0 = call_packed $test.pair
      %0 = get_field %0!, 0
      ret %0!
    }
    func @called(f: any) -> any {
      %1 = call_closure %0
      ret %1!
    })"),
                       options));
  const auto expect_compact = [](const Any& result) {
    const auto t = result.as<Tensor>();
    EXPECT_TRUE(t.compact());
    EXPECT_THAT(std::vector<float>(t.data_as<float>(), t.data_as<float>() + t.count()),
                testing::ElementsAre(0, 3, 1, 4, 2, 5));
  };
  expect_compact(m.call("strided"));
  expect_compact(m.call("field"));
  expect_compact(m.call("called", Function::from_typed([=] { return Any(strided()); })));
  const auto aligned = m.call("unaligned").as<Tensor>();
  EXPECT_EQ(reinterpret_cast<uintptr_t>(aligned.data()) % sizeof(float), 0u);
}

TEST(Linking, MissingFunctionsAreNamed) {
  EXPECT_THAT(failure_of([] { program_of(assemble(kProgram)); }),
              HasSubstr("no function host.call, function host.again"));
  EXPECT_THAT(
      failure_of([] { program_of(assemble("library \"nowhere\"\nfunc @f() {\n ret 1\n}")); }),
      HasSubstr("no nowhere"));
  EXPECT_THAT(failure_of([] { program_of(assemble("library \"../x\"\nfunc @f() {\n ret 1\n}")); }),
              HasSubstr("no ../x"));
  // A library that exists but can't be opened is an error with the reason.
  std::string dir = testing::TempDir(), path = dir + "/libtenon_broken.so";
  std::ofstream(path) << "no shared object at all, but long enough to look like a file";
  ProgramOptions beside;
  beside.library_dirs = {dir};
  EXPECT_THAT(failure_of([&] {
                program_of(assemble("library \"broken\"\nfunc @f() {\n ret 1\n}"), beside);
              }),
              HasSubstr("library " + path + " can't be opened"));
  std::remove(path.c_str());
  ProgramOptions look;
  look.allow_missing = true;
  Machine m(program_of(assemble(kProgram), look));
  EXPECT_EQ(m.call("two", 1).as<int64_t>(), 12);
  EXPECT_THAT(failure_of([&] { m.call("nest", 1); }), HasSubstr("'host.again' is linked"));
}

TEST(Linking, ALibraryIsCalledAtAProgramsStartAndOnceItsConstantsAreGone) {
  static TensorObj* constant = nullptr;
  static int64_t holders = -1;
  static int programs = 0;
  define_library("tenon_keeper", [] {
    register_typed("keeper.look", [](const Tensor& t) { constant = t.get(); });
    register_typed("keeper.begin", [] { ++programs; }, {.at_program_start = true});
    register_typed("keeper.end", [] { holders = constant->strong_count(); },
                   {.at_program_end = true});
  });
  auto program = program_of(assemble(R"(
library "keeper"
packed $keeper.look
const = tensor[2; f32] hex "0000803f00000040"
func @f() {
  _ = call_packed $keeper.look, #0
  ret 1
})"));
  EXPECT_EQ(programs, 1);
  Machine(program).call("f");
  ASSERT_NE(constant, nullptr);
  __atomic_fetch_add(&constant->counts, Object::kOneWeak, __ATOMIC_RELAXED);
  program = {};
  EXPECT_EQ(holders, 0);
  constant->deleter(constant, Object::kFree);
}

TEST(Linking, AProgramCallsFunctionsOfAnotherByItsModule) {
  const Module library = program_of(assemble(R"(
func @twice(n: i64) -> i64 {
  %0 = add %0, %0
  ret %0
}
local func @hidden() -> i64 {
  ret 1
})"))
                             ->module();
  EXPECT_EQ(library.get()->kind, "executable");
  EXPECT_EQ(library.get()->names, std::vector<std::string>{"twice"});
  EXPECT_FALSE(library.find("hidden"));
  EXPECT_EQ(library.find("twice").get(), library.find("twice").get());  // cached
  ProgramOptions options;
  options.modules = {library};
  Machine machine(program_of(assemble(R"(
packed $twice
func @main(n: i64) -> i64 {
  %1 = call_packed $twice, %0
  ret %1
})"),
                             options));
  EXPECT_EQ(machine.call("main", 21).as<int64_t>(), 42);
}

TEST(Linking, UntrustedFilesGetFunctionsForFilesOnly) {
  register_typed("test.for_files", [] { return 1; }, {.for_files = true});
  register_typed("test.for_us", [] { return 2; });
  ProgramOptions untrusted;
  untrusted.trusted = false;
  Machine m(program_of(
      assemble(
          "packed $test.for_files\nfunc @f() {\n %0 = call_packed $test.for_files\n ret %0\n}"),
      untrusted));
  EXPECT_EQ(m.call("f").as<int64_t>(), 1);
  EXPECT_THAT(failure_of([&] {
                program_of(assemble("packed $test.for_us\nfunc @f() {\n ret 1\n}"), untrusted);
              }),
              HasSubstr("no function test.for_us"));
  EXPECT_THAT(failure_of([&] {
                program_of(assemble("library \"onednn\"\nfunc @f() {\n ret 1\n}"), untrusted);
              }),
              HasSubstr("as an untrusted file"));
  unregister_function("test.for_files");
  unregister_function("test.for_us");
}

TEST(Program, IsSharedByThreads) {
  Ref<Program> program = program_of(assemble(kProgram), host());
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&program, t] {
      Machine m(program);
      for (int i = 0; i < 200; ++i) {
        ASSERT_EQ(m.call("through_host", t, i).as<int64_t>(), t + i);
        ASSERT_EQ(m.call("two", i).as<int64_t>(), i + 11);
        Function f = m.call("adder", t).as<Function>();
        ASSERT_EQ(f(int64_t{i}).as<int64_t>(), t + i);
      }
    });
  }
  Function other = Function::from_typed([](const Function& f, int64_t x) { return f(x); });
  for (int i = 0; i < 50; ++i) program->replace_packed(0, other);
  for (auto& t : threads) t.join();
}

TEST(Machine, OneCallAtATime) {
  Machine m(program_of(assemble(kProgram), host()));
  std::atomic<bool> entered{false}, leave{false};
  Function wait = Function::from_typed([&](int64_t) {
    entered = true;
    while (!leave) std::this_thread::yield();
  });
  std::thread other([&] { m.call("spin_in_host", wait); });
  while (!entered) std::this_thread::yield();
  EXPECT_THAT(failure_of([&] { m.call("two", 1); }), HasSubstr("on another thread"));
  leave = true;
  other.join();
  EXPECT_EQ(m.call("two", 1).as<int64_t>(), 12);
}

constexpr char kKernels[] = R"(
kernel $doubled
kernel $workspace
kernel $workspaces
func @main(x: any) -> any {
  match_tensor %0, f32, ->%1
  %2 = new_tensor cpu:0, f32, %1
  _ = call_packed $doubled, %0, %2
  ret %2!
}
func @wrong(x: any) -> any {
  %2 = new_tensor cpu:0, f32, 3
  _ = call_packed $doubled, %0, %2
  ret %2!
}
func @workspace(n: i64) -> i64 {
  %0 = call_packed $workspace, %0
  ret %0
}
func @workspaces(n: i64) {
  _ = call_packed $workspaces, %0
  ret _
}
func @kernel() -> any {
  %0 = load_packed $doubled
  ret %0!
}
)";

TEST(Kernels, RunFromAClosedObjectAndRefuseWrongArguments) {
  std::string bytes = write_to_bytes(with_kernels(kKernels, TENON_TEST_KERNELS));
  Limits limits;
  limits.memory = 1 << 20;
  Machine m(Program::load_bytes(bytes), limits);
  float data[5] = {1, 2, 3, 4, 5};
  int64_t shape[] = {5};
  Tensor x = Tensor::copy_of<float>(shape, f32, data);
  EXPECT_EQ(m.call("main", x).as<Tensor>().data_as<float>()[4], 10);
  std::string error = failure_of([&] { m.call("wrong", x); });
  EXPECT_THAT(error, HasSubstr("kernel 'doubled'"));
  EXPECT_THAT(error, HasSubstr("argument 1, axis 0"));
  EXPECT_EQ(m.call("workspace", 1000).as<int64_t>(), 0);
  EXPECT_THAT(failure_of([&] { m.call("workspace", 10 << 20); }), HasSubstr("workspace"));
  EXPECT_EQ(m.call("main", x).as<Tensor>().data_as<float>()[0], 2);
}

TEST(Kernels, GetNoResultFromAnInstrument) {
  Machine m(Program::load_bytes(write_to_bytes(with_kernels(kKernels, TENON_TEST_KERNELS))));
  float data[1] = {4};
  int64_t shape[] = {1};
  const Tensor x = Tensor::copy_of<float>(shape, f32, data);
  Any result;
  m.set_instrument([&](const CallEvent& e) {
    if (!e.before) return CallAction::Continue;
    *e.result = result;
    const auto* out = static_cast<const TensorObj*>(e.args[1].v.object);
    *static_cast<float*>(out->dl.data) = 7;
    return CallAction::Skip;
  });
  EXPECT_EQ(*m.call("main", x).as<Tensor>().data_as<float>(), 7);
  result = Any(1);
  EXPECT_THAT(failure_of([&] { m.call("main", x); }),
              HasSubstr("an instrument gave a kernel a result"));
}

TEST(Kernels, WorkspaceCountsOnEveryThread) {
  Limits limits;
  limits.memory = 1 << 20;
  limits.threads = 4;
  Machine m(program_of(with_kernels(kKernels, TENON_TEST_KERNELS)), limits);
  m.call("workspaces", 1000);
  // One fits, four do not; if one thread took all the iterations, this would show nothing.
  std::string error = "no error";
  for (int i = 0; i < 1000 && error == "no error"; ++i) {
    error = failure_of([&] { m.call("workspaces", 600'000); });
  }
  EXPECT_THAT(error, HasSubstr("workspace"));
  EXPECT_THAT(failure_of([&] { m.call("workspaces", 2 << 20); }), HasSubstr("workspace"));
  m.call("workspaces", 1000);
}

TEST(Kernels, ALoopThatThrowsIsAnErrorOfTheKernel) {
  static const ThreadTeam throws = {
      [](void (*)(void*, int32_t), void*, int32_t) { throw std::bad_alloc(); },
      [] { return int32_t{2}; }};
  Machine m(program_of(with_kernels(kKernels, TENON_TEST_KERNELS)));
  set_thread_team(&throws);
  std::string error = failure_of([&] { m.call("workspaces", 100); });
  set_thread_team(nullptr);
  EXPECT_THAT(error, HasSubstr("out of memory"));
  EXPECT_THAT(error, HasSubstr("kernel workspaces"));
}

TEST(Kernels, AsValuesOutliveTheirProgram) {
  Function doubled;
  {
    Machine m(program_of(with_kernels(kKernels, TENON_TEST_KERNELS)));
    doubled = m.call("kernel").as<Function>();
  }
  float data[2] = {1, 2};
  int64_t shape[] = {2};
  Tensor x = Tensor::copy_of<float>(shape, f32, data), y = Tensor::empty(shape, f32);
  doubled(x, y);
  EXPECT_EQ(y.data_as<float>()[1], 4);
}

TEST(Kernels, MissingOnesAndFeaturesAreLoadErrors) {
  EXPECT_THAT(
      failure_of([] {
        program_of(with_kernels("kernel $absent\nfunc @f() {\n ret 1\n}", TENON_TEST_KERNELS));
      }),
      HasSubstr("no kernel absent"));
  Unit unit = with_kernels(kKernels, TENON_TEST_KERNELS);
  unit.kernels[0].cpu_features = {"avx2", "quantum"};
  EXPECT_THAT(failure_of([&] { program_of(unit); }), HasSubstr("quantum"));
  unit.kernels[0].triple = "riscv64-unknown-linux-gnu";
  EXPECT_THAT(failure_of([&] { program_of(unit); }), HasSubstr("code for riscv64"));
  ProgramOptions untrusted;
  untrusted.trusted = false;
  EXPECT_THAT(
      failure_of([&] { program_of(with_kernels(kKernels, TENON_TEST_KERNELS), untrusted); }),
      HasSubstr("native code"));
}

TEST(Kernels, BytesOfAFileAreReadOnce) {
  Unit unit = with_kernels(kKernels, TENON_TEST_KERNELS);
  std::string elf = unit.kernels[0].host_object()->bytes;
  unit.kernels.push_back(unit.kernels[0]);
  const std::string bytes = write_to_bytes(unit);
  Program::load_bytes(bytes);
  const SectionTable table = read_section_table(bytes, "test", true);
  const SectionEntry& section = *table.find(SectionId::Kernels);
  const uint64_t first = bytes.find(elf) - section.offset;
  // One word of the directory is the second object's offset: change it to the first's.
  int refused = 0;
  for (uint64_t at = section.offset + 8; at + 8 <= section.offset + first; at += 4) {
    std::string damaged = bytes;
    std::memcpy(damaged.data() + at, &first, sizeof first);
    repair_hashes(damaged);
    std::string error = failure_of([&] { Program::load_bytes(damaged); });
    refused += error.find("code behind the previous entry") != std::string::npos;
  }
  EXPECT_GT(refused, 0);
}

// The program headers of a kernel object, to be modified.
struct Headers {
  std::string elf = with_kernels(kKernels, TENON_TEST_KERNELS).kernels[0].host_object()->bytes;
  std::vector<Elf64_Phdr*> loads;
  Elf64_Phdr *dynamic = nullptr, *stack = nullptr;
  Headers() {
    auto* header = reinterpret_cast<Elf64_Ehdr*>(elf.data());
    auto* p = reinterpret_cast<Elf64_Phdr*>(elf.data() + header->e_phoff);
    for (int i = 0; i < header->e_phnum; ++i) {
      if (p[i].p_type == PT_LOAD) loads.push_back(p + i);
      if (p[i].p_type == PT_DYNAMIC) dynamic = p + i;
      if (p[i].p_type == PT_GNU_STACK) stack = p + i;
    }
  }
  std::string refusal() const { return why_not_closed(elf).value_or("none"); }
};

TEST(Kernels, AreCheckedWhereTheLoaderReads) {
  EXPECT_EQ(Headers().refusal(), "none");
  Headers moved;
  moved.dynamic->p_vaddr -= 16;
  EXPECT_EQ(moved.refusal(), "a dynamic section at a different place in memory");
  Headers outside;
  outside.dynamic->p_vaddr = 1 << 30;
  EXPECT_EQ(outside.refusal(), "a dynamic section at a different place in memory");
  Headers twice;
  ASSERT_GE(twice.loads.size(), 2u);
  ASSERT_NE(twice.stack, nullptr);
  *twice.stack = *twice.dynamic;
  EXPECT_EQ(twice.refusal(), "two dynamic sections");
  Headers overlap;
  overlap.loads[1]->p_vaddr = overlap.loads[0]->p_vaddr;
  EXPECT_EQ(overlap.refusal(), "segments that overlap in memory");
  Headers descending;
  std::swap(*descending.loads[0], *descending.loads[1]);
  EXPECT_EQ(descending.refusal(), "segments that overlap in memory");
  Headers shifted;
  shifted.loads[1]->p_offset += 16;
  EXPECT_EQ(shifted.refusal(), "a segment that can't be mapped");
}

}  // namespace
}  // namespace tenon::vm
