// Checks of the kernels for rows that nobody has looked at: ends of columns, labels, distances.
#pragma once

#include "draw_checks.hpp"

/// What kernels report of rows: are their squares finite, the largest of them, is one of them 0?
struct Seen {
    bool finite;
    double largest;
    bool zero;
};

inline Seen seen_by(const Call& call) {
    return {std::get<bool>(call.results.at(0)), std::get<double>(call.results.at(1)),
            std::get<bool>(call.results.at(2))};
}

/// Labels and distances to all centers, with what the kernels report of the rows.
template <class T>
struct Unseen {
    std::vector<double> spread;
    std::vector<T> distances, halves;
    Seen by_labels, by_distances;

    Unseen(Run<T>& run, const Generated<T>& given)
        : spread(given.k), distances(given.n * given.k), halves(given.n * given.k) {
        Call labels = with_centers(given);
        run.set(labels, "labels", run.labels), run.set(labels, "spread", spread);
        run.call_kernel("labels", labels);
        by_labels = seen_by(labels);
        for (bool halved : {false, true}) {
            Call call = with_centers(given);
            call.set("halved", int64_t(halved));
            call.set("out", (halved ? halves : distances).data(), {given.n, given.k});
            run.call_kernel("distances", call);
            by_distances = seen_by(call);
        }
    }

  private:
    static Call with_centers(const Generated<T>& given) {
        Call call;
        call.set("centers", const_cast<T*>(given.centers.data()), {given.k, given.d});
        return call;
    }
};

/// The smallest and the largest number of each column; a number that is not finite anywhere.
template <class T>
void check_ends(const Generated<T>& given, const std::string& where) {
    std::vector<T> ends(2 * given.d), points = given.points;
    const auto finite = [&] {
        return kernels.column_ends(sizeof(T) == 4, points.data(), given.n, given.d, ends.data(), 3);
    };
    if (!finite()) complain("numbers that are taken for infinite", where);
    for (int f = 0; f < given.d; f++) {
        T low = points[f], high = points[f];
        for (int64_t i = 1; i < given.n; i++)
            low = std::min(low, points[i * given.d + f]),
            high = std::max(high, points[i * given.d + f]);
        if (ends[f] != low || ends[given.d + f] != high)
            complain("not the ends of a column", where);
    }
    const size_t last = points.size() - 1;
    for (size_t at : {size_t(0), last / 3, last})
        for (T strange :
             {std::numeric_limits<T>::quiet_NaN(), -std::numeric_limits<T>::infinity()}) {
            const T kept = std::exchange(points[at], strange);
            if (finite()) complain("NaN or infinity that is not seen", where);
            points[at] = kept;
        }
}

/// Labels, sums of w d^2, and distances to all centers.
template <class T>
void check_unseen(const AllAway<T>& all, const std::string& where) {
    const Generated<T>& given = all.points.given;
    const Kind& kind = all.points.kind;
    Run<T> run(given, kind, 3, 0);
    const Unseen<T> found(run, given);
    if (all.farther(run.labels) > 0) complain("not the nearest center of an unseen row", where);
    const double rounding = all.rounding();
    std::vector<double> spread(given.k), masses(given.k);
    double largest = 0;
    bool zero = false;
    for (int64_t i = 0; i < given.n; i++) {
        double square = 0;
        for (int f = 0; f < given.d; f++)
            square += all.points.rows[i * given.d + f] * all.points.rows[i * given.d + f];
        largest = std::max(largest, square), zero = zero || square == 0;
        const int j = run.labels[i];
        spread[j] += given.weight(i, kind) * all.at(i, j);
        masses[j] += given.weight(i, kind);
        for (int c = 0; c < given.k; c++) {
            const double away = all.at(i, c);
            const T root = found.distances[i * given.k + c], half = found.halves[i * given.k + c];
            if (differ(double(root) * root, away, rounding) || differ(2.0 * half, away, rounding))
                complain("not the distance to a center", where);
            if (away == 0 && kind.plain() && root != 0)
                complain("a distance between equal rows", where);
        }
    }
    for (int j = 0; j < given.k; j++)
        if (differ(found.spread[j], spread[j], masses[j] * rounding))
            complain("not the sum of distances of unseen rows", where);
    for (const Seen& seen : {found.by_labels, found.by_distances})
        if (!seen.finite || seen.zero != zero || differ(seen.largest, largest, rounding))
            complain("not what unseen rows are", where);
}

/// A row of zeros, and one that is not finite: both kernels report them.
template <class T>
void check_strange_rows(Generated<T> given, Kind kind, const std::string& where) {
    kind.scaled = false;
    const int64_t at = given.n / 2 * given.d;
    for (int f = 0; f < given.d; f++) given.points[at + f] = given.origin[f];
    for (bool finite : {true, false}) {
        if (!finite) given.points[at] = std::numeric_limits<T>::quiet_NaN();
        for (Screening screening : {Screening::never, Screening::always}) {
            Run<T> run(given, kind, 3, 0, screening);
            const Unseen<T> found(run, given);
            for (const Seen& seen : {found.by_labels, found.by_distances})
                if (seen.finite != finite || (finite && !seen.zero))
                    complain("a strange row that is not seen", where);
        }
    }
}
