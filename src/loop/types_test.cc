#include "loop/types.h"

#include <gtest/gtest.h>

#include "loop/schedule.h"
#include "loop/tensors_testing.h"
#include "object/reflect.h"

namespace tenon::loop {
namespace {

ComputeRef doubled(const std::string& name, double factor) {
  Dim n = Dim::symbol("n");
  auto x = buffer(name, f32, {n}), y = buffer(name + "2", f32, {n});
  return compute_of(
      {x}, {map_stage(y, [&](const Indices& i) { return at(x, i) * literal(f32, factor); })}, {y});
}

TEST(Types, ComputesAreEqualByStructureNotByNames) {
  register_loop_types();
  EXPECT_TRUE(structural_equal(AnyView(doubled("x", 2)), AnyView(doubled("a", 2))));
  EXPECT_FALSE(structural_equal(AnyView(doubled("x", 2)), AnyView(doubled("x", 3))));
  EXPECT_EQ(structural_hash(AnyView(doubled("x", 2))), structural_hash(AnyView(doubled("a", 2))));
}

TEST(Types, KernelsAreEqualByStructureNotByNames) {
  register_loop_types();
  ScheduleOptions options;
  KernelRef a = lower(*doubled("x", 2), "k", options), b = lower(*doubled("a", 2), "k", options);
  EXPECT_TRUE(structural_equal(AnyView(a), AnyView(b)));
}

}  // namespace
}  // namespace tenon::loop
