// Events: what the process does, on one clock, while a recording is in progress
// (trace_recording.h).
//
//   { trace::Scope scope(trace::Kind::Phase, "import"); ... }
//
// An event begins or ends an interval, and consists of 64-bit words:
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
// While nothing is recorded, each place that could record an event costs a load.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string_view>

namespace tenon::trace {

// What an interval is of, and what its events hold: trace_kinds.def.
enum class Kind : uint8_t {
#define TENON_TRACE_KIND(identifier, ...) identifier,
#include "support/trace_kinds.def"
};
constexpr bool is_call_instruction(Kind kind) {
  return kind == Kind::Function || kind == Kind::Closure || kind == Kind::Packed ||
         kind == Kind::Kernel;
}

// A word: the kind of an argument in its low 32 bits.
enum ArgumentKind : uint32_t {
  kTensor = 0,          // plus its rank; the high half is its dtype's word; its dimensions follow
  kInteger = 1u << 30,  // its value follows
  kOther,               // nothing follows
  kFunction,            // the index of a function of the program follows
};

// Where events go while a recording is in progress (trace_recording.h). It is never destroyed.
class Sink {
 public:
  bool records_calls = false;  // of functions and closures, too

  // Record an event of the calling thread; without memory for it, it is dropped. Names longer than
  // 255 bytes are cut.
  virtual void append(Kind kind, bool ends, uint32_t number, uint64_t key,
                      std::span<const uint64_t> payload) noexcept = 0;
  virtual void begin(Kind kind, std::string_view name) noexcept = 0;
  // Keeps an object that events refer to by `key` until the recording is gone, so that its names
  // can be read then: calls `hold` once, and `release` at the end.
  virtual void keep(uint64_t key, const void* object, void (*hold)(const void*),
                    void (*release)(const void*)) noexcept = 0;
  // A number that no other call returns: for keys.
  virtual uint64_t new_key() noexcept = 0;

 protected:
  ~Sink() = default;
};
// Null while nothing is recorded.
extern std::atomic<Sink*> sink;

// An interval for as long as it lives.
class Scope {
 public:
  Scope(Kind kind, std::string_view name) noexcept
      : to_(sink.load(std::memory_order_acquire)), kind_(kind) {
    if (to_) [[unlikely]]
      to_->begin(kind, name);
  }
  Scope(Kind kind, uint32_t number, uint64_t key) noexcept
      : to_(sink.load(std::memory_order_acquire)), kind_(kind) {
    if (to_) [[unlikely]]
      to_->append(kind, false, number, key, {});
  }
  ~Scope() {
    if (to_) [[unlikely]]
      to_->append(kind_, true, 0, 0, {});
  }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  Sink* const to_;
  const Kind kind_;
};

}  // namespace tenon::trace
