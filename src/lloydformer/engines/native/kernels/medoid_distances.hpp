// Distances between rows of the data, by the metric of k-medoids: one row to a batch of rows.
//
// Every distance adds up features in their order, whichever of the two rows is in the batch. So
// the distance of two rows has the same bits wherever it is computed, and the matrix is symmetric.
#pragma once

#include <cmath>

#include "rows.hpp"

namespace lloydformer::ISA {

enum class Metric { sqeuclidean, euclidean, manhattan, precomputed };

// Rows. Which exchanges are compared with each other depends on it, so it is the same for every
// instruction set, and not a multiple of its width.
constexpr int BATCH = 32;

/// The rows as k-medoids compares them: where the caller has them, or a transformed copy.
template <class T>
class MedoidRows {
  public:
    MedoidRows(const Rows<T>& rows, Metric metric)
        : n(rows.n), d(rows.d), metric(metric), base_(rows.stored()), stride_(rows.d) {
        if (metric == Metric::precomputed) matrix_ = base_, line_ = n;
        if (base_ != nullptr) return;
        stride_ = rows.width;
        copy_.resize(n * stride_);
        for (int64_t i = 0; i < n; i++) rows.read(i, &copy_[i * stride_]);
        base_ = copy_.data();
    }

    const int64_t n;
    const int d;
    const Metric metric;

    const T* operator[](int64_t i) const { return base_ + i * stride_; }
    int64_t stride() const { return stride_; }

    /// True if BATCH rows from `start` on may be transposed where they are, which reads up to 16
    /// bytes behind them.
    bool transposable(int64_t start) const { return (start + BATCH) * stride_ + 4 <= n * stride_; }

    /// Row i of the matrix of distances; null if there is none.
    const T* known(int64_t i) const { return matrix_ == nullptr ? nullptr : matrix_ + i * line_; }

    /// Few rows, so that all distances are kept: they stay in the cache (those with few features
    /// are computed as fast), or take at most four times the memory of the data.
    bool few() const {
        const int64_t bytes = n * n * int64_t(sizeof(T));
        return (d >= 16 && bytes <= CACHE) || (n <= 4 * int64_t(d) && bytes <= LARGEST);
    }

    /// Keeps a matrix of distances, each line of it padded.
    void keep(Aligned<T>&& matrix) {
        own_ = std::move(matrix);
        matrix_ = own_.data(), line_ = padded_line();
    }

    /// Length of a line that begins with a cache line, and not where other lines begin in a page.
    int64_t padded_line() const {
        constexpr int64_t step = 64 / sizeof(T);
        return ((n + step - 1) / step | 1) * step;
    }

  private:
    // Bytes: a third-level cache; 1 GiB.
    static constexpr int64_t CACHE = 1 << 24, LARGEST = 1 << 30;

    const T* base_;
    const T* matrix_ = nullptr;
    int64_t stride_, line_ = 0;
    Aligned<T> copy_, own_;
};

/// Transposes BATCH rows of d numbers each: number f of row r goes to out[f * BATCH + r]. Writes up
/// to 3 numbers of each row behind d, so `out` has room for a multiple of 4 of them.
template <class T>
inline void transpose_batch(const T* rows, int64_t stride, int d, T* out) {
    constexpr int step = 16 / sizeof(T);
    for (int f = 0; f < d; f += step)
        for (int part = 0; part < BATCH; part += W<T>)
            transpose(rows + part * stride + f, int(stride), out + f * BATCH + part, BATCH);
}

/// Up to BATCH rows: their numbers and, if wanted, the rows feature by feature.
template <class T>
class RowBatch {
  public:
    RowBatch(const MedoidRows<T>& rows, bool features)
        : from_(&rows),
          wide_(features ? (rows.d + 3) / 4 * 4 : 0),
          rows_(BATCH * wide_),
          lanes_(BATCH * wide_) {}

    /// Rows from `start` on.
    void read(int64_t start, int how_many) {
        count = how_many;
        for (int r = 0; r < BATCH; r++) index[r] = int32_t(start) + std::min(r, count - 1);
        if (wide_ == 0) return;
        if (!from_->transposable(start)) return copy_rows();
        transpose_batch((*from_)[start], from_->stride(), from_->d, lanes_.data());
    }

    /// Rows by their numbers.
    void gather(const int32_t* numbers, int how_many) {
        count = how_many;
        for (int r = 0; r < BATCH; r++) index[r] = numbers[std::min(r, count - 1)];
        if (wide_ > 0) copy_rows();
    }

    const T* lanes() const { return lanes_.data(); }

    /// The lanes that are computed; those behind the rows repeat one of them, or hold anything.
    int lanes_used() const { return count > BATCH / 2 ? BATCH : BATCH / 2; }

    int count = 0;
    alignas(64) int32_t index[BATCH] = {};

  private:
    void copy_rows() {
        for (int r = 0; r < count; r++)
            std::copy_n((*from_)[index[r]], from_->d, &rows_[r * wide_]);
        transpose_batch(rows_.data(), wide_, from_->d, lanes_.data());
    }

    const MedoidRows<T>* from_;
    int wide_;
    Aligned<T> rows_, lanes_;
};

template <class T>
struct BatchDistances {
    alignas(64) T to[BATCH];
};

constexpr int AT_ONCE = LANE_BYTES / 16;  // rows whose sums do not wait for each other

/// Adds up the features of `count` places x, each against the first `lanes` rows of a batch.
template <int count, int lanes, class T, class Term>
inline void add_features(const T* const* x, const T* rows, int d, BatchDistances<T>* found,
                         Term term) {
    constexpr int parts = lanes / W<T>;
    V<T> sums[count][parts]{};
    for (int f = 0; f < d; f++, rows += BATCH)
        for (int p = 0; p < parts; p++) {
            const V<T> there = load(rows + p * W<T>);
            for (int t = 0; t < count; t++) term(sums[t][p], V<T>(there - splat(x[t][f])));
        }
    for (int t = 0; t < count; t++)
        for (int p = 0; p < parts; p++) store(found[t].to + p * W<T>, sums[t][p]);
}

/// Half a batch takes half the time.
template <int count, class T, class Term>
inline void add_features(const T* const* x, const RowBatch<T>& batch, int d,
                         BatchDistances<T>* found, Term term) {
    if (batch.count > BATCH / 2)
        add_features<count, BATCH>(x, batch.lanes(), d, found, term);
    else
        add_features<count, BATCH / 2>(x, batch.lanes(), d, found, term);
}

/// Distances of `count` rows or other places x (d) to a batch with features.
template <int count, class T>
inline void distances_from(const MedoidRows<T>& rows, const T* const* x, const RowBatch<T>& batch,
                           BatchDistances<T>* found) {
    if (rows.metric == Metric::manhattan) {
        add_features<count>(x, batch, rows.d, found,
                            [](V<T>& sum, V<T> apart) { sum += max<T>(apart, -apart); });
        return;
    }
    add_features<count>(x, batch, rows.d, found,
                        [](V<T>& sum, V<T> apart) { sum += apart * apart; });
    if (rows.metric == Metric::euclidean)
        for (int t = 0; t < count; t++)
            for (int r = 0; r < batch.lanes_used(); r++) found[t].to[r] = std::sqrt(found[t].to[r]);
}

/// The same for one place.
template <class T>
inline void distances_from(const MedoidRows<T>& rows, const T* x, const RowBatch<T>& batch,
                           BatchDistances<T>& found) {
    distances_from<1>(rows, &x, batch, &found);
}

/// Numbers of a row by their places.
template <class T>
inline void look_up(const T* row, const int32_t* places, int lanes, T* found) {
#if LANE_BYTES == 64
    if constexpr (sizeof(T) == 4) {
        for (int p = 0; p < lanes; p += 16)
            _mm512_store_ps(found + p, _mm512_i32gather_ps(_mm512_load_si512(places + p), row, 4));
        return;
    }
#endif
    for (int r = 0; r < lanes; r++) found[r] = row[places[r]];
}

/// Distances of row i to a batch: looked up if they are known.
template <class T>
inline void distances(const MedoidRows<T>& rows, int64_t i, const RowBatch<T>& batch,
                      BatchDistances<T>& found) {
    const T* known = rows.known(i);
    if (known != nullptr)
        look_up(known, batch.index, batch.lanes_used(), found.to);
    else
        distances_from(rows, rows[i], batch, found);
}

/// Copies up to BATCH numbers; a constant number of them is faster.
template <class T>
inline void copy_batch(const T* from, int count, T* to) {
    if (count == BATCH)
        std::memcpy(to, from, BATCH * sizeof(T));
    else
        std::copy_n(from, count, to);
}

/// Distances of up to BATCH rows to the rows of a batch.
template <class T>
class DistanceTile {
  public:
    const T* operator[](int t) const { return away_[t].to; }

    /// Of rows by their numbers.
    void gather(const MedoidRows<T>& rows, const RowBatch<T>& batch, const int32_t* numbers,
                int count) {
        if (rows.known(0) == nullptr)
            return compute(rows, batch, count, [&](int t) { return int64_t(numbers[t]); });
        for (int t = 0; t < count; t++)
            look_up(rows.known(numbers[t]), batch.index, batch.lanes_used(), away_[t].to);
    }

    /// Of rows from `start` on.
    void read(const MedoidRows<T>& rows, const RowBatch<T>& batch, int64_t start, int count) {
        if (rows.known(0) == nullptr)
            return compute(rows, batch, count, [&](int t) { return start + t; });
        for (int r = 0; r < batch.count; r++) {  // the matrix is symmetric
            const T* line = rows.known(batch.index[r]) + start;
            copy_batch(line, count, lines_ + r * BATCH);
            for (int next = 0; next < BATCH; next += 64 / int(sizeof(T)))
                __builtin_prefetch(line + BATCH + next);
        }
        transpose_batch(lines_, BATCH, count, away_[0].to);
    }

    /// Line t of the tile is that of row `start` + t.
    void write(const MedoidRows<T>& rows, const RowBatch<T>& batch, int64_t start, int count,
               T* matrix) {
        const int64_t first = batch.index[0], line = rows.padded_line();
        for (int t = 0; t < count; t++)
            copy_batch(away_[t].to, batch.count, matrix + (start + t) * line + first);
        transpose_batch(away_[0].to, BATCH, batch.count, lines_);
        for (int r = 0; r < batch.count; r++)
            copy_batch(lines_ + r * BATCH, count, matrix + (first + r) * line + start);
    }

  private:
    template <class Number>
    void compute(const MedoidRows<T>& rows, const RowBatch<T>& batch, int count, Number number) {
        for (int t = 0; t < count; t += AT_ONCE) {
            const T* x[AT_ONCE];
            for (int u = 0; u < AT_ONCE; u++) x[u] = rows[number(std::min(t + u, count - 1))];
            distances_from<AT_ONCE>(rows, x, batch, &away_[t]);
        }
    }

    BatchDistances<T> away_[BATCH]{};
    alignas(64) T lines_[BATCH * BATCH]{};
};

/// All distances, (n, n) in padded lines.
template <class T>
Aligned<T> matrix_of(const MedoidRows<T>& rows, ThreadPool& pool) {
    Aligned<T> matrix(rows.n * rows.padded_line());
    const int64_t n = rows.n;
    const auto count_from = [n](int64_t start) { return int(std::min<int64_t>(BATCH, n - start)); };
    pool.run(int((n + BATCH - 1) / BATCH), [&](int b, int) {
        const int64_t start = int64_t(b) * BATCH;
        RowBatch<T> batch(rows, true);
        batch.read(start, count_from(start));
        DistanceTile<T> tile;
        for (int64_t i = start; i < n; i += BATCH) {
            tile.read(rows, batch, i, count_from(i));
            tile.write(rows, batch, i, count_from(i), matrix.data());
        }
    });
    return matrix;
}

}  // namespace lloydformer::ISA
