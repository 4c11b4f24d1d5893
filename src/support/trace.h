// The recorder: what the process does, as events on one clock. `tenon trace` and `tenon.profile()`
// turn a recording into pictures (src/report).
//
//   trace::start();                                  // all threads record from here on
//   { trace::Scope scope(trace::Kind::Phase, "import"); ... }
//   const trace::Recording recording = trace::stop();
//
// Each thread appends events to a buffer of its own. An event begins or ends an interval, and
// consists of 64-bit words:
//
//    63        48 47      40 39      32 31                        0
//   +------------+----------+----------+---------------------------+
//   |  payload   | ends (1) |   kind   |          number           |
//   +------------+----------+----------+---------------------------+
//   |  nanoseconds of the monotonic clock                          |
//   +--------------------------------------------------------------+
//   |  key                                                         |
//   +--------------------------------------------------------------+
//   |  as many words as `payload` says                             |
//   +--------------------------------------------------------------+
//
// Intervals of a thread nest. An event ends the innermost open interval of its kind (and, for call
// instructions, of its number and key), and also those within it: an exception may have left them.
//
// While nothing is recorded, each place that could record an event costs a relaxed load.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace tenon::trace {

enum class Kind : uint8_t {
  Phase,    // of compiling or loading; payload: its name
  Codegen,  // a kernel is written as LLVM IR; payload: the kernel's name
  Loop,     // a thread's part in a parallel loop; key: the loop
  Entry,    // a machine is called; number: the function's index; key: the program, which is kept as
            // a Ref<const vm::Program>
  // A call instruction, by what it calls. number: the caller's index; key: the instruction's offset
  // in the caller's code; payload: the bytes of storage in use, then (where it begins) an
  // ArgumentKind for each argument with what follows it.
  Function,
  Closure,
  Packed,
  Kernel,
};
constexpr bool is_call_instruction(Kind kind) {
  return kind >= Kind::Function;
}

// A word: the kind of an argument in its low 32 bits.
enum ArgumentKind : uint32_t {
  kTensor = 0,          // plus its rank; the high half is its dtype's word; its dimensions follow
  kInteger = 1u << 30,  // its value follows
  kOther,               // nothing follows
};

// What is recorded.
enum Mode : uint32_t {
  kOff = 0,
  kOn = 1,
  kCalls = 2,  // besides kOn: calls of functions and closures, too
};

struct Recording;

// The recorder behind the functions below. It is one object with pointers to its functions, so that
// the runtime exports a single symbol for it to the compiler's library.
struct Recorder {
  std::atomic<uint32_t> mode;
  void (*append)(Kind kind, bool ends, uint32_t number, uint64_t key,
                 std::span<const uint64_t> payload) noexcept;
  void (*start)(bool calls);
  Recording (*stop)();
};
extern Recorder recorder;

inline bool is_on() {
  return recorder.mode.load(std::memory_order_relaxed) != kOff;
}
inline bool records_calls() {
  return (recorder.mode.load(std::memory_order_relaxed) & kCalls) != 0;
}

// Record an event of the calling thread. If there is no memory, the event is dropped.
inline void begin(Kind kind, uint32_t number, uint64_t key,
                  std::span<const uint64_t> payload = {}) noexcept {
  recorder.append(kind, false, number, key, payload);
}
inline void end(Kind kind, uint32_t number = 0, uint64_t key = 0,
                std::span<const uint64_t> payload = {}) noexcept {
  recorder.append(kind, true, number, key, payload);
}
// Names longer than 255 bytes are cut.
inline void begin(Kind kind, std::string_view name) noexcept {
  uint64_t words[32] = {};
  const size_t size = name.copy(reinterpret_cast<char*>(words), sizeof words - 1);
  begin(kind, 0, 0, {words, (size + 7) / 8});
}

// An interval for as long as it lives.
class Scope {
 public:
  Scope(Kind kind, std::string_view name) noexcept : is_open_(is_on()), kind_(kind) {
    if (is_open_) [[unlikely]]
      begin(kind, name);
  }
  Scope(Kind kind, uint32_t number, uint64_t key) noexcept : is_open_(is_on()), kind_(kind) {
    if (is_open_) [[unlikely]]
      begin(kind, number, key);
  }
  ~Scope() {
    if (is_open_) [[unlikely]]
      end(kind_);
  }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  bool is_open_;
  Kind kind_;
};

// A number that no other call returns: for keys.
uint64_t new_key() noexcept;

// Keeps an object that events refer to by `key` until the recording is gone, so that its names can
// be read then. If there is no memory, it is not kept.
bool is_kept(uint64_t key) noexcept;
void keep(uint64_t key, std::shared_ptr<const void> object) noexcept;

struct Recording {
  struct Thread {
    std::vector<uint64_t> words;  // events
    uint64_t dropped = 0;         // events that were not recorded, for lack of memory
  };
  struct Kept {
    uint64_t key;
    std::shared_ptr<const void> object;
  };
  int64_t begin_ns = 0, end_ns = 0;
  std::vector<Thread> threads;  // that recorded something
  std::vector<Kept> kept;
};

// Starts a recording. Throws Usage if one is in progress: there is one per process.
inline void start(bool calls = false) {
  recorder.start(calls);
}
// Ends it. Throws Usage if there is none. Intervals that are still open have no end in it.
inline Recording stop() {
  return recorder.stop();
}

// An event in a recording.
struct Event {
  Kind kind;
  bool ends;
  uint32_t number;
  int64_t ns;
  uint64_t key;
  std::span<const uint64_t> payload;
};
// Calls `f(event)` for each event of a thread, in the order of time.
template <class F>
void for_each_event(const std::vector<uint64_t>& words, const F& f) {
  for (size_t at = 0; at + 3 <= words.size();) {
    const uint64_t head = words[at];
    const size_t payload = head >> 48;
    f(Event{static_cast<Kind>(head >> 32 & 0xff), (head >> 40 & 0xff) != 0,
            static_cast<uint32_t>(head), static_cast<int64_t>(words[at + 1]), words[at + 2],
            std::span(words).subspan(at + 3, payload)});
    at += 3 + payload;
  }
}

}  // namespace tenon::trace
