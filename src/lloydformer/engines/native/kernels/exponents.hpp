// e^x, 2^x and log x of vectors.
//
// Written out, so that they are vectors of every instruction set and need no library.
#pragma once

#include <type_traits>

#include "simd.hpp"

namespace lloydformer::ISA {

/// 1 / (1 * 2 * ... * n).
constexpr double inverse_factorial(int n) { return n < 2 ? 1.0 : inverse_factorial(n - 1) / n; }

constexpr double power(double x, int n) { return n == 0 ? 1.0 : x * power(x, n - 1); }

/// Base-2 logarithm of a negligible share: the sum of a million (2^20) of them is below the
/// rounding of 1, which is 2^-24 or 2^-53.
template <class T>
constexpr T FAINT = sizeof(T) == sizeof(float) ? T(-46) : T(-75);

/// Logarithm of the smallest normal number, rounded up.
template <class T>
constexpr T LOWEST = sizeof(T) == sizeof(float) ? T(-87.0) : T(-708.0);

/// e^x for x <= 0, by 2^n times a Taylor polynomial; 0 where x is below `lowest`.
template <class T>
inline V<T> exponential(V<T> x, T lowest = LOWEST<T>) {
    constexpr bool single = sizeof(T) == sizeof(float);
    constexpr int terms = single ? 6 : 12, mantissa = single ? 23 : 52, bias = single ? 127 : 1023;
    constexpr T magic = single ? T(12582912.0) : T(6755399441055744.0);  // 1.5 * 2^mantissa
    constexpr T high = single ? T(0.693359375) : T(0.6931471803691238),
                low = T(0.6931471805599453 - double(high));
    const I<T> gone = x < splat(lowest);
    x = max<T>(x, splat(lowest));
    V<T> n = x * T(1.4426950408889634) + magic;  // the addition rounds to a whole number
    const U<T> power = ((U<T>)n - (U<T>)splat(magic) + bias) << mantissa;
    n -= magic;
    const V<T> r = (x - n * high) - n * low;
    V<T> series = splat(T(inverse_factorial(terms)));
#pragma GCC unroll 12
    for (int term = terms - 1; term >= 0; term--) series = series * r + T(inverse_factorial(term));
    return gone ? V<T>{} : series * (V<T>)power;
}

/// 2^r for r from -1/2 to 1/2: for float by the polynomial with the smallest relative
/// error, 7.5e-8; for double by Taylor's.
inline V<float> near_power(V<float> r) {
    constexpr float best[] = {0.00132764720f, 0.00967554133f, 0.0555071327f,
                              0.240221197f,   0.693146967f,   1.0f};
    V<float> series = splat(best[0]);
#pragma GCC unroll 5
    for (int term = 1; term < 6; term++) series = series * r + best[term];
    return series;
}

inline V<double> near_power(V<double> r) {
    constexpr double two = 0.6931471805599453;  // log 2
    V<double> series = splat(inverse_factorial(12) * power(two, 12));
#pragma GCC unroll 12
    for (int term = 11; term >= 0; term--)
        series = series * r + inverse_factorial(term) * power(two, term);
    return series;
}

/// 2^max(x - level, FAINT) for x <= level; level is a whole number, both are below 2^21. The
/// integer part is added to the bits of the exponent, so that another level scales the result
/// exactly.
template <class T>
inline V<T> faint_power(V<T> x, T level = 0) {
    constexpr bool single = sizeof(T) == sizeof(float);
    constexpr T magic = single ? T(12582912.0) : T(6755399441055744.0);  // 1.5 * 2^mantissa
    typedef std::conditional_t<single, uint32_t, uint64_t> Bits;
    x = max<T>(x, splat(level + FAINT<T>));
    const V<T> n = x + magic;  // the addition rounds to a whole number
    const U<T> power = (U<T>)n - Bits(int64_t(level));
    return (V<T>)((U<T>)near_power(x - (n - magic)) + (power << (single ? 23 : 52)));
}

/// log x for positive x that are not denormal: x is 2^n m with m near 1, and log m the series
/// 2 (s + s^3 / 3 + s^5 / 5 + ...) of s = (m - 1) / (m + 1).
template <class T>
inline V<T> logarithm(V<T> x) {
    constexpr bool single = sizeof(T) == sizeof(float);
    constexpr int terms = single ? 5 : 11, mantissa = single ? 23 : 52;
    typedef std::conditional_t<single, uint32_t, uint64_t> Bits;
    constexpr Bits root = single ? Bits(0x3f3504f3) : Bits(0x3fe6a09e667f3bcdLL);  // of 1/2
    const I<T> power = (I<T>)((U<T>)x - root) >> mantissa;
    const V<T> m = (V<T>)((U<T>)x - ((U<T>)power << mantissa));
    const V<T> s = (m - T(1)) / (m + T(1)), square = s * s;
    V<T> series = splat(T(1.0 / (2 * terms + 1)));
#pragma GCC unroll 12
    for (int term = terms - 1; term >= 0; term--)
        series = series * square + T(1.0 / (2 * term + 1));
    return __builtin_convertvector(power, V<T>) * T(0.6931471805599453) + s * series * T(2);
}

}  // namespace lloydformer::ISA
