#include "device/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "device/parallel.h"
#include "device/relax.h"
#include "support/fork.h"

namespace tenon {

namespace {

// Work in progress. It lives on its caller's stack; the caller waits until no worker uses it.
struct Job {
  void (*work)(void* context, int32_t place);
  void* context;
  int32_t wanted = 0;           // workers that may still join; guarded by the pool's mutex
  std::atomic<int> workers{0};  // inside `work`; incremented under the pool's mutex
};

class Pool {
 public:
  static Pool& get() {
    Pool* p = pool_.load(std::memory_order_acquire);
    return p ? *p : make();
  }

  void run(Job& job, int32_t helpers) {
    {
      std::lock_guard lock(mutex_);
      offer(job, helpers);
      helpers = std::min(job.wanted, sleeping_);
    }
    for (int32_t i = 0; i < helpers; ++i) wake_.notify_one();
    job.work(job.context, 0);
    {
      std::lock_guard lock(mutex_);
      auto at = std::find(jobs_.begin(), jobs_.end(), &job);
      if (at != jobs_.end()) jobs_.erase(at);
    }
    // No worker can join any more; those inside are at their last portion.
    for (int spins = 0; job.workers.load(std::memory_order_acquire) != 0; ++spins) {
      if (spins < kSpins) {
        relax();
      } else {
        std::this_thread::yield();
      }
    }
  }

  int32_t size() {
    std::lock_guard lock(mutex_);
    return static_cast<int32_t>(count_);
  }

 private:
  static Pool& make() {
    static std::mutex making;
    std::lock_guard lock(making);
    Pool* p = pool_.load();
    if (!p) {
      // After a fork the child doesn't have these threads, and the mutex may be locked for ever: it
      // leaks this pool and starts with a new one.
      static const bool registered = in_forked_children([] { pool_.store(nullptr); });
      (void)registered;
      p = new Pool;  // never destroyed: threads may run until the process ends
      pool_.store(p, std::memory_order_release);
    }
    return *p;
  }

  // A struct, whose name is shorter than a lambda's: a thread keeps it as text.
  struct Serving {
    Pool* pool;
    int32_t place;
    void operator()() const { pool->serve(place); }
  };

  // Call with the mutex held. If the system has no more threads or no memory, fewer or none help.
  void offer(Job& job, int32_t helpers) noexcept {
    try {
      while (static_cast<int32_t>(count_) < std::min(helpers, kMostThreads)) {
        const auto place = static_cast<int32_t>(count_ + 1);
        std::thread(Serving{this, place}).detach();
        ++count_;
      }
    } catch (const std::exception&) {
    }
    try {
      job.wanted = std::min(helpers, static_cast<int32_t>(count_));
      if (job.wanted == 0) return;
      jobs_.push_back(&job);
      offers_.fetch_add(1, std::memory_order_release);
    } catch (const std::exception&) {
      job.wanted = 0;
    }
  }

  Job* take() {  // with the mutex held
    if (jobs_.empty()) return nullptr;
    Job* job = jobs_.front();
    if (--job->wanted == 0) jobs_.erase(jobs_.begin());
    job->workers.fetch_add(1, std::memory_order_relaxed);
    return job;
  }

  void serve(int32_t place) {
    uint64_t seen = 0;
    while (true) {
      for (int i = 0; i < kSpins && offers_.load(std::memory_order_relaxed) == seen; ++i) relax();
      Job* job;
      {
        std::unique_lock lock(mutex_);
        while (!(job = take())) {
          seen = offers_.load(std::memory_order_relaxed);
          ++sleeping_;
          wake_.wait(lock);
          --sleeping_;
        }
        seen = offers_.load(std::memory_order_relaxed);
      }
      job->work(job->context, place);
      job->workers.fetch_sub(1,
                             std::memory_order_release);  // the job may be destroyed from here on
    }
  }

  static constinit std::atomic<Pool*> pool_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Job*> jobs_;           // that still need workers, oldest first
  std::atomic<uint64_t> offers_{0};  // the number of jobs ever offered, watched by spinning threads
  size_t count_ = 0;
  int32_t sleeping_ = 0;
};
constinit std::atomic<Pool*> Pool::pool_{nullptr};

}  // namespace

void run_on_pool(void (*work)(void*, int32_t), void* context, int32_t threads) {
  Job job{work, context};
  Pool::get().run(job, threads - 1);
}

int32_t pool_size() {
  return Pool::get().size();
}

}  // namespace tenon
