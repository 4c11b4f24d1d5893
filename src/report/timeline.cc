#include "report/timeline.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>

#include "driver/model_graph.h"
#include "driver/shown_names.h"
#include "library/signatures/signatures.h"
#include "report/code_calls.h"

namespace tenon::report {
namespace {

using driver::shown_name;
using driver::shown_names;
using trace::Kind;

// A program that the recording refers to, with the facts that its file keeps about its kernels.
class ProgramFacts {
 public:
  explicit ProgramFacts(const vm::Program& program) : unit_(program.unit()), name_(program.name()) {
    if (unit_.graph.empty()) return;
    try {
      graph_ = driver::model_graph_from_json(unit_.graph, name_);
    } catch (const Error&) {
      // The calls are worth showing without it; `tenon report` says what is wrong with it.
    }
  }

  const std::string& name() const { return name_; }
  std::string function_name(uint32_t index) const {
    return index < unit_.functions.size() ? unit_.functions[index].name : "";
  }

  const CodeCall& call(uint32_t function, uint64_t offset) {
    if (read_.insert(function).second && function < unit_.functions.size()) {
      for_each_step(unit_, unit_.functions[function], [&](const CodeStep& step) {
        if (step.call) calls_[{function, step.offset}] = *step.call;
      });
    }
    return calls_[{function, offset}];
  }

  const driver::KernelFacts* kernel(const std::string& name) const {
    const auto found = graph_.kernels.find(name);
    return found == graph_.kernels.end() ? nullptr : &found->second;
  }

 private:
  const vm::Unit& unit_;
  const std::string& name_;
  driver::ModelGraph graph_;
  std::set<uint32_t> read_;
  std::map<std::pair<uint32_t, uint64_t>, CodeCall> calls_;
};

// An argument as the recorder wrote it: a tensor, an integer, or neither.
struct Recorded {
  std::optional<Argument> tensor;
  std::optional<int64_t> integer;
};

std::vector<Recorded> arguments_of(std::span<const uint64_t> words) {
  std::vector<Recorded> out;
  for (size_t at = 0; at < words.size();) {
    const uint64_t word = words[at++];
    const auto kind = static_cast<uint32_t>(word);
    Recorded& argument = out.emplace_back();
    if (kind == trace::kFunction) {
      ++at;
    } else if (kind == trace::kInteger && at < words.size()) {
      argument.integer = static_cast<int64_t>(words[at++]);
    } else if (kind < trace::kInteger) {
      Argument& tensor = argument.tensor.emplace();
      tensor.dtype = DataType::from_word(static_cast<uint32_t>(word >> 32));
      for (uint32_t i = 0; i < kind && at < words.size(); ++i) {
        tensor.shape.push_back(static_cast<int64_t>(words[at++]));
      }
    }
  }
  return out;
}

double count(const Argument& tensor) {
  double n = 1;
  for (const int64_t size : tensor.shape) n *= static_cast<double>(size);
  return n;
}

std::optional<double> flops_of(const driver::KernelFacts& kernel,
                               const std::vector<Recorded>& arguments) {
  if (!kernel.flops) return std::nullopt;
  const auto value = [&](std::string_view name) -> std::optional<int64_t> {
    const auto symbol = std::ranges::find(kernel.symbols, name, &driver::KernelFacts::Symbol::name);
    if (symbol == kernel.symbols.end() || symbol->argument >= arguments.size()) return std::nullopt;
    const Recorded& argument = arguments[symbol->argument];
    if (!symbol->axis) return argument.integer;
    if (!argument.tensor || *symbol->axis >= argument.tensor->shape.size()) return std::nullopt;
    return argument.tensor->shape[*symbol->axis];
  };
  const auto all = evaluate(*kernel.flops, value);
  return all ? std::optional(static_cast<double>(*all)) : std::nullopt;
}

// Of the library functions that multiply matrices, whose work their operands' shapes determine.
std::optional<double> flops_of_library(std::string_view name,
                                       const std::vector<Recorded>& arguments) {
  using library::argument;
  using library::signature;
  const auto tensor = [&](size_t at) -> const Argument* {
    return at < arguments.size() && arguments[at].tensor ? &*arguments[at].tensor : nullptr;
  };
  if (name == "onednn.convolution") {
    constexpr const library::Signature& f = signature("onednn.convolution");
    const Argument* weights = tensor(argument(f, "weights"));
    const Argument* out = tensor(argument(f, "out"));
    if (!weights || !out || weights->shape.empty() || weights->shape.back() == 0) return {};
    return 2 * count(*out) * count(*weights) / static_cast<double>(weights->shape.back());
  }
  if (name == "onednn.matmul") {
    constexpr const library::Signature& f = signature("onednn.matmul");
    const Argument* a = tensor(argument(f, "a"));
    const Argument* b = tensor(argument(f, "b"));
    const Argument* out = tensor(argument(f, "out"));
    if (!a || !b || !out || out->shape.size() < 2 || count(*out) == 0) return {};
    // An operand that isn't broadcast has batch*m*k or batch*k*n elements, the result batch*m*n.
    const double n = static_cast<double>(out->shape.back());
    const double m = static_cast<double>(out->shape[out->shape.size() - 2]);
    const double k = std::max(count(*a) * n, count(*b) * m) / count(*out);
    return 2 * count(*out) * k;
  }
  return std::nullopt;
}

std::string text_of(std::span<const uint64_t> words) {
  std::string text(reinterpret_cast<const char*>(words.data()), words.size_bytes());
  text.erase(std::find(text.begin(), text.end(), '\0'), text.end());
  return text;
}

class Reading {
 public:
  explicit Reading(const trace::Recording& recording) : recording_(recording) {
    for (const trace::Recording::Kept& kept : recording.kept) {
      programs_.try_emplace(kept.key, *program_of(kept));
    }
  }

  Timeline read() {
    std::vector<const trace::Recording::Thread*> threads;
    for (const auto& thread : recording_.threads) threads.push_back(&thread);
    std::ranges::stable_sort(threads, {}, [](const auto* thread) {
      return thread->words.size() > 1 ? thread->words[1] : UINT64_MAX;
    });
    out_.ns = recording_.end_ns - recording_.begin_ns;
    for (const trace::Recording::Thread* thread : threads) {
      out_.threads.push_back(out_.threads.empty() ? "main" : cat("thread ", out_.threads.size()));
      out_.dropped += thread->dropped;
      read(*thread);
    }
    find_causes();
    return std::move(out_);
  }

 private:
  // An interval of the thread that has begun and not ended.
  struct Open {
    size_t interval;
    Kind kind;
    uint32_t number;
    uint64_t key;
    ProgramFacts* program;  // whose code runs
  };

  void read(const trace::Recording::Thread& thread) {
    open_.clear();
    trace::for_each_event(thread.words, [&](const trace::Event& event) {
      const int64_t at = event.ns - recording_.begin_ns;
      if (!event.ends) return begin(event, at);
      const auto opened = std::find_if(open_.rbegin(), open_.rend(), [&](const Open& open) {
        return open.kind == event.kind && (!trace::is_call_instruction(event.kind) ||
                                           (open.number == event.number && open.key == event.key));
      });
      if (opened == open_.rend()) return;  // it began before the recording
      const size_t left = static_cast<size_t>(open_.rend() - opened) - 1;
      if (auto& call = out_.intervals[open_[left].interval].call; call && !event.payload.empty()) {
        call->storage_after = static_cast<int64_t>(event.payload[0]);
      }
      while (open_.size() > left) end(at);
    });
    while (!open_.empty()) end(out_.ns);
  }

  void begin(const trace::Event& event, int64_t at) {
    Interval interval;
    interval.kind = event.kind;
    interval.thread = out_.threads.size() - 1;
    interval.begin_ns = at;
    ProgramFacts* program = nullptr;
    if (!open_.empty()) {
      interval.parent = static_cast<int64_t>(open_.back().interval);
      program = open_.back().program;
    }
    switch (event.kind) {
      case Kind::Phase:
      case Kind::Codegen:
        interval.name = shown_name(text_of(event.payload));
        break;
      case Kind::Loop:
        interval.name = "loop";
        loops_[event.key].push_back(out_.intervals.size());
        break;
      case Kind::Entry: {
        const auto found = programs_.find(event.key);
        program = found == programs_.end() ? nullptr : &found->second;
        if (program) interval.name = shown_name(program->function_name(event.number));
        if (program) interval.file = program->name();
        break;
      }
      case Kind::Function:
        if (program) interval.name = shown_name(program->call(event.number, event.key).callee.name);
        break;
      case Kind::Closure:
        interval.name = "closure";
        if (program && event.payload.size() > 2 && event.payload[1] == trace::kFunction) {
          interval.name =
              shown_name(program->function_name(static_cast<uint32_t>(event.payload[2])));
        }
        break;
      case Kind::Packed:
      case Kind::Kernel:
        if (program) describe_call(event, *program, &interval);
        break;
    }
    open_.push_back({out_.intervals.size(), event.kind, event.number, event.key, program});
    out_.intervals.push_back(std::move(interval));
  }

  void describe_call(const trace::Event& event, ProgramFacts& program, Interval* interval) {
    const CodeCall& code = program.call(event.number, event.key);
    const std::string callee(code.callee.name);
    interval->name = shown_name(callee);
    Call& call = interval->call.emplace();
    name_source(event, program, code, &call);
    call.site = site_number(program, event);
    if (event.payload.empty()) return;
    call.storage_before = call.storage_after = static_cast<int64_t>(event.payload[0]);
    const std::vector<Recorded> arguments = arguments_of(event.payload.subspan(1));
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (!arguments[i].tensor) continue;
      Argument tensor = *arguments[i].tensor;
      const CodeCall::Argument known =
          i < code.arguments.size() ? code.arguments[i] : CodeCall::Argument();
      tensor.is_constant = known.is_constant;
      (known.is_output ? call.outputs : call.inputs).push_back(std::move(tensor));
    }
    const driver::KernelFacts* kernel = program.kernel(callee);
    call.flops = event.kind == Kind::Kernel && kernel ? flops_of(*kernel, arguments)
                                                      : flops_of_library(callee, arguments);
  }

  void name_source(const trace::Event& event, const ProgramFacts& program, const CodeCall& code,
                   Call* call) {
    const std::string callee(code.callee.name);
    const std::string op =
        event.kind == Kind::Kernel ? driver::operators_of_kernel(callee) : callee;
    Call named;
    named.op = shown_name(op);
    named.caller = shown_name(program.function_name(event.number));
    if (code.from) {
      named.from.file = shown_name(code.from->file);
      named.from.line = code.from->line;
      named.from.nodes = shown_names(code.from->nodes);
    }
    size_t bytes = named.op.size() + named.caller.size() + named.from.file.size();
    for (const std::string& node : named.from.nodes) bytes += node.size();
    if (bytes > kMostCallText - call_text_) {
      ++out_.without_source;
      return;
    }
    call_text_ += bytes;
    *call = std::move(named);
  }

  uint64_t site_number(const ProgramFacts& program, const trace::Event& event) {
    return sites_.try_emplace({&program, event.number, event.key}, sites_.size()).first->second;
  }

  void end(int64_t at) {
    const Open ended = open_.back();
    open_.pop_back();
    Interval& interval = out_.intervals[ended.interval];
    interval.end_ns = std::max(interval.begin_ns, at);
    if (!interval.call) return;
    for (auto around = open_.rbegin(); around != open_.rend(); ++around) {
      Interval& outer = out_.intervals[around->interval];
      if (!outer.call) continue;
      outer.inner_ns += interval.ns();
      break;
    }
  }

  void find_causes() {
    for (const auto& [key, parts] : loops_) {
      const size_t first = *std::ranges::min_element(
          parts, {}, [&](size_t i) { return out_.intervals[i].begin_ns; });
      for (const size_t part : parts) {
        if (out_.intervals[part].thread == out_.intervals[first].thread) continue;
        out_.intervals[part].caused_by = static_cast<int64_t>(first);
      }
    }
    std::map<std::string, size_t> written;
    for (size_t i = 0; i < out_.intervals.size(); ++i) {
      if (out_.intervals[i].kind == Kind::Codegen) written[out_.intervals[i].name] = i;
    }
    for (Interval& interval : out_.intervals) {
      if (interval.kind != Kind::Kernel) continue;
      const auto found = written.find(interval.name);
      if (found == written.end()) continue;
      interval.caused_by = static_cast<int64_t>(found->second);
      written.erase(found);
    }
  }

  const trace::Recording& recording_;
  std::map<uint64_t, ProgramFacts> programs_;
  Timeline out_;
  size_t call_text_ = 0;  // of out_, in bytes
  std::vector<Open> open_;
  std::map<uint64_t, std::vector<size_t>> loops_;  // by key
  std::map<std::tuple<const ProgramFacts*, uint32_t, uint64_t>, uint64_t> sites_;
};

}  // namespace

Ref<const vm::Program> program_of(const trace::Recording::Kept& kept) {
  return Ref<const vm::Program>(static_cast<const vm::Program*>(kept.object.get()));
}

int64_t Argument::bytes() const {
  return static_cast<int64_t>(count(*this)) * dtype.bytes();
}

int64_t Call::bytes() const {
  int64_t all = 0;
  for (const auto* tensors : {&inputs, &outputs}) {
    for (const Argument& tensor : *tensors) all += tensor.bytes();
  }
  return all;
}

Timeline read_timeline(const trace::Recording& recording) {
  return Reading(recording).read();
}

std::vector<Layer> layers_of(const Timeline& timeline) {
  std::vector<Layer> layers;
  std::map<uint64_t, size_t> by_site;
  for (const Interval& interval : timeline.intervals) {
    if (!interval.call) continue;
    const auto [at, is_new] = by_site.try_emplace(interval.call->site, layers.size());
    if (is_new) {
      Layer& layer = layers.emplace_back();
      layer.name = interval.name;
      layer.is_kernel = interval.kind == Kind::Kernel;
      layer.first = *interval.call;
      layer.flops = 0;
    }
    Layer& layer = layers[at->second];
    layer.each_ns.push_back(interval.ns() - interval.inner_ns);
    layer.total_ns += layer.each_ns.back();
    layer.bytes += interval.call->bytes();
    if (layer.flops && interval.call->flops) {
      *layer.flops += *interval.call->flops;
    } else {
      layer.flops.reset();
    }
  }
  return layers;
}

}  // namespace tenon::report
