// What the kernels must find, by plain loops in float64.
#pragma once

#include "session_run.hpp"

/// A problem with centers (any number, d): distances in float64.
template <class T>
struct Reference {
    const Generated<T>& given;
    const Kind& kind;
    std::vector<double> rows;  // (n, d), after the transformation

    Reference(const Generated<T>& given, const Kind& kind) : given(given), kind(kind) {
        for (int64_t i = 0; i < given.n; i++)
            for (double x : given.row(i, kind)) rows.push_back(x);
    }

    template <class C>
    double away(int64_t i, const std::vector<C>& centers, int j) const {
        double square = 0;
        for (int f = 0; f < given.d; f++) {
            const double apart = rows[i * given.d + f] - double(centers[int64_t(j) * given.d + f]);
            square += apart * apart;
        }
        return square;
    }

    template <class C>
    double nearest(int64_t i, const std::vector<C>& centers) const {
        double least = 1e300;
        for (int j = 0; j < int(centers.size()) / given.d; j++)
            least = std::min(least, away(i, centers, j));
        return least;
    }

    /// Rounding of a squared distance: none if rows are read without a product or a division.
    double rounding() const {
        if (kind.plain()) return 0;
        const double eps = std::numeric_limits<T>::epsilon();
        return 64 * eps * (given.d + 4) * given.farthest(kind);
    }

    /// The number of labels that do not name the nearest center.
    template <class C>
    int64_t farther(const std::vector<C>& centers, const std::vector<int32_t>& labels) const {
        int64_t wrong = 0;
        const double slack = rounding();
        for (int64_t i = 0; i < given.n; i++)
            wrong += away(i, centers, labels[i]) > nearest(i, centers) * (1 + 1e-13) + slack;
        return wrong;
    }

    /// The sum of w d^2 to the nearest centers.
    double objective(const std::vector<double>& centers) const {
        double sum = 0;
        for (int64_t i = 0; i < given.n; i++) sum += given.weight(i, kind) * nearest(i, centers);
        return sum;
    }

    /// The largest distance of a center with mass from the mean of its points.
    double off_the_means(const std::vector<double>& centers,
                         const std::vector<int32_t>& labels) const {
        std::vector<double> sums(centers.size()), masses(centers.size() / given.d);
        for (int64_t i = 0; i < given.n; i++) {
            const double w = given.weight(i, kind);
            for (int f = 0; f < given.d; f++)
                sums[int64_t(labels[i]) * given.d + f] += w * rows[i * given.d + f];
            masses[labels[i]] += w;
        }
        double most = 0;
        for (size_t j = 0; j < masses.size(); j++)
            for (int f = 0; f < given.d && masses[j] > 0; f++)
                most = std::max(
                    most, std::fabs(sums[j * given.d + f] / masses[j] - centers[j * given.d + f]));
        return most;
    }
};

/// Squared distances (n, k) of all rows from the centers of the problem, computed once.
template <class T>
struct AllAway {
    const Reference<T> points;
    std::vector<double> squares;

    AllAway(const Generated<T>& given, const Kind& kind) : points(given, kind) {
        for (int64_t i = 0; i < given.n; i++)
            for (int j = 0; j < given.k; j++) squares.push_back(points.away(i, given.centers, j));
    }

    double at(int64_t i, int j) const { return squares[i * points.given.k + j]; }

    /// The distance to the nearest of the first centers.
    double nearest(int64_t i, int64_t n_centers) const {
        const double* own = &squares[i * points.given.k];
        return *std::min_element(own, own + n_centers);
    }

    /// The number of labels that do not name the nearest center.
    int64_t farther(const std::vector<int32_t>& labels) const {
        int64_t wrong = 0;
        const double slack = points.rounding();
        for (int64_t i = 0; i < points.given.n; i++)
            wrong += at(i, labels[i]) > nearest(i, points.given.k) * (1 + 1e-13) + slack;
        return wrong;
    }

    /// Rounding of a squared distance that is computed in T, at most.
    double rounding() const {
        const double eps = std::numeric_limits<T>::epsilon();
        return 64 * eps * (points.given.d + 4) * points.given.farthest(points.kind);
    }
};
