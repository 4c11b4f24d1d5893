// Perfetto's TracePacket and what is in it, as protobuf bytes: the numbers of fields are those of
// protos/perfetto/trace/trace_packet.proto and the files that it imports.
#include <bit>
#include <map>

#include "report/trace_kind.h"
#include "report/writers.h"

namespace tenon::report {
namespace {

// A protobuf message that is being written.
class Message {
 public:
  Message& varint(uint32_t field, uint64_t value) {
    put(uint64_t{field} << 3);
    put(value);
    return *this;
  }
  Message& fixed64(uint32_t field, uint64_t value) {
    put(uint64_t{field} << 3 | 1);
    for (int i = 0; i < 8; ++i) bytes_.push_back(static_cast<char>(value >> (8 * i)));
    return *this;
  }
  Message& number(uint32_t field, double value) {
    return fixed64(field, std::bit_cast<uint64_t>(value));
  }
  Message& text(uint32_t field, std::string_view value) {
    put(uint64_t{field} << 3 | 2);
    put(value.size());
    bytes_ += value;
    return *this;
  }
  Message& message(uint32_t field, const Message& inner) { return text(field, inner.bytes_); }
  bool empty() const { return bytes_.empty(); }
  std::string take() { return std::move(bytes_); }

 private:
  void put(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_.push_back(static_cast<char>(value | 0x80));
    bytes_.push_back(static_cast<char>(value));
  }
  std::string bytes_;
};

namespace packet {
enum : uint32_t {
  Timestamp = 8,
  SequenceId = 10,
  TrackEvent = 11,
  InternedData = 12,
  SequenceFlags = 13,
  TrackDescriptor = 60,
};
}
namespace track {
enum : uint32_t { Uuid = 1, Name = 2, Process = 3, Thread = 4, Parent = 5, Counter = 8 };
}
namespace event {
enum : uint32_t {
  Categories = 3,
  Annotations = 4,
  Type = 9,
  Name = 10,
  Track = 11,
  CounterValue = 30,
  Flows = 47,
  EndingFlows = 48,
};
enum : uint64_t { Begin = 1, End = 2, CounterType = 4 };
}  // namespace event
namespace annotation {
enum : uint32_t { NameId = 1, Int = 4, Double = 5, String = 6 };
}
// Fields of InternedData.
enum class Interned : uint32_t { Category = 1, Name = 2, AnnotationName = 3 };

constexpr uint64_t kSequence = 1, kProcess = 1, kProcessTrack = 1, kMemoryTrack = 2,
                   kFirstThreadTrack = 16;

class Perfetto {
 public:
  Perfetto(const Timeline& timeline, const Peak& peak) : timeline_(timeline), peak_(peak) {}

  std::string write() {
    descriptors();
    // A flow begins at the interval that others continue.
    for (const Interval& interval : timeline_.intervals) {
      if (interval.caused_by >= 0) ++continued_[static_cast<size_t>(interval.caused_by)];
    }
    std::vector<size_t> open;
    for (size_t i = 0; i < timeline_.intervals.size(); ++i) {
      while (!open.empty() && static_cast<int64_t>(open.back()) != timeline_.intervals[i].parent) {
        end(open.back());
        open.pop_back();
      }
      begin(i);
      open.push_back(i);
    }
    for (; !open.empty(); open.pop_back()) end(open.back());
    return trace_.take();
  }

 private:
  void add(Message packet) {
    packet.varint(packet::SequenceId, kSequence);
    if (is_first_) {
      packet.varint(packet::SequenceFlags, 1 /* SEQ_INCREMENTAL_STATE_CLEARED */);
    } else {
      packet.varint(packet::SequenceFlags, 2 /* SEQ_NEEDS_INCREMENTAL_STATE */);
    }
    is_first_ = false;
    trace_.message(1, packet);
  }

  void descriptors() {
    Message process, named;
    named.varint(1, kProcess).text(6, "tenon");
    process.varint(track::Uuid, kProcessTrack).message(track::Process, named);
    add(std::move(Message().message(packet::TrackDescriptor, process)));
    for (size_t i = 0; i < timeline_.threads.size(); ++i) {
      Message thread, about;
      thread.varint(1, kProcess).varint(2, kProcess + i).text(5, timeline_.threads[i]);
      about.varint(track::Uuid, kFirstThreadTrack + i).varint(track::Parent, kProcessTrack);
      about.message(track::Thread, thread);
      add(std::move(Message().message(packet::TrackDescriptor, about)));
    }
    Message counter, memory;
    counter.varint(3, 3 /* UNIT_SIZE_BYTES */);
    memory.varint(track::Uuid, kMemoryTrack).varint(track::Parent, kProcessTrack);
    memory.text(track::Name, "storage").message(track::Counter, counter);
    add(std::move(Message().message(packet::TrackDescriptor, memory)));
  }

  // The number of a string; its first use also adds it to `new_strings`.
  uint64_t intern(Interned kind, const std::string& text, Message* new_strings) {
    const auto [at, is_new] = strings_.try_emplace({kind, text}, strings_.size() + 1);
    if (is_new) {
      Message entry;
      entry.varint(1, at->second).text(2, text);
      new_strings->message(static_cast<uint32_t>(kind), entry);
    }
    return at->second;
  }

  void send(int64_t ns, const Message& event, const Message& new_strings) {
    Message packet;
    packet.varint(packet::Timestamp, static_cast<uint64_t>(ns));
    if (!new_strings.empty()) packet.message(packet::InternedData, new_strings);
    add(std::move(packet.message(packet::TrackEvent, event)));
  }

  void begin(size_t i) {
    const Interval& interval = timeline_.intervals[i];
    Message event, strings;
    event.varint(event::Type, event::Begin);
    event.varint(event::Track, kFirstThreadTrack + interval.thread);
    event.varint(event::Categories,
                 intern(Interned::Category, std::string(about(interval.kind).category), &strings));
    event.varint(event::Name, intern(Interned::Name, interval.name, &strings));
    const auto annotate = [&](const char* name, auto put) {
      Message annotation;
      annotation.varint(annotation::NameId, intern(Interned::AnnotationName, name, &strings));
      put(annotation);
      event.message(event::Annotations, annotation);
    };
    if (!interval.file.empty()) {
      annotate("file", [&](Message& m) { m.text(annotation::String, interval.file); });
    }
    if (interval.call) {
      const Call& call = *interval.call;
      const std::string nodes = join(call.from.nodes, ", ");
      annotate("op", [&](Message& m) { m.text(annotation::String, call.op); });
      annotate("nodes", [&](Message& m) { m.text(annotation::String, nodes); });
      annotate("bytes",
               [&](Message& m) { m.varint(annotation::Int, static_cast<uint64_t>(call.bytes())); });
      if (call.flops) {
        annotate("flops", [&](Message& m) { m.number(annotation::Double, *call.flops); });
      }
      const auto share =
          share_of_roofline(call.flops, call.bytes(), interval.ns() - interval.inner_ns, peak_);
      if (share) annotate("roofline", [&](Message& m) { m.number(annotation::Double, *share); });
    }
    if (continued_.contains(i)) event.fixed64(event::Flows, i + 1);
    if (interval.caused_by >= 0) {
      const auto cause = static_cast<size_t>(interval.caused_by);
      const bool is_last = --continued_[cause] == 0;
      event.fixed64(is_last ? event::EndingFlows : event::Flows, cause + 1);
    }
    send(interval.begin_ns, event, strings);
    if (interval.call) memory(interval.begin_ns, interval.call->storage_before);
  }

  void end(size_t i) {
    const Interval& interval = timeline_.intervals[i];
    Message event;
    event.varint(event::Type, event::End);
    event.varint(event::Track, kFirstThreadTrack + interval.thread);
    send(interval.end_ns, event, {});
    if (interval.call) memory(interval.end_ns, interval.call->storage_after);
  }

  void memory(int64_t ns, int64_t bytes) {
    if (bytes == last_bytes_) return;
    last_bytes_ = bytes;
    Message event;
    event.varint(event::Type, event::CounterType).varint(event::Track, kMemoryTrack);
    event.varint(event::CounterValue, static_cast<uint64_t>(bytes));
    send(ns, event, {});
  }

  const Timeline& timeline_;
  const Peak& peak_;
  Message trace_;
  bool is_first_ = true;
  std::map<std::pair<Interned, std::string>, uint64_t> strings_;
  std::map<size_t, size_t> continued_;  // how many intervals continue one
  int64_t last_bytes_ = -1;
};

}  // namespace

std::string to_perfetto(const Timeline& timeline, const Peak& peak) {
  return Perfetto(timeline, peak).write();
}

}  // namespace tenon::report
