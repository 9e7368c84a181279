// Checks of the rounding bound of scores: the worst rows and centers that floats allow.
#pragma once

#include <cmath>
#include <sstream>

#include "checks.hpp"

/// Rows and two centers whose products are all lost by rounding, each in the same direction.
///
/// After the first feature a score is `at`, a little more than a power of two. Each product that
/// follows is a little less than half a unit in the last place of it, and so changes nothing:
/// added with minus for the first center, with plus for the second. The true scores are d such
/// products apart from each other, the computed ones are equal. The last feature is zero in the
/// rows; it lifts the first center by `part` of that, so that the computed scores name the second
/// one, and only a bound of their rounding the first.
inline Generated<float> lost_products(int64_t n, int d, double at, double part, bool swapped) {
    Generated<float> given(n, d, 2, Kind(0));
    // 1 - 2 x c is `at` with c = 1
    const double x = (1 - at) / 2;
    int exponent;
    std::frexp(at, &exponent);
    const double lost = 0.98 * std::ldexp(1.0, exponent - 1 - 24);
    const double size = std::sqrt(lost / 2), lift = std::sqrt(part * 2 * lost * (d - 2));
    std::fill(given.origin.begin(), given.origin.end(), 0.0f);
    for (int64_t i = 0; i < n; i++)
        for (int f = 0; f < d; f++)
            given.points[i * d + f] = f == 0 ? float(x) : f == d - 1 ? 0.0f : float(size);
    for (int j = 0; j < 2; j++)
        for (int f = 0; f < d; f++) {
            const double own = (j == 0) == swapped ? -size : size;
            given.centers[j * d + f] = f == 0      ? 1.0f
                                       : f < d - 1 ? float(own)
                                       : own > 0   ? float(lift)
                                                   : 0.0f;
        }
    return given;
}

/// Labels of all passes that compare scores. Rows far from the origin need the share of the row in
/// the bound, rows near it the share of the center.
inline void check_lost_products() {
    const Kind kind(0);
    for (int d : {33, 200, 801})
        for (double at : {1.001, 2.001, -1.001, -2.001, -4.001, -8.001, -16.001, -32.001, -128.001})
            for (double part : {0.1, 0.3, 0.6, 0.9})
                for (bool swapped : {false, true}) {
                    const Generated<float> given = lost_products(40, d, at, part, swapped);
                    const Reference<float> reference(given, kind);
                    std::ostringstream where;
                    where << "lost products d " << d << " at " << at << " part " << part;
                    Run<float> run(given, kind, 1, 0);
                    const auto check = [&] {
                        if (reference.farther(given.centers, run.labels) > 0)
                            complain("not the nearest center", where.str());
                    };
                    run.nearest(given.centers, true), check();
                    run.measure(), check();
                    run.unseen(), check();
                }
}
