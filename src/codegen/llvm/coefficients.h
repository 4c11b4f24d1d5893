// Written by minimax.py; do not edit. Polynomials are lowest power first.
#pragma once

#include <cstdint>

namespace tenon::codegen::coefficients {

// (e^r - 1 - r) / r^2 for |r| <= ln2/2, relative to e^r / r^2; error 3.1e-9
inline constexpr double kExpF32[] = {0x1.000000522f468p-1, 0x1.55548e35e2bdep-3,
                                     0x1.55545d10a7ffap-5, 0x1.123bde694eb96p-7,
                                     0x1.6db4de1627d33p-10};

// the same; error 5.4e-20
inline constexpr double kExpF64[] = {
    0x1.0000000000000p-1,  0x1.555555555555cp-3,  0x1.555555555555ep-5,  0x1.111111110eb6fp-7,
    0x1.6c16c16c13540p-10, 0x1.a01a01b3d62e7p-13, 0x1.a01a01b465ad8p-16, 0x1.71ddef4ecc21ep-19,
    0x1.27e4bf14b1673p-22, 0x1.af6d473f65b5ep-26, 0x1.1f9e1561c1565p-29};

// ln2 in parts of 15 bits, for f32
inline constexpr double kLn2Parts32[] = {0x1.62e4000000000p-1, 0x1.7f7d1cf79abcap-20};

// ln2 in parts of 32 and 53 bits
inline constexpr double kLn2Parts64[] = {0x1.62e42fee00000p-1, 0x1.a39ef35793c76p-33};

// (log(1+f) - f + f^2/2) / f^3 for 1+f in [sqrt(1/2), sqrt(2)]; error 7.7e-10
inline constexpr double kLogF32[] = {
    0x1.555547000eefbp-2,  -0x1.000005d222c9ep-2, 0x1.99a4f58f5915bp-3,
    -0x1.555cce7c46c5fp-3, 0x1.233236c00ae65p-3,  -0x1.fc0779d3a18b8p-4,
    0x1.e727d9f2bdd16p-4,  -0x1.df0186e5918c6p-4, 0x1.14cd54183119ep-4};

// 2 (atanh(s)/s - 1) / s^2 in z = s^2, s = f / (2+f); error 2.1e-18
inline constexpr double kLogF64[] = {
    0x1.5555555555555p-1, 0x1.9999999999a3ep-2, 0x1.2492492475e53p-2, 0x1.c71c7202e804fp-3,
    0x1.745cf861e953ap-3, 0x1.3b1c57372cdf7p-3, 0x1.0fbb1af30e9c1p-3, 0x1.0c276ffccf2eep-3};

// 2 ((atanh(s)/s - 1)/s^2 - 1/3) / s^2 in z = s^2, for pow; error 1.9e-18
inline constexpr double kLogTail[] = {
    0x1.999999999999ap-2, 0x1.2492492492527p-2, 0x1.c71c71c6e9046p-3, 0x1.745d177bf9390p-3,
    0x1.3b1395415ec66p-3, 0x1.1118e60256a0bp-3, 0x1.df7698fa726dep-4, 0x1.e06e1b7cf4841p-4};

// 2/3 as high and low part
inline constexpr double kTwoThirds[] = {0x1.5555555555555p-1, 0x1.5555555555555p-55};

// erf(x)/x = num(x^2)/den(x^2) for |x| <= 3.925; error 1.8e-9
inline constexpr double kErfNumF32[] = {
    0x1.20dd750cff7c0p+0,  0x1.7b2c8932d2517p-3,  0x1.bc69896b25acdp-5,  0x1.f7414ee5c6a6bp-9,
    0x1.8b45bbfd3330fp-12, 0x1.35ad24519931ep-18, -0x1.b8c8697fdc8a4p-27};

// its denominator
inline constexpr double kErfDenF32[] = {0x1.0000000000000p+0,  0x1.fd59ba440204fp-2,
                                        0x1.d2750307126c0p-4,  0x1.f9b1e028d6f39p-7,
                                        0x1.554e602c2ef95p-10, 0x1.05ee1c489df2ap-14};

// erf(i/8)
inline constexpr double kErfAt[] = {0x0.0p+0,
                                    0x1.1f5e1a35c3b89p-3,
                                    0x1.1af54e232d609p-2,
                                    0x1.9dd0d2b721f39p-2,
                                    0x1.0a7ef5c18edd2p-1,
                                    0x1.3f196dcd0f135p-1,
                                    0x1.6c1c9759d0e5fp-1,
                                    0x1.91724951b8fc6p-1,
                                    0x1.af767a741088bp-1,
                                    0x1.c6dad2829ec62p-1,
                                    0x1.d8865d98abe01p-1,
                                    0x1.e5768c3b4a3fcp-1,
                                    0x1.eea5557137ae0p-1,
                                    0x1.f4f693b67bd77p-1,
                                    0x1.f92d077f8d56dp-1,
                                    0x1.fbe61eef4cf6ap-1,
                                    0x1.fd9ae142795e3p-1,
                                    0x1.fea4218d6594ap-1,
                                    0x1.ff404760319b4p-1,
                                    0x1.ff9960f3eb327p-1,
                                    0x1.ffcaa8f4c9beap-1,
                                    0x1.ffe514bbdc197p-1,
                                    0x1.fff2cfb0453d9p-1,
                                    0x1.fff9ba420e834p-1,
                                    0x1.fffd1ac4135f9p-1,
                                    0x1.fffeb3ebb267bp-1,
                                    0x1.ffff6f9f67e55p-1,
                                    0x1.ffffc316d9ed0p-1,
                                    0x1.ffffe710d565ep-1,
                                    0x1.fffff618c3da6p-1,
                                    0x1.fffffc2f171e3p-1,
                                    0x1.fffffe92ced93p-1,
                                    0x1.ffffff7b91176p-1,
                                    0x1.ffffffd169d0cp-1,
                                    0x1.fffffff01a8b6p-1,
                                    0x1.fffffffabd229p-1,
                                    0x1.fffffffe4fa30p-1,
                                    0x1.ffffffff79626p-1,
                                    0x1.ffffffffd759dp-1,
                                    0x1.fffffffff4188p-1,
                                    0x1.fffffffffc9e8p-1,
                                    0x1.ffffffffff11ap-1,
                                    0x1.ffffffffffc05p-1,
                                    0x1.ffffffffffef8p-1,
                                    0x1.fffffffffffbep-1,
                                    0x1.ffffffffffff0p-1,
                                    0x1.ffffffffffffcp-1,
                                    0x1.fffffffffffffp-1,
                                    0x1.0000000000000p+0};

// erf'(i/8) = 2/sqrt(pi) exp(-(i/8)^2)
inline constexpr double kErfSlope[] = {
    0x1.20dd750429b6dp+0,  0x1.1c62fa1e869b6p+0,  0x1.0f5d1602f7e41p+0,  0x1.f5f0cdaf15313p-1,
    0x1.c1efca49a5011p-1,  0x1.86e9694134b9ep-1,  0x1.492e42d78d2c5p-1,  0x1.0cab61f084b93p-1,
    0x1.a911f096fbc26p-2,  0x1.45e99bcbb7915p-2,  0x1.e4652fadcb6b2p-3,  0x1.5ce595c455b0ap-3,
    0x1.e723726b824a9p-4,  0x1.499d478bca735p-4,  0x1.b055303221015p-5,  0x1.12ceb37ff9bc3p-5,
    0x1.529b9e8cf9a1ep-6,  0x1.94624e78e0fafp-7,  0x1.d4143a9dfe965p-8,  0x1.06918b6355624p-8,
    0x1.1d83170fbf6fbp-9,  0x1.2ce898809244ep-10, 0x1.3360ccd23db3ap-11, 0x1.30538fbb77ecdp-12,
    0x1.2408e9ba3327fp-13, 0x1.0f9e1b4dd36dfp-14, 0x1.e9b5e8d00ce77p-16, 0x1.abe09e9144b5ep-17,
    0x1.6a597219a93dap-18, 0x1.296a70f414053p-19, 0x1.d9371e2ff7c35p-21, 0x1.6ce1aa3fd7bddp-22,
    0x1.10b1488aeb235p-23, 0x1.8b0cfce0579e0p-25, 0x1.155a09065d4f7p-26, 0x1.7974e743dea3dp-28,
    0x1.f1e3523b41d7dp-30, 0x1.3e44e45301b92p-31, 0x1.8a61745ec7d1dp-33, 0x1.d9a880f306bd8p-35,
    0x1.13af4f04f9998p-36, 0x1.370ab8327af5ep-38, 0x1.5422ef5d8949dp-40, 0x1.68823e52970bep-42,
    0x1.7258610b3b233p-44, 0x1.70beaf9c7ffb6p-46, 0x1.63daf8b4b1e0cp-48, 0x1.4cd9c04158cd7p-50,
    0x1.2dc119095729fp-52};

// (sin(r)/r - 1) / r^2 in z = r^2, |r| <= pi/4; error 1.9e-21
inline constexpr double kSin[] = {
    -0x1.5555555555555p-3,  0x1.111111111110bp-7,  -0x1.a01a01a018ae4p-13, 0x1.71de3a5339718p-19,
    -0x1.ae6452984533cp-26, 0x1.612092b401cc7p-33, -0x1.aaa54595d59c2p-41};

// (cos(r) - 1 + r^2/2) / r^4 in z = r^2; error 2.2e-23
inline constexpr double kCos[] = {
    0x1.5555555555555p-5,  -0x1.6c16c16c16c10p-10, 0x1.a01a01a018de9p-16, -0x1.27e4fb75fd6e9p-22,
    0x1.1eed8ca3a1e56p-29, -0x1.939338392f9ccp-37, 0x1.aac5a96d276efp-45};

// pi/2 in parts of 26, 26, 26 and 53 bits
inline constexpr double kHalfPiParts[] = {0x1.921fb50000000p+0, 0x1.110b460000000p-26,
                                          0x1.1a62630000000p-54, 0x1.8a2e03707344ap-81};

// pi/2 as high and low part
inline constexpr double kHalfPi[] = {0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54};

// (atan(t)/t - 1) / t^2 in z = t^2, |t| <= tan(pi/8); error 1.3e-18
inline constexpr double kAtan[] = {
    -0x1.555555555553ep-2, 0x1.9999999995a30p-3, -0x1.24924922b550dp-3, 0x1.c71c70e84bb9dp-4,
    -0x1.745cf909fbc4cp-4, 0x1.3b111b3e78b44p-4, -0x1.10ebc6d7ab696p-4, 0x1.df0fa76d79995p-5,
    -0x1.9cd287bf4b38ep-5, 0x1.37d1014a6c155p-5, -0x1.2558213d234b9p-6};

// (asin(s)/s - 1) / s^2 in z = s^2, |s| <= 1/2; error 1.5e-17
inline constexpr double kAsin[] = {
    0x1.5555555555384p-3, 0x1.333333336fdbbp-4, 0x1.6db6db419cf52p-5,  0x1.f1c72c7f6c509p-6,
    0x1.6e89edbd53e35p-6, 0x1.1c6c4281d6596p-6, 0x1.c6f66212075a3p-7,  0x1.8ef2c3020040bp-7,
    0x1.aa375ccda3224p-8, 0x1.41086afb5a170p-6, -0x1.0b7ee43e0d94ap-6, 0x1.05fe6bb1ef1b0p-5};

// 2/pi in 64-bit words, most significant first, after one word of zeros.
inline constexpr uint64_t kTwoOverPi[] = {
    0x0000000000000000, 0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041,
    0xfe5163abdebbc561, 0xb7246e3a424dd2e0, 0x06492eea09d1921c, 0xfe1deb1cb129a73e,
    0xe88235f52ebb4484, 0xe99c7026b45f7e41, 0x3991d639835339f4, 0x9c845f8bbdf9283b,
    0x1ff897ffde05980f, 0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7, 0x4f463f669e5fea2d,
    0x7527bac7ebe5f17b, 0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b6bab,
    0xf0cfbc209af4361d};

}  // namespace tenon::codegen::coefficients
