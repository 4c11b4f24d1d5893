// Generates docs/operators.md from the operator table.
#include <map>

#include "graph/ir/op.h"
#include "graph/op/register.h"

namespace tenon::graph {
namespace {

const char* kind_title(OpKind kind) {
  switch (kind) {
    case OpKind::kElementwise:
      return "Elementwise";
    case OpKind::kBroadcast:
      return "Broadcast";
    case OpKind::kReduction:
      return "Reductions";
    case OpKind::kNormalization:
      return "Normalisations";
    case OpKind::kContraction:
      return "Contractions";
    case OpKind::kMovement:
      return "Movement";
    case OpKind::kOpaque:
      return "Others";
  }
  return "";
}

std::string signature(const Operator& op) {
  std::vector<std::string> operands;
  for (const OperandSpec& spec : op.operands) {
    const char* mark = spec.arity == OperandSpec::kOptional   ? "?"
                       : spec.arity == OperandSpec::kVariadic ? "..."
                                                              : "";
    operands.push_back(cat(spec.name, mark));
  }
  return cat(op.name, "(", tenon::join(operands, ", "), ")");
}

// "`a` and `b`: a number." for operands that don't take every element type.
std::string operand_types(const Operator& op) {
  std::string out;
  for (size_t i = 0; i < op.operands.size();) {
    const DtypeSet dtypes = op.operands[i].dtypes;
    std::vector<std::string> names;
    for (; i < op.operands.size() && op.operands[i].dtypes == dtypes; ++i) {
      names.push_back(cat("`", op.operands[i].name, "`"));
    }
    if (dtypes == kElements || dtypes == kAny) continue;
    out += cat(out.empty() ? " " : ", ", tenon::join(names, ", "), ": ", describe(dtypes));
  }
  return out.empty() ? out : out + ".";
}

std::string entry(const Operator& op) {
  std::string out = cat("### `", signature(op), "`\n\n", op.summary, ".", operand_types(op));
  std::vector<std::string> notes;
  if (op.element) notes.push_back("also on scalars");
  if (op.view) notes.push_back("moves no data");
  if (op.value) notes.push_back("carries sizes");
  if (op.packed) notes.push_back(cat("calls `", op.packed, "`"));
  if (op.expand) notes.push_back("made of other operators");
  if (!notes.empty()) out += cat(" (", tenon::join(notes, "; "), ")");
  out += "\n";
  if (!op.attrs.empty()) {
    out += "\n| attribute | kind | default | meaning |\n| --- | --- | --- | --- |\n";
    for (const AttrSpec& a : op.attrs) {
      std::string fallback = a.default_text ? cat("`", a.default_text, "`") : "required";
      out += cat("| ", a.name, " | ", kind_name(a.kind), " | ", fallback, " | ", a.meaning, " |\n");
    }
  }
  return out + "\n";
}

}  // namespace

std::string operators_document() {
  std::map<OpKind, std::string> sections;
  for (const Operator* op : OperatorTable::global().all()) sections[op->kind] += entry(*op);
  std::string out =
      "# Operators\n\n"
      "Generated from the operator table (src/graph/op); don't edit. `x?` may be absent; `x...` "
      "is one\n"
      "or more operands. Unless stated otherwise, the operands of an operator and its result have "
      "the\n"
      "same dtype, which may be any but string (docs/language.md). Axes may be\n"
      "negative. Sizes may be symbolic. Broadcasting is as in numpy. An operator \"carries sizes\" "
      "if\n"
      "the elements of a small integer result are known as expressions whenever those of its "
      "operands\n"
      "are.\n\n";
  for (const auto& [kind, text] : sections) out += cat("## ", kind_title(kind), "\n\n", text);
  while (out.size() > 1 && out[out.size() - 2] == '\n') out.pop_back();
  return out;
}

}  // namespace tenon::graph
