// Functions with parameters of unknown rank, `tensor[*; f32]`, whose body needs the ranks: the body
// is parsed once for each rank, which gives functions of these ranks, and the function itself
// becomes the choice between them.

#include <algorithm>
#include <optional>
#include <set>

#include "graph/ir/intrinsic.h"
#include "graph/ir/name_text.h"
#include "graph/ir/parser.h"

namespace tenon::graph {
namespace {

constexpr int64_t kHighestRank = 6;
constexpr size_t kMostClones = 64;

// How many ranks, from 0 on, each of so many parameters may have.
int64_t ranks_of_each(size_t parameters) {
  int64_t ranks = kHighestRank + 1;
  const auto clones = [&] {
    size_t product = 1;
    for (size_t i = 0; i < parameters && product <= kMostClones; ++i) {
      product *= static_cast<size_t>(ranks);
    }
    return product;
  };
  while (ranks > 1 && clones() > kMostClones) --ranks;
  return ranks;
}

using Ranks = std::vector<int64_t>;  // of the parameters of unknown rank

std::string name_of(std::string_view function, const Ranks& ranks) {
  std::string out = cat(function, ".rank");
  for (size_t i = 0; i < ranks.size(); ++i) out += cat(i ? "_" : "", ranks[i]);
  return out;
}

// The choice between the clones of a function.
class RankChoice {
 public:
  // `shown` is the function's name in errors.
  RankChoice(Builder& builder, std::string name, std::string_view shown,
             const std::vector<Operand>& params, const std::vector<size_t>& unknown,
             const std::set<Ranks>& clones)
      : b_(builder),
        name_(std::move(name)),
        shown_(shown),
        params_(params),
        unknown_(unknown),
        clones_(clones) {}

  // The ranks of the first parameters are known.
  Operand choose(const Ranks& known) {
    if (known.size() == unknown_.size()) return call(known);
    const Operand& param = params_[unknown_[known.size()]];
    std::set<int64_t> ranks;
    for (const Ranks& clone : clones_) {
      if (std::equal(known.begin(), known.end(), clone.begin())) ranks.insert(clone[known.size()]);
    }
    auto match = make<Match>();
    match->value = b_.bind(rank_call(param), cat("rank_of_", param.as<Var>()->name));
    for (const int64_t rank : ranks) {
      const bool is_last = rank == *ranks.rbegin();
      auto pattern = make<Pattern>();
      pattern->kind = is_last ? PatternKind::kAny : PatternKind::kConstant;
      if (!is_last) pattern->constant = constant_int(rank);
      Ranks more = known;
      more.push_back(rank);
      b_.begin_block();
      if (is_last) refuse_others(match->value, ranks, known);
      match->patterns.push_back(pattern);
      match->arms.push_back(b_.finish_block(choose(more)));
    }
    return b_.bind(match);
  }

 private:
  std::string name_of_param(size_t i) const {
    return cat("%", name_text(params_[unknown_[i]].as<Var>()->name));
  }

  // In the last rank's arm, to which all ranks come that have none. One between those that have
  // arms, of which no operator is known, would meet the match_shape that follows.
  void refuse_others(const Operand& rank, const std::set<int64_t>& ranks, const Ranks& known) {
    const int64_t least = *ranks.begin(), most = *ranks.rbegin();
    std::string what = cat("@", name_text(shown_), " takes a tensor ", name_of_param(known.size()),
                           " of rank ", least);
    if (most > least) what += cat(" to ", most);
    for (size_t i = 0; i < known.size(); ++i) {
      what += cat(i ? " and " : " where ", name_of_param(i), " has rank ", known[i]);
    }
    const Dim found = b_.elements_of(rank)[0];
    b_.check(CheckKind::kLessEqual, least, found, what);
    b_.check(CheckKind::kLessEqual, found, most, what);
  }

  Operand call(const Ranks& ranks) {
    std::vector<Operand> args = params_;
    for (size_t i = 0; i < ranks.size(); ++i) {
      std::vector<Dim> dims;
      for (int64_t axis = 0; axis < ranks[i]; ++axis) dims.push_back(b_.fresh_symbol("d"));
      args[unknown_[i]] = b_.match_shape(params_[unknown_[i]], dims);
    }
    return b_.call_global(name_of(name_, ranks), args);
  }

  Builder& b_;
  std::string name_;
  std::string_view shown_;
  const std::vector<Operand>& params_;
  const std::vector<size_t>& unknown_;
  const std::set<Ranks>& clones_;
};

bool holds(const std::vector<Error>& errors, const Error& wanted) {
  return std::ranges::any_of(errors, [&](const Error& e) {
    return e.span() == wanted.span() && e.message() == wanted.message();
  });
}

int64_t first_line(const std::vector<Error>& errors) {
  return errors.empty() ? 0 : errors.front().span().line;
}

}  // namespace

// The function as its text says, or null and the errors.
FunctionRef Parser::tried(const Item& item, const Signature& s, std::vector<Error>* errors) {
  std::vector<Error> before = std::exchange(errors_, {});
  FunctionRef out;
  bool good = false;
  try {
    good = attempt([&] { out = function(item, s); });
  } catch (Enough) {
  }
  *errors = std::exchange(errors_, std::move(before));
  return good && errors->empty() ? out : nullptr;
}

void Parser::add_function(const Item& item, const Signature& s, Map<String, FunctionRef>* out) {
  const std::string name = full_name(item.name);
  std::vector<size_t> unknown;
  for (size_t i = 0; i < s.params.size(); ++i) {
    const auto* tensor = type_as<TensorType>(s.params[i].second);
    if (tensor && tensor->rank == kUnknownRank) unknown.push_back(i);
  }
  if (unknown.empty()) {
    out->set(String(name), function(item, s));
    return;
  }
  std::vector<Error> errors;
  if (const FunctionRef whole = tried(item, s, &errors)) {
    out->set(String(name), whole);
    return;
  }
  add_of_each_rank(item, s, unknown, out);
}

void Parser::add_of_each_rank(const Item& item, const Signature& s,
                              const std::vector<size_t>& unknown, Map<String, FunctionRef>* out) {
  const std::string name = full_name(item.name);
  const int64_t most = ranks_of_each(unknown.size());
  std::set<Ranks> clones;
  std::optional<std::vector<Error>> at_every_rank, furthest;
  for (Ranks ranks(unknown.size(), 0);;) {
    Signature one = s;
    one.attrs.set(kExportAttr, Any(false));
    for (size_t i = 0; i < unknown.size(); ++i) {
      auto& [param, type] = one.params[unknown[i]];
      std::vector<Dim> dims;
      for (int64_t axis = 0; axis < ranks[i]; ++axis) {
        dims.push_back(Dim::symbol(cat(param, ".", axis)));
      }
      type = tensor_type(type_as<TensorType>(type)->dtype, dims);
    }
    std::vector<Error> found;
    if (const FunctionRef clone = tried(item, one, &found)) {
      auto named = make<FunctionExpr>(*clone);
      named->name = name_of(name, ranks);
      if (signatures_.functions.contains(named->name)) function_taken(item, named->name.view());
      builder_ = Builder();  // which shares the table, so that it would be copied
      signatures_.functions.set(named->name, type_of(*named));
      out->set(named->name, named);
      clones.insert(ranks);
    } else {
      if (!at_every_rank) at_every_rank = found;
      std::erase_if(*at_every_rank, [&](const Error& e) { return !holds(found, e); });
      if (!furthest || first_line(found) > first_line(*furthest)) furthest = std::move(found);
    }
    size_t i = ranks.size();
    while (i > 0 && ++ranks[i - 1] == most) ranks[--i] = 0;
    if (i == 0) break;
  }
  if (clones.empty()) {
    // The rank has nothing to do with what is wrong at each. Otherwise the rank that was meant is
    // likely the one with which most of the body has a meaning.
    std::vector<Error>& errors = at_every_rank->empty() ? *furthest : *at_every_rank;
    for (Error& error : errors) errors_.push_back(std::move(error));
    if (errors_.size() >= kMaxErrors) throw Enough{};
    throw Lost{};
  }
  builder_ = Builder(signatures_);
  builder_.at(source_.span(tokens_[item.at].begin));
  std::vector<Operand> params;
  for (const auto& [param, type] : s.params) params.push_back(builder_.param(param, type));
  const Operand result = RankChoice(builder_, name, item.name, params, unknown, clones).choose({});
  out->set(String(name), builder_.finish_as(name, result, s.result, s.attrs, s.type_params));
}

}  // namespace tenon::graph
