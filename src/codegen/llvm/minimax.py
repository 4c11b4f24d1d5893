#!/usr/bin/env python3
"""Writes coefficients.h: the polynomials and tables of math.cc and math_trig.cc.

    python3 minimax.py > coefficients.h        (needs mpmath)

Polynomials are near-minimax by Remez exchange on the weighted error; leading coefficients that a
formula fixes are left out of the fit. Rational functions are fitted by iterated weighted least
squares (Loeb's linearisation with Lawson's weights). All arithmetic has 60 digits.
"""
import struct

from mpmath import mp, mpf

mp.dps = 60


def remez(f, weight, lo, hi, degree):
    """Coefficients c of p(x) = sum c[i] x^i, minimising max |weight(x) * (f(x) - p(x))|."""
    lo, hi = mpf(lo), mpf(hi)
    n = degree + 2
    xs = [(lo + hi) / 2 - (hi - lo) / 2 * mp.cos(mp.pi * i / (n - 1)) for i in range(n)]
    for _ in range(8):
        a = mp.matrix(n, n)
        b = mp.matrix(n, 1)
        for i, x in enumerate(xs):
            for j in range(degree + 1):
                a[i, j] = x**j
            a[i, degree + 1] = (-1) ** i / weight(x)
            b[i] = f(x)
        solution = mp.lu_solve(a, b)
        c = [solution[j] for j in range(degree + 1)]

        def error(x):
            return weight(x) * (f(x) - mp.polyval(c[::-1], x))

        grid = [lo + (hi - lo) * (1 - mp.cos(mp.pi * k / 600)) / 2 for k in range(601)]
        values = [error(x) for x in grid]
        # The largest error of each run of one sign.
        peaks = []
        for x, v in zip(grid, values):
            if peaks and (peaks[-1][1] > 0) == (v > 0):
                if abs(v) > abs(peaks[-1][1]):
                    peaks[-1] = (x, v)
            else:
                peaks.append((x, v))
        if len(peaks) < n:
            break
        while len(peaks) > n:
            peaks.pop(0 if abs(peaks[0][1]) < abs(peaks[-1][1]) else -1)
        xs = [x for x, _ in peaks]
        sizes = [abs(v) for _, v in peaks]
        if max(sizes) / min(sizes) < mpf("1.01"):
            break
    return c, max(abs(v) for v in values)


def rational(f, weight, lo, hi, p_degree, q_degree, rounds=25):
    """(p, q) with q[0] = 1, minimising max |weight * (f - p/q)| over a Chebyshev grid."""
    lo, hi = mpf(lo), mpf(hi)
    count = 160
    xs = [(lo + hi) / 2 - (hi - lo) / 2 * mp.cos(mp.pi * (2 * i + 1) / (2 * count)) for i in range(count)]
    fs = [f(x) for x in xs]
    ws = [weight(x) for x in xs]
    lawson = [mpf(1)] * count
    q_at = [mpf(1)] * count
    n = p_degree + 1 + q_degree
    best = None
    for _ in range(rounds):
        # Normal equations; 60 digits make their conditioning harmless.
        a = mp.matrix(n, n)
        b = mp.matrix(n, 1)
        for x, fx, w, l, q in zip(xs, fs, ws, lawson, q_at):
            row = [x**j for j in range(p_degree + 1)] + [-fx * x**j for j in range(1, q_degree + 1)]
            s = l * (w / q) ** 2
            for i in range(n):
                si = s * row[i]
                b[i] += si * fx
                for j in range(i, n):
                    a[i, j] += si * row[j]
        for i in range(n):
            for j in range(i):
                a[i, j] = a[j, i]
        solution = mp.lu_solve(a, b)
        p = [solution[j] for j in range(p_degree + 1)]
        q = [mpf(1)] + [solution[p_degree + j] for j in range(1, q_degree + 1)]
        q_at = [mp.polyval(q[::-1], x) for x in xs]
        errors = [abs(w * (fx - mp.polyval(p[::-1], x) / qx)) for x, fx, w, qx in zip(xs, fs, ws, q_at)]
        worst = max(errors)
        if best is None or worst < best[2]:
            best = (p, q, worst)
        lawson = [l * (e / worst + mpf("0.02")) for l, e in zip(lawson, errors)]
        total = sum(lawson)
        lawson = [l * count / total for l in lawson]
    return best


def emit(name, comment, values):
    print(f"// {comment}")
    body = ", ".join(float(v).hex() for v in values)
    print(f"inline constexpr double {name}[] = {{{body}}};")
    print()


def fit(name, what, f, weight, lo, hi, degree):
    c, err = remez(f, weight, lo, hi, degree)
    emit(name, f"{what}; error {mp.nstr(err, 2)}", c)


def series_safe(f, at_zero):
    """f with its limit where the formula divides 0 by 0."""
    return lambda x: at_zero if abs(x) < mpf(10) ** -25 else f(x)


def parts(value, bits, count):
    """value as a sum of doubles whose mantissas have `bits` bits, the last with 53."""
    out = []
    rest = mpf(value)
    for i in range(count):
        b = bits if i < count - 1 else 53
        e = mp.floor(mp.log(abs(rest), 2))
        unit = mpf(2) ** (e - b + 1)
        part = (mp.floor(rest / unit) if i < count - 1 else mp.nint(rest / unit)) * unit
        out.append(part)
        rest -= part
    return out


print("""// Written by minimax.py; do not edit. Polynomials are lowest power first.
#pragma once

#include <cstdint>

namespace tenon::codegen::coefficients {
""")

half_ln2 = mp.log(2) / 2 * mpf("1.001")
exp_tail = series_safe(lambda r: (mp.exp(r) - 1 - r) / r**2, mpf(1) / 2)
fit("kExpF32", "(e^r - 1 - r) / r^2 for |r| <= ln2/2, relative to e^r / r^2", exp_tail,
    lambda r: max(r * r, mpf("1e-4")), -half_ln2, half_ln2, 4)
fit("kExpF64", "the same", exp_tail, lambda r: max(r * r, mpf("1e-4")), -half_ln2, half_ln2, 10)
emit("kLn2Parts32", "ln2 in parts of 15 bits, for f32",
     [mpf(x) for x in (lambda h: [h, mp.log(2) - h])(mp.floor(mp.log(2) * 2**15) / 2**15)])
emit("kLn2Parts64", "ln2 in parts of 32 and 53 bits", parts(mp.log(2), 32, 2))

log_lo, log_hi = 1 / mp.sqrt(2) - 1 - mpf("1e-3"), mp.sqrt(2) - 1 + mpf("1e-3")
log_tail = series_safe(lambda f: (mp.log1p(f) - f + f * f / 2) / f**3, mpf(1) / 3)
fit("kLogF32", "(log(1+f) - f + f^2/2) / f^3 for 1+f in [sqrt(1/2), sqrt(2)]", log_tail,
    lambda f: max(abs(f) ** 3 / abs(mp.log1p(f) if f != 0 else 1), mpf("1e-4")), log_lo, log_hi, 8)
s_hi = (mp.sqrt(2) - 1) / (mp.sqrt(2) + 1) * mpf("1.002")
log_odd = lambda z: (mp.atanh(mp.sqrt(z)) / mp.sqrt(z) - 1) * 2 / z
fit("kLogF64", "2 (atanh(s)/s - 1) / s^2 in z = s^2, s = f / (2+f)",
    series_safe(log_odd, mpf(2) / 3), lambda z: mpf(1), 0, s_hi**2, 7)
log_odd5 = lambda z: ((mp.atanh(mp.sqrt(z)) / mp.sqrt(z) - 1) / z - mpf(1) / 3) * 2 / z
fit("kLogTail", "2 ((atanh(s)/s - 1)/s^2 - 1/3) / s^2 in z = s^2, for pow",
    series_safe(log_odd5, mpf(2) / 5), lambda z: mpf(1), 0, s_hi**2, 7)
emit("kTwoThirds", "2/3 as high and low part", parts(mpf(2) / 3, 53, 2))

p, q, err = rational(series_safe(lambda z: mp.erf(mp.sqrt(z)) / mp.sqrt(z), 2 / mp.sqrt(mp.pi)),
                     lambda z: mp.sqrt(z) / mp.erf(mp.sqrt(z)) if z > 0 else mp.sqrt(mp.pi) / 2,
                     0, mpf("3.925") ** 2, 6, 5)
emit("kErfNumF32", f"erf(x)/x = num(x^2)/den(x^2) for |x| <= 3.925; error {mp.nstr(err, 2)}", p)
emit("kErfDenF32", "its denominator", q)
emit("kErfAt", "erf(i/8)", [mp.erf(mpf(i) / 8) for i in range(49)])
emit("kErfSlope", "erf'(i/8) = 2/sqrt(pi) exp(-(i/8)^2)",
     [2 / mp.sqrt(mp.pi) * mp.exp(-(mpf(i) / 8) ** 2) for i in range(49)])

quarter_pi = mp.pi / 4 * mpf("1.0001")
fit("kSin", "(sin(r)/r - 1) / r^2 in z = r^2, |r| <= pi/4",
    series_safe(lambda z: (mp.sin(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, -mpf(1) / 6),
    lambda z: max(z, mpf("1e-4")), 0, quarter_pi**2, 6)
fit("kCos", "(cos(r) - 1 + r^2/2) / r^4 in z = r^2",
    series_safe(lambda z: (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2, mpf(1) / 24),
    lambda z: max(z * z, mpf("1e-4")), 0, quarter_pi**2, 6)
emit("kHalfPiParts", "pi/2 in parts of 26, 26, 26 and 53 bits", parts(mp.pi / 2, 26, 4))
emit("kHalfPi", "pi/2 as high and low part", parts(mp.pi / 2, 53, 2))
fit("kAtan", "(atan(t)/t - 1) / t^2 in z = t^2, |t| <= tan(pi/8)",
    series_safe(lambda z: (mp.atan(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, -mpf(1) / 3),
    lambda z: max(z, mpf("1e-3")), 0, mp.tan(mp.pi / 8 * mpf("1.001")) ** 2, 10)
fit("kAsin", "(asin(s)/s - 1) / s^2 in z = s^2, |s| <= 1/2",
    series_safe(lambda z: (mp.asin(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, mpf(1) / 6),
    lambda z: max(z, mpf("1e-3")), 0, mpf("0.2501"), 11)

bits = 64 * 20
mp.dps = 420
scaled = int(mp.floor(2 / mp.pi * mpf(2) ** bits))
words = [0] + [(scaled >> (bits - 64 * (i + 1))) & (2**64 - 1) for i in range(20)]
print("// 2/pi in 64-bit words, most significant first, after one word of zeros.")
print("inline constexpr uint64_t kTwoOverPi[] = {" + ", ".join(f"0x{w:016x}" for w in words) + "};")
print()
print("}  // namespace tenon::codegen::coefficients")
