// Probabilities of classes from those of pairs of classes, as libsvm couples them: the second
// method of Wu, Lin and Weng, "Probability estimates for multi-class classification by pairwise
// coupling", 2004.
#include <algorithm>
#include <cmath>

#include "device/scratch.h"
#include "library/argument/argument.h"
#include "library/ml/functions.h"
#include "support/poll.h"

namespace tenon::ml {

namespace {

using namespace argument;

constexpr std::string_view kName = "tenon.pairwise_coupling";
constexpr int kRounds = 100;

// Finds the p with sum 1 that minimises p Q p / 2, for one row after the other.
class Coupling {
 public:
  explicit Coupling(size_t classes)
      : k_(classes), q_(classes * classes), qp_(classes), p_(classes) {}

  // `pair(i, j)` is the probability of class i rather than j.
  template <class Pair>
  void solve(const Pair& pair) {
    for (size_t i = 0; i < k_; ++i) {
      double squares = 0;
      for (size_t j = 0; j < k_; ++j) {
        ticker_.tick();
        if (i == j) continue;
        squares += pair(j, i) * pair(j, i);
        q_[i * k_ + j] = -pair(j, i) * pair(i, j);
      }
      q_[i * k_ + i] = squares;
    }
    const auto classes = static_cast<double>(k_);
    std::fill(p_.begin(), p_.end(), 1 / classes);
    for (int round = 0; round < kRounds; ++round) {
      const double both = multiply();
      double error = 0;
      for (double v : qp_) error = std::max(error, std::fabs(v - both));
      if (error < 0.005 / classes) return;
      improve(both);
    }
  }

  double operator[](size_t i) const { return p_[i]; }

 private:
  // Sets qp_ to Q p and returns p Q p.
  double multiply() {
    double both = 0;
    for (size_t i = 0; i < k_; ++i) {
      qp_[i] = 0;
      for (size_t j = 0; j < k_; ++j) {
        ticker_.tick();
        qp_[i] += q_[i * k_ + j] * p_[j];
      }
      both += p_[i] * qp_[i];
    }
    return both;
  }

  // Moves each probability to its best value in turn, and keeps the sum, qp_ and p Q p up to date.
  void improve(double both) {
    for (size_t i = 0; i < k_; ++i) {
      const double own = q_[i * k_ + i], step = (both - qp_[i]) / own, sum = 1 + step;
      p_[i] += step;
      both = (both + step * (step * own + 2 * qp_[i])) / sum / sum;
      for (size_t j = 0; j < k_; ++j) {
        ticker_.tick();
        qp_[j] = (qp_[j] + step * q_[i * k_ + j]) / sum;
        p_[j] /= sum;
      }
    }
  }

  size_t k_;
  Scratch<double> q_, qp_, p_;
  Ticker ticker_;
};

// f32 or f64 [rows, pairs] to [rows, classes]. The pairs (0, 1), (0, 2), ... (1, 2), ... have the
// probabilities of their first class.
Tensor pairwise_coupling(const Tensor& pairs, int64_t classes) {
  require_floats(kName, "pairs", pairs);
  if (classes < 2 || classes > library::kMaxCoupledClasses)
    fail(kName, cat(classes, " classes, expected 2 to ", library::kMaxCoupledClasses));
  const int64_t width = classes * (classes - 1) / 2;
  if (pairs.rank() != 2 || pairs.dim(1) != width)
    fail(kName, cat("'pairs' is ", to_text(pairs), ", expected [rows, ", width, "]"));
  Tensor y = allocate_tensor(std::vector<int64_t>{pairs.dim(0), classes}, pairs.dtype());
  if (y.count() == 0) return y;
  const auto k = static_cast<size_t>(classes);
  Coupling coupling(k);
  Scratch<double> first(static_cast<size_t>(width));  // a copy, which nothing changes meanwhile
  // Of the pair of i and j, i < j.
  auto place = [&](size_t i, size_t j) { return i * (2 * k - i - 1) / 2 + (j - i - 1); };
  Ticker ticker;
  for (int64_t row = 0; row < pairs.dim(0); ++row) {
    for (int64_t i = 0; i < width; ++i) {
      ticker.tick();
      first[static_cast<size_t>(i)] = float_at(pairs, row * width + i);
    }
    coupling.solve(
        [&](size_t i, size_t j) { return i < j ? first[place(i, j)] : 1 - first[place(j, i)]; });
    for (size_t i = 0; i < k; ++i) {
      set_float(y, row * classes + static_cast<int64_t>(i), coupling[i]);
    }
  }
  return y;
}

}  // namespace

void register_coupling(Registration& functions) {
  library::add_typed(functions, library::signature(kName), pairwise_coupling);
}

}  // namespace tenon::ml
