// Rows of a CSR matrix: their nonzeros, divided by the norm of the row for directions.
//
// The memory is the caller's and is never written; a reader keeps the last direction in its own.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "session.hpp"
#include "simd.hpp"

namespace lloydformer::ISA {

/// The stored numbers of a row, and the features that they belong to.
template <class T, class Index>
struct CsrRow {
    const Index* features;
    const T* values;
    int count;

    /// |x|^2 in float64.
    double square() const {
        double total = 0;
        for (int e = 0; e < count; e++) total += double(values[e]) * values[e];
        return total;
    }
};

/// A CSR matrix (n, d). Precondition: within a row features ascend, each once.
template <class T, class Index>
class CsrRows {
  public:
    explicit CsrRows(const CsrPoints& from)
        : n(from.n),
          leaf(from.leaf),
          d(from.d),
          starts_(static_cast<const Index*>(from.starts)),
          features_(static_cast<const Index*>(from.features)),
          values_(static_cast<const T*>(from.values)),
          weights_(from.weights),
          directions_(from.directions),
          largest_(from.largest) {}

    const int64_t n, leaf;  // rows in all, and in a leaf of the tree of sums
    const int d;            // features

    /// A row as it is stored.
    CsrRow<T, Index> stored(int64_t i) const {
        return {features_ + starts_[i], values_ + starts_[i], int(starts_[i + 1] - starts_[i])};
    }

    /// Prefetches both ends of row i into the cache: short rows have no more lines.
    void prefetch(int64_t i) const {
        for (const Index at : {starts_[i], starts_[i + 1]})
            __builtin_prefetch(features_ + at), __builtin_prefetch(values_ + at);
    }

    /// Upper bound of the norm of a row with `count` numbers.
    double largest_norm(int count) const {
        return directions_ ? 1.001 : largest_ * std::sqrt(double(count));
    }

    bool directions() const { return directions_; }
    bool weighted() const { return weights_ != nullptr; }
    double weight(int64_t i) const { return weights_ == nullptr ? 1.0 : weights_[i]; }

  private:
    const Index *starts_, *features_;
    const T* values_;
    const double* weights_;
    bool directions_;
    double largest_;  // absolute value
};

/// Reads rows as they are compared, for one thread.
template <class T, class Index>
class CsrReader {
  public:
    explicit CsrReader(const CsrRows<T, Index>& rows) : rows_(rows) {}

    /// Row i; valid until the next call.
    [[gnu::always_inline]] CsrRow<T, Index> row(int64_t i) {
        CsrRow<T, Index> found = rows_.stored(i);
        if (rows_.directions()) found.values = direction(found);
        return found;
    }

    /// Row i with its zeros, (d).
    void expand(int64_t i, T* out) {
        const CsrRow<T, Index> found = row(i);
        std::fill_n(out, rows_.d, T(0));
        for (int e = 0; e < found.count; e++) out[found.features[e]] = found.values[e];
    }

  private:
    /// The numbers of a row divided by its norm, in float64. A power of two keeps squares of
    /// float64 numbers from overflow and from vanishing.
    [[gnu::noinline]] const T* direction(const CsrRow<T, Index>& stored) {
        double largest = 0, square = 0;
        for (int e = 0; e < stored.count; e++)
            largest = std::max(largest, std::abs(double(stored.values[e])));
        const double unit = largest < 0x1p-500 ? 0x1p600 : largest > 0x1p500 ? 0x1p-600 : 1;
        for (int e = 0; e < stored.count; e++) {
            const double value = stored.values[e] * unit;
            square += value * value;
        }
        const double factor = square > 0 ? 1 / std::sqrt(square) : 0;
        if (values_.size() < size_t(stored.count)) values_.resize(stored.count);
        for (int e = 0; e < stored.count; e++) values_[e] = T(stored.values[e] * unit * factor);
        return values_.data();
    }

    const CsrRows<T, Index>& rows_;
    std::vector<T> values_;
};

}  // namespace lloydformer::ISA
