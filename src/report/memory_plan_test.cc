#include "report/memory_plan.h"

#include <gtest/gtest.h>

#include "vm/asm/assemble.h"

namespace tenon::report {
namespace {

TEST(MemoryPlan, PlacesTensorsFromWhereTheyAreMadeToTheirLastUse) {
  const auto plan = memory_plan_of(vm::assemble(R"(
packed $host.f
packed $host.g
func @main(x: any) -> any {
  %1 = alloc_storage 64, 64, cpu:0
  %2 = alloc_tensor %1, 8, f32, 2, 3
  _ = call_packed $host.f, %0, %2
  %3 = new_tensor cpu:0, f32, 4
  _ = call_packed $host.g, %2, %3
  ret %3
}
)"));
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->steps, 6u);
  ASSERT_EQ(plan->slots.size(), 2u);
  EXPECT_EQ(plan->slots[0].name, "host.f");
  EXPECT_EQ(plan->slots[0].offset, 8);
  EXPECT_EQ(plan->slots[0].bytes, 24);
  EXPECT_EQ(plan->slots[0].from, 1u);
  EXPECT_EQ(plan->slots[0].to, 4u);
  // In a block of its own, behind the storage.
  EXPECT_EQ(plan->slots[1].name, "host.g");
  EXPECT_EQ(plan->slots[1].offset, 64);
}

TEST(MemoryPlan, HasNoPlaceInAStorageOfUnknownSize) {
  EXPECT_FALSE(memory_plan_of(vm::assemble(R"(
func @main(n: any) -> any {
  %1 = alloc_storage 64, 64, cpu:0
  %1 = alloc_storage %0, 64, cpu:0
  %2 = alloc_tensor %1, 8, f32, 2
  ret %2
}
)")));
}

TEST(MemoryPlan, HasNoPlaceForSizesThatDoNotFit) {
  std::string code = "func @main(x: any) -> any {\n";
  for (int i = 0; i < 300; ++i) code += "  %1 = alloc_storage 36028797018963967, 64, cpu:0\n";
  code += "  %2 = alloc_tensor %1, 36028797018963967, f32, -2\n";
  EXPECT_FALSE(memory_plan_of(vm::assemble(code + "  ret %0\n}\n")));
}

}  // namespace
}  // namespace tenon::report
