// Gumbel noise -log(-log u) of several rows at once, and an upper bound of it without logarithms.
//
// The bound lets a draw skip most rows: a logarithm is computed only where it could beat the best
// score.
#pragma once

#include <cmath>

#include "philox.hpp"
#include "simd.hpp"

namespace lloydformer::ISA {

typedef V<double> Doubles;
typedef uint64_t Words __attribute__((vector_size(LANE_BYTES)));  // 32 bits are used of each

/// Products of numbers below 2^32.
inline Words product(Words a, Words b) {
#if LANE_BYTES == 64
    return (Words)_mm512_mul_epu32((__m512i)a, (__m512i)b);
#elif LANE_BYTES == 32
    return (Words)_mm256_mul_epu32((__m256i)a, (__m256i)b);
#else
    return a * b;
#endif
}

/// Uniform noise of W<double> rows from `first` on, one cluster for each: as Noise::uniform.
inline Doubles uniform(const Noise& noise, int64_t first, Words clusters) {
    constexpr uint64_t low = 0xFFFFFFFFu;
    Words row{};
    for (int l = 0; l < W<double>; l++) row[l] = uint64_t(first) + l;
    const Words site = Words{} + (uint64_t(noise.layer << 8 | noise.head) & low);
    Words c0 = row & low, c1 = row >> 32, c2 = clusters >> 1, c3 = site;
    uint64_t k0 = noise.seed & low, k1 = noise.seed >> 32;
    for (int round = 0; round < 10; round++) {
        const Words a = product(c0, Words{} + uint64_t(0xD2511F53u)),
                    b = product(c2, Words{} + uint64_t(0xCD9E8D57u));
        c0 = (b >> 32) ^ c1 ^ k0, c1 = b & low;
        c2 = (a >> 32) ^ c3 ^ k1, c3 = a & low;
        k0 = (k0 + 0x9E3779B9u) & low, k1 = (k1 + 0xBB67AE85u) & low;
    }
    const Words odd = Words{} - (clusters & 1);
    const Words high = (c0 & ~odd) | (c2 & odd), rest = (c1 & ~odd) | (c3 & odd);
    const Words bits = (high >> 6) << 26 | rest >> 6;
    // 52 bits behind the exponent of 2^52
    return ((Doubles)(bits | 0x4330000000000000u) - 0x1p52 + 0.5) * 0x1p-52;
}

/// The largest value that Gumbel noise takes: u has 53 bits. Rounded up.
constexpr double HIGHEST_GUMBEL = 36.75;

inline double gumbel(double u) { return -std::log(-std::log(u)); }

/// About log x, without a logarithm: the bits of a number, read as an integer, are 2^52 times the
/// sum of 1023 and a lower bound of its base-2 logarithm, at most 0.0861 below.
inline Doubles rough_log(Doubles x) {
    constexpr double log2 = 0.6931471805599453;
    return __builtin_convertvector((I<double>)x, Doubles) * (log2 * 0x1p-52) - 1023 * log2;
}

/// Upper bound of log x.
inline Doubles log_bound(Doubles x) { return rough_log(x) + 0.06; }

/// Upper bound of Gumbel noise: -log u >= 1 - u.
inline Doubles gumbel_bound(Doubles u) { return 1e-9 - rough_log(1.0 - u); }

}  // namespace lloydformer::ISA
