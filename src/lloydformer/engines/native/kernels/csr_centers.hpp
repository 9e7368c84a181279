// Centers packed for sparse rows: feature by feature, one center in each SIMD lane.
//
// A nonzero of a row then multiplies one stretch of memory, with all centers of a part. The order
// of additions follows the nonzeros of a row, so scores are the same for any number of threads.
#pragma once

#include "centers.hpp"
#include "csr_rows.hpp"
#include "thread_pool.hpp"

namespace lloydformer::ISA {

/// Vectors of centers that are scored at a time: their scores stay in registers.
constexpr int MOST_VECTORS = 8;

/// Calls each(N) with N from 1 to MOST_VECTORS as a constant.
template <int N = MOST_VECTORS, class Each>
inline void with_vectors(int count, Each each) {
    if constexpr (N > 1)
        if (count < N) return with_vectors<N - 1>(count, each);
    each(std::integral_constant<int, N>{});
}

/// Centers (k, d) as -2 c, transposed in parts of up to eight vectors; |c|^2.
template <class T>
class CsrCenters {
  public:
    int k = 0, d = 0;
    const T* rows = nullptr;         // (k, d), the caller's
    Aligned<T> squares;              // |c|^2; padded to whole vectors with the largest number
    std::vector<T> norms;            // |c|
    std::vector<double> exact;       // |c|^2 in float64
    double largest = 0, radius = 0;  // the largest |c|^2 and |c|

    /// The memory of the last centers is used again.
    void pack(ThreadPool& pool, const T* centers, int n_centers, int n_features) {
        rows = centers, k = n_centers, d = n_features;
        const int vectors = padded<T>(k) / W<T>, parts = (vectors - 1) / MOST_VECTORS + 1;
        each_ = (vectors + parts - 1) / parts, vectors_ = vectors;
        numbers_.resize(int64_t(vectors) * W<T> * d);
        squares.assign(vectors * W<T>, HUGE_SCORE<T>), exact.resize(k);
        pool.run((d + TILE - 1) / TILE, [&](int tile, int) {
            for (int first = 0; first < vectors; first += each_)
                transpose(first, tile * TILE, std::min(d, (tile + 1) * TILE));
        });
        pool.run(k, [&](int j, int) { exact[j] = square(rows + int64_t(j) * d); });
        std::copy(exact.begin(), exact.end(), squares.begin());
        norms.resize(k);
        for (int j = 0; j < k; j++) norms[j] = T(std::sqrt(exact[j]));
        largest = *std::max_element(exact.begin(), exact.end()), radius = std::sqrt(largest);
    }

    /// Calls each(first center, numbers, N): the N vectors of centers of every part.
    template <class Each>
    void by_parts(Each each) const {
        for (int first = 0; first < vectors_; first += each_)
            with_vectors(std::min(each_, vectors_ - first), [&](auto count) {
                each(first * W<T>, &numbers_[int64_t(first) * W<T> * d], count);
            });
    }

    int parts() const { return (vectors_ + each_ - 1) / each_; }
    const T* row(int j) const { return rows + int64_t(j) * d; }
    int width() const { return vectors_ * W<T>; }

  private:
    // Features of an item of work: two cache lines or more of each center.
    static constexpr int TILE = 32;

    void transpose(int first, int from, int to) {
        const int count = std::min(each_, vectors_ - first) * W<T>, begin = first * W<T>;
        T* part = &numbers_[int64_t(begin) * d];
        for (int j = 0; j < count; j++)
            for (int f = from; f < to; f++)
                part[int64_t(f) * count + j] = begin + j < k ? -2 * row(begin + j)[f] : T(0);
    }

    double square(const T* c) const {
        double parts[8]{};
        int f = 0;
        for (; f + 8 <= d; f += 8)
            for (int p = 0; p < 8; p++) parts[p] += double(c[f + p]) * c[f + p];
        for (; f < d; f++) parts[0] += double(c[f]) * c[f];
        for (int half = 4; half > 0; half /= 2)
            for (int p = 0; p < half; p++) parts[p] += parts[p + half];
        return parts[0];
    }

    int each_ = 1, vectors_ = 0;  // vectors of a part, and of all
    Aligned<T> numbers_;
};

/// Adds x c to the scores of N vectors of centers, for one number of a row.
template <int N, class T, class Index>
[[gnu::always_inline]] inline void add_product(const CsrRow<T, Index>& row, int e, const T* centers,
                                               V<T> (&s)[N]) {
    const T* c = centers + int64_t(row.features[e]) * (N * W<T>);
    const V<T> x = splat(row.values[e]);
#pragma GCC unroll 8
    for (int v = 0; v < N; v++) s[v] += x * load(c + v * W<T>);
}

/// The scores |c|^2 - 2 x c of N vectors of centers.
template <int N, class T, class Index>
[[gnu::always_inline]] inline void score(const CsrRow<T, Index>& row, const T* centers,
                                         const T* squares, V<T> (&s)[N]) {
    V<T> even[N], odd[N];
#pragma GCC unroll 8
    for (int v = 0; v < N; v++) even[v] = load(squares + v * W<T>), odd[v] = V<T>{};
    int e = 0;
    if constexpr (N <= 4)  // two sums, as an addition takes several cycles
        for (; e + 2 <= row.count; e += 2) {
            add_product<N>(row, e, centers, even);
            add_product<N>(row, e + 1, centers, odd);
        }
    for (; e < row.count; e++) add_product<N>(row, e, centers, even);
#pragma GCC unroll 8
    for (int v = 0; v < N; v++) s[v] = N <= 4 ? even[v] + odd[v] : even[v];
}

}  // namespace lloydformer::ISA
