#include "evaluate/last_uses.h"

#include <gtest/gtest.h>

#include "device/call_context.h"
#include "evaluate/reference_evaluator.h"
#include "graph/ir/text.h"
#include "graph/op/register.h"
#include "loop/types.h"
#include "object/function.h"
#include "object/registry.h"

namespace tenon::graph {
namespace {

// Each function says of a value whether it is the only reference when it is passed to a packed
// function, which could then change it in place.
constexpr const char* kProgram = R"(
type box { Box(i64) }
type pair { Pair(box, box) }
fn @straight(%n: i64) -> bool {
  %b = Box(%n)
  %s = packed "test.is_sole"(%b) -> bool
  %s
}
fn @kept(%n: i64) -> (bool, box) {
  %b = Box(%n)
  %s = packed "test.is_sole"(%b) -> bool
  (%s, %b)
}
fn @given(%b: box) -> bool {
  %s = packed "test.is_sole"(%b) -> bool
  %s
}
fn @called(%n: i64) -> bool {
  %b = Box(%n)
  @given(%b)
}
fn @arm(%n: i64) -> (bool, box) {
  %b = Box(%n)
  %other = Box(3)
  %less = less(%n, 5)
  if %less {
    %s = packed "test.is_sole"(%b) -> bool
    (%s, %other)
  } else {
    (false, %b)
  }
}
fn @after_arm(%n: i64) -> (bool, box) {
  %b = Box(%n)
  %less = less(%n, 5)
  %s = if %less {
    %t = packed "test.is_sole"(%b) -> bool
    %t
  } else { false }
  (%s, %b)
}
fn @fields(%n: i64) -> bool {
  %a = Box(%n)
  %b = Box(2)
  %p = Pair(%a, %b)
  match %p {
    Pair(%x, %y) => {
      %s = packed "test.is_sole"(%x) -> bool
      %t = packed "test.is_sole"(%y) -> bool
      logical_and(%s, %t)
    }
  }
}
fn @turns(%n: i64) -> bool {
  %b = Box(%n)
  %end = loop (%i: i64 = 0, %v: box = %b, %all: bool = true) while { less(%i, 3) } {
    %s = packed "test.is_sole"(%v) -> bool
    %next = logical_and(%all, %s)
    %j = add(%i, 1)
    %w = Box(%j)
    (%j, %w, %next)
  }
  %last = %end.1
  %all_turns = %end.2
  %t = packed "test.is_sole"(%last) -> bool
  logical_and(%all_turns, %t)
}
fn @outer(%n: i64) -> bool {
  %b = Box(%n)
  %end = loop (%i: i64 = 0, %any: bool = false) while { less(%i, 3) } {
    %s = packed "test.is_sole"(%b) -> bool
    %next = logical_or(%any, %s)
    %j = add(%i, 1)
    (%j, %next)
  }
  %end.1
}
fn @after_loop(%n: i64) -> bool {
  %b = Box(%n)
  %sum = loop (%i: i64 = 0) while { less(%i, 3) } {
    %k = match %b { Box(%m) => { %m } }
    %j = add(%i, %k)
    add(%j, 1)
  }
  %c = add(%sum, 0)
  %s = packed "test.is_sole"(%b) -> bool
  %s
}
fn @captured(%n: i64) -> (bool, bool) {
  %b = Box(%n)
  %f = fn () -> bool {
    %s = packed "test.is_sole"(%b) -> bool
    %s
  }
  %first = %f()
  %second = %f()
  (%first, %second)
}
)";

int is_sole(void* self, const AnyView* args, int32_t /*count*/, Any* result) {
  CallContext* call = CallContext::current();
  const Any value = call->take(static_cast<Function*>(self)->object(), args, 0);
  *result = Any(value.object()->unique());
  return 0;
}

TEST(LastUses, GiveTheOnlyReferenceAway) {
  loop::register_loop_types();
  register_graph_types();
  register_operators();
  static Function function;
  function = Function::from_c(&is_sole, &function, nullptr);
  register_function("test.is_sole", function);
  const Module module = parse_module(kProgram, "test.tn");
  ReferenceEvaluator evaluator(codegen::baseline_target());
  const auto first = [&](const char* name) {
    return evaluator.run(module, *module->functions.find(String(name)), {Any(1)})[0].as<bool>();
  };
  for (const char* name : {"straight", "called", "arm", "fields", "turns"}) {
    EXPECT_TRUE(first(name)) << name;
  }
  for (const char* name : {"kept", "after_arm", "outer", "captured"}) {
    EXPECT_FALSE(first(name)) << name;
  }
  EXPECT_TRUE(first("after_loop"));
  unregister_function("test.is_sole");
}

}  // namespace
}  // namespace tenon::graph
