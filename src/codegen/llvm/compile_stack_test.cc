#include "codegen/llvm/compile_stack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include "object/array.h"
#include "object/object_budget.h"
#include "support/error_testing.h"
#include "support/native_stack.h"
#include "support/phase.h"
#include "support/poll.h"
#include "support/stack_testing.h"

namespace tenon::codegen {
namespace {

void on_small_stack(const std::function<void()>& body) {
  on_thread_with_stack(size_t{256} << 10, body);
}

TEST(CompileStack, IsThereOnAnyThread) {
  on_small_stack([] {
    size_t left = 0;
    run_with_compile_stack([&] {
      left = native_stack_left();
      const pthread_t here = pthread_self();  // no further thread is needed now
      run_with_compile_stack([&] { EXPECT_TRUE(pthread_equal(here, pthread_self())); });
    });
    EXPECT_GE(left, kCompileStack);
  });
}

TEST(CompileStack, ErrorsReachTheCaller) {
  on_small_stack([] {
    EXPECT_EQ(failure_of([] {
                run_with_compile_stack([] { throw Error(ErrorKind::Usage, "this is wrong"); });
              }),
              "error: this is wrong");
  });
}

struct Stop : Poller {
  void poll() override { throw Error(ErrorKind::Runtime, "stopped"); }
};

TEST(CompileStack, TheCallersWorkCanBeStoppedThere) {
  on_small_stack([] {
    Stop stop;
    Poller::Scope scope(&stop);
    EXPECT_EQ(failure_of([] { run_with_compile_stack([] { poll(); }); }), "error: stopped");
  });
}

struct Account : MemoryAccount {
  size_t counted = 0;
  bool count_memory(size_t bytes) override {
    counted += bytes;
    return true;
  }
  void discount_memory(size_t bytes) override { counted -= bytes; }
  void fail_memory(size_t) override { throw Error(ErrorKind::Runtime, "no memory"); }
};

TEST(CompileStack, ObjectsCountForTheCallersBudget) {
  on_small_stack([] {
    Account account;
    Array<Any> made;
    ObjectBudget budget(&account);
    run_with_compile_stack([&] {
      for (int i = 0; i < 10'000; ++i) made = Array<Any>({Any(made)});
    });
    EXPECT_GE(account.counted, 10'000 * sizeof(Object));
    EXPECT_GE(account.counted, budget.counted());
    made = {};
    EXPECT_LT(budget.counted(), 100 * sizeof(Object));
  });
}

TEST(CompileStack, PhasesAreReportedToTheCaller) {
  on_small_stack([] {
    PhaseTimes times;
    run_with_compile_stack([] { const Phase phase("kernels"); });
    ASSERT_EQ(times.rows().size(), 1U);
    EXPECT_EQ(times.rows()[0].name, "kernels");
  });
}

}  // namespace
}  // namespace tenon::codegen
