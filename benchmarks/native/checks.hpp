// Checks of the kernels on one generated problem; the first that fails ends the driver.
#pragma once

#include "draw_calls.hpp"
#include "mixture_run.hpp"
#include "references.hpp"

/// Moves the centers to the means; one without mass stays.
template <class T>
void move(const Run<T>& run, std::vector<T>& centers, int d) {
    for (size_t i = 0; i < centers.size(); i++)
        if (run.masses[i / d] > 0) centers[i] = T(run.sums[i] / run.masses[i / d]);
}

/// A batch of three problems, from given centers (some clusters may be empty) or drawn ones.
template <class T>
void solve_batch(const Generated<T>& given, const Kind& kind, int n_threads, bool drawn,
                 Checksum& found) {
    const int b = 3, n = int(given.n / b), trials = 3;
    if (n < given.k) return;
    std::vector<double> centers, inertia(b), draws(int64_t(b) * given.k * trials);
    std::vector<int32_t> labels(b * n);
    std::vector<int64_t> n_iter(b);
    for (int p = 0; p < b; p++)
        for (double c : given.centers) centers.push_back(c + double(given.origin[0]));
    for (size_t i = 0; i < draws.size(); i++) draws[i] = double(i * 2654435761u % 1000) / 1000;
    kernels.solve(
        {given.points.data(), b, n, given.d, given.k, sizeof(T) == 4,
         kind.weights ? given.weights.data() : nullptr, drawn ? draws.data() : nullptr, trials,
         1e-4, 5, kind.directions, centers.data(), labels.data(), inertia.data(), n_iter.data()},
        n_threads);
    found.add(centers), found.add(labels), found.add(inertia), found.add(n_iter);
}

/// Every kernel of a session that is open.
template <class T>
void call_every_kernel(Run<T>& run, const Generated<T>& given) {
    run.moments(), run.seeding(), run.shares(), run.symmetric(), run.relocation_folds();
    run.trim(), run.robust(), run.measure(), run.seeds(), run.unseen();
    run.measure_returned(), run.nearest_in_parts(given.centers, true);
    run.nearest_in_parts(given.centers, false), run.looked_at();
    every_draw(run, given), every_medoid_move(run, given);
    if (given.d < 500) every_mixture(run, given);  // with d^2 numbers of each row and component
    std::vector<double> moved(given.centers.begin(), given.centers.end()), other(moved);
    if (given.k <= given.n) run.iterate(moved, 4), run.iterate(moved, 4, false);
    for (int layer = 0; layer < 2; layer++) run.relocate(other, 1 + given.k / 2, layer);
    run.recombine(1 + given.k / 2, 30);
}

template <class T>
uint64_t every_kernel(const Generated<T>& given, const Kind& kind, int n_threads,
                      Screening screening = Screening::never) {
    Run<T> run(given, kind, n_threads, Run<T>::ROOM, screening);
    call_every_kernel(run, given);
    for (bool drawn : {false, true}) solve_batch(given, kind, n_threads, drawn, run.found);
    return run.found.value();
}

/// Lloyd's iterations with bounds, without, in three threads, and with screening must give the same
/// bits. Returns how many of them skipped points.
template <class T>
int check_bounds(const Generated<T>& given, const Kind& kind, const std::string& where,
                 Checksum& first) {
    const Reference<T> reference(given, kind);
    Run<T> all(given, kind, 1, 0), bounded(given, kind, 1, Run<T>::ROOM),
        threads(given, kind, 3, Run<T>::ROOM),
        screened(given, kind, 3, Run<T>::ROOM, Screening::always);
    std::vector<T> centers = given.centers;
    int skipping = 0;
    for (int step = 0; step < 14; step++) {
        all.nearest(centers, step == 0), bounded.nearest(centers, step == 0),
            threads.nearest(centers, step == 0), screened.nearest(centers, step == 0);
        if (all.labels != bounded.labels || all.sums != bounded.sums)
            complain("bounds change a label or a sum", where);
        if (threads.sums != bounded.sums || threads.labels != bounded.labels)
            complain("threads change bits", where);
        const bool other = all.labels != screened.labels || all.sums != screened.sums;
        if ((other || step % 5 == 0) && reference.farther(centers, all.labels) > 0)
            complain("not the nearest center", where);
        if (other) complain("a label or a sum that screening changes", where);
        if (step == 0 && kind.plain()) first.add(all.labels);
        skipping += bounded.looked_at() < given.n;
        move(all, centers, given.d);
    }
    bounded.measure(centers, false), all.measure(centers, true);
    if (all.labels != bounded.labels || all.distances != bounded.distances)
        complain("bounds change a label or a distance of the last assignment", where);
    screened.measure(centers, false);
    if (all.labels != screened.labels || all.distances != screened.distances)
        complain("a label or a distance of the last assignment that screening changes", where);
    threads.unseen(centers), screened.unseen(centers);
    if (all.labels != threads.labels) complain("other labels for rows that are unseen", where);
    if (all.labels != screened.labels)
        complain("a label of an unseen row that screening changes", where);
    return skipping;
}

/// Whole loops: an objective that does not grow, and means as centers.
template <class T>
void check_loop(const Generated<T>& given, const Kind& kind, const std::string& where) {
    if (given.k > given.n) return;
    const Reference<T> reference(given, kind);
    Run<T> run(given, kind, 3, Run<T>::ROOM);
    std::vector<double> centers(given.centers.begin(), given.centers.end());
    const auto ran = run.iterate(centers, 40);
    if (kind.directions) return;
    const double reach = given.farthest(kind);
    double mass = 0;
    for (int64_t i = 0; i < given.n; i++) mass += given.weight(i, kind);
    const double off = 1e-9 * std::sqrt(reach) + std::sqrt(reference.rounding());
    bool empty = false;
    for (int j = 0; j < given.k; j++) {
        double own = 0;
        for (int64_t i = 0; i < given.n; i++) own += run.labels[i] == j ? given.weight(i, kind) : 0;
        empty |= own == 0;
    }
    if (!empty && reference.off_the_means(centers, run.labels) > off)
        complain("a center that is not the mean of its points", where);
    const double slack = mass * (1e-12 * reach + reference.rounding() +
                                 8 * std::numeric_limits<T>::epsilon() * std::sqrt(reach) * off);
    for (size_t step = 1; step < ran.history.size() && !empty; step++)
        if (ran.history[step] >
            ran.history[step - 1] + slack + 1e-6 * (sizeof(T) == 4) * mass * reach)
            complain("an objective that grows", where);
}

/// A center that is far from all points takes the farthest point. open() gives a new session.
template <class T, class Open>
void check_refill_of(const Generated<T>& given, const Kind& kind, const std::string& where,
                     Open open) {
    if (given.k > given.n || given.k < 2 || kind.directions || kind.duplicates) return;
    const Reference<T> reference(given, kind);
    std::vector<double> start(given.centers.begin(), given.centers.end());
    for (int f = 0; f < given.d; f++) start[f] = 1e4;
    Run<T> run = open();
    std::vector<double> centers = start;
    run.iterate(centers, 1);
    double most = -1, next = -1;
    int64_t farthest = 0;
    for (int64_t i = 0; i < given.n; i++) {
        if (given.weight(i, kind) == 0) continue;
        const double away = reference.away(i, start, run.labels[i]);
        if (away > most)
            next = most, most = away, farthest = i;
        else
            next = std::max(next, away);
    }
    if (most - next <= 1e-3 * most) return;  // two points that are almost as far
    if (reference.away(farthest, centers, 0) > 1e-8 * most)
        complain("an empty cluster without the farthest point", where);
}

template <class T>
void check_refill(const Generated<T>& given, const Kind& kind, const std::string& where) {
    check_refill_of(given, kind, where, [&] { return Run<T>(given, kind, 1, 0); });
}

/// The seeds of one call: the distances of all points to the nearest of them.
template <class T>
void check_seeds(const Generated<T>& given, const Kind& kind, const std::string& where) {
    const Reference<T> reference(given, kind);
    Run<T> run(given, kind, 3, 0);
    std::vector<int64_t> rows = run.seeds();
    if (int(rows.size()) == given.k) rows.pop_back();  // points are not compared with the last one
    if (rows.empty()) return;
    std::vector<double> seeds;
    for (int64_t row : rows)
        for (double x : given.row(row, kind)) seeds.push_back(x);
    const double rounding = 1e-5 * given.farthest(kind) * (sizeof(T) == 4 ? 1 : 1e-9);
    for (int64_t i = 0; i < given.n; i++)
        if (std::fabs(reference.nearest(i, seeds) - double(run.distances[i])) > rounding)
            complain("not the distance to the nearest seed", where);
}

/// Six blobs far apart, two of which have no center and one has three. One relocation must find
/// the two: it costs the least to remove two of the three.
template <class T>
void check_relocation(const std::string& where) {
    const Kind kind(sizeof(T) == 4 ? 0 : 1);
    const int blobs = 6, each = 60, d = 3;
    Generated<T> given(blobs * each, d, blobs, kind);
    for (int i = 0; i < blobs * each; i++)
        for (int f = 0; f < d; f++)
            given.points[i * d + f] = T(100 * ((i % blobs) >> f & 1) + given.points[i * d + f] / 4);
    const Reference<T> reference(given, kind);
    Run<T> run(given, kind, 3, 0);
    for (int layer = 0; layer < 8; layer++) {
        std::vector<double> centers;
        for (int row : {0, 1, 2, 3, 9, 15})  // blobs 0, 1, 2, 3, 3, 3
            for (double x : given.row(row, kind)) centers.push_back(x);
        const double objective = reference.objective(centers);
        const auto [before, after] = run.relocate(centers, 2, layer);
        if (std::fabs(before - objective) > 1e-4 * before)
            complain("not the objective before a relocation", where);
        if (reference.objective(centers) > after * (1 + 1e-3))
            complain("not the objective after a relocation", where);
        if (after > 3.0 * blobs * each * d)
            complain("a relocation does not find two blobs without a center", where);
    }
}
