#include "loop/dim.h"
#include "support/text.h"

namespace tenon {

namespace {

void print(const DimNode& n, std::string* out) {
  switch (n.kind) {
    case DimKind::kConst:
      append_text(*out, static_cast<long long>(n.value));
      return;
    case DimKind::kSymbol:
      append_text(*out, n.name.view());
      return;
    case DimKind::kAdd:
      for (size_t i = 0; i < n.args.size(); ++i) {
        std::string term;
        print(*n.args[i], &term);
        if (i == 0) {
          *out += term;
        } else if (term[0] == '-') {
          *out += " - " + term.substr(1);
        } else {
          *out += " + " + term;
        }
      }
      return;
    case DimKind::kMul: {
      bool first = true;
      for (const Ref<const DimNode>& f : n.args) {
        if (first && f->kind == DimKind::kConst && f->value == -1) {
          *out += "-";
          continue;
        }
        if (!first) *out += "*";
        first = false;
        print(*f, out);
      }
      return;
    }
    default:
      break;
  }
  *out += find_dim_function(n.kind)->name;
  *out += "(";
  for (size_t i = 0; i < n.args.size(); ++i) {
    if (i) *out += ", ";
    print(*n.args[i], out);
  }
  *out += ")";
}

}  // namespace

std::string to_text(const Dim& d) {
  std::string out;
  print(d.node(), &out);
  return out;
}

}  // namespace tenon
