#include "device/parallel.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <numeric>
#include <set>
#include <thread>
#include <vector>

#include "device/call_context.h"
#include "device/processors.h"
#include "device/thread_pool.h"
#include "object/function.h"

namespace tenon {
namespace {

using Ranges = std::multiset<std::pair<int64_t, int64_t>>;

Ranges ranges_of(int64_t n, int64_t grain, int32_t threads, bool each_chunk) {
  std::mutex mutex;
  Ranges ranges;
  ThreadsScope scope(threads);
  parallel_for(
      n, grain,
      [&](int64_t begin, int64_t end) {
        std::lock_guard lock(mutex);
        ranges.emplace(begin, end);
      },
      each_chunk);
  return ranges;
}

TEST(Parallel, CoversEveryIndexOnce) {
  for (int32_t threads : {1, 2, 3, 8}) {
    ThreadsScope scope(threads);
    for (int64_t n : {0, 1, 2, 7, 1000, 100003}) {
      std::vector<std::atomic<int>> hits(static_cast<size_t>(n));
      parallel_for(n, 3, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) ++hits[static_cast<size_t>(i)];
      });
      for (auto& h : hits) ASSERT_EQ(h.load(), 1);
    }
  }
}

TEST(Parallel, ChunksDoNotDependOnTheThreads) {
  Ranges one = ranges_of(1000, 7, 1, true);
  EXPECT_EQ(one.size(), 143u);
  EXPECT_EQ(one.begin()->second, 7);
  EXPECT_EQ(*one.rbegin(), std::pair(int64_t{994}, int64_t{1000}));
  EXPECT_EQ(ranges_of(1000, 7, 4, true), one);
}

TEST(Parallel, RangesBeginAtMultiplesOfTheGrain) {
  for (auto [begin, end] : ranges_of(1000, 16, 3, false)) {
    EXPECT_EQ(begin % 16, 0);
    EXPECT_TRUE(end % 16 == 0 || end == 1000);
  }
}

TEST(Parallel, OneThreadRunsTheWholeRangeHere) {
  auto here = std::this_thread::get_id();
  ThreadsScope scope(1);
  int calls = 0;
  parallel_for(1000, 1, [&](int64_t begin, int64_t end) {
    ++calls;
    EXPECT_EQ(std::this_thread::get_id(), here);
    EXPECT_EQ(end - begin, 1000);
  });
  EXPECT_EQ(calls, 1);
}

TEST(Parallel, SeveralThreadsTakePart) {
  std::mutex mutex;
  std::set<std::thread::id> ids;
  std::atomic<int> arrived{0};
  ThreadsScope scope(3);
  parallel_for(
      3, 1,
      [&](int64_t, int64_t) {
        {
          std::lock_guard lock(mutex);
          ids.insert(std::this_thread::get_id());
        }
        ++arrived;
        while (arrived < 3) std::this_thread::yield();  // each chunk waits for all: three threads
      },
      true);
  EXPECT_EQ(ids.size(), 3u);
}

TEST(Parallel, ABodyThatCallsAgainRunsAlone) {
  ThreadsScope scope(4);
  std::atomic<int64_t> sum{0};
  parallel_for(8, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      auto here = std::this_thread::get_id();
      parallel_for(100, 1, [&](int64_t b, int64_t e) {
        EXPECT_EQ(std::this_thread::get_id(), here);
        sum += e - b;
      });
    }
  });
  EXPECT_EQ(sum, 800);
}

TEST(Parallel, AnErrorReachesTheCaller) {
  for (int32_t threads : {1, 4}) {
    ThreadsScope scope(threads);
    try {
      parallel_for(100, 1, [](int64_t begin, int64_t end) {
        if (begin <= 50 && 50 < end) throw Error(ErrorKind::Usage, "at fifty");
      });
      FAIL();
    } catch (const Error& e) {
      EXPECT_EQ(e.message(), "at fifty");
      EXPECT_EQ(e.kind(), ErrorKind::Usage);
    }
    EXPECT_FALSE(has_error());
    int64_t after = 0;  // the pool still works
    ThreadsScope one(1);
    parallel_for(10, 1, [&](int64_t b, int64_t e) { after += e - b; });
    EXPECT_EQ(after, 10);
  }
}

TEST(Parallel, CallersShareThePool) {
  auto work = [] {
    ThreadsScope scope(3);
    for (int round = 0; round < 500; ++round) {
      std::atomic<int64_t> sum{0};
      parallel_for(100, 1, [&](int64_t b, int64_t e) {
        for (int64_t i = b; i < e; ++i) sum += i;
      });
      ASSERT_EQ(sum.load(), 4950);
    }
  };
  std::vector<std::thread> callers;
  callers.reserve(4);
  for (int i = 0; i < 4; ++i) callers.emplace_back(work);
  for (auto& t : callers) t.join();
  EXPECT_LE(pool_size(), 8);
}

TEST(Parallel, AChildOfAForkGetsThreadsOfItsOwn) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer ends a child of a fork that starts threads";
#endif
  ThreadsScope scope(2);
  std::atomic<int64_t> sum{0};
  auto run = [&] {
    sum = 0;
    parallel_for(100, 1, [&](int64_t b, int64_t e) { sum += e - b; });
    return sum.load() == 100;
  };
  ASSERT_TRUE(run());
  pid_t child = fork();
  if (child == 0) _exit(run() ? 0 : 1);
  int status = 1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

// A body that must not throw, but does.
TEST(Parallel, ABodyThatThrowsIsAnErrorOfTheLoop) {
  ThreadsScope scope(2);
  ParallelLoop loop;
  loop.n = 100;
  loop.each_chunk = true;
  loop.body = [](void*, int64_t, int64_t) -> int { throw std::bad_alloc(); };
  for (int32_t threads : {1, 2}) {
    loop.threads = threads;
    EXPECT_NE(try_parallel(loop), 0);
    EXPECT_EQ(take_error().message(), "out of memory");
  }
  // The thread still uses others: it no longer counts as inside a loop.
  std::atomic<int> here{0}, elsewhere{0};
  const std::thread::id caller = std::this_thread::get_id();
  for (int i = 0; i < 1000 && elsewhere == 0; ++i) {
    parallel_for(64, 1, [&](int64_t, int64_t) {
      ++(std::this_thread::get_id() == caller ? here : elsewhere);
      std::this_thread::yield();
    });
  }
  EXPECT_GT(elsewhere, 0);
}

TEST(Parallel, HelpersWorkForTheCallersCall) {
  struct Call : CallContext {
    std::atomic<size_t> counted{0};
    bool count_memory(size_t bytes) override {
      counted += bytes;
      return true;
    }
    void discount_memory(size_t) override {}
    void fail_memory(size_t) override { throw Error(ErrorKind::Runtime, "over the limit"); }
    void poll() override {}
    Ref<StorageObj> allocate(size_t, size_t) override { return {}; }
    bool may_write(const Tensor&) const override { return true; }
  } call;
  ThreadsScope scope(4);
  {
    CallContext::Scope within(&call);
    parallel_for(64, 1, [&](int64_t b, int64_t e) {
      CallContext::current()->count_memory(static_cast<size_t>(e - b));
      std::this_thread::yield();
    });
  }
  EXPECT_EQ(call.counted, 64u);
  parallel_for(64, 1, [&](int64_t, int64_t) { EXPECT_EQ(CallContext::current(), nullptr); });
}

TEST(Parallel, StopsBetweenPortionsWithTheCall) {
  struct Call : CallContext {
    std::atomic<int> polls{0};
    bool count_memory(size_t) override { return true; }
    void discount_memory(size_t) override {}
    void fail_memory(size_t) override { throw Error(ErrorKind::Runtime, "over the limit"); }
    void poll() override {
      if (++polls >= 5) throw Error(ErrorKind::Runtime, "stopped");
    }
    Ref<StorageObj> allocate(size_t, size_t) override { return {}; }
    bool may_write(const Tensor&) const override { return true; }
  } call;
  ThreadsScope threads(2);
  CallContext::Scope scope(&call);
  std::atomic<int> ran{0};
  EXPECT_THROW(parallel_for(1 << 20, 1, [&](int64_t, int64_t) { ++ran; }), Error);
  EXPECT_LT(ran, 8);
}

TEST(Parallel, AThreadBeginsWithTheShareOfItsPlace) {
  static int32_t place = 0;
  static const ThreadTeam team = {
      [](void (*work)(void*, int32_t), void* context, int32_t) { work(context, place); },
      [] { return int32_t{4}; }};
  set_thread_team(&team);
  auto order = [&](int32_t at) {
    place = at;
    std::vector<int64_t> seen;
    parallel_for(10, 1, [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i) seen.push_back(i);
    });
    return seen;
  };
  EXPECT_EQ(order(0), (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  EXPECT_EQ(order(2), (std::vector<int64_t>{6, 7, 8, 9, 0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(order(7), order(3));
  EXPECT_EQ(order(-1).size(), 10u);  // a host may pass anything
  set_thread_team(nullptr);
}

TEST(Parallel, AHostCanLendItsThreads) {
  static int32_t asked = 0;
  static const ThreadTeam team = {[](void (*work)(void*, int32_t), void* context, int32_t threads) {
                                    asked = threads;
                                    std::thread other(work, context, 1);
                                    other.join();  // it may do all the work
                                    work(context, 0);
                                  },
                                  [] { return int32_t{3}; }};
  set_thread_team(&team);
  const auto here = std::this_thread::get_id();
  std::atomic<int64_t> seen{0};
  parallel_for(5, 1, [&](int64_t b, int64_t e) {
    EXPECT_NE(std::this_thread::get_id(), here);
    seen += e - b;
  });
  int code = 0;
  {
    ParallelLoop loop;
    loop.n = 5;
    loop.body = [](void*, int64_t, int64_t) {
      set_error(Error(ErrorKind::Usage, "of a lent thread"));
      return 7;
    };
    code = try_parallel(loop);
  }
  set_thread_team(nullptr);
  EXPECT_EQ(asked, 3);
  EXPECT_EQ(seen, 5);
  EXPECT_EQ(code, 7);
  EXPECT_EQ(take_error().message(), "of a lent thread");
}

TEST(Processors, ReadsQuotas) {
  EXPECT_EQ(threads_of_cpu_max("max 100000\n"), 0);
  EXPECT_EQ(threads_of_cpu_max("200000 100000\n"), 2);
  EXPECT_EQ(threads_of_cpu_max("150000 100000\n"), 2);
  EXPECT_EQ(threads_of_cpu_max("1000 100000\n"), 1);
  EXPECT_EQ(threads_of_cpu_max("9223372036854775807 1"), 1 << 16);
  for (auto bad : {"", "x", "1", "1 ", "1 0", "-1 5"}) EXPECT_EQ(threads_of_cpu_max(bad), 0) << bad;
  EXPECT_EQ(threads_of_cfs_quota("-1\n", "100000\n"), 0);
  EXPECT_EQ(threads_of_cfs_quota("400000\n", "100000\n"), 4);
}

TEST(Processors, FindsItsCgroup) {
  EXPECT_EQ(cgroup_path("0::/a/b\n", ""), "/a/b");
  std::string_view v1 = "4:memory:/m\n3:cpu,cpuacct:/c\n0::/u\n";
  EXPECT_EQ(cgroup_path(v1, "cpu"), "/c");
  EXPECT_EQ(cgroup_path(v1, ""), "/u");
  EXPECT_EQ(cgroup_path(v1, "cpuset"), "");
  EXPECT_EQ(cgroup_path("garbage", "cpu"), "");
  EXPECT_GE(count_processors(), 1);
}

// A body that runs loops one after another, each adding 1 to every number.
struct Loops {
  static constexpr int kTimes = 300;
  std::vector<int> numbers = std::vector<int>(1000);
  std::thread::id leader = std::this_thread::get_id();
  bool led_elsewhere = false;
  int runs = 0;

  static int body(void* context, int64_t, int64_t) {
    auto& self = *static_cast<Loops*>(context);
    self.led_elsewhere |= std::this_thread::get_id() != self.leader;
    ++self.runs;
    for (int k = 0; k < kTimes; ++k) {
      parallel_for(1000, 10, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) ++self.numbers[static_cast<size_t>(i)];
      });
    }
    return 0;
  }
};

TEST(StandingTeam, RunsAllLoopsOfTheBody) {
  for (const int32_t threads : {1, 2, 5}) {
    ThreadsScope scope(threads);
    Loops loops;
    EXPECT_EQ(try_with_team(&Loops::body, &loops, 1), 0);
    EXPECT_EQ(loops.runs, 1);
    EXPECT_FALSE(loops.led_elsewhere);
    EXPECT_EQ(loops.numbers, std::vector<int>(1000, Loops::kTimes));
  }
}

TEST(StandingTeam, WakesAfterAPause) {
  ThreadsScope scope(3);
  std::atomic<int> hits{0};
  const auto body = [](void* context, int64_t, int64_t) {
    for (int k = 0; k < 3; ++k) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      parallel_for(64, 1, [&](int64_t begin, int64_t end) {
        *static_cast<std::atomic<int>*>(context) += static_cast<int>(end - begin);
      });
    }
    return 0;
  };
  EXPECT_EQ(try_with_team(body, &hits, 1), 0);
  EXPECT_EQ(hits.load(), 3 * 64);
}

// The error of a loop in the body reaches the body, and what the body returns its caller.
TEST(StandingTeam, ReturnsFailures) {
  ThreadsScope scope(3);
  const auto body = [](void*, int64_t, int64_t) {
    ParallelLoop loop;
    loop.n = 100;
    loop.body = [](void*, int64_t, int64_t end) {
      if (end < 100) return 0;
      set_error(Error(ErrorKind::Usage, "the last one fails"));
      return 7;
    };
    return try_parallel(loop);
  };
  EXPECT_EQ(try_with_team(body, nullptr, 1), 7);
  EXPECT_EQ(take_error().message(), "the last one fails");
}

TEST(StandingTeam, CatchesWhatTheBodyThrows) {
  ThreadsScope scope(2);
  const auto body = [](void*, int64_t, int64_t) -> int {
    throw Error(ErrorKind::Usage, "no loops today");
  };
  EXPECT_NE(try_with_team(body, nullptr, 1), 0);
  EXPECT_EQ(take_error().message(), "no loops today");
}

TEST(StandingTeam, MayBeAskedForWithinALoopOrAnotherTeam) {
  ThreadsScope scope(3);
  std::atomic<int> ran{0};
  const auto inner = [](void* context, int64_t, int64_t) {
    parallel_for(10, 1, [&](int64_t begin, int64_t end) {
      *static_cast<std::atomic<int>*>(context) += static_cast<int>(end - begin);
    });
    return 0;
  };
  static ParallelBody inner_body;
  inner_body = inner;
  parallel_for(4, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) EXPECT_EQ(try_with_team(inner, &ran, 1), 0);
  });
  EXPECT_EQ(ran.load(), 40);
  const auto outer = [](void* context, int64_t, int64_t) {
    return try_with_team(inner_body, context, 1);
  };
  EXPECT_EQ(try_with_team(outer, &ran, 1), 0);
  EXPECT_EQ(ran.load(), 50);
}

// A team that a host lends may run its threads one after another: its loops don't wait.
TEST(StandingTeam, IsNotMadeOfALentTeamThatMayNotWait) {
  static constexpr ThreadTeam one_by_one = {
      [](void (*work)(void*, int32_t), void* context, int32_t threads) {
        for (int32_t i = threads; i-- > 0;) work(context, i);
      },
      [] { return 4; }};
  set_thread_team(&one_by_one);
  Loops loops;
  EXPECT_EQ(try_with_team(&Loops::body, &loops, 1), 0);
  set_thread_team(nullptr);
  EXPECT_EQ(loops.runs, 1);
  EXPECT_EQ(loops.numbers, std::vector<int>(1000, Loops::kTimes));
}

}  // namespace
}  // namespace tenon
