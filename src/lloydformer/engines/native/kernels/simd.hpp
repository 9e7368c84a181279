// SIMD vectors of float or double, as wide as the instruction set that this file is compiled for.
//
// The kernels are compiled once for each instruction set. The macro ISA names their namespace; the
// module chooses one at run time.
#pragma once

#include <cstdint>
#include <cstring>
#include <limits>
#include <new>
#include <type_traits>
#include <vector>

#if defined(__AVX512F__)
#define ISA avx512
#define LANE_BYTES 64
#elif defined(__AVX2__)
#define ISA avx2
#define LANE_BYTES 32
#else
#define ISA portable
#define LANE_BYTES 16
#endif

#if LANE_BYTES > 16
#include <immintrin.h>
#endif

namespace lloydformer::ISA {

template <class T>
struct Simd;

template <>
struct Simd<float> {
    typedef float V __attribute__((vector_size(LANE_BYTES)));
    typedef int32_t I __attribute__((vector_size(LANE_BYTES)));   // masks and indices
    typedef uint32_t U __attribute__((vector_size(LANE_BYTES)));  // bits of V
};

template <>
struct Simd<double> {
    typedef double V __attribute__((vector_size(LANE_BYTES)));
    typedef int64_t I __attribute__((vector_size(LANE_BYTES)));
    typedef uint64_t U __attribute__((vector_size(LANE_BYTES)));
};

template <class T>
using V = typename Simd<T>::V;
template <class T>
using I = typename Simd<T>::I;
/// Bits that are added and subtracted. Unsigned, as those of NaN may overflow.
template <class T>
using U = typename Simd<T>::U;
template <class T>
constexpr int W = LANE_BYTES / sizeof(T);
template <class T>
constexpr T HUGE_SCORE = std::numeric_limits<T>::max();  // instead of infinity

/// Allocates memory aligned to 64 bytes: vectors that cross cache lines are slow.
template <class T>
struct AlignedAllocator {
    typedef T value_type;
    AlignedAllocator() = default;
    template <class U>
    AlignedAllocator(const AlignedAllocator<U>&) {}
    T* allocate(size_t n) {
        return static_cast<T*>(::operator new(n * sizeof(T), std::align_val_t(64)));
    }
    void deallocate(T* at, size_t) { ::operator delete(at, std::align_val_t(64)); }
    bool operator==(const AlignedAllocator&) const { return true; }
    bool operator!=(const AlignedAllocator&) const { return false; }
};
template <class T>
using Aligned = std::vector<T, AlignedAllocator<T>>;

template <class T>
inline V<T> load(const T* from) {
    V<T> v;
    std::memcpy(&v, from, sizeof v);
    return v;
}

template <class T>
inline void store(T* to, V<T> v) {
    std::memcpy(to, &v, sizeof v);
}

/// Numbers in float64, as many as a vector has.
inline V<double> as_doubles(const double* from) { return load(from); }

inline V<double> as_doubles(const float* from) {
    typedef float Half __attribute__((vector_size(LANE_BYTES / 2)));
    Half v;
    std::memcpy(&v, from, sizeof v);
    return __builtin_convertvector(v, V<double>);
}

template <class T>
inline V<T> splat(T value) {
    return value - V<T>{};
}

template <class T>
inline V<T> min(V<T> a, V<T> b) {
    return a < b ? a : b;
}
template <class T>
inline V<T> max(V<T> a, V<T> b) {
    return a < b ? b : a;
}

/// Rotates the lanes.
template <class T>
inline V<T> rotate(V<T> v, int places) {
    V<T> out;
    for (int l = 0; l < W<T>; l++) out[l] = v[(l + places) % W<T>];
    return out;
}

template <class T>
inline T sum(V<T> v) {
#pragma GCC unroll 4
    for (int apart = W<T> / 2; apart > 0; apart /= 2) v += rotate<T>(v, apart);
    return v[0];
}

/// The smallest lane.
template <class T>
inline T least(V<T> v) {
#if LANE_BYTES == 64  // halves first: shuffles of short vectors are faster
    if constexpr (sizeof(T) == 4)
        return _mm512_reduce_min_ps((__m512)v);
    else
        return _mm512_reduce_min_pd((__m512d)v);
#endif
#pragma GCC unroll 4
    for (int apart = W<T> / 2; apart > 0; apart /= 2) v = min<T>(v, rotate<T>(v, apart));
    return v[0];
}

/// One bit for each lane of a mask.
inline unsigned bits(I<float> mask) {
#if LANE_BYTES == 64
    return _mm512_movepi32_mask((__m512i)mask);
#elif LANE_BYTES == 32
    return unsigned(_mm256_movemask_ps((__m256)mask));
#else
    unsigned found = 0;
    for (int l = 0; l < W<float>; l++) found |= unsigned(mask[l] & 1) << l;
    return found;
#endif
}

inline unsigned bits(I<double> mask) {
#if LANE_BYTES == 64
    return _mm512_movepi64_mask((__m512i)mask);
#elif LANE_BYTES == 32
    return unsigned(_mm256_movemask_pd((__m256d)mask));
#else
    unsigned found = 0;
    for (int l = 0; l < W<double>; l++) found |= unsigned(mask[l] & 1) << l;
    return found;
#endif
}

/// One bit for each lane in which a is not above b.
inline unsigned bits_at_most(V<float> a, V<float> b) {
#if LANE_BYTES == 64
    return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_LE_OS);
#else
    return bits(a <= b);
#endif
}

inline unsigned bits_at_most(V<double> a, V<double> b) {
#if LANE_BYTES == 64
    return _mm512_cmp_pd_mask((__m512d)a, (__m512d)b, _CMP_LE_OS);
#else
    return bits(a <= b);
#endif
}

/// An integer for each number, in the order of the numbers; 0 and -0 have the same one. NaN has its
/// place in this order, which it has not in that of numbers: std::sort and std::nth_element would
/// read and write outside of an array that holds one.
template <class T>
inline auto order_of(T number) {
    typedef std::conditional_t<sizeof(T) == 4, int32_t, int64_t> Bits;
    Bits bits;
    std::memcpy(&bits, &number, sizeof bits);
    return bits < 0 ? Bits(std::numeric_limits<Bits>::min() - bits) : bits;
}

/// Length of a row that is padded with zeros to whole vectors.
template <class T>
constexpr int padded(int d) {
    return (d + W<T> - 1) / W<T> * W<T>;
}

/// x.y of padded rows.
template <class T>
inline T dot(const T* x, const T* y, int width) {
    V<T> total{};
    for (int f = 0; f < width; f += W<T>) total += load(x + f) * load(y + f);
    return sum<T>(total);
}

/// |x - y|^2 of padded rows.
template <class T>
inline T squared_distance(const T* x, const T* y, int width) {
    V<T> total{};
    for (int f = 0; f < width; f += W<T>) {
        const V<T> away = load(x + f) - load(y + f);
        total += away * away;
    }
    return sum<T>(total);
}

typedef float Quad __attribute__((vector_size(16)));

inline Quad piece(const void* from) {
    Quad v;
    std::memcpy(&v, from, sizeof v);
    return v;
}

#if LANE_BYTES > 16
typedef float Octet __attribute__((vector_size(32)));

inline Octet join(Quad a, Quad b) { return __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7); }
#endif

/// Loads 16 bytes at each of several addresses that are `step` bytes apart.
inline V<float> strided(const char* from, [[maybe_unused]] int64_t step) {
#if LANE_BYTES == 64
    const Octet a = join(piece(from), piece(from + step));
    const Octet b = join(piece(from + 2 * step), piece(from + 3 * step));
    return __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
#elif LANE_BYTES == 32
    return join(piece(from), piece(from + step));
#else
    return piece(from);
#endif
}

/// Lane indices for a shuffle of two vectors: within each 16 bytes, the lanes that `of` names.
template <class T, class Of>
inline I<T> lanes(Of of) {
    constexpr int per = 16 / sizeof(T);
    I<T> chosen{};
    for (int l = 0; l < W<T>; l++) {
        const int place = of(l % per);  // in the first vector; from `per` on, in the second
        chosen[l] = l / per * per + place % per + (place < per ? 0 : W<T>);
    }
    return chosen;
}

/// Transposes 16 bytes of W rows into vectors with one row in each lane: 4 features of float.
inline void transpose(const float* rows, int stride, float* out, int apart) {
    const char* from = reinterpret_cast<const char*>(rows);
    const int64_t row = stride * int64_t(sizeof(float));
    V<float> in[4];
    for (int r = 0; r < 4; r++) in[r] = strided(from + r * row, 4 * row);
    const I<float> low = lanes<float>([](int l) { return l / 2 + l % 2 * 4; });
    const I<float> high = lanes<float>([](int l) { return 2 + l / 2 + l % 2 * 4; });
    const I<float> even = lanes<float>([](int l) { return l % 2 + l / 2 * 4; });
    const I<float> odd = lanes<float>([](int l) { return 2 + l % 2 + l / 2 * 4; });
    const V<float> a = __builtin_shuffle(in[0], in[1], low),
                   b = __builtin_shuffle(in[2], in[3], low);
    const V<float> c = __builtin_shuffle(in[0], in[1], high),
                   d = __builtin_shuffle(in[2], in[3], high);
    store(out, __builtin_shuffle(a, b, even));
    store(out + apart, __builtin_shuffle(a, b, odd));
    store(out + 2 * apart, __builtin_shuffle(c, d, even));
    store(out + 3 * apart, __builtin_shuffle(c, d, odd));
}

/// The least lane of each of four vectors, one after the other.
inline Quad least_of_each(V<float> a, V<float> b, V<float> c, V<float> d) {
    const I<float> low = lanes<float>([](int l) { return l / 2 + l % 2 * 4; });
    const I<float> high = lanes<float>([](int l) { return 2 + l / 2 + l % 2 * 4; });
    const I<float> even = lanes<float>([](int l) { return l % 2 + l / 2 * 4; });
    const I<float> odd = lanes<float>([](int l) { return 2 + l % 2 + l / 2 * 4; });
    const V<float> ab = min<float>(__builtin_shuffle(a, b, low), __builtin_shuffle(a, b, high));
    const V<float> cd = min<float>(__builtin_shuffle(c, d, low), __builtin_shuffle(c, d, high));
    V<float> all = min<float>(__builtin_shuffle(ab, cd, even), __builtin_shuffle(ab, cd, odd));
    for (int apart = W<float> / 2; apart >= 4; apart /= 2)
        all = min<float>(all, rotate<float>(all, apart));
    Quad found;
    std::memcpy(&found, &all, sizeof found);
    return found;
}

/// The same for 2 features of double.
inline void transpose(const double* rows, int stride, double* out, int apart) {
    const char* from = reinterpret_cast<const char*>(rows);
    const int64_t row = stride * int64_t(sizeof(double));
    const V<double> a = (V<double>)strided(from, 2 * row),
                    b = (V<double>)strided(from + row, 2 * row);
    store(out, __builtin_shuffle(a, b, lanes<double>([](int l) { return l * 2; })));
    store(out + apart, __builtin_shuffle(a, b, lanes<double>([](int l) { return 1 + l * 2; })));
}

}  // namespace lloydformer::ISA
