// Calls of the kernels that draw rows, take them by their numbers, or sample many seeds.
#pragma once

#include "references.hpp"

/// What `draw` finds: for each center a row, its score, and whether it is a point of its own.
struct Drawn {
    std::vector<int64_t> rows;
    std::vector<double> best;
    std::vector<uint8_t> owned;
    std::vector<double> objective;
    int64_t changed;
};

constexpr int64_t NOISE_SEED = 11;

/// A row for each center of the problem. `penalty`: null if only own points are drawn.
template <class T>
Drawn draw(Run<T>& run, const Generated<T>& given, int64_t layer, const double* penalty) {
    Drawn out{std::vector<int64_t>(given.k), std::vector<double>(given.k),
              std::vector<uint8_t>(given.k), std::vector<double>(1), 0};
    Call call;
    call.set("centers", const_cast<T*>(given.centers.data()), {given.k, given.d});
    call.set("seed", NOISE_SEED), call.set("layer", layer);
    if (penalty != nullptr) call.set("penalty", *penalty);
    run.set(call, "labels", run.labels), run.set(call, "previous", run.previous);
    run.set(call, "distances", run.distances);
    run.set(call, "rows", out.rows), run.set(call, "best", out.best);
    run.set(call, "owned", out.owned), run.set(call, "objective", out.objective);
    out.changed = run.changes("medoid_draw", call);
    run.found.add(out.rows), run.found.add(out.best), run.found.add(out.owned);
    run.found.add(out.objective), run.found.add(out.changed), run.found.add(run.labels);
    return out;
}

/// The nearest row of each center, and its squared distance.
template <class T>
std::pair<std::vector<int64_t>, std::vector<T>> closest(Run<T>& run, const Generated<T>& given) {
    std::vector<int64_t> rows(given.k);
    std::vector<T> distances(given.k);
    Call call;
    call.set("centers", const_cast<T*>(given.centers.data()), {given.k, given.d});
    run.set(call, "rows", rows), run.set(call, "closest", distances);
    run.call_kernel("nearest_rows", call);
    run.found.add(rows), run.found.add(distances);
    return {rows, distances};
}

/// The rows that are farthest from their own centers, at most `most`. The labels of the run are
/// those of its centers.
template <class T>
std::pair<std::vector<int64_t>, std::vector<double>> farthest(Run<T>& run,
                                                              const Generated<T>& given,
                                                              int64_t most) {
    std::vector<int64_t> rows(most);
    std::vector<double> distances(most);
    Call call;
    call.set("centers", const_cast<T*>(given.centers.data()), {given.k, given.d});
    run.set(call, "labels", run.labels), run.set(call, "rows", rows);
    run.set(call, "distances", distances);
    const int64_t count = run.changes("farthest", call);
    rows.resize(count), distances.resize(count);
    run.found.add(rows), run.found.add(distances);
    return {rows, distances};
}

/// Returns the sum of d^2 of rows by their numbers; their sums and counts are those of the run.
template <class T>
double minibatch(Run<T>& run, const Generated<T>& given, std::vector<int64_t> rows) {
    std::vector<double> objective(1);
    Call call;
    call.set("centers", const_cast<T*>(given.centers.data()), {given.k, given.d});
    call.set("sums", run.sums.data(), {given.k, given.d});
    run.set(call, "rows", rows), run.set(call, "counts", run.masses);
    run.set(call, "objective", objective);
    run.call_kernel("minibatch_sums", call);
    run.found.add(objective), run.found.add(run.sums), run.found.add(run.masses);
    return objective[0];
}

/// More rows than there are points, so that some are there twice.
template <class T>
std::vector<int64_t> some_rows(const Generated<T>& given) {
    std::vector<int64_t> rows;
    for (int64_t i = 0; i < given.n + 3; i++) rows.push_back(i * 7919 % given.n);
    return rows;
}

/// What the candidates of k-means|| attract, and the sum of w d^2 behind it.
typedef std::vector<double> Attracted;

/// Centers `known` to `stop` of the problem as new candidates; those before them are known.
template <class T>
Attracted approach(Run<T>& run, const Generated<T>& given, int64_t known, int64_t stop) {
    Attracted attracted(stop + 1);
    run.disturb(run.distances);
    Call call;
    call.set("centers", const_cast<T*>(given.centers.data() + known * given.d),
             {stop - known, given.d});
    call.set("known", known);
    run.set(call, "labels", run.labels), run.set(call, "distances", run.distances);
    call.set("attracted", attracted.data(), {stop});
    call.set("mass", &attracted[stop], {1});
    run.call_kernel("oversampling", call);
    run.found.add(attracted), run.found.add(run.labels), run.found.add(run.distances);
    return attracted;
}

/// Every move of the search for medoids, by the first metrics: three of them compare rows, the
/// fourth takes the rows of a square problem for a matrix of distances.
template <class T>
void every_medoid_move(Run<T>& run, const Generated<T>& given, int64_t n_metrics = 3) {
    const int64_t k = std::min<int64_t>(given.k, given.n);
    for (int64_t metric = 0; metric < n_metrics; metric++) {
        std::vector<int64_t> medoids(k);
        for (int64_t j = 0; j < k; j++) medoids[j] = j * given.n / k;
        const auto move = [&](const char* kernel, std::initializer_list<const char*> names,
                              std::initializer_list<int64_t> numbers) {
            Call call;
            run.set(call, "medoids", medoids);
            auto number = numbers.begin();
            for (const char* name : names) call.set(name, *number++);
            if (std::strcmp(kernel, "medoid_descend") == 0 ||
                std::strcmp(kernel, "medoid_relocate") == 0)
                call.set("slack", 0.1);
            run.call_kernel(kernel, call);
            for (int64_t row : medoids)
                if (row < 0 || row >= given.n) complain("a medoid that is no row", kernel);
            run.found.add(medoids), run.found.add(std::get<double>(call.results.at(0)));
        };
        move("medoid_begin", {"metric"}, {metric});
        move("medoid_descend", {"rounds"}, {3});
        move("medoid_exchange", {"seed", "layer"}, {NOISE_SEED, 1});
        move("medoid_relocate", {"seed", "layer", "moved", "draws"}, {NOISE_SEED, 2, 1 + k / 2, 3});
        move("medoid_sweep", {"reach", "most"}, {8, 100});
        move("medoid_sweep", {"reach", "most"}, {8, 100});  // goes on where the first one ended
    }
}

/// All of them, with and without a penalty, and candidates in two rounds.
template <class T>
void every_draw(Run<T>& run, const Generated<T>& given) {
    const double penalty = 3;
    draw(run, given, 1, nullptr), draw(run, given, 2, &penalty);
    closest(run, given), minibatch(run, given, some_rows(given));
    run.measure(), farthest(run, given, 1 + given.n / 3);
    approach(run, given, 0, given.k / 2 + 1), approach(run, given, given.k / 2 + 1, given.k);
}
