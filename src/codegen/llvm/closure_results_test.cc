#include "codegen/llvm/closure_results.h"

#include <gmock/gmock.h>

#include "vm/asm/assemble.h"

namespace tenon::codegen {
namespace {

using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

std::map<uint32_t, RegisterKind> results_of(const std::string& text) {
  const vm::Unit unit = vm::assemble(text);
  return closure_results(BytecodeFlow(unit.functions[0]), unit);
}

TEST(ClosureResults, AreWhatTheirUsesSay) {
  EXPECT_THAT(results_of(R"(
func @main(f: any, x: i64) -> f64 {
  %2 = call_closure %0, %1
  %3 = add %2, 1
  %4 = call_closure %0, %3
  if %4, other
  %4 = call_closure %0, %1
  ret %4
other:
  %4 = call_closure %0, %1
  %5 = move %4
  %5 = call @g, %5, %1
  %6 = call_closure %0, %1
  %6 = fadd %6, #0
  ret %6
}
func @g(n: i64, any: any) -> any {
  ret %0
}
const = float 1.5  ; #0
)"),
              UnorderedElementsAre(Pair(0, RegisterKind::Int), Pair(2, RegisterKind::Bool),
                                   Pair(4, RegisterKind::Float), Pair(6, RegisterKind::Int),
                                   Pair(9, RegisterKind::Float)));
}

TEST(ClosureResults, AreWhatTheTypeOfTheClosureStates) {
  EXPECT_THAT(results_of(R"(
func @main(f: fn(i64) -> i64, g: any, x: any) -> any {
  %2 = call_closure %0, %2
  %3 = alloc_closure @h
  %4 = move %3
  %2 = call_closure %4, %2
  %5 = call @made
  %2 = call_closure %5, %2
  %2 = call_closure %1, %2
  %1 = move %0
  %2 = call_closure %1, %2
  ret %2
}
func @h(x: any) -> bool {
  ret %0
}
func @made() -> fn(any) -> f32 {
  %0 = alloc_closure @h
  ret %0!
}
)"),
              UnorderedElementsAre(Pair(0, RegisterKind::Int), Pair(3, RegisterKind::Bool),
                                   Pair(5, RegisterKind::Float)));
}

// Also where a loop carries them to their use.
TEST(ClosureResults, GoAroundLoops) {
  EXPECT_THAT(results_of(R"(
func @main(f: any, n: i64) -> i64 {
  %2 = load_int 0
  %3 = load_int 0
again:
  %4 = lt %3, %1
  if %4, end
  %2 = call_closure %0, %2
  %3 = add %3, 1
  goto again
end:
  ret %2
}
)"),
              UnorderedElementsAre(Pair(4, RegisterKind::Int)));
}

TEST(ClosureResults, AreUnknownWhereNoUseTellsOrUsesDisagree) {
  EXPECT_THAT(results_of(R"(
func @main(f: any, x: any) -> any {
  %2 = call_closure %0, %1
  %3 = alloc_tuple %2!
  %2 = call_closure %0, %3
  if %1, other
  %2 = add %2, 1
  ret %2
other:
  %2 = fadd %2, #0
  ret %2
}
const = float 1.5  ; #0
)"),
              IsEmpty());
}

}  // namespace
}  // namespace tenon::codegen
