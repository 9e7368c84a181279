// Numbers that are not finite, denormal or zero in every array that a kernel reads: results mean
// nothing, and nothing outside of the arrays is read or written. Sanitizers watch that.
//
// Rows and weights change after the session is open, as another thread may change them: bounds and
// labels of earlier calls were those of other numbers.
#pragma once

#include "csr_checks.hpp"

inline void check_labels(const std::vector<int32_t>& labels, int k, const std::string& where) {
    for (int32_t label : labels)
        if (label < 0 || label >= k) complain("a label of no center", where);
}

/// Weights as fits accept them, but so small that their sums vanish.
inline void make_tiny(std::vector<double>& weights) {
    const double tiny[] = {5e-324, 0, 1e-310, 2.3e-308, 1, 1e-300};
    for (size_t i = 0; i < weights.size(); i++) weights[i] = tiny[i % 6];
}

/// The arrays in which numbers become strange. `transform`: origin, shift and scale of the rows,
/// which the session reads when it is opened. `others`: distances, thresholds, radii, draws, masses
/// and what else a kernel is given.
enum class Where { rows, centers, weights, tiny_weights, transform, others };

constexpr Where EVERYWHERE[] = {Where::rows,         Where::centers,   Where::weights,
                                Where::tiny_weights, Where::transform, Where::others};

/// So many ways to choose places and numbers, one for tiny weights.
inline int turns(Where place) { return place == Where::tiny_weights ? 1 : 9; }

/// Iterations, of which the first sees finite numbers, and then every kernel; with screening, too.
template <class T>
void check_not_finite(const Generated<T>& given, Kind kind, const std::string& where) {
    for (const Screening screening : {Screening::never, Screening::always})
        for (const Where place : EVERYWHERE)
            for (int turn = 0; turn < turns(place); turn++) {
                kind.weights = place == Where::weights || place == Where::tiny_weights;
                kind.scaled = place == Where::transform;
                Generated<T> changed = given;
                if (place == Where::transform)
                    make_strange(changed.origin, turn), make_strange(changed.shift, turn + 1),
                        make_strange(changed.scale, turn + 2);
                Run<T> run(changed, kind, 3, Run<T>::ROOM, screening);
                for (int step = 0; step < 3; step++) run.nearest(given.centers, step == 0);
                if (place == Where::rows) make_strange(changed.points, turn);
                if (place == Where::centers) make_strange(changed.centers, turn);
                if (place == Where::weights) make_strange(changed.weights, turn);
                if (place == Where::tiny_weights) make_tiny(changed.weights);
                if (place == Where::others) run.strange = turn;
                for (int step = 0; step < 3; step++) {
                    run.nearest(changed.centers, false);
                    check_labels(run.labels, given.k, where);
                }
                call_every_kernel(run, changed);
                if (given.n == given.d && kind.plain()) every_medoid_move(run, changed, 4);
                check_labels(run.labels, given.k, where);
                for (bool drawn : {false, true}) solve_batch(changed, kind, 3, drawn, run.found);
            }
}

/// The same for sparse rows, which have no transformation.
template <class T, class Index>
void check_sparse_not_finite(const Generated<T>& given, Kind kind, const std::string& where) {
    kind.scaled = false, kind.weights = true;
    for (const Where place : EVERYWHERE)
        for (int turn = 0; turn < (place == Where::transform ? 0 : turns(place)); turn++) {
            Thinned<T, Index> thin(given, kind);
            Run<T> run = thin.run(kind, 3);
            run.nearest(thin.dense.centers, true);
            if (place == Where::rows) make_strange(thin.values, turn);
            if (place == Where::centers) make_strange(thin.dense.centers, turn);
            if (place == Where::weights) make_strange(thin.dense.weights, turn);
            if (place == Where::tiny_weights) make_tiny(thin.dense.weights);
            if (place == Where::others) run.strange = turn;
            for (int step = 0; step < 3; step++) {
                run.nearest(thin.dense.centers, false);
                check_labels(run.labels, given.k, where);
            }
            run.measure(thin.dense.centers, false);
            check_labels(run.labels, given.k, where);
            call_every_sparse_kernel(run, thin.dense);
        }
}

/// Every kernel of the two tables was called: a new one must be added to `call_every_kernel`.
template <class T>
void check_all_called() {
    const auto look_for = [](const auto& kernels) {
        for (const auto& kernel : kernels)
            if (Run<T>::called().count(kernel.first) == 0)
                complain("a kernel that was not called", kernel.first);
    };
    look_for(lloydformer::ISA::table<T>());
    look_for(lloydformer::ISA::csr_table<T, int32_t>());
}
