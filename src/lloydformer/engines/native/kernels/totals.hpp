// Sums of points by label, or how they change.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "simd.hpp"

namespace lloydformer::ISA {

/// Sums of points (k, d) and weights (k) by label in float64, numbers of points that have weight,
/// and the number of changed labels. Merging two of them costs only the clusters that were touched.
struct Totals {
    std::vector<double> sums, masses;
    std::vector<int64_t> counts;
    int64_t changed = 0;

    Totals(int k, int d)
        : sums(int64_t(k) * d), masses(k), counts(k), d_(d), is_touched_(k), peaks_(k) {}

    template <class T>
    void add(const T* row, int label, double weight) {
        touch(label);
        double* sum = &sums[int64_t(label) * d_];
        for (int f = 0; f < d_; f++) sum[f] += weight * row[f];
        masses[label] += weight;
        counts[label] += (weight > 0) - (weight < 0);
    }

    /// Merges the changes of the rows that follow; `right` is empty afterwards.
    void take(Totals& right) {
        for (int j : right.touched_) touch(j);
        add_touched(right, [](int) {});
    }

    /// Adds changes to running totals; `changes` are empty afterwards. A cluster without points
    /// becomes exactly zero, whatever rounding has left.
    void apply(Totals& changes) {
        changed = 0;
        add_touched(changes, [this](int j) {
            if (counts[j] == 0) clear(j);
            peaks_[j] = std::max(peaks_[j], masses[j]);
        });
    }

    /// A cluster had a million times its weight before: rounding has left too little of its sums.
    bool imprecise() const {
        for (size_t j = 0; j < counts.size(); j++)
            if (counts[j] > 0 && masses[j] < 0x1p-20 * peaks_[j]) return true;
        return false;
    }

  private:
    template <class Then>
    void add_touched(Totals& other, Then then) {
        for (int j : other.touched_) {
            const double* from = &other.sums[int64_t(j) * d_];
            double* to = &sums[int64_t(j) * d_];
            for (int f = 0; f < d_; f++) to[f] += from[f];
            masses[j] += other.masses[j], counts[j] += other.counts[j];
            then(j);
            other.clear(j);
        }
        changed += other.changed;
        other.changed = 0, other.touched_.clear();
    }

    void touch(int j) {
        if (!is_touched_[j]) is_touched_[j] = true, touched_.push_back(j);
    }

    void clear(int j) {
        std::fill_n(&sums[int64_t(j) * d_], d_, 0.0);
        masses[j] = 0, counts[j] = 0;
        is_touched_[j] = false;
    }

    int d_;
    std::vector<char> is_touched_;
    std::vector<int> touched_;   // clusters, each once
    std::vector<double> peaks_;  // the largest weight that a cluster has had
};

}  // namespace lloydformer::ISA
