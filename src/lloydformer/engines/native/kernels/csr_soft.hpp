// Soft k-means for sparse rows (fold SoftSums): the shares of every row in every cluster, and the
// sums of shares times rows, in float64 and in row order within a leaf. Exponents are relative to
// the nearest center.
#pragma once

#include "csr_lloyd.hpp"
#include "exponents.hpp"
#include "workspace.hpp"

namespace lloydformer::ISA {

/// Shares of rows, for one thread. Numbers that are added up: sums (d, k), masses (k), energy and
/// changes.
template <class T, class Index>
class CsrSoftPass {
  public:
    CsrSoftPass(const CsrRows<T, Index>& rows, const CsrCenters<T>& centers, double gamma,
                int32_t* labels, const int32_t* previous)
        : rows_(rows),
          centers_(centers),
          gamma_(gamma),
          labels_(labels),
          previous_(previous),
          reader_(rows),
          shares_(centers.width()) {}

    void run(Numbers& numbers, Range range) {
        const int k = centers_.k;
        double *masses = &numbers[int64_t(rows_.d) * k], *energy = masses + k;
        for (int64_t i = range.start; i < range.stop; i++) {
            const CsrRow<T, Index> row = reader_.row(i);
            const double weight = rows_.weight(i), lowest = share(row, i);
            energy[0] += weight * (row.square() + lowest);
            energy[1] += weight > 0 && labels_[i] != previous_[i];
            if (weight == 0) continue;
            for (int j = 0; j < k; j++) masses[j] += weight * shares_[j];
            for (int e = 0; e < row.count; e++) {
                double* sums = &numbers[int64_t(row.features[e]) * k];
                const double x = weight * row.values[e];
                for (int j = 0; j < k; j++) sums[j] += x * shares_[j];
            }
        }
    }

  private:
    /// The shares of a row. Returns -log(sum of e^-gamma s) / gamma of its scores s.
    double share(const CsrRow<T, Index>& row, int64_t i) {
        centers_.by_parts([&](int first, const T* numbers, auto count) {
            V<T> s[count];
            score<count>(row, numbers, &centers_.squares[first], s);
            for (int v = 0; v < count; v++) store(&shares_[first + v * W<T>], s[v]);
        });
        // A center also where all scores are NaN: the search returns one of the elements.
        const auto best = std::min_element(shares_.begin(), shares_.begin() + centers_.k);
        labels_[i] = int32_t(best - shares_.begin());
        const T least = *best, steepness = T(gamma_);  // padding has the largest score: no share
        V<T> total{};
        for (int j = 0; j < centers_.width(); j += W<T>) {
            const V<T> near = exponential<T>((least - load(&shares_[j])) * steepness);
            total += near;
            store(&shares_[j], near);
        }
        const T all = sum<T>(total);
        for (int j = 0; j < centers_.width(); j++) shares_[j] /= all;
        return least - std::log(double(all)) / gamma_;
    }

    const CsrRows<T, Index>& rows_;
    const CsrCenters<T>& centers_;
    double gamma_;
    int32_t* labels_;
    const int32_t* previous_;
    CsrReader<T, Index> reader_;
    Aligned<T> shares_;  // of the current row
};

/// Sums (k, d) and masses (k) of soft-max shares; energy. `previous` is only read: the caller
/// writes it. Returns the number of changed labels.
template <class T, class Index>
void run_csr_soft_sums(CsrWorkspace<T, Index>& work, Call& call) {
    const CsrCenters<T>& centers = work.packed(call);
    const int k = centers.k, d = centers.d;
    const double gamma = call.number("inverse_temperature");
    int32_t *labels = work.labels(call), *previous = work.previous(call);
    const StepArrays out(call, k, d, "energy");
    work.lloyd.reset();
    Numbers found = fold(work.pool, work.rows, int64_t(k) * (d + 1) + 2, [&](Range) {
        return [pass = CsrSoftPass<T, Index>(work.rows, centers, gamma, labels, previous)](
                   Numbers& numbers, Range leaf) mutable { pass.run(numbers, leaf); };
    });
    out.fill(found, call);
    for (int j = 0; j < k; j++)  // they are (d, k) in `found`
        for (int f = 0; f < d; f++) out.sums[int64_t(j) * d + f] = found[int64_t(f) * k + j];
}

}  // namespace lloydformer::ISA
