// Numbers that are not finite, denormal or zero in every array that a kernel reads: results mean
// nothing, and nothing outside of the arrays is read or written. Sanitizers watch that.
//
// Rows and weights change after the session is open, as another thread may change them: bounds and
// labels of earlier calls were those of other numbers.
#pragma once

#include "csr_checks.hpp"

/// Puts strange numbers into some places of an array, or into all.
template <class T>
void make_strange(std::vector<T>& numbers, int turn) {
    typedef std::numeric_limits<T> Limits;
    const T strange[] = {
        Limits::quiet_NaN(), Limits::infinity(),   -Limits::infinity(),  Limits::max(),
        -Limits::max(),      Limits::denorm_min(), -Limits::quiet_NaN(), T(0),
        Limits::min()};
    const size_t count = sizeof strange / sizeof *strange, step = turn % 3 == 0 ? 1 : 1 + turn % 7;
    // A single kind of them in each third turn, as then no comparison is true.
    for (size_t i = size_t(turn) % step; i < numbers.size(); i += step)
        numbers[i] = strange[turn % 3 == 0 ? size_t(turn / 3) % count : (i + size_t(turn)) % count];
}

inline void check_labels(const std::vector<int32_t>& labels, int k, const std::string& where) {
    for (int32_t label : labels)
        if (label < 0 || label >= k) complain("a label of no center", where);
}

/// Weights cannot be infinite or NaN: fits refuse them.
inline void make_tiny(std::vector<double>& weights) {
    const double tiny[] = {5e-324, 0, 1e-310, 2.3e-308, 1, 1e-300};
    for (size_t i = 0; i < weights.size(); i++) weights[i] = tiny[i % 6];
}

/// Iterations, of which the first sees finite numbers, and then every kernel; with screening, too.
template <class T>
void check_not_finite(const Generated<T>& given, Kind kind, const std::string& where) {
    for (const Screening screening : {Screening::never, Screening::always})
        for (int array = 0; array < 3; array++)
            for (int turn = 0; turn < (array == 2 ? 1 : 9); turn++) {
                kind.weights = array == 2;
                Generated<T> changed = given;
                Run<T> run(changed, kind, 3, Run<T>::ROOM, screening);
                for (int step = 0; step < 3; step++) run.nearest(given.centers, step == 0);
                if (array == 0) make_strange(changed.points, turn);
                if (array == 1) make_strange(changed.centers, turn);
                if (array == 2) make_tiny(changed.weights);
                for (int step = 0; step < 3; step++) {
                    run.nearest(changed.centers, false);
                    check_labels(run.labels, given.k, where);
                }
                call_every_kernel(run, changed);
                for (bool drawn : {false, true}) solve_batch(changed, kind, 3, drawn, run.found);
            }
}

/// The same for sparse rows.
template <class T, class Index>
void check_sparse_not_finite(const Generated<T>& given, Kind kind, const std::string& where) {
    kind.scaled = false, kind.weights = true;
    for (int array = 0; array < 3; array++) {
        for (int turn = 0; turn < (array == 2 ? 1 : 9); turn++) {
            Thinned<T, Index> thin(given, kind);
            Run<T> run = thin.run(kind, 3);
            run.nearest(thin.dense.centers, true);
            if (array == 0) make_strange(thin.values, turn);
            if (array == 1) make_strange(thin.dense.centers, turn);
            if (array == 2) make_tiny(thin.dense.weights);
            for (int step = 0; step < 3; step++) {
                run.nearest(thin.dense.centers, false);
                check_labels(run.labels, given.k, where);
            }
            run.measure(thin.dense.centers, false);
            check_labels(run.labels, given.k, where);
            call_every_sparse_kernel(run, thin.dense);
        }
    }
}
