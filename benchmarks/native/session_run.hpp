// A session of the kernels over a generated problem, and a function for each kernel.
#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <set>

#include "generated.hpp"
#include "kernels.cpp"

using lloydformer::Call;
using lloydformer::Points;
using lloydformer::Session;
using lloydformer::ISA::kernels;
using lloydformer::ISA::Screening;

/// A session over a generated problem, with the arrays that kernels write.
template <class T>
class Run {
  public:
    static constexpr int64_t ROOM = std::numeric_limits<int64_t>::max();  // for bounds

    Run(const Generated<T>& given, const Kind& kind, int n_threads, int64_t bounds_bytes,
        Screening screening = Screening::never)
        : Run(given,
              kernels.session(
                  Points{given.points.data(), given.n, given.d, sizeof(T) == 4, given.origin.data(),
                         kind.scaled ? given.shift.data() : nullptr,
                         kind.scaled ? given.scale.data() : nullptr,
                         kind.weights ? given.weights.data() : nullptr, kind.directions,
                         given.farthest(kind), kind.mapped, LEAF, int(screening)},
                  n_threads, bounds_bytes,
                  // Without a copy in int8 rows are rounded when they are read: half of the kinds.
                  screening == Screening::always && !kind.weights ? ROOM : 0)) {}

    /// A session that is open, over the same points.
    Run(const Generated<T>& given, std::unique_ptr<Session> session)
        : given_(given),
          n_(given.n),
          k_(given.k),
          d_(given.d),
          labels(n_, -1),
          previous(n_, -1),
          trimmed(n_),
          distances(n_),
          sums(k_ * d_),
          masses(k_),
          leaves((n_ + LEAF - 1) / LEAF),
          session_(std::move(session)) {}

    int64_t nearest(const std::vector<T>& centers, bool fresh) {
        Call call = with_state();
        call.set("centers", const_cast<T*>(centers.data()), {k_, d_});
        call.set("fresh", int64_t(fresh));
        set_sums(call);
        return changes("nearest_sums", call);
    }

    /// `nearest` and all sums by label, as parts of the data run them.
    void nearest_in_parts(const std::vector<T>& centers, bool fresh) {
        std::vector<int64_t> counts(k_);
        Call call = with_state();
        call.set("centers", const_cast<T*>(centers.data()), {k_, d_});
        call.set("fresh", int64_t(fresh));
        set_sums(call);
        set(call, "counts", counts);
        found.add(changes("nearest_sum_changes", call)), found.add(counts), add_sums();
        Call again;
        set(again, "labels", labels);
        again.set("k", k_);
        set_sums(again);
        set(again, "counts", counts);
        call_kernel("label_sums", again);
        found.add(counts), add_sums();
    }

    void measure() { measure(given_.centers, true); }

    /// The last assignment to centers as users get them: in float64, and not less the origin.
    void measure_returned() {
        std::vector<double> centers(given_.centers.begin(), given_.centers.end()), spread(k_);
        for (int64_t i = 0; i < k_ * d_; i++) centers[i] += double(given_.origin[i % d_]);
        std::vector<T> away(n_ * k_);
        Call call = with_distances();
        call.set("returned", centers.data(), {k_, d_});
        call.set("fresh", int64_t(1));
        set(call, "previous", previous);
        set(call, "spread", spread);
        set(call, "masses", masses);
        call_kernel("nearest_distances", call);
        found.add(spread), found.add(masses), found.add(labels), found.add(distances);
        Call unseen;
        unseen.set("returned", centers.data(), {k_, d_});
        set(unseen, "labels", labels);
        set(unseen, "spread", spread);
        call_kernel("labels", unseen);
        Call all;
        all.set("returned", centers.data(), {k_, d_});
        all.set("halved", int64_t(1));
        all.set("out", away.data(), {n_, k_});
        call_kernel("distances", all);
        found.add(spread), found.add(labels), found.add(away);
    }

    /// fresh: bounds of the last `nearest` are not used.
    void measure(const std::vector<T>& centers, bool fresh) {
        std::vector<double> spread(k_);
        Call call;
        call.set("centers", const_cast<T*>(centers.data()), {k_, d_});
        call.set("fresh", int64_t(fresh));
        set_state(call);
        set(call, "distances", distances);
        set(call, "spread", spread);
        set(call, "masses", masses);
        call_kernel("nearest_distances", call);
        found.add(spread), found.add(masses), found.add(labels), found.add(distances);
    }

    void unseen() { unseen(given_.centers); }

    /// Labels, distances and ends of columns of rows that nobody has looked at.
    void unseen(const std::vector<T>& centers) {
        std::vector<double> spread(k_);
        std::vector<T> away(n_ * k_), ends(2 * d_);
        for (bool sums : {false, true}) {
            Call call;
            call.set("centers", const_cast<T*>(centers.data()), {k_, d_});
            set(call, "labels", labels);
            if (sums) set(call, "spread", spread);
            call_kernel("labels", call);
            found.add(labels), found.add(spread);
        }
        Call call;
        call.set("centers", const_cast<T*>(centers.data()), {k_, d_});
        call.set("halved", int64_t(0));
        call.set("out", away.data(), {n_, k_});
        call_kernel("distances", call);
        kernels.column_ends(sizeof(T) == 4, given_.points.data(), n_, int(d_), ends.data(), 3);
        found.add(away), found.add(ends);
    }

    void shares() {
        std::vector<double> energy(1);
        Call call = with_centers();
        set_state(call);
        set_sums(call);
        call.set("inverse_temperature", 0.5);
        set(call, "energy", energy);
        call_kernel("soft_sums", call);
        found.add(energy), add_sums();
    }

    /// Both kernels of a symmetric layer, for one to four heads.
    void symmetric() {
        std::vector<double> near(2), costs(k_);
        Call call = with_centers();
        set(call, "sums", near);
        set(call, "masses", masses);
        set(call, "costs", costs);
        call_kernel("nearest_costs", call);
        found.add(near), found.add(masses), found.add(costs);
        for (int64_t h = 1; h <= 4; h++) attention(h);
    }

    /// The folds of a relocation: labels, distances and second labels, then halves of a cluster.
    void relocation_folds() {
        std::vector<double> errors(k_), useful(k_), halves(3 * d_), mass(3), near(3), rest(3);
        std::vector<int32_t> second(n_), place(k_, -1);
        std::vector<T> points(3 * d_);
        Call call = with_centers();
        set(call, "labels", labels);
        set(call, "second", second);
        set(call, "distances", distances);
        set_sums(call);
        set(call, "errors", errors);
        set(call, "useful", useful);
        call_kernel("two_nearest", call);
        found.add(labels), found.add(distances), found.add(second), add_sums();
        found.add(errors), found.add(useful);
        for (int64_t i = 0; k_ > 1 && i < n_; i++)
            if (second[i] == labels[i]) complain("the nearest center twice", "two nearest");
        Call without = with_centers();  // as data in parts run it, for the errors of clusters
        set(without, "labels", labels);
        set(without, "distances", distances);
        set_sums(without);
        set(without, "errors", errors);
        set(without, "useful", useful);
        call_kernel("cluster_errors", without);
        found.add(labels), found.add(distances), add_sums(), found.add(errors);
        place[k_ - 1] = 0;
        std::copy_n(given_.centers.begin(), d_, points.begin() + d_);
        disturb(distances), disturb(points);
        Call split = with_distances();
        set(split, "place", place);
        split.set("points", points.data(), {1, 3, d_});
        split.set("sums", halves.data(), {1, 3, d_});
        split.set("masses", mass.data(), {1, 3});
        split.set("near", near.data(), {1, 3});
        split.set("rest", rest.data(), {1, 3});
        call_kernel("halves", split);
        found.add(halves), found.add(mass), found.add(near), found.add(rest);
    }

    /// Trimming: the digits of each cluster's radius, then the sums within it.
    void trim() {
        measure(), disturb(distances);
        std::vector<int64_t> prefix(k_);
        std::vector<double> counts(k_ * 256);
        for (int shift = 8 * int(sizeof(T)) - 8; shift >= 0; shift -= 8) {
            Call call = with_distances();
            set(call, "prefix", prefix);
            call.set("shift", int64_t(shift));
            call.set("masses", counts.data(), {k_, 256});
            call_kernel("distance_histogram", call);
            for (int64_t j = 0; j < k_; j++) prefix[j] = (prefix[j] << 8) + middle(&counts[j << 8]);
            found.add(counts);
        }
        std::vector<T> radius(k_);
        for (int64_t j = 0; j < k_; j++) std::memcpy(&radius[j], &prefix[j], sizeof(T));
        disturb(radius);
        Call call = with_distances();
        set(call, "radius", radius);
        set(call, "trimmed", trimmed);
        found.add(trimmed);
        add_step("trimmed_sums", call);
    }

    /// Robust k-means: best scores, two rounds of thresholds, and both ways to weigh.
    void robust() {
        measure(), disturb(distances);
        std::vector<double> best(k_), at_best(k_), scores(k_), radius(k_, 1e300),
            threshold(k_, -1e300);
        Call first = with_scores();
        set(first, "best", best);
        set(first, "masses", at_best);
        call_kernel("highest_scores", first);
        for (int round = 0; round < 2; round++) {
            disturb(threshold);
            Call call = with_scores();
            set(call, "threshold", threshold);
            set(call, "masses", masses);
            set(call, "scores", scores);
            call_kernel("sums_above_threshold", call);
            for (int64_t j = 0; j < k_; j++)
                threshold[j] = masses[j] > 0 ? (scores[j] - 1) / masses[j] : 0;
        }
        disturb(best), disturb(threshold), disturb(radius);
        for (bool within : {false, true}) {
            Call call = with_scores();
            set(call, "level", within ? best : threshold);
            if (within) set(call, "radius", radius);
            add_step("robust_sums", call);
        }
    }

    /// k-means++: each center in turn as a seed, all of them as candidates.
    void seeding() {
        std::vector<double> gains(k_);
        for (int64_t j = 0; j < k_; j++) {
            disturb(distances), add_seed(j == 0, j), disturb(distances);
            Call try_all = with_distances();
            try_all.set("candidates", const_cast<T*>(given_.centers.data()), {k_, d_});
            set(try_all, "gains", gains);
            call_kernel("potential", try_all);
        }
        found.add(distances), found.add(leaves), found.add(gains);
    }

    /// Center j as a seed.
    void add_seed(bool first, int64_t j = 0) {
        Call call = with_distances();
        call.set("seed", const_cast<T*>(&given_.centers[j * d_]), {d_});
        call.set("first", int64_t(first));
        set(call, "masses", leaves);
        call_kernel("new_seed", call);
    }

    /// Greedy k-means++ in one call. Returns the rows of the seeds.
    std::vector<int64_t> seeds() {
        const int64_t trials = 3;
        std::vector<int64_t> rows(k_);
        std::vector<double> draws((k_ - 1) * trials);
        for (size_t i = 0; i < draws.size(); i++) draws[i] = double(i * 40503u % 997) / 997;
        disturb(draws);
        Call call = with_distances();
        set(call, "rows", rows);
        call.set("draws", draws.data(), {k_ - 1, trials});
        rows.resize(changes("plus_plus_seeds", call));
        found.add(rows), found.add(distances), found.add(labels);
        return rows;
    }

    struct Iterated {
        std::vector<double> history;
        bool settled;
    };

    /// Lloyd's iterations in one call; `centers` are moved.
    Iterated iterate(std::vector<double>& centers, int64_t max_iter, bool fresh = true) {
        std::vector<double> history(max_iter);
        Call call = with_state();
        call.set("centers", centers.data(), {k_, d_});
        call.set("fresh", int64_t(fresh));
        call.set("tolerance", 0.0);
        set(call, "history", history);
        history.resize(changes("lloyd_iterations", call));
        found.add(history), found.add(centers), found.add(labels);
        return {history, std::get<bool>(call.results.at(1))};
    }

    /// Returns the objectives before and after; `centers` are relocated.
    std::pair<double, double> relocate(std::vector<double>& centers, int64_t moved, int64_t layer) {
        Call call;
        call.set("centers", centers.data(), {int64_t(centers.size()) / d_, d_});
        call.set("seed", int64_t(7)), call.set("layer", layer);
        call.set("moved", moved), call.set("draws", int64_t(3));
        call_kernel("relocation", call);
        found.add(centers);
        return {std::get<double>(call.results.at(0)), std::get<double>(call.results.at(1))};
    }

    /// Walks from two starts (one of them twice the other), their centers merged, and mutated.
    void recombine(int64_t moved, int64_t max_layers) {
        std::vector<double> centers(given_.centers.begin(), given_.centers.end());
        const int64_t k = int64_t(centers.size()) / d_;
        for (int64_t i = 0; i < k * d_; i++) centers.push_back(2 * centers[i]);
        std::vector<double> history(2 * max_layers), masses(2 * k), objectives(2), left(k * d_);
        std::vector<int64_t> seeds{7, 8}, counts(2);
        Call walks;
        walks.set("centers", centers.data(), {2, k, d_}), walks.set("seeds", seeds.data(), {2});
        walks.set("history", history.data(), {2, max_layers});
        walks.set("counts", counts.data(), {2}), walks.set("masses", masses.data(), {2, k});
        walks.set("objectives", objectives.data(), {2}), walks.set("layer", int64_t(0));
        walks.set("moved", moved), walks.set("draws", int64_t(3));
        walks.set("patience", int64_t(1)), walks.set("rest", int64_t(-1));
        walks.set("tolerance", 0.0);
        call_kernel("relocating_iterations", walks);
        found.add(centers), found.add(masses), found.add(objectives), found.add(counts);
        disturb(centers), disturb(masses);
        Call merge;
        merge.set("centers", centers.data(), {2 * k, d_});
        merge.set("masses", masses.data(), {2 * k}), merge.set("merged", left.data(), {k, d_});
        call_kernel("ward_merging", merge);
        found.add(left);
        if (k < 2) return;
        disturb(left);
        Call mutate;
        mutate.set("centers", left.data(), {k, d_});
        mutate.set("seed", int64_t(7)), mutate.set("number", int64_t(0));
        call_kernel("mutation", mutate);
        found.add(left);
    }

    /// Iterations by `nearest`, from the centers of the problem.
    void descend(int n_steps) {
        std::vector<T> centers = given_.centers;
        for (int step = 0; step < n_steps; step++) {
            nearest(centers, step == 0), add_sums();
            for (size_t i = 0; i < centers.size(); i++)
                if (masses[i / d_] > 0) centers[i] = T(sums[i] / masses[i / d_]);
        }
    }

    void iterate_some(int64_t max_iter) {
        std::vector<double> centers(given_.centers.begin(), given_.centers.end());
        iterate(centers, max_iter);
    }

    void relocate_some(int64_t moved) {
        std::vector<double> centers(given_.centers.begin(), given_.centers.end());
        relocate(centers, moved, 0);
    }

    /// The state of the points as it is in a new session.
    void restart() {
        std::fill(labels.begin(), labels.end(), -1);
        std::fill(previous.begin(), previous.end(), -1);
        std::fill(trimmed.begin(), trimmed.end(), uint8_t(0));
        std::fill(distances.begin(), distances.end(), T(0));
    }

    /// How many points the last `nearest` compared with centers.
    int64_t looked_at() {
        Call call;
        return changes("looked_at", call);
    }

    void moments() {
        std::vector<double> out(3 + d_);
        Call call;
        set(call, "out", out);
        call_kernel("moments", call);
        found.add(out);
    }

    void add_sums() { found.add(sums), found.add(masses), found.add(labels); }

    static constexpr int64_t LEAF = 1000;  // not a multiple of a block of points

    // A turn of `make_strange`, for all numbers that kernels read besides rows and centers; below
    // zero these stay what they are.
    int strange = -1;

    template <class U>
    void disturb(std::vector<U>& numbers) const {
        if (strange >= 0) make_strange(numbers, strange);
    }

    void call_kernel(const char* kernel, Call& call) {
        called().insert(kernel);
        session_->run(kernel, call);
    }

    /// The names of all kernels that were called.
    static std::set<std::string>& called() {
        static std::set<std::string> names;
        return names;
    }

  private:
    const Generated<T>& given_;
    int64_t n_, k_, d_;

  public:
    std::vector<int32_t> labels, previous;
    std::vector<uint8_t> trimmed;
    std::vector<T> distances;
    std::vector<double> sums, masses, leaves;
    Checksum found;

    Session& session() { return *session_; }

    template <class U>
    static void set(Call& call, const char* name, std::vector<U>& values) {
        call.set(name, values.data(), {int64_t(values.size())});
    }

    /// Runs a kernel that returns a number of changed points.
    int64_t changes(const char* kernel, Call& call) {
        call_kernel(kernel, call);
        return std::get<int64_t>(call.results.at(0));
    }

  private:
    void set_state(Call& call) { set(call, "labels", labels), set(call, "previous", previous); }

    void set_sums(Call& call) {
        call.set("sums", sums.data(), {k_, d_});
        set(call, "masses", masses);
    }

    Call with_state() {
        Call call;
        set_state(call);
        return call;
    }

    Call with_centers() {
        Call call;
        call.set("centers", const_cast<T*>(given_.centers.data()), {k_, d_});
        return call;
    }

    Call with_distances() {
        Call call;
        set(call, "labels", labels);
        set(call, "distances", distances);
        return call;
    }

    Call with_scores() {
        Call call = with_distances();
        call.set("inverse_temperature", 0.01);
        return call;
    }

    void add_step(const char* kernel, Call& call) {
        std::vector<double> objective(1);
        set(call, "previous", previous);
        set(call, "objective", objective);
        set_sums(call);
        found.add(changes(kernel, call));
        found.add(objective), add_sums();
    }

    void attention(int64_t h) {
        std::vector<double> sharpness{0.5, 2, 8, 30}, ones(k_ * h, 1.0), some(k_ * h * h, 0.3);
        std::vector<double> level(k_ * h), mass(k_ * h), sum(k_ * h * d_);
        disturb(sharpness), disturb(ones), disturb(some);
        Call call = with_centers();
        call.set("unit", 1.5);
        call.set("sharpness", sharpness.data(), {h});
        for (const char* name : {"distance", "nearest", "second"})
            call.set(name, some.data(), {k_, h});
        call.set("log_belonging", ones.data(), {k_, h});
        call.set("belonging", some.data(), {k_, h, h});
        call.set("level", level.data(), {k_, h});
        call.set("masses", mass.data(), {k_, h});
        call.set("sums", sum.data(), {k_, h, d_});
        call_kernel("attention_sums", call);
        found.add(level), found.add(mass), found.add(sum);
    }

    static int middle(const double* counts) {
        double all = 0, reached = 0;
        for (int digit = 0; digit < 256; digit++) all += counts[digit];
        for (int digit = 0; digit < 256; digit++)
            if ((reached += counts[digit]) >= all / 2) return digit;
        return 255;
    }

    std::unique_ptr<Session> session_;
};
