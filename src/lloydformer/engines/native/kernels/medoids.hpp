// The folds MedoidDraw and NearestRows: a row for each center, the one with the largest score plus
// Gumbel noise, or the nearest one.
//
// Noise is a function of seed, layer, cluster and row, and ties go to the lower row, so every
// engine and any number of threads draw the same rows.
#pragma once

#include "assign.hpp"
#include "gumbel.hpp"
#include "seeding.hpp"

namespace lloydformer::ISA {

constexpr int DECODER_CROSS = 2;  // place in noise.HEADS

/// For each center a score and its row, -1 while there is none. Earlier rows win ties.
struct BestRows {
    std::vector<double> scores;
    std::vector<int64_t> rows;
    double objective = 0, changed = 0, heaviest = 0;

    explicit BestRows(int k) : scores(k, -HUGE_SCORE<double>), rows(k, -1) {}

    void keep_best(int j, double score, int64_t row) {
        if (score > scores[j] || (score == scores[j] && row < rows[j]))
            scores[j] = score, rows[j] = row;
    }

    /// Merges the rows that follow; `right` is empty afterwards.
    void merge(BestRows& right) {
        for (size_t j = 0; j < scores.size(); j++)
            if (right.rows[j] >= 0) keep_best(int(j), right.scores[j], right.rows[j]);
        objective += right.objective, changed += right.changed;
        heaviest = std::max(heaviest, right.heaviest);
        right = BestRows(int(scores.size()));
    }
};

/// Draws a row for each center, with probability w exp(-|x - c|^2 - penalty [another cluster's]).
/// A logarithm is computed only for rows whose upper bound is above the best score so far.
template <class T>
class MedoidDraw {
  public:
    /// first_row: the number of the first row in the data that these are a part of.
    MedoidDraw(const Rows<T>& rows, const PackedCenters<T>& centers, const Noise& noise,
               int64_t first_row)
        : rows_(rows), centers_(centers), noise_(noise), first_row_(first_row) {}

    /// The best of each cluster's own points. Writes labels and distances.
    BestRows own(ThreadPool& pool, int32_t* labels, int32_t* previous, T* distances) const {
        return each_leaf(pool, [&](BestRows& best, PointBlock<T>& block, Range leaf) {
            assign(rows_, block, leaf, centers_,
                   [&](int64_t i, PointBlock<T>& points, const int32_t* found) {
                       for (int r = 0; r < points.count; r++) {
                           const double weight = rows_.weight(i + r);
                           const T away = squared_distance(points.row(r), centers_.row(found[r]),
                                                           centers_.width);
                           distances[i + r] = away;
                           best.objective += weight * away;
                           best.changed += weight > 0 && found[r] != previous[i + r];
                           best.heaviest = std::max(best.heaviest, weight);
                           labels[i + r] = previous[i + r] = found[r];
                       }
                       compare_own(best, i, points.count, found, distances + i);
                   });
        });
    }

    /// Adds the points of other clusters, for the centers `wanted`; their scores are lowered by
    /// `penalty`. Centers whose best score no such point can reach are left out.
    void others(ThreadPool& pool, std::vector<int> wanted, double penalty, const int32_t* labels,
                BestRows& best) const {
        const double reach = HIGHEST_GUMBEL - penalty;
        const double highest = reach + std::log(std::max(best.heaviest, 1e-300));
        wanted.erase(std::remove_if(wanted.begin(), wanted.end(),
                                    [&](int j) { return best.scores[j] > highest; }),
                     wanted.end());
        if (wanted.empty()) return;
        BestRows found = each_leaf(pool, [&](BestRows& here, PointBlock<T>& block, Range leaf) {
            for (int64_t i = leaf.start; i < leaf.stop; i += P<T>) {
                block.read(i, leaf.stop);
                for (int j : wanted)
                    compare_others(here, i, block, j, penalty, labels + i, best.scores[j]);
            }
        });
        found.objective = found.changed = 0;
        best.merge(found);
    }

  private:
    template <class Work>
    BestRows each_leaf(ThreadPool& pool, Work work) const {
        Tree<BestRows> tree(Units(rows_.n, rows_.leaf, 2 * centers_.k), pool.size(),
                            BestRows(centers_.k));
        return std::move(tree.run(pool, [&](Range unit) {
            rows_.prefetch_after(unit.start, unit.stop);
            return [&, block = PointBlock<T>(rows_)](BestRows& best, Range leaf) mutable {
                work(best, block, leaf);
            };
        }));
    }

    void compare_own(BestRows& best, int64_t first, int count, const int32_t* labels,
                     const T* distances) const {
        for (int at = 0; at < count; at += W<double>) {
            const int lanes = std::min(W<double>, count - at);
            Words clusters{};
            double scores[W<double>]{}, reached[W<double>]{};
            for (int l = 0; l < lanes; l++) {
                clusters[l] = uint64_t(labels[at + l]);
                scores[l] = -double(distances[at + l]);
                reached[l] = best.scores[labels[at + l]];
            }
            compare(best, first + at, (1u << lanes) - 1, clusters, load(scores), load(reached));
        }
    }

    /// `floor`: a score that is reached already.
    void compare_others(BestRows& best, int64_t first, const PointBlock<T>& block, int j,
                        double penalty, const int32_t* labels, double floor) const {
        V<T> found[2];
        distances_to(block.lanes(), rows_.d, centers_.row(j), found);
        T away[P<T>];
        for (int h = 0; h < 2; h++) store(away + h * W<T>, found[h]);
        for (int at = 0; at < block.count; at += W<double>) {
            double scores[W<double>];
            for (int l = 0; l < W<double>; l++) scores[l] = -double(away[at + l]) - penalty;
            unsigned strange = 0;
            for (int l = 0; l < std::min(W<double>, block.count - at); l++)
                strange |= unsigned(labels[at + l] != j) << l;
            compare(best, first + at, strange, Words{} + uint64_t(j), load(scores),
                    splat(std::max(best.scores[j], floor)));
        }
    }

    /// Compares rows from `first` on with the best so far, those whose bit is set in `lanes`.
    /// `scores`: without noise and weight. `reached`: lower scores cannot be the best.
    void compare(BestRows& best, int64_t first, unsigned lanes, Words clusters, Doubles scores,
                 Doubles reached) const {
        Doubles above = scores;
        if (rows_.weighted()) above += log_weight_bounds(first, lanes);
        if ((bits(above + HIGHEST_GUMBEL >= reached) & lanes) == 0) return;
        const Doubles u = uniform(noise_, first_row_ + first, clusters);
        lanes &= bits(above + gumbel_bound(u) >= reached);
        for (; lanes != 0; lanes &= lanes - 1) {
            const int l = __builtin_ctz(lanes);
            const double weight = rows_.weight(first + l);
            if (weight > 0)
                best.keep_best(int(clusters[l]), gumbel(u[l]) + scores[l] + std::log(weight),
                               first + l);
        }
    }

    Doubles log_weight_bounds(int64_t first, unsigned lanes) const {
        double weights[W<double>]{};
        for (int l = 0; l < W<double>; l++)
            if (lanes >> l & 1) weights[l] = rows_.weight(first + l);
        return log_bound(load(weights));
    }

    const Rows<T>& rows_;
    const PackedCenters<T>& centers_;
    Noise noise_;
    int64_t first_row_;
};

/// A row (k) for each center, its score (k), whether it is one of the cluster's own points (k), and
/// the objective (1). Returns the number of changed labels. Without a `penalty`, other clusters'
/// points are drawn only for centers without points of their own.
template <class T>
void run_medoid_draw(Workspace<T>& work, Call& call) {
    const PackedCenters<T> centers = work.centers(call);
    const int k = centers.k;
    const Noise noise{uint64_t(call.integer("seed")), call.integer("layer"), DECODER_CROSS};
    const int64_t first_row = call.has("first_row") ? call.integer("first_row") : 0;
    const bool strict = !call.has("penalty");
    const double penalty = strict ? 0.0 : call.number("penalty");
    int32_t *labels = work.labels(call), *previous = work.previous(call);
    T* distances = work.distances(call);
    int64_t* rows = call.out<int64_t>("rows", "(k)", {k});
    double* best = call.out<double>("best", "(k)", {k});
    uint8_t* owned = call.out<uint8_t>("owned", "(k)", {k});
    double* objective = call.out<double>("objective", "(1)", {1});
    work.labels_written = true;
    work.lloyd.reset();
    const MedoidDraw<T> draw(work.rows, centers, noise, first_row);
    BestRows found = draw.own(work.pool, labels, previous, distances);
    std::vector<int> wanted;
    for (int j = 0; j < k; j++) {
        owned[j] = strict && found.rows[j] >= 0;
        if (!owned[j]) wanted.push_back(j);
    }
    draw.others(work.pool, wanted, penalty, labels, found);
    std::copy(found.rows.begin(), found.rows.end(), rows);
    std::copy(found.scores.begin(), found.scores.end(), best);
    *objective = found.objective;
    call.results = {int64_t(found.changed)};
}

/// The nearest row with weight (k) of each center, -1 if there is none, and its squared distance
/// (k).
template <class T>
void run_nearest_rows(Workspace<T>& work, Call& call) {
    const PackedCenters<T> centers = work.centers(call);
    int64_t* rows = call.out<int64_t>("rows", "(k)", {centers.k});
    T* distances = call.out<T>("closest", "(k)", {centers.k});
    const Units units(work.rows.n, work.rows.leaf, 2 * centers.k);
    Tree<BestRows> tree(units, work.pool.size(), BestRows(centers.k));
    const BestRows& found = tree.run(work.pool, [&](Range unit) {
        work.rows.prefetch_after(unit.start, unit.stop);
        return [&, block = PointBlock<T>(work.rows)](BestRows& best, Range leaf) mutable {
            for (int64_t i = leaf.start; i < leaf.stop; i += P<T>) {
                block.read(i, leaf.stop);
                for (int j = 0; j < centers.k; j++) {
                    V<T> away[2];
                    distances_to(block.lanes(), centers.d, centers.row(j), away);
                    for (int r = 0; r < block.count; r++)
                        if (work.rows.weight(i + r) > 0)
                            best.keep_best(j, -double(away[r / W<T>][r % W<T>]), i + r);
                }
            }
        };
    });
    std::copy(found.rows.begin(), found.rows.end(), rows);
    for (int j = 0; j < centers.k; j++) distances[j] = T(-found.scores[j]);
}

}  // namespace lloydformer::ISA
