// Sums of points by label, or how they change.
//
// Adding and subtracting the same points leaves rounding errors, relative to the largest sum so
// far: `imprecise` says when to add up again. A cluster without points is exactly 0.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "csr_rows.hpp"

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
        count(label, weight);
    }

    template <class T, class Index>
    void add(const CsrRow<T, Index>& row, int label, double weight) {
        touch(label);
        double* sum = &sums[int64_t(label) * d_];
        for (int e = 0; e < row.count; e++) sum[row.features[e]] += weight * row.values[e];
        count(label, weight);
    }

    /// Merges the changes of the rows that follow; `right` is empty afterwards.
    void merge(Totals& right) {
        for (int j : right.touched_) touch(j);
        add_touched(right, nullptr, [](int) {});
        changed += std::exchange(right.changed, 0);
    }

    /// Adds changes to running totals; `changes` are empty afterwards.
    void apply(Totals& changes) {
        apply(changes, nullptr);
        changed = std::exchange(changes.changed, 0);
    }

    /// The same for some clusters: cluster j of `changes` is clusters[j] here, or j if null;
    /// `changed` stays. A cluster without points becomes exactly zero, whatever rounding has left.
    void apply(Totals& changes, const int* clusters) {
        add_touched(changes, clusters, [this](int j) {
            if (counts[j] == 0) clear(j);
            peaks_[j] = std::max(peaks_[j], masses[j]);
        });
    }

    /// True if a cluster had a million (2^20) times its weight before: subtracting has then cost 20
    /// of the 53 bits of its sums.
    bool imprecise() const {
        for (size_t j = 0; j < counts.size(); j++)
            if (counts[j] > 0 && masses[j] < 0x1p-20 * peaks_[j]) return true;
        return false;
    }

  private:
    template <class Then>
    void add_touched(Totals& other, const int* clusters, Then then) {
        for (int j : other.touched_) {
            const int here = clusters == nullptr ? j : clusters[j];
            const double* from = &other.sums[int64_t(j) * d_];
            double* to = &sums[int64_t(here) * d_];
            for (int f = 0; f < d_; f++) to[f] += from[f];
            masses[here] += other.masses[j], counts[here] += other.counts[j];
            then(here);
            other.clear(j);
        }
        other.touched_.clear();
    }

    void count(int label, double weight) {
        masses[label] += weight;
        counts[label] += (weight > 0) - (weight < 0);
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
