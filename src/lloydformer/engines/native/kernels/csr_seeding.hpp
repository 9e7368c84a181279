// k-means++ for sparse rows (folds NewSeed and Potential): distances to the nearest seed, and by
// how much candidates would reduce them. The dense kernels skip rows by the triangle inequality;
// in many dimensions it rules out no row, so every row is compared here.
#pragma once

#include "csr_measure.hpp"

namespace lloydformer::ISA {

/// Adds a seed: updates the distances to the nearest seed; the sum of w d^2 in each leaf. first:
/// there are no other seeds.
template <class T, class Index>
void run_csr_new_seed(CsrWorkspace<T, Index>& work, Call& call) {
    const CsrRows<T, Index>& rows = work.rows;
    const auto seed = call.in<T>("seed", "(d)", {rows.d});
    const bool first = call.flag("first");
    work.labels(call);
    T* distances = work.distances(call);
    const int64_t n_leaves = (rows.n + rows.leaf - 1) / rows.leaf;
    double* masses = call.out<double>("masses", "(n_leaves)", {n_leaves});
    double square = 0;
    for (int f = 0; f < rows.d; f++) square += double(seed[f]) * seed[f];
    by_ranges(work.pool, rows.n, [&](Range range) {
        CsrReader<T, Index> reader(rows);
        for (int64_t i = range.start; i < range.stop; i++) {
            const T away = squared_distance(reader.row(i), seed.data, square, rows.d);
            distances[i] = first ? away : std::min(distances[i], away);
        }
    });
    work.pool.run(int(n_leaves), [&](int number, int) {
        const int64_t start = number * rows.leaf, stop = std::min(rows.n, start + rows.leaf);
        double mass = 0;
        for (int64_t i = start; i < stop; i++) mass += rows.weight(i) * distances[i];
        masses[number] = mass;
    });
}

/// By how much the sum of w d^2 would shrink with each of the candidates (m, d) as a new seed, (m).
template <class T, class Index>
void run_csr_potential(CsrWorkspace<T, Index>& work, Call& call) {
    const CsrRows<T, Index>& rows = work.rows;
    const CsrCenters<T>& candidates = work.packed(call, "candidates");
    work.labels(call);
    const T* distances = work.distances(call);
    double* gains = call.out<double>("gains", "(m)", {candidates.k});
    const Numbers found = fold(work.pool, rows, candidates.width(), [&](Range) {
        return [&, reader = CsrReader<T, Index>(rows)](Numbers& gain, Range leaf) mutable {
            for (int64_t i = leaf.start; i < leaf.stop; i++) {
                const CsrRow<T, Index> row = reader.row(i);
                const T square = T(row.square()), now = distances[i];
                const double weight = rows.weight(i);
                candidates.by_parts([&](int at, const T* numbers, auto count) {
                    V<T> s[count];
                    score<count>(row, numbers, &candidates.squares[at], s);
                    for (int v = 0; v < count; v++)
                        for (int l = 0; l < W<T>; l++) {
                            const T away = std::max(s[v][l] + square, T(0));
                            gain[at + v * W<T> + l] += weight * std::max(now - away, T(0));
                        }
                });
            }
        };
    });
    std::copy_n(found.begin(), candidates.k, gains);
}

}  // namespace lloydformer::ISA
