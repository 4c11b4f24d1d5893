#include "graph/ir/name_text.h"
#include "graph/ir/print_kernel.h"
#include "graph/ir/print_scalar.h"
#include "graph/ir/type.h"
#include "loop/walk.h"

namespace tenon::graph {

namespace {

using namespace loop;  // NOLINT: a printer of every node of it

class ComputePrinter : ScalarPrinter {
 public:
  explicit ComputePrinter(std::string* out) : ScalarPrinter(out) {}

  void compute(const Compute& c, std::string_view name) {
    parameters(c, name);
    out_ += integers(c.integers);
    stages(c);
  }

  void recurrence(const Recurrence& r, std::string_view name) {
    const Compute& step = *r.step;
    parameters(step, name);
    out_ += cat(integers(r.integers), " repeat ", dim_text(r.trip_count), " with (");
    std::vector<std::string> parts;
    if (r.counter != Recurrence::kNoCounter) {
      parts.push_back(cat("counter ", name_of(step.inputs, r.counter)));
    }
    for (const auto& state : r.states) {
      parts.push_back(cat("state ", name_of(step.inputs, state.input()), " = ",
                          name_of(step.outputs, state.output())));
    }
    for (const int64_t row : r.rows) parts.push_back(cat("rows ", name_of(step.outputs, row)));
    for (size_t i = 0; i < parts.size(); ++i) out_ += cat(i ? ", " : "", parts[i]);
    out_ += ")";
    stages(step);
  }

 private:
  std::string name_of(const Array<Ref<const Buffer>>& list, int64_t i) {
    const Buffer& b = *list[static_cast<size_t>(i)];
    return unique(&b, b.name);
  }

  void parameters(const Compute& c, std::string_view name) {
    out_ += cat("compute @", name_text(name), "(", buffers(c.inputs), ") -> (");
    for (size_t i = 0; i < c.outputs.size(); ++i) {
      out_ += cat(i ? ", " : "", unique(c.outputs[i].get(), c.outputs[i]->name));
    }
    out_ += ")";
  }

  void stages(const Compute& c) {
    out_ += " {\n";
    for (const auto& s : c.stages) stage(*s);
    out_ += "}\n";
  }

  void stage(const Stage& s) {
    uses_.clear();
    Seen seen;
    for (const ExprRef& e : stage_exprs(s)) count_uses(e, &seen);
    const std::string_view reduction = kReductionNames[static_cast<size_t>(s.reduction)];
    std::string kind;
    switch (s.kind) {
      case StageKind::kMap:
        kind = "map";
        break;
      case StageKind::kScan:
        kind = cat("scan along ", s.scan_axis);
        break;
      case StageKind::kReduce:
        kind = cat("reduce ", reduction);
        if (!s.accumulate.is_void()) kind += cat(" in ", to_text(s.accumulate));
        if (s.padding_is_skippable) kind += " skip_padding";
        if (s.may_use_winograd) kind += " winograd";
        break;
      case StageKind::kScatter:
        kind = cat("scatter ", reduction);
        break;
    }
    std::string axes;
    for (const auto& a : s.axes) axes += cat(axes.empty() ? "" : ", ", unique(a.get(), a->name));
    std::string over;
    for (size_t i = 0; i < s.reduce_axes.size(); ++i) {
      over += cat(i ? ", " : " over [", unique(s.reduce_axes[i].get(), s.reduce_axes[i]->name),
                  " < ", dim_text(s.reduce_extents[i]));
    }
    over += s.reduce_axes.empty() ? " over []" : "]";
    const std::string out =
        cat(unique(s.out.get(), s.out->name), ": ", buffer_type(*s.out), " at [", axes, "]");
    line(1, cat(kind, " ", out, s.kind == StageKind::kReduce ? over : "", " {"));
    block([&] { return expr(2, s.body); });
    if (s.kind == StageKind::kScatter) {
      out_ += cat(over, " {\n");
      block([&] {
        const std::string at = exprs(2, s.scatter_indices), update = expr(2, s.update);
        return cat("[", at, "] = ", update);
      });
    }
    out_ += "\n";
    for (const auto* list : {&s.axes, &s.reduce_axes}) {
      for (const auto& a : *list) forget(a.get());
    }
  }

  // Prints the lines of a block and its end; `result` prints the named parts.
  template <class F>
  void block(const F& result) {
    std::vector<const Expr*> outer = open_parts();
    line(2, result());
    close_parts(std::move(outer));
    pad(1);
    out_ += "}";
  }
};

}  // namespace

void print_compute(const loop::Compute& compute, std::string_view name, std::string* out) {
  ComputePrinter(out).compute(compute, name);
}

void print_recurrence(const loop::Recurrence& recurrence, std::string_view name, std::string* out) {
  ComputePrinter(out).recurrence(recurrence, name);
}

}  // namespace tenon::graph
