// A partition of the points: labels, and the sums, masses and counts of its clusters.
//
// Invariant: sums, masses and counts are those of the labels, but for the rounding of additions
// and subtractions; a cluster without points has exactly 0.
#pragma once

#include "assign_two.hpp"
#include "fold.hpp"

namespace lloydformer::ISA {

/// Clusters of all points. Only points that change their label change sums.
template <class T>
struct Partition {
    int k, d;
    std::vector<int32_t> labels, others;  // nearest and second nearest center
    std::vector<double> centers, sums, masses, counts;

    Partition(int64_t n, int d) : k(0), d(d), labels(n), others(n) {}

    /// Starts again with these centers; no point is in a cluster.
    void begin(const double* from, int clusters) {
        k = clusters;
        centers.assign(from, from + int64_t(k) * d);
        sums.assign(int64_t(k) * d, 0), masses.assign(k, 0), counts.assign(k, 0);
        std::fill(labels.begin(), labels.end(), -1);
    }

    /// Adds a cluster without points. Returns its number.
    int add(const double* center) {
        centers.insert(centers.end(), center, center + d);
        sums.resize(sums.size() + d), masses.push_back(0), counts.push_back(0);
        return k++;
    }

    void erase(int a) {
        for (std::vector<double>* numbers : {&centers, &sums})
            numbers->erase(numbers->begin() + int64_t(a) * d,
                           numbers->begin() + int64_t(a + 1) * d);
        for (std::vector<double>* numbers : {&masses, &counts})
            numbers->erase(numbers->begin() + a);
        for (int32_t& label : labels) label -= label > a;
        k--;
    }

    /// Moves a point to another cluster.
    void move(const T* row, int from, int to, double weight) {
        for (int f = 0; f < d; f++) sums[int64_t(from) * d + f] -= weight * row[f];
        for (int f = 0; f < d; f++) sums[int64_t(to) * d + f] += weight * row[f];
        masses[from] -= weight, masses[to] += weight;
        counts[from] -= weight > 0, counts[to] += weight > 0;
        if (counts[from] == 0) clear(from);
    }

    void clear(int j) {
        std::fill_n(&sums[int64_t(j) * d], d, 0.0);
        masses[j] = counts[j] = 0;
    }

    /// Moves the centers to the means; one without mass stays. Returns the sum of
    /// w |mean - center|^2.
    double to_means() {
        double less = 0;
        for (int j = 0; j < k; j++)
            for (int f = 0; f < d && masses[j] > 0; f++) {
                const double mean = sums[int64_t(j) * d + f] / masses[j];
                double& center = centers[int64_t(j) * d + f];
                less += masses[j] * (mean - center) * (mean - center);
                center = mean;
            }
        return less;
    }

    /// Assigns points to the nearest center. each(numbers, i, block, r, centers) adds to `more`
    /// further numbers, which are returned.
    template <class Each>
    Numbers assign(ThreadPool& pool, const Rows<T>& rows, int64_t more, Each each) {
        const std::vector<T> rounded(centers.begin(), centers.end());
        const PackedCenters<T> packed(rounded.data(), k, d, rows.screening);
        const int64_t size = int64_t(k) * (d + 2);
        Numbers found = fold(pool, rows, size + more, [&](Range unit) {
            rows.prefetch_after(unit.start, unit.stop);
            return [&, buffer = PointBlock<T>(rows)](Numbers& numbers, Range leaf) mutable {
                assign_two(rows, buffer, leaf, packed,
                           [&](int64_t first, PointBlock<T>& block, const int32_t* now,
                               const int32_t* second) {
                               for (int r = 0; r < block.count; r++) {
                                   const int64_t i = first + r;
                                   if (now[r] != labels[i])
                                       note_move(numbers, block.row(r), labels[i], now[r],
                                                 rows.weight(i));
                                   labels[i] = now[r], others[i] = second[r];
                                   each(&numbers[size], i, block, r, packed);
                               }
                           });
            };
        });
        apply(found);
        return Numbers(found.begin() + size, found.end());
    }

  private:
    void note_move(Numbers& numbers, const T* row, int from, int to, double weight) const {
        double* to_sums = &numbers[int64_t(to) * d];
        for (int f = 0; f < d; f++) to_sums[f] += weight * row[f];
        double *mass = &numbers[int64_t(k) * d], *count = mass + k;
        mass[to] += weight, count[to] += weight > 0;
        if (from < 0) return;
        double* from_sums = &numbers[int64_t(from) * d];
        for (int f = 0; f < d; f++) from_sums[f] -= weight * row[f];
        mass[from] -= weight, count[from] -= weight > 0;
    }

    void apply(const Numbers& numbers) {
        for (int64_t f = 0; f < int64_t(k) * d; f++) sums[f] += numbers[f];
        for (int j = 0; j < k; j++) {
            masses[j] += numbers[int64_t(k) * d + j];
            counts[j] += numbers[int64_t(k) * (d + 1) + j];
            if (counts[j] == 0) clear(j);
        }
    }
};

}  // namespace lloydformer::ISA
