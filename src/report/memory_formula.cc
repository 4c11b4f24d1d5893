#include "report/memory_formula.h"

#include <algorithm>
#include <map>

#include "graph/ir/text.h"
#include "loop/dim_sum.h"
#include "loop/symbol_set.h"
#include "report/memory_walk.h"
#include "support/error.h"
#include "support/text.h"

namespace tenon::report {
namespace memory {
namespace {

// Text that is not a size, in a stranger's file, counts as one symbol.
Dim size_of(const vm::SignatureDim& dim) {
  if (dim.is_constant()) return dim.value;
  try {
    return graph::parse_size(dim.text);
  } catch (const Error&) {
    return Dim::symbol(dim.text);
  }
}

// What is known of a host's argument, which keeps no storage of the call.
ValueRef argument_of(const vm::SignatureType& type, const std::string& name, Unknowns* unknowns) {
  Value out;
  using Kind = vm::SignatureType::Kind;
  if (type.dims_known) {
    auto& dims = out.dims.emplace();
    for (const vm::SignatureDim& dim : type.dims) {
      const Dim size = size_of(dim);
      SymbolSet symbols;
      collect_symbols(size, &symbols);
      for (const std::string& symbol : symbols) unknowns->size(symbol);
      dims.emplace_back(size);
    }
    if (type.kind == Kind::Tensor) out.dtype = type.dtype;
  } else if (type.kind == Kind::Scalar && !type.dtype.is_float()) {
    out.number = unknowns->symbol(cat("%", name), cat("the argument ", name));
  } else if (type.kind == Kind::Tuple) {
    auto& fields = out.fields.emplace();
    for (size_t i = 0; i < type.parts.size(); ++i) {
      fields.push_back(argument_of(type.parts[i], cat(name, ".", i), unknowns));
    }
  }
  return made(std::move(out));
}

// A sum's terms: coefficients by what they multiply.
using Terms = std::map<std::string, std::pair<Dim, int64_t>>;

void add_term(const Dim& term, Terms* out) {
  Dim monomial = term;
  int64_t coefficient = 1;
  if (const auto constant = term.as_const()) {
    coefficient = *constant;
    monomial = 1;
  } else if (term.kind() == DimKind::kMul) {
    if (const auto first = Dim(term.node().args[0]).as_const()) {
      coefficient = *first;
      monomial = 1;
      for (size_t i = 1; i < term.node().args.size(); ++i) {
        monomial = monomial * Dim(term.node().args[i]);
      }
    }
  }
  out->emplace(to_text(monomial), std::pair(monomial, coefficient));
}

Terms terms_of(const Dim& d) {
  Terms out;
  if (d.kind() != DimKind::kAdd) {
    add_term(d, &out);
  } else {
    for (const auto& term : d.node().args) add_term(Dim(term), &out);
  }
  return out;
}

// The largest, with what all have in common outside of the maximum.
Dim largest(const Amounts& amounts) {
  if (amounts.empty()) return 0;
  Terms common = terms_of(*amounts.begin());
  for (const Dim& amount : amounts) {
    const Terms terms = terms_of(amount);
    for (auto it = common.begin(); it != common.end();) {
      int64_t& coefficient = it->second.second;
      const auto found = terms.find(it->first);
      coefficient = found == terms.end() ? 0 : std::min(coefficient, found->second.second);
      it = coefficient > 0 ? std::next(it) : common.erase(it);
    }
  }
  DimSum shared;
  for (const auto& [_, term] : common) shared.add(term.first, term.second);
  const Dim outside = shared.total();
  Dim most = *amounts.begin() - outside;
  for (const Dim& amount : amounts) most = max(most, amount - outside);
  return most + outside;
}

MemoryFormula formula_of(Analysis& analysis, size_t function) {
  MemoryFormula out;
  const std::string name = cat("@", analysis.unit().functions[function].name);
  try {
    Amounts amounts;
    for (const Dim& peak : analysis.call_from_host(function).peaks) {
      amounts.add(analysis.defined(peak));
    }
    out.bytes = largest(amounts);
  } catch (const Unanalysed&) {
    out.bytes = analysis.unknowns().symbol(cat("peak(", name, ")"),
                                           cat("what ", name, " takes, whose code is too large"));
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::Usage) throw;  // a sum of sizes that is too large
    out.bytes = analysis.unknowns().symbol(cat("peak(", name, ")"),
                                           cat("what ", name, " takes, whose sizes are too large"));
  }
  SymbolSet symbols;
  collect_symbols(out.bytes, &symbols);
  for (const std::string& symbol : symbols) {
    const std::string meaning = analysis.unknowns().meaning(symbol);
    if (meaning.empty()) {
      out.sizes.push_back(symbol);
    } else {
      out.unknowns.push_back({symbol, meaning});
    }
  }
  return out;
}

}  // namespace

Summary Analysis::call_from_host(size_t function) {
  active_.clear();
  State arguments;
  for (const vm::Param& param : unit_.functions[function].params) {
    arguments.push_back(argument_of(param.type, param.name, &unknowns_));
  }
  return analyse(function, arguments, StorageTable());
}

}  // namespace memory

std::vector<MemoryFormula> memory_formulas(const vm::Unit& unit) {
  std::vector<MemoryFormula> out;
  memory::Analysis analysis(unit);
  for (size_t i = 0; i < unit.functions.size(); ++i) {
    out.push_back(memory::formula_of(analysis, i));
  }
  return out;
}

}  // namespace tenon::report
