#include "device/thread_pool.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "object/function.h"

namespace tenon {

namespace {

constexpr int32_t kMostThreads = 1024;
constexpr int kSpins = 4000;    // of about 10 ns: loops follow each other closely within a model
constexpr int64_t kSlices = 4;  // chunks are handed out in about so many portions per thread

constinit thread_local bool inside_loop = false;

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// A loop in progress; lives on its caller's stack, which waits until no worker looks at it.
struct Job {
  const ParallelLoop* loop;
  int64_t chunks;
  int64_t portion;  // chunks that are taken at once
  std::atomic<int64_t> next{0};
  std::atomic<int> workers{0};  // that are inside `work`; entered under the pool's mutex
  int32_t wanted;               // workers that may still join, under the pool's mutex

  std::atomic<bool> failed{false};
  std::mutex error_mutex;
  int64_t error_at = 0;  // the range of the kept error begins here
  int error_code = 0;
  Ref<ErrorObj> error;

  void work() {
    while (!failed.load(std::memory_order_relaxed)) {
      int64_t first = next.fetch_add(portion, std::memory_order_relaxed);
      if (first >= chunks) return;
      int64_t last = std::min(chunks, first + portion);
      if (loop->each_chunk) {
        for (int64_t c = first; c < last; ++c) {
          if (!run(c, c + 1)) return;
        }
      } else if (!run(first, last)) {
        return;
      }
    }
  }

  bool run(int64_t first, int64_t last) {
    int64_t begin = first * loop->grain;
    int64_t end = last == chunks ? loop->n : last * loop->grain;
    int code;
    try {
      code = loop->body(loop->context, begin, end);
    } catch (...) {  // a worker has nobody above it who could catch
      code = set_current_exception();
    }
    if (code == 0) return true;
    std::lock_guard lock(error_mutex);
    if (error_code == 0 || begin < error_at) {
      error_at = begin;
      error_code = code;
      error = take_error_object();
    }
    failed.store(true, std::memory_order_relaxed);
    return false;
  }
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
    job.work();
    {
      std::lock_guard lock(mutex_);
      auto at = std::find(jobs_.begin(), jobs_.end(), &job);
      if (at != jobs_.end()) jobs_.erase(at);
    }
    // Nobody can join any more; those inside are at their last portion.
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
      // A fork leaves the child without these threads: it starts with a new pool and lets this one
      // lie, whose mutex may be locked for ever.
      static const int registered = pthread_atfork(nullptr, nullptr, [] { pool_.store(nullptr); });
      (void)registered;
      p = new Pool;  // never deleted: threads may run until the process ends
      pool_.store(p, std::memory_order_release);
    }
    return *p;
  }

  // With the mutex held. Where the system has no more threads or no memory, fewer help, or none.
  void offer(Job& job, int32_t helpers) noexcept {
    try {
      while (static_cast<int32_t>(count_) < std::min(helpers, kMostThreads)) {
        std::thread([this] { serve(); }).detach();
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
    for (size_t i = 0; i < jobs_.size(); ++i) {
      Job* job = jobs_[i];
      if (--job->wanted == 0) jobs_.erase(jobs_.begin() + static_cast<std::ptrdiff_t>(i));
      job->workers.fetch_add(1, std::memory_order_relaxed);
      return job;
    }
    return nullptr;
  }

  void serve() {
    inside_loop = true;
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
      job->work();
      job->workers.fetch_sub(1, std::memory_order_release);  // the job may be gone from here on
    }
  }

  static constinit std::atomic<Pool*> pool_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Job*> jobs_;           // that want workers, oldest first
  std::atomic<uint64_t> offers_{0};  // jobs ever offered: what a spinning thread watches
  size_t count_ = 0;
  int32_t sleeping_ = 0;
};
constinit std::atomic<Pool*> Pool::pool_{nullptr};

}  // namespace

int run_on_pool(const ParallelLoop* loop) {
  if (loop->n <= 0) return 0;
  int64_t grain = std::max<int64_t>(1, loop->grain);
  ParallelLoop sane = *loop;
  sane.grain = grain;
  int64_t chunks = loop->n / grain + (loop->n % grain != 0);
  int32_t threads = loop->threads > 0 ? loop->threads : scoped_threads();
  if (threads <= 0) threads = parallel_table().thread_count();
  if (inside_loop) threads = 1;
  threads = static_cast<int32_t>(std::min<int64_t>({threads, chunks, kMostThreads}));
  if (threads <= 1 && !sane.each_chunk) return sane.body(sane.context, 0, sane.n);

  Job job;
  job.loop = &sane;
  job.chunks = chunks;
  job.portion = threads <= 1 ? chunks : std::max<int64_t>(1, chunks / (threads * kSlices));
  job.wanted = 0;
  {
    struct Inside {
      bool outer = std::exchange(inside_loop, true);
      ~Inside() { inside_loop = outer; }
    } inside;
    if (threads <= 1) {
      job.work();
    } else {
      Pool::get().run(job, threads - 1);
    }
  }
  if (job.error_code != 0) set_error_object(std::move(job.error));
  return job.error_code;
}

int32_t pool_size() {
  return Pool::get().size();
}

}  // namespace tenon
