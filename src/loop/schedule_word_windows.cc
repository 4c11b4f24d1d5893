// Sums over windows that slide along a row, of words of bytes: depthwise convolutions.
//
//   result[.., p, c] = sum over r, q of byte_dot(word(r, q, p, c), weights[r, q, c])
//
// where the bytes of the words q of one r are consecutive elements of a row: of one place after
// another, so that the windows of neighbouring p share all but `stride` of them. Vectors run along
// c. The words of a window stay in registers; at each p they are shifted by what is new, which is
// read once.
#include <algorithm>
#include <set>
#include <utility>

#include "loop/affine.h"
#include "loop/byte_matrix.h"
#include "loop/nest.h"
#include "loop/walk.h"

namespace tenon::loop {
namespace {

constexpr int64_t kMostStride = 3;   // one byte of the word before stays
constexpr int64_t kMostWords = 32;   // of a window
constexpr int64_t kMostVectors = 4;  // of channels at once
constexpr int64_t kFewestLanes = 4;
constexpr size_t kMostNodes = 200;              // of an expression that is compared with another
constexpr int64_t kMostWrittenNodes = 1 << 14;  // of all words, for a vector of channels

ExprRef joined(const ExprRef& a, const ExprRef& b) {
  return binary(BinaryOp::kOr, a, b);
}
ExprRef moved_up(const ExprRef& word, int64_t bytes) {
  return bytes == 0 ? word : binary(BinaryOp::kShl, word, literal_int(i32, 8 * bytes));
}
ExprRef moved_down(const ExprRef& word, int64_t bytes) {
  return cast(i32, binary(BinaryOp::kShr, cast(u32, word), literal_int(u32, 8 * bytes)));
}

class WordWindowSchedule {
 public:
  WordWindowSchedule(Work w, const Ref<const Var>& sum, std::vector<Work> after,
                     const ScheduleOptions& options)
      : w_(std::move(w)), sum_(sum), after_(std::move(after)), target_(options.target) {}

  StmtRef run() {
    collapse(&w_, &after_);
    if (!is_sliding()) return nullptr;
    list_words();
    const std::vector<Axis> outer(w_.axes.begin(), w_.axes.end() - 2);
    const ForKind blocks = outer.empty() ? ForKind::kParallel : ForKind::kSerial;
    return outer_loops(outer, true, seq(all_channels(blocks)));
  }

 private:
  // ---- what slides

  bool is_sliding() {
    if (w_.reduction != Reduction::kSum || w_.accumulate != i32 || w_.axes.size() < 2 ||
        w_.reduce.empty() || w_.body->kind != ExprKind::kBinary || w_.inside) {
      return false;
    }
    const auto& dot = static_cast<const Binary&>(*w_.body);
    if (dot.op != BinaryOp::kByteDot || dot.dtype != i32) return false;
    const auto bytes = bytes_of(dot.a);
    if (!bytes) return false;
    bytes_ = *bytes;
    weights_ = dot.b;
    channel_ = w_.axes.back();
    place_ = w_.axes[w_.axes.size() - 2];
    const auto channels = channel_.extent.as_const();
    if (!channels || *channels == 0 || *channels % kFewestLanes != 0) return false;
    int64_t words = 1;
    for (const Axis& a : w_.reduce) {
      const auto extent = a.extent.as_const();
      if (!extent || *extent < 1 || *extent > kMostWords / words) return false;
      words *= *extent;
    }
    int64_t nodes = words * count_nodes(w_.body, kMostWrittenNodes);
    for (const Work& a : after_) nodes += count_nodes(a.body, kMostWrittenNodes);
    if (nodes > kMostWrittenNodes) return false;
    if (depends_on(weights_, place_.var) || !is_contiguous(w_.body)) return false;
    for (stride_ = 1; stride_ <= kMostStride; ++stride_) {
      for (const bool several : {true, false}) {
        several_ = several;
        if (follow(bytes_[0], bytes_[1]) && follow(bytes_[1], bytes_[2]) &&
            follow(bytes_[2], bytes_[3])) {
          return true;
        }
      }
    }
    return false;
  }

  // Whether vectors along the channels load neighbours, or one element for all.
  bool is_contiguous(const ExprRef& e) const {
    bool contiguous = true;
    for (const Load* l : loads_in(e)) {
      for (const ExprRef& i : l->indices) {
        const auto c = coefficient(i, channel_.var);
        contiguous = contiguous && c && (c->is_const(0) || c->is_const(1));
      }
    }
    return contiguous;
  }

  // The words of a window along the row, where it has several.
  const Axis& word_axis() const { return w_.reduce.back(); }

  // Whether `later` is `earlier` one place further along the row: they agree but for integers that
  // grow by d from one to the other, by stride * d from one p to the next, and by 4 * d from one
  // word to the next.
  bool follow(const ExprRef& earlier, const ExprRef& later) const {
    std::vector<std::pair<ExprRef, ExprRef>> open{{earlier, later}};
    std::set<std::pair<const Expr*, const Expr*>> seen;
    while (!open.empty()) {
      const auto [a, b] = std::move(open.back());
      open.pop_back();
      if (!seen.emplace(a.get(), b.get()).second) continue;
      if (seen.size() > kMostNodes || a->dtype != b->dtype) return false;
      if (a->dtype == i64 && loads_in(a).empty() && loads_in(b).empty()) {
        if (!grows(a, b)) return false;
        continue;
      }
      if (a->kind != b->kind || !is_same_operation(*a, *b)) return false;
      const std::vector<ExprRef> of_a = operands(*a), of_b = operands(*b);
      if (of_a.size() != of_b.size()) return false;
      for (size_t i = 0; i < of_a.size(); ++i) open.emplace_back(of_a[i], of_b[i]);
    }
    return true;
  }

  static bool is_same_operation(const Expr& a, const Expr& b) {
    switch (a.kind) {
      case ExprKind::kLiteral:
        return static_cast<const Literal&>(a).bits == static_cast<const Literal&>(b).bits;
      case ExprKind::kLoad:
        return static_cast<const Load&>(a).buffer == static_cast<const Load&>(b).buffer;
      case ExprKind::kBinary:
        return static_cast<const Binary&>(a).op == static_cast<const Binary&>(b).op;
      case ExprKind::kSelect:
        return true;
      case ExprKind::kCast:
        return static_cast<const Cast&>(a).keeps_bits == static_cast<const Cast&>(b).keeps_bits;
      case ExprKind::kVar:
      case ExprKind::kDimValue:
      case ExprKind::kUnary:
      case ExprKind::kCheckedIndex:
        return &a == &b;
    }
    return false;
  }

  bool grows(const ExprRef& a, const ExprRef& b) const {
    VarMap at_zero;
    for (const Ref<const Var>& v : w_.vars()) {
      const auto of_a = coefficient(a, v), of_b = coefficient(b, v);
      if (!of_a || !of_b || !(*of_a == *of_b)) return false;
      at_zero[v.get()] = index(0);
    }
    const auto from = as_dim(substitute(a, at_zero)), to = as_dim(substitute(b, at_zero));
    if (!from || !to) return false;
    const Dim by = *to - *from;
    return *coefficient(a, place_.var) == by * Dim(stride_) &&
           (!several_ || *coefficient(a, word_axis().var) == by * Dim(kBytesPerWord));
  }

  // ---- the words of a window

  void list_words() {
    std::vector<VarMap> rows{{}};
    for (const Axis& a : w_.reduce) {
      if (several_ && a.var == word_axis().var) break;
      std::vector<VarMap> next;
      for (const VarMap& row : rows) {
        for (int64_t i = 0; i < *a.extent.as_const(); ++i) {
          next.push_back(row);
          next.back()[a.var.get()] = index(i);
        }
      }
      rows = std::move(next);
    }
    rows_ = std::move(rows);
    words_ = several_ ? *word_axis().extent.as_const() : 1;
  }

  // `e` in a row of the window, in its word `word`.
  ExprRef in_window(const ExprRef& e, size_t row, int64_t word) const {
    VarMap values = rows_[row];
    if (several_) values[word_axis().var.get()] = index(word);
    return substitute(e, values);
  }
  // The byte that many places after the first of the window in a row.
  ExprRef byte_at(size_t row, int64_t place) const {
    return in_window(bytes_[static_cast<size_t>(place % kBytesPerWord)], row,
                     place / kBytesPerWord);
  }

  // ---- the nest

  std::vector<StmtRef> all_channels(ForKind loop) const {
    const int64_t lanes = vector_lanes(i32.bytes(), target_);
    const int64_t channels = *channel_.extent.as_const(), vectors = channels / lanes;
    std::vector<StmtRef> parts;
    if (vectors > 0) {
      // The words of a window, the sum, and what is new of a row.
      const auto slots = static_cast<int64_t>(rows_.size()) * words_ + 1 + stride_;
      const int64_t most = std::clamp<int64_t>(target_.vector_registers / slots, 1, kMostVectors);
      const int64_t blocks = (vectors + most - 1) / most, at_once = (vectors + blocks - 1) / blocks;
      auto block = var("block", i64);
      const int64_t whole = vectors / at_once;
      parts.push_back(for_loop(block, index(0), index(whole), loop,
                               row(scaled(block, at_once * lanes), lanes, at_once)));
      if (const int64_t left = vectors % at_once; left > 0) {
        parts.push_back(row(index(whole * at_once * lanes), lanes, left));
      }
    }
    for (const PartVector& part : part_vectors(channels, lanes)) {
      parts.push_back(row(index(part.first), part.lanes, 1));
    }
    return parts;
  }

  // All places, for some vectors of channels from `first` on.
  StmtRef row(const ExprRef& first, int64_t lanes, int64_t vectors) const {
    const int64_t width = lanes * vectors, rows = static_cast<int64_t>(rows_.size());
    auto window = buffer("window", i32, {Dim(rows * words_ * width)}),
         fresh = buffer("fresh", i32, {Dim(rows * stride_ * width)});
    auto lane = var("lane", i64);
    auto each = [&](const std::function<StmtRef(int64_t first)>& body) {
      return each_vector(lane, lanes, vectors, [&](int64_t i) { return body(i * lanes); });
    };
    auto of_channel = [&](const ExprRef& e, int64_t vector) {
      return substitute(e, {{channel_.var.get(), sum(first, sum(index(vector), lane))}});
    };
    auto slot = [&](int64_t number, int64_t vector) -> Array<ExprRef> {
      return {sum(index(number * width + vector), lane)};
    };
    auto word_of = [&](size_t row, int64_t word) {
      return static_cast<int64_t>(row) * words_ + word;
    };
    auto fresh_of = [&](size_t row, int64_t byte) {
      return static_cast<int64_t>(row) * stride_ + byte;
    };

    std::vector<StmtRef> begin, step;
    for (size_t r = 0; r < rows_.size(); ++r) {
      // Before the first place: its bytes where they are `stride` later, but for the newest.
      for (int64_t word = 0; word < words_; ++word) {
        ExprRef bytes;
        for (int64_t b = 0; b < kBytesPerWord; ++b) {
          const int64_t place = word * kBytesPerWord + b - stride_;
          if (place < 0) continue;
          const ExprRef part = moved_up(byte_at(r, place), b);
          bytes = bytes ? joined(bytes, part) : part;
        }
        const ExprRef at_start = substitute(bytes, {{place_.var.get(), index(0)}});
        begin.push_back(each([&](int64_t v) {
          return store(window, slot(word_of(r, word), v), of_channel(at_start, v));
        }));
      }
      for (int64_t b = 0; b < stride_; ++b) {
        const ExprRef newest = byte_at(r, words_ * kBytesPerWord - stride_ + b);
        step.push_back(chosen_once(newest, [&](const ExprRef& e) {
          return each(
              [&](int64_t v) { return store(fresh, slot(fresh_of(r, b), v), of_channel(e, v)); });
        }));
      }
    }
    step.push_back(each([&](int64_t v) {
      std::vector<StmtRef> all;
      ExprRef total = literal_int(i32, 0);
      for (size_t r = 0; r < rows_.size(); ++r) {
        ExprRef bytes = load(fresh, slot(fresh_of(r, 0), v));
        for (int64_t b = 1; b < stride_; ++b) {
          bytes = joined(bytes, moved_up(load(fresh, slot(fresh_of(r, b), v)), b));
        }
        for (int64_t word = 0; word < words_; ++word) {
          const auto at = slot(word_of(r, word), v);
          const ExprRef next =
              word + 1 < words_ ? load(window, slot(word_of(r, word + 1), v)) : bytes;
          all.push_back(store(window, at,
                              joined(moved_down(load(window, at), stride_),
                                     moved_up(next, kBytesPerWord - stride_))));
        }
      }
      for (size_t r = 0; r < rows_.size(); ++r) {
        for (int64_t word = 0; word < words_; ++word) {
          const ExprRef weights = of_channel(in_window(weights_, r, word), v);
          total = sum(total,
                      binary(BinaryOp::kByteDot, load(window, slot(word_of(r, word), v)), weights));
        }
      }
      const auto at = [&](const ExprRef& e) { return of_channel(e, v); };
      all.push_back(let(sum_, total, store_results(after_, at)));
      return seq(all);
    }));
    // Without a place, none of the bytes need exist.
    const ExprRef number_of_places = dim_value(place_.extent);
    const StmtRef before = place_.extent.as_const().value_or(0) > 0
                               ? seq(begin)
                               : if_then(less(index(0), number_of_places), seq(begin));
    StmtRef places =
        for_loop(place_.var, index(0), number_of_places, ForKind::kSerial, alloc(fresh, seq(step)));
    return alloc(window, seq({before, places}));
  }

  // What `body` makes of `e`; where `e` is a choice that is one for all channels, it is made once,
  // not for each vector.
  StmtRef chosen_once(const ExprRef& e, const std::function<StmtRef(const ExprRef&)>& body) const {
    if (e->kind != ExprKind::kCast) return body(e);  // a known byte, where all is padding
    const auto& byte = static_cast<const Cast&>(*e);
    if (byte.a->kind != ExprKind::kSelect) return body(e);
    const auto& choice = static_cast<const Select&>(*byte.a);
    if (depends_on(choice.condition, channel_.var)) return body(e);
    return if_then(choice.condition, body(cast(i32, choice.if_true)),
                   body(cast(i32, choice.if_false)));
  }

  Work w_;
  Ref<const Var> sum_;
  std::vector<Work> after_;
  const TargetFacts& target_;

  Axis place_, channel_;
  WordBytes bytes_;
  ExprRef weights_;
  int64_t stride_ = 1;
  bool several_ = false;      // whether the last reduced axis counts words along the row
  std::vector<VarMap> rows_;  // of a window: the values of the other reduced variables
  int64_t words_ = 1;         // of a row
};

}  // namespace

StmtRef schedule_word_windows(Work w, const Ref<const Var>& sum, std::vector<Work> after,
                              const ScheduleOptions& options) {
  return WordWindowSchedule(std::move(w), sum, std::move(after), options).run();
}

}  // namespace tenon::loop
