// Distances between rows of the data, by the metric of k-medoids: one row to a batch of rows.
//
// Every distance adds up features in their order, whichever of the two rows is in the batch. So the
// distance of two rows has the same bits wherever it is computed.
#pragma once

#include <cmath>

#include "rows.hpp"

namespace lloydformer::ISA {

enum class Metric { sqeuclidean, euclidean, manhattan, precomputed };

constexpr int BATCH = 32;  // rows; the algorithm depends on it, so it is no multiple of a lane

/// The rows as k-medoids compares them: where the caller has them, or a transformed copy.
template <class T>
class MedoidRows {
  public:
    MedoidRows(const Rows<T>& rows, Metric metric)
        : n(rows.n), d(rows.d), metric(metric), base_(rows.stored()), stride_(rows.d) {
        if (metric == Metric::precomputed) matrix_ = base_;
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

    /// May BATCH rows from `start` on be transposed in place? Reads up to 16 bytes behind them.
    bool transposable(int64_t start) const { return (start + BATCH) * stride_ + 4 <= n * stride_; }

    /// Row i of the matrix of distances; null if there is none.
    const T* known(int64_t i) const { return matrix_ == nullptr ? nullptr : matrix_ + i * n; }

    /// Few rows: their distances stay in the cache.
    bool few() const { return n * n * int64_t(sizeof(T)) <= CACHE; }

    void keep(Aligned<T>&& matrix) {
        own_ = std::move(matrix);
        matrix_ = own_.data();
    }

  private:
    static constexpr int64_t CACHE = 1 << 23;  // bytes

    const T* base_;
    const T* matrix_ = nullptr;
    int64_t stride_;
    Aligned<T> copy_, own_;
};

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
        if (from_->transposable(start)) return transpose_rows((*from_)[start], from_->stride());
        copy_rows();
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
        transpose_rows(rows_.data(), wide_);
    }

    void transpose_rows(const T* from, int64_t stride) {
        constexpr int step = 16 / sizeof(T);
        for (int f = 0; f < from_->d; f += step)
            for (int part = 0; part < BATCH; part += W<T>)
                transpose(from + part * stride + f, int(stride), &lanes_[f * BATCH + part], BATCH);
    }

    const MedoidRows<T>* from_;
    int wide_;
    Aligned<T> rows_, lanes_;
};

template <class T>
struct BatchDistances {
    alignas(64) T to[BATCH];
};

template <int lanes, class T, class Term>
inline void add_features(const T* x, const T* rows, int d, T* to, Term term) {
    constexpr int parts = lanes / W<T>;
    V<T> sums[parts]{};
    for (int f = 0; f < d; f++, rows += BATCH) {
        const V<T> here = splat(x[f]);
        for (int p = 0; p < parts; p++) term(sums[p], V<T>(load(rows + p * W<T>) - here));
    }
    for (int p = 0; p < parts; p++) store(to + p * W<T>, sums[p]);
}

/// Half a batch takes half the time.
template <class T, class Term>
inline void add_features(const T* x, const RowBatch<T>& batch, int d, T* to, Term term) {
    if (batch.count > BATCH / 2)
        add_features<BATCH>(x, batch.lanes(), d, to, term);
    else
        add_features<BATCH / 2>(x, batch.lanes(), d, to, term);
}

/// Distances of x, a row or another place (d), to a batch with features.
template <class T>
inline void distances_from(const MedoidRows<T>& rows, const T* x, const RowBatch<T>& batch,
                           BatchDistances<T>& found) {
    if (rows.metric == Metric::manhattan) {
        add_features(x, batch, rows.d, found.to,
                     [](V<T>& sum, V<T> apart) { sum += max<T>(apart, -apart); });
    } else {
        add_features(x, batch, rows.d, found.to,
                     [](V<T>& sum, V<T> apart) { sum += apart * apart; });
        if (rows.metric == Metric::euclidean)
            for (int r = 0; r < batch.lanes_used(); r++) found.to[r] = std::sqrt(found.to[r]);
    }
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

/// All distances, (n, n).
template <class T>
Aligned<T> matrix_of(const MedoidRows<T>& rows, ThreadPool& pool) {
    Aligned<T> matrix(rows.n * rows.n);
    const int64_t n = rows.n;
    pool.run(int((n + BATCH - 1) / BATCH), [&](int b, int) {
        const int64_t start = int64_t(b) * BATCH;
        RowBatch<T> batch(rows, true);
        batch.read(start, int(std::min<int64_t>(BATCH, n - start)));
        BatchDistances<T> away;
        for (int64_t i = 0; i < n; i++) {
            distances_from(rows, rows[i], batch, away);
            std::copy_n(away.to, batch.count, &matrix[i * n + start]);
        }
    });
    return matrix;
}

}  // namespace lloydformer::ISA
