#include <unistd.h>

#include "json/json.h"
#include "report/trace_kind.h"
#include "report/writers.h"

namespace tenon::report {
namespace {

using trace::Kind;

// As in ONNX Runtime's profiles: "float", "int64", "bool".
std::string type_name(DataType dtype) {
  if (dtype == f32) return "float";
  if (dtype == f64) return "double";
  if (dtype.is_bool()) return "bool";
  if (dtype == bf16) return "bfloat16";
  if (dtype.is_float() && dtype.bits < 16) return to_text(dtype);
  return cat(dtype.is_float()          ? "float"
             : dtype.is_complex()      ? "complex"
             : dtype.is_unsigned_int() ? "uint"
                                       : "int",
             int{dtype.bits});
}

int64_t bytes_of(const std::vector<Argument>& tensors, bool constant) {
  int64_t all = 0;
  for (const Argument& tensor : tensors) all += tensor.is_constant == constant ? tensor.bytes() : 0;
  return all;
}

class Chrome {
 public:
  Chrome(const Timeline& timeline, const Peak& peak) : timeline_(timeline), peak_(peak) {}

  std::string write() {
    out_.begin_array();
    metadata("process_name", 0, "tenon");
    for (size_t i = 0; i < timeline_.threads.size(); ++i) {
      metadata("thread_name", i, timeline_.threads[i]);
    }
    for (size_t i = 0; i < timeline_.intervals.size(); ++i) interval(i);
    return out_.end_array().take() + "\n";
  }

 private:
  JsonWriter& event(std::string_view category, std::string_view name, const char* phase,
                    size_t thread) {
    out_.begin_object().key("cat").value(category).key("name").value(name);
    out_.key("ph").value(phase).key("pid").value(static_cast<int64_t>(getpid()));
    return out_.key("tid").value(static_cast<int64_t>(thread));
  }
  JsonWriter& at(const char* key, int64_t ns) {
    return out_.key(key).value(static_cast<double>(ns) / 1e3);
  }

  void metadata(const char* what, size_t thread, const std::string& name) {
    event("__metadata", what, "M", thread).key("args").begin_object();
    out_.key("name").value(name).end_object().end_object();
  }

  void interval(size_t i) {
    const Interval& interval = timeline_.intervals[i];
    const std::string name = interval.kind == Kind::Entry ? "model_run" : interval.name;
    event(about(interval.kind).onnx_category, interval.call ? node_name(interval) : name, "X",
          interval.thread);
    at("ts", interval.begin_ns);
    at("dur", interval.ns()).key("args").begin_object();
    out_.key("id").value(static_cast<int64_t>(i));
    if (interval.kind == Kind::Entry) {
      out_.key("function").value(interval.name).key("file").value(interval.file);
    }
    if (interval.call) arguments(interval);
    out_.end_object().end_object();
    if (interval.caused_by >= 0) flow(i);
    if (interval.call) {
      memory(interval.begin_ns, interval.call->storage_before);
      memory(interval.end_ns, interval.call->storage_after);
    }
  }

  // ONNX Runtime adds "_kernel_time" to the node's name.
  static std::string node_name(const Interval& interval) {
    const std::vector<std::string>& nodes = interval.call->from.nodes;
    return cat(nodes.empty() ? interval.name : join(nodes, "+"), "_kernel_time");
  }

  void shapes(const char* key, const std::vector<Argument>& tensors) {
    out_.key(key).begin_array();
    for (const Argument& tensor : tensors) {
      out_.begin_object().key(type_name(tensor.dtype)).begin_array();
      for (const int64_t size : tensor.shape) out_.value(size);
      out_.end_array().end_object();
    }
    out_.end_array();
  }

  void arguments(const Interval& interval) {
    const Call& call = *interval.call;
    out_.key("op_name").value(call.op).key("provider").value("CPUExecutionProvider");
    out_.key("node_index").value(cat(call.site));
    shapes("input_type_shape", call.inputs);
    shapes("output_type_shape", call.outputs);
    out_.key("activation_size").value(cat(bytes_of(call.inputs, false)));
    out_.key("parameter_size").value(cat(bytes_of(call.inputs, true)));
    out_.key("output_size").value(cat(bytes_of(call.outputs, false)));
    out_.key(interval.kind == Kind::Kernel ? "kernel" : "function").value(interval.name);
    out_.key("nodes").begin_array();
    for (const std::string& node : call.from.nodes) out_.value(node);
    out_.end_array().key("at").value(to_text(Span::at(call.from.file, call.from.line)));
    out_.key("caller").value(call.caller).key("bytes").value(call.bytes()).key("flops");
    call.flops ? out_.value(*call.flops) : out_.null();
    const auto share =
        share_of_roofline(call.flops, call.bytes(), interval.ns() - interval.inner_ns, peak_);
    out_.key("roofline");
    share ? out_.value(*share) : out_.null();
    out_.key("self_us").value(static_cast<double>(interval.ns() - interval.inner_ns) / 1e3);
  }

  void flow(size_t i) {
    const Interval& to = timeline_.intervals[i];
    const Interval& from = timeline_.intervals[static_cast<size_t>(to.caused_by)];
    event("flow", "starts", "s", from.thread).key("id").value(static_cast<int64_t>(i));
    at("ts", from.begin_ns).end_object();
    event("flow", "starts", "f", to.thread).key("id").value(static_cast<int64_t>(i));
    out_.key("bp").value("e");
    at("ts", to.begin_ns).end_object();
  }

  void memory(int64_t ns, int64_t bytes) {
    if (bytes == last_bytes_) return;
    last_bytes_ = bytes;
    event("Memory", "storage", "C", 0);
    at("ts", ns).key("args").begin_object().key("bytes").value(bytes).end_object().end_object();
  }

  const Timeline& timeline_;
  const Peak& peak_;
  JsonWriter out_;
  int64_t last_bytes_ = -1;
};

}  // namespace

std::string to_chrome_json(const Timeline& timeline, const Peak& peak) {
  return Chrome(timeline, peak).write();
}

}  // namespace tenon::report
