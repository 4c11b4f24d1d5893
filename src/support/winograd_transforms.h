// Winograd's minimal algorithms F(m, 3) for m = 2 and 4, in one dimension. They compute m outputs
// of a filter g with three taps from m + 2 inputs d by m + 2 products:
//
//     y = A^T ((G g) * (B^T d)),    y[i] = d[i] g[0] + d[i + 1] g[1] + d[i + 2] g[2]
//
// Two dimensions nest two of them. F(2, 3) evaluates polynomials at 0, 1, -1 and infinity (A. Lavin
// and S. Gray, "Fast Algorithms for Convolutional Neural Networks", 2015). F(4, 3) uses
// 0, +-sqrt(1/2), +-sqrt(2) and infinity instead of the usual 0, +-1, +-2: the entries of its
// matrices are nearer to 1, so that its error is about a third (B. Barabasz et al., "Error Analysis
// and Improving the Accuracy of Winograd Convolution for Deep Neural Networks", 2018).
//
// V is a number, a vector of numbers S, or an expression whose constants are S. Elements are `step`
// apart.
#pragma once

namespace tenon {

template <int kTile>
struct WinogradTransforms;

template <>
struct WinogradTransforms<2> {
  template <class S, class V>
  [[gnu::always_inline]] static inline void filter(const V* g, int step, V* u, int u_step) {
    const V ends = S(0.5) * (g[0] + g[2 * step]), middle = S(0.5) * g[step];
    u[0] = g[0];
    u[u_step] = ends + middle;
    u[2 * u_step] = ends - middle;
    u[3 * u_step] = g[2 * step];
  }

  template <class S, class V>
  [[gnu::always_inline]] static inline void input(const V* d, int step, V* v, int v_step) {
    v[0] = d[0] - d[2 * step];
    v[v_step] = d[step] + d[2 * step];
    v[2 * v_step] = d[2 * step] - d[step];
    v[3 * v_step] = d[3 * step] - d[step];
  }

  template <class S, class V>
  [[gnu::always_inline]] static inline void output(const V* m, int step, V* y, int y_step) {
    y[0] = m[0] + (m[step] + m[2 * step]);
    y[y_step] = (m[step] - m[2 * step]) + m[3 * step];
  }
};

template <>
struct WinogradTransforms<4> {
  static constexpr double kRoot2 = 1.41421356237309504880;

  template <class S, class V>
  [[gnu::always_inline]] static inline void filter(const V* g, int step, V* u, int u_step) {
    const V even1 = S(-2.0 / 3) * g[0] - S(1.0 / 3) * g[2 * step];
    const V odd1 = S(kRoot2 / 3) * g[step];
    const V even2 = S(1.0 / 6) * g[0] + S(1.0 / 3) * g[2 * step];
    const V odd2 = S(kRoot2 / 6) * g[step];
    u[0] = g[0];
    u[u_step] = even1 - odd1;
    u[2 * u_step] = even1 + odd1;
    u[3 * u_step] = even2 + odd2;
    u[4 * u_step] = even2 - odd2;
    u[5 * u_step] = g[2 * step];
  }

  template <class S, class V>
  [[gnu::always_inline]] static inline void input(const V* d, int step, V* v, int v_step) {
    const V even1 = d[4 * step] - S(2) * d[2 * step];
    const V odd1 = S(kRoot2 / 2) * d[3 * step] - S(kRoot2) * d[step];
    const V even2 = d[4 * step] - S(0.5) * d[2 * step];
    const V odd2 = S(kRoot2) * d[3 * step] - S(kRoot2 / 2) * d[step];
    v[0] = (d[0] - S(2.5) * d[2 * step]) + d[4 * step];
    v[v_step] = even1 + odd1;
    v[2 * v_step] = even1 - odd1;
    v[3 * v_step] = even2 + odd2;
    v[4 * v_step] = even2 - odd2;
    v[5 * v_step] = (d[step] - S(2.5) * d[3 * step]) + d[5 * step];
  }

  template <class S, class V>
  [[gnu::always_inline]] static inline void output(const V* m, int step, V* y, int y_step) {
    const V sum1 = m[step] + m[2 * step], difference1 = m[step] - m[2 * step];
    const V sum2 = m[3 * step] + m[4 * step], difference2 = m[3 * step] - m[4 * step];
    y[0] = (m[0] + sum1) + sum2;
    y[y_step] = S(kRoot2 / 2) * difference1 + S(kRoot2) * difference2;
    y[2 * y_step] = S(0.5) * sum1 + S(2) * sum2;
    y[3 * y_step] = (S(kRoot2 / 4) * difference1 + S(2 * kRoot2) * difference2) + m[5 * step];
  }
};

}  // namespace tenon
