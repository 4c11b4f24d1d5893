// Discrete Fourier transforms of any length n in O(n log n) steps.
//
// A length without prime factors above kMostRadix is divided by them (Cooley and Tukey). Any other
// is a convolution with a chirp (Bluestein), which transforms whose length is a power of two
// compute. Everything is computed in f64.
#include "library/algorithms/functions.h"

#include <algorithm>
#include <cmath>

#include "device/scratch.h"
#include "library/argument/argument.h"

namespace tenon::algorithms {

namespace {

using namespace argument;

constexpr std::string_view kName = "tenon.dft";
constexpr size_t kMostRadix = 13;

struct Complex {
  double re, im;
};
Complex operator+(Complex a, Complex b) {
  return {a.re + b.re, a.im + b.im};
}
Complex operator-(Complex a, Complex b) {
  return {a.re - b.re, a.im - b.im};
}
Complex operator*(Complex a, Complex b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
Complex conjugate(Complex a) {
  return {a.re, -a.im};
}
Complex times_minus_i(Complex a) {
  return {a.im, -a.re};
}
// exp(-2 pi i k / n) for k < n.
Complex root(size_t k, size_t n) {
  const double angle = 2 * M_PI * (static_cast<double>(k) / static_cast<double>(n));
  return {std::cos(angle), -std::sin(angle)};
}

// The least prime factor up to kMostRadix, or n.
size_t least_factor(size_t n) {
  size_t p = 2;
  while (n % p != 0) {
    if (++p > kMostRadix) return n;
  }
  return p;
}

// A transform of one length n. If n has a large prime factor, it is computed with transforms of
// `padded` elements: with w[k] = exp(-pi i k^2 / n), the result k is w[k] times the sum over j of
// (x[j] w[j]) conj(w[k - j]), a convolution.
class Transform {
 public:
  explicit Transform(size_t n) : n_(n), padded_(n) {
    size_t rest = n;
    while (rest > 1 && least_factor(rest) <= kMostRadix) rest /= least_factor(rest);
    if (rest > 1) {
      for (padded_ = 1; padded_ < 2 * n - 1;) padded_ *= 2;
    }
    const bool direct = padded_ == n;
    memory_ = Scratch<double>(2 * (direct ? 3 * n : 3 * n + 4 * padded_));
    in = reinterpret_cast<Complex*>(memory_.data());
    out = in + n;
    roots_ = out + n;
    for (size_t k = 0; k < padded_; ++k) {
      ticker_.tick();
      roots_[k] = root(k, padded_);
    }
    if (direct) return;
    chirp_ = roots_ + padded_;
    kernel_ = chirp_ + n;
    a_ = kernel_ + padded_;
    size_t square = 0;  // k^2 modulo 2 n
    for (size_t k = 0; k < padded_; ++k) {
      ticker_.tick();
      a_[k] = {};
      if (k >= n) continue;
      chirp_[k] = root(square, 2 * n);
      square = (square + 2 * k + 1) % (2 * n);
    }
    for (size_t k = 0; k < n; ++k) {
      ticker_.tick();
      a_[k] = a_[(padded_ - k) % padded_] = conjugate(chirp_[k]);
    }
    divide(a_, 1, kernel_, padded_);
  }

  // Transforms `in` to `out`.
  void run() {
    if (chirp_ == nullptr) return divide(in, 1, out, n_);
    Complex* b = a_ + padded_;
    for (size_t k = 0; k < padded_; ++k) {
      ticker_.tick();
      a_[k] = k < n_ ? in[k] * chirp_[k] : Complex{};
    }
    divide(a_, 1, b, padded_);
    // The inverse is the transform of the conjugates, conjugated and divided by the length.
    for (size_t k = 0; k < padded_; ++k) {
      ticker_.tick();
      b[k] = conjugate(b[k] * kernel_[k]);
    }
    divide(b, 1, a_, padded_);
    const Complex scale = {1 / static_cast<double>(padded_), 0};
    for (size_t k = 0; k < n_; ++k) {
      ticker_.tick();
      out[k] = conjugate(a_[k]) * scale * chirp_[k];
    }
  }

  Complex *in, *out;

 private:
  // Transforms n elements of `from`, `stride` apart.
  void divide(const Complex* from, size_t stride, Complex* to, size_t n) {
    if (n == 1) {
      *to = *from;
      return;
    }
    const size_t p = n % 4 == 0 ? 4 : least_factor(n), m = n / p;
    for (size_t q = 0; q < p; ++q) divide(from + q * stride, stride * p, to + q * m, m);
    if (p == 2) return combine_two(to, stride, m);
    if (p == 4) return combine_four(to, stride, m);
    // roots_[k * stride] is exp(-2 pi i k / n); roots_[k * turn] is exp(-2 pi i k / p).
    const size_t turn = stride * m;
    Complex part[kMostRadix];
    for (size_t k = 0; k < m; ++k) {
      ticker_.tick(p * sizeof(Complex));
      for (size_t q = 0; q < p; ++q) part[q] = to[q * m + k] * roots_[q * k * stride];
      for (size_t r = 0; r < p; ++r) {
        Complex sum = part[0];
        for (size_t q = 1; q < p; ++q) sum = sum + part[q] * roots_[q * r % p * turn];
        to[r * m + k] = sum;
      }
    }
  }

  // The same for parts whose roots are 1, -1, i and -i.
  void combine_two(Complex* to, size_t stride, size_t m) {
    for (size_t k = 0; k < m; ++k) {
      ticker_.tick();
      const Complex a = to[k], b = to[m + k] * roots_[k * stride];
      to[k] = a + b;
      to[m + k] = a - b;
    }
  }
  void combine_four(Complex* to, size_t stride, size_t m) {
    for (size_t k = 0; k < m; ++k) {
      ticker_.tick();
      const Complex a = to[k], b = to[m + k] * roots_[k * stride],
                    c = to[2 * m + k] * roots_[2 * k * stride],
                    d = to[3 * m + k] * roots_[3 * k * stride];
      const Complex even = a + c, odd = b + d, even_turned = a - c,
                    odd_turned = times_minus_i(b - d);
      to[k] = even + odd;
      to[m + k] = even_turned + odd_turned;
      to[2 * m + k] = even - odd;
      to[3 * m + k] = even_turned - odd_turned;
    }
  }

  size_t n_, padded_;
  Complex *roots_, *chirp_ = nullptr, *kernel_, *a_;
  Scratch<double> memory_;
  Ticker ticker_;
};

// x is [..., 1], of real numbers, or [..., 2], of their real and imaginary parts; the signal along
// `axis` is cut, or extended by zeros, to `length`. The result is complex, with `length` elements
// along the axis. `onesided` leaves out those after length / 2, which are the conjugates of others
// if x is real; an inverse that is onesided takes such elements, and its result is real.
Tensor dft(const Tensor& x, int64_t length, int64_t axis, int64_t inverse, int64_t onesided) {
  require_floats(kName, "x", x);
  axis = axis_of(kName, axis, x);
  const int64_t parts = x.dim(x.rank() - 1);
  if (axis == x.rank() - 1 || (parts != 1 && parts != 2) || length < 1) {
    fail(kName, cat("length ", length, " along axis ", axis, " of ", to_text(x),
                    ", expected 1 or more along an axis before the last, of size 1 or 2"));
  }
  const int64_t half = length / 2 + 1;
  const bool to_real = inverse && onesided;
  std::vector<int64_t> dims(x.shape().begin(), x.shape().end());
  dims[static_cast<size_t>(axis)] = onesided && !inverse ? half : length;
  dims.back() = to_real ? 1 : 2;
  Tensor y = allocate_tensor(dims, x.dtype());
  if (y.count() == 0) return y;

  // A signal without elements is 0.
  const Slices to(y, axis);
  const int64_t rows = to.inner / dims.back(), size = x.dim(static_cast<int32_t>(axis)),
                given = std::min(size, to_real ? half : length);
  Transform t(static_cast<size_t>(length));
  const double scale = inverse ? 1 / static_cast<double>(length) : 1, sign = inverse ? -1 : 1;
  Ticker ticker;
  for (int64_t i = 0; i < to.outer * rows; ++i) {
    const int64_t o = i / rows, row = i % rows;
    for (int64_t k = 0; k < length; ++k) {
      ticker.tick();
      Complex& v = t.in[k];
      v = {};
      if (k < given) {
        const int64_t at = ((o * size + k) * rows + row) * parts;
        v = {float_at(x, at), parts == 2 ? sign * float_at(x, at + 1) : 0};
      } else if (to_real && k >= half) {
        v = conjugate(t.in[length - k]);
      }
    }
    t.run();
    for (int64_t k = 0; k < to.n; ++k) {
      ticker.tick();
      const int64_t at = ((o * to.n + k) * rows + row) * dims.back();
      set_float(y, at, t.out[k].re * scale);
      if (!to_real) set_float(y, at + 1, t.out[k].im * scale * sign);
    }
  }
  return y;
}

}  // namespace

void register_fourier(Registration& functions) {
  library::add_typed(functions, library::signature(kName), dft);
}

}  // namespace tenon::algorithms
