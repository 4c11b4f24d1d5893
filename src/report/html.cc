#include "report/html.h"

#include <algorithm>
#include <map>
#include <optional>
#include <sstream>

#include "codegen/llvm/disassemble.h"
#include "driver/model_graph.h"
#include "json/json.h"
#include "report/page.h"
#include "report/picture.h"
#include "report/trace_kind.h"
#include "vm/executable/kernel_choice.h"
#include "vm/isa/allocation.h"
#include "vm/isa/operand_index.h"

namespace tenon::report {
namespace {

using trace::Kind;

// What a page holds at most, so that a browser stays quick.
constexpr size_t kMostIntervals = 40'000, kMostSamples = 20'000, kMostLines = 600;

std::string argument_text(const Argument& tensor) {
  std::vector<std::string> sizes;
  for (const int64_t size : tensor.shape) sizes.push_back(cat(size));
  return cat(tensor_type_text(join(sizes, ", "), tensor.dtype),
             tensor.is_constant ? ", a constant" : "");
}

// A place of the memory plan: a tensor in an arena, from the step that makes it to its last use.
struct Slot {
  std::string name;
  int64_t offset = 0, bytes = 0;
  size_t from = 0, to = 0;
};
struct Arena {
  std::vector<Slot> slots;
  size_t steps = 0;
};

// The plan of the function `main`, or else of the first one. Tensors whose sizes depend on the
// arguments have no place in it.
std::optional<Arena> arena_of(const vm::Unit& unit) {
  if (unit.functions.empty()) return std::nullopt;
  const int64_t main = unit.find_exported("main");
  const vm::FunctionUnit& function = unit.functions[main < 0 ? 0 : static_cast<size_t>(main)];
  Arena arena;
  std::map<uint32_t, int64_t> storages;          // by register: where it begins
  std::map<uint32_t, std::optional<Slot>> open;  // by register
  int64_t end = 0;
  const auto close = [&](uint32_t reg) {
    const auto at = open.find(reg);
    if (at == open.end()) return;
    if (at->second) arena.slots.push_back(*at->second);
    open.erase(at);
  };
  vm::Instruction instruction;
  for (uint32_t at = 0; at < function.code.size() && vm::decode(function.code, at, &instruction);
       at += instruction.words(), ++arena.steps) {
    using vm::Opcode;
    const Opcode opcode = instruction.opcode();
    std::string callee;
    std::vector<uint32_t> written;
    for (uint32_t i = 0; i < instruction.operands.size(); ++i) {
      const vm::Arg arg = instruction.arg(i);
      if (arg.is(vm::ArgKind::Packed)) callee = unit.packed[arg.index()].name;
      if (!arg.is_register()) continue;
      if (vm::role_of(instruction, i) == vm::OperandRole::Writes) {
        written.push_back(arg.index());
        continue;
      }
      if (const auto used = open.find(arg.index()); used != open.end() && used->second) {
        used->second->to = arena.steps;
        if (used->second->name.empty()) used->second->name = callee;
      }
    }
    for (const uint32_t reg : written) close(reg);
    if (opcode == Opcode::AllocStorage) {
      const vm::Arg size = instruction.arg(vm::operand(Opcode::AllocStorage, "size"));
      if (written.empty() || !size.is(vm::ArgKind::Immediate)) continue;
      storages[written[0]] = end;
      end += size.value();
    } else if (opcode == Opcode::AllocTensor && !written.empty()) {
      const vm::Arg storage = instruction.arg(vm::operand(Opcode::AllocTensor, "storage"));
      const vm::Arg offset = instruction.arg(vm::operand(Opcode::AllocTensor, "offset"));
      const auto base = storages.find(storage.index());
      const bool is_static = base != storages.end() && offset.is(vm::ArgKind::Immediate);
      const auto bytes = vm::known_tensor_bytes(instruction);
      if (!is_static || !bytes) continue;
      open[written[0]] = Slot{"", base->second + offset.value(), *bytes, arena.steps, arena.steps};
    } else if (opcode == Opcode::AllocResult && !written.empty()) {
      // In a storage of its own, unless the caller gives one.
      const auto bytes = vm::known_tensor_bytes(instruction);
      if (!bytes) continue;
      open[written[0]] = Slot{"", end, *bytes, arena.steps, arena.steps};
      end += *bytes;
    }
  }
  while (!open.empty()) close(open.begin()->first);
  if (arena.slots.empty()) return std::nullopt;
  return arena;
}

// The native code of each kernel that this machine would run: from its entry to the next one's.
std::map<std::string, std::string> assembly_of(const vm::Unit& unit) {
  std::map<std::string, std::string> out;
  const vm::KernelTarget* target = vm::choose_kernels(unit, std::nullopt);
  const vm::KernelImage* object = target ? target->host_object() : nullptr;
  if (!object) return out;
  std::string all;
  try {
    all = codegen::disassemble(object->bytes);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::Unsupported) throw;
    return out;
  }
  std::istringstream lines(all);
  std::string line, *current = nullptr;
  size_t count = 0;
  while (std::getline(lines, line)) {
    if (!line.empty() && line.back() == ':' && line[0] != ' ') {
      current = &out[line.substr(0, line.size() - 1)];
      count = 0;
    } else if (current && count <= kMostLines) {
      *current += ++count > kMostLines ? "...\n" : line + "\n";
    }
  }
  return out;
}

class Data {
 public:
  explicit Data(const Report& report) : report_(report) {
    if (report.timeline) layers_ = layers_of(*report.timeline);
    const vm::Unit* unit = report.unit;
    if (unit && !unit->graph.empty()) {
      graph_ = driver::model_graph_from_json(unit->graph, report.title);
    }
    if (!unit) return;
    if (graph_) {
      for (driver::FunctionGraph& f : graph_->functions) {
        before_.push_back({f.name, f.before});
        after_.push_back({f.name, f.after});
      }
    } else {
      for (const vm::FunctionUnit& f : unit->functions) {
        if (f.exported) after_.push_back({f.name, graph_of_code(*unit, f)});
      }
    }
  }

  std::string json() {
    out_.begin_object().key("facts").begin_array();
    for (const auto& [name, value] : report_.facts) {
      out_.begin_array().value(name).value(value).end_array();
    }
    out_.end_array();
    graphs();
    kernels();
    layers();
    timeline();
    memory();
    arena();
    out_.key("peak").begin_object();
    out_.key("flops").value(report_.peak.flops_per_second);
    out_.key("bytes").value(report_.peak.bytes_per_second).end_object();
    out_.key("limits").begin_array();
    for (const Report::Limit& limit : report_.limits) {
      out_.begin_array().value(limit.name).value(limit.used).value(limit.allowed).end_array();
    }
    out_.end_array();
    reasons();
    return out_.end_object().take();
  }

  // The pictures as templates of the page; one without nodes is left out.
  std::string templates() const {
    std::string out;
    for (const auto& [name, drawings] :
         {std::pair("before", &before_), std::pair("after", &after_)}) {
      if (drawings->empty()) continue;
      out += cat("<template id=\"svg-", name, "\">", to_svg(*drawings, Style::FromPage),
                 "</template>\n");
    }
    return out;
  }

 private:
  void texts(const char* key, const std::vector<std::string>& list) {
    out_.key(key).begin_array();
    for (const std::string& text : list) out_.value(text);
    out_.end_array();
  }

  // Numbered through all functions, like the nodes in the pictures.
  void graphs() {
    out_.key("graphs").begin_object();
    for (const auto& [name, drawings] :
         {std::pair("before", &before_), std::pair("after", &after_)}) {
      out_.key(name).begin_array();
      for (const Drawing& drawing : *drawings) {
        for (const driver::GraphNode& node : drawing.nodes) {
          out_.begin_object().key("label").value(node.label).key("type").value(node.type);
          texts("sources", node.sources);
          texts("weights", node.weights);
          out_.end_object();
        }
      }
      out_.end_array();
    }
    out_.end_object();
  }

  void kernels() {
    out_.key("kernels").begin_array();
    if (report_.unit) {
      const auto assembly = assembly_of(*report_.unit);
      for (const vm::PackedName& packed : report_.unit->packed) {
        if (!packed.kernel) continue;
        out_.begin_object().key("name").value(packed.name).key("text");
        const driver::KernelFacts* facts = nullptr;
        if (graph_ && graph_->kernels.contains(packed.name)) facts = &graph_->kernels[packed.name];
        facts ? out_.value(facts->text) : out_.null();
        const auto code = assembly.find(packed.name);
        out_.key("assembly");
        code == assembly.end() ? out_.null() : out_.value(code->second);
        out_.end_object();
      }
    }
    out_.end_array();
  }

  void layers() {
    int64_t all = 0;
    for (const Layer& layer : layers_) all += layer.total_ns;
    out_.key("layers").begin_array();
    for (const Layer& layer : layers_) {
      out_.begin_object().key("name").value(layer.name).key("op").value(layer.first.op);
      out_.key("isKernel").value(layer.is_kernel);
      texts("nodes", layer.first.from.nodes);
      out_.key("at").value(to_text(Span::at(layer.first.from.file, layer.first.from.line)));
      out_.key("calls").value(static_cast<int64_t>(layer.each_ns.size()));
      out_.key("ns").value(layer.total_ns).key("bytes").value(layer.bytes);
      out_.key("share").value(all ? static_cast<double>(layer.total_ns) / static_cast<double>(all)
                                  : 0.0);
      out_.key("flops");
      layer.flops ? out_.value(*layer.flops) : out_.null();
      const auto share = share_of_roofline(layer.flops, layer.bytes, layer.total_ns, report_.peak);
      out_.key("roofline");
      share ? out_.value(*share) : out_.null();
      for (const auto& [key, tensors] :
           {std::pair("inputs", &layer.first.inputs), std::pair("outputs", &layer.first.outputs)}) {
        out_.key(key).begin_array();
        for (const Argument& tensor : *tensors) out_.value(argument_text(tensor));
        out_.end_array();
      }
      out_.end_object();
    }
    out_.end_array();
  }

  void timeline() {
    out_.key("timeline");
    if (!report_.timeline || report_.timeline->intervals.empty()) {
      out_.null();
      return;
    }
    const Timeline& timeline = *report_.timeline;
    out_.begin_object().key("ns").value(timeline.ns);
    texts("threads", timeline.threads);
    out_.key("categories").begin_object();
    for (const TraceKind& kind : kTraceKinds) {
      out_.key(std::string(kind.name)).value(std::string(kind.category));
    }
    out_.end_object();
    out_.key("intervals").begin_array();
    for (const Interval& interval : longest(timeline)) {
      out_.begin_array().value(static_cast<int64_t>(interval.thread)).value(interval.begin_ns);
      out_.value(interval.end_ns).value(std::string(about(interval.kind).name));
      out_.value(interval.name).end_array();
    }
    out_.end_array().end_object();
  }

  // The longest intervals, in their order.
  static std::vector<Interval> longest(const Timeline& timeline) {
    std::vector<Interval> all = timeline.intervals;
    if (all.size() <= kMostIntervals) return all;
    std::vector<int64_t> lengths;
    for (const Interval& interval : all) lengths.push_back(interval.ns());
    const auto nth = lengths.begin() + kMostIntervals;
    std::ranges::nth_element(lengths, nth, std::greater());
    const int64_t least = *nth;
    std::erase_if(all, [&](const Interval& interval) { return interval.ns() <= least; });
    return all;
  }

  void memory() {
    std::vector<std::pair<int64_t, int64_t>> samples;
    if (report_.timeline) {
      for (const Interval& interval : report_.timeline->intervals) {
        if (!interval.call) continue;
        samples.emplace_back(interval.begin_ns, interval.call->storage_before);
        samples.emplace_back(interval.end_ns, interval.call->storage_after);
      }
    }
    std::ranges::stable_sort(samples, {}, &std::pair<int64_t, int64_t>::first);
    const size_t step = samples.size() / kMostSamples + 1;
    out_.key("memory").begin_array();
    for (size_t i = 0; i < samples.size(); i += step) {
      out_.begin_array().value(samples[i].first).value(samples[i].second).end_array();
    }
    out_.end_array();
  }

  void arena() {
    out_.key("arena");
    const auto found = report_.unit ? arena_of(*report_.unit) : std::nullopt;
    if (!found) {
      out_.null();
      return;
    }
    out_.begin_object().key("end").value(static_cast<int64_t>(found->steps));
    out_.key("slots").begin_array();
    for (const Slot& slot : found->slots) {
      out_.begin_object().key("name").value(slot.name).key("offset").value(slot.offset);
      out_.key("bytes").value(slot.bytes).key("from").value(static_cast<int64_t>(slot.from));
      out_.key("to").value(static_cast<int64_t>(slot.to)).end_object();
    }
    out_.end_array().end_object();
  }

  // What the page says where it has nothing to show.
  void reasons() {
    constexpr char kNotRun[] = "The program was not run for this report.";
    out_.key("withoutGraph")
        .value(report_.unit
                   ? cat("The file does not contain the model's graph. Give the model itself, or "
                         "compile it with ",
                         driver::kKeepGraph, ".")
                   : "No program was called while this was recorded.");
    out_.key("missing").begin_object();
    const bool was_run =
        report_.timeline && std::ranges::any_of(report_.timeline->intervals, [](const Interval& i) {
          return i.kind == Kind::Entry;
        });
    const char* const nothing_called =
        was_run ? "The program called no kernel or library function." : kNotRun;
    for (const char* key : {"layers", "memory"}) out_.key(key).value(nothing_called);
    out_.key("timeline").value("Nothing was recorded.");
    out_.key("limits").value(was_run ? "A recording does not have the limits of calls: `tenon "
                                       "report` shows what its calls used of theirs."
                                     : kNotRun);
    out_.key("arena").value(
        "No value has a fixed place: the program keeps no values, or all their sizes depend on the "
        "inputs.");
    out_.key("roofline")
        .value(was_run ? cat("The number of operations is not known: give the model itself, or "
                             "compile it with ",
                             driver::kKeepGraph, ".")
                       : std::string(kNotRun));
    out_.end_object();
  }

  const Report& report_;
  std::optional<driver::ModelGraph> graph_;
  std::vector<Drawing> before_, after_;
  std::vector<Layer> layers_;
  JsonWriter out_;
};

// JSON in a script element: no `<` may end the element or begin a comment.
std::string within_script(const std::string& json) {
  std::string out;
  out.reserve(json.size());
  for (const char c : json) {
    if (c == '<') {
      out += "\\u003c";
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace

std::string to_html(const Report& report) {
  Data data(report);
  const std::string title = escape_markup(report.title);
  std::string body = kPageHtml;
  constexpr std::string_view kTitle = "%title%";
  body.replace(body.find(kTitle), kTitle.size(), title);
  return cat(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
      "'unsafe-inline'; script-src 'unsafe-inline'; img-src data:\">\n"
      "<title>",
      title, " - Tenon</title>\n<style>\n", kPageCss, "</style>\n</head>\n<body>\n", body,
      data.templates(), "<script type=\"application/json\" id=\"data\">",
      within_script(data.json()), "</script>\n<script>\n", kPageJs,
      "</script>\n</body>\n</html>\n");
}

}  // namespace tenon::report
