// Checks of the kernels for sparse rows, on a generated problem with most of its numbers left out.
#pragma once

#include "checks.hpp"

/// The CSR matrix of a problem: two of three numbers are left out, every fifth row is empty, and
/// some of the stored numbers are zeros. Arrays are in exactly as much memory as they need.
template <class T, class Index>
struct Thinned {
    Generated<T> dense;  // with zeros in place of what is left out
    std::vector<Index> starts{0}, features;
    std::vector<T> values;

    Thinned(const Generated<T>& given, const Kind& kind) : dense(given) {
        std::fill(dense.origin.begin(), dense.origin.end(), T(0));
        for (int64_t i = 0; i < given.n; i++) {
            for (int f = 0; f < given.d; f++) note(i, f);
            starts.push_back(Index(values.size()));
        }
        features.shrink_to_fit(), values.shrink_to_fit(), starts.shrink_to_fit();
        for (int j = 0; j < given.k; j++)
            for (int f = 0; f < given.d; f++)
                dense.centers[int64_t(j) * given.d + f] = dense.seen(j % given.n, f, kind);
    }

    Run<T> run(const Kind& kind, int n_threads) const {
        double largest = 0;
        for (T x : values) largest = std::max(largest, std::fabs(double(x)));
        const lloydformer::CsrPoints points{starts.data(),
                                            features.data(),
                                            values.data(),
                                            dense.n,
                                            dense.d,
                                            sizeof(T) == 4,
                                            sizeof(Index) == 8,
                                            kind.weights ? dense.weights.data() : nullptr,
                                            kind.directions,
                                            largest,
                                            Run<T>::LEAF};
        return Run<T>(dense, kernels.csr_session(points, n_threads));
    }

  private:
    void note(int64_t i, int f) {
        T& x = dense.points[i * dense.d + f];
        const bool kept = i % 5 != 3 && (i * 11 + f * 7) % 3 == 0;
        if (!kept || (i + f) % 17 == 0) x = 0;
        if (kept) features.push_back(Index(f)), values.push_back(x);
    }
};

template <class T>
void call_every_sparse_kernel(Run<T>& run, const Generated<T>& given) {
    run.moments(), run.seeding(), run.shares(), run.measure();
    if (given.k <= given.n) run.iterate_some(3);
}

template <class T>
uint64_t every_sparse_kernel(Run<T> run, const Generated<T>& given) {
    call_every_sparse_kernel(run, given);
    return run.found.value();
}

/// Iterations in one call: those of single calls, and the farthest point for an empty cluster.
template <class T, class Index>
void check_sparse_loop(const Thinned<T, Index>& thin, const Kind& kind, const std::string& where) {
    const Generated<T>& given = thin.dense;
    if (given.k > given.n || kind.directions) return;
    Run<T> once = thin.run(kind, 3), steps = thin.run(kind, 1);
    std::vector<double> centers(given.centers.begin(), given.centers.end());
    std::vector<T> rounded = given.centers;
    bool empty = false;
    const size_t count = once.iterate(centers, 4).history.size();
    for (size_t step = 0; step < count; step++) {
        steps.nearest(rounded, step == 0), move(steps, rounded, given.d);
        for (double mass : steps.masses) empty |= mass == 0;
    }
    if (!empty &&
        (once.labels != steps.labels || std::vector<T>(centers.begin(), centers.end()) != rounded))
        complain("one call differs from single iterations of sparse rows", where);
    check_refill_of(given, kind, where, [&] { return thin.run(kind, 1); });
}

/// Lloyd's iterations: nearest centers, the sums of their rows, the same bits in three threads.
template <class T, class Index>
void check_sparse(const Generated<T>& given, Kind kind, const std::string& where) {
    kind.scaled = false;
    const Thinned<T, Index> thin(given, kind);
    const Reference<T> reference(thin.dense, kind);
    Run<T> alone = thin.run(kind, 1), threads = thin.run(kind, 3);
    std::vector<T> centers = thin.dense.centers;
    for (int step = 0; step < 6; step++) {
        alone.nearest(centers, step == 0), threads.nearest(centers, step == 0);
        if (threads.sums != alone.sums || threads.labels != alone.labels)
            complain("threads change bits of sparse rows", where);
        if (reference.farther(centers, alone.labels) > 0)
            complain("not the nearest center of a sparse row", where);
        move(alone, centers, given.d);
        const std::vector<double> means(centers.begin(), centers.end());
        const double eps = std::numeric_limits<T>::epsilon();
        if (reference.off_the_means(means, alone.labels) >
            64 * eps * std::sqrt(thin.dense.farthest(kind)))
            complain("not the sums of sparse rows", where);
    }
    alone.measure(centers, false);
    const double rounding = 64 * std::numeric_limits<T>::epsilon() * thin.dense.farthest(kind);
    for (int64_t i = 0; i < given.n; i++)
        if (std::fabs(reference.nearest(i, centers) - double(alone.distances[i])) > rounding)
            complain("not the distance of a sparse row", where);
    check_sparse_loop(thin, kind, where);
    if (every_sparse_kernel(thin.run(kind, 1), thin.dense) !=
        every_sparse_kernel(thin.run(kind, 3), thin.dense))
        complain("threads change bits of a sparse kernel", where);
}
