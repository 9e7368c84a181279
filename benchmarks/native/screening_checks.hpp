// Checks of screening: the same bits with products in int8 and without, where a wrong bound would
// show.
#pragma once

#include <sstream>

#include "unseen_checks.hpp"

/// Numbers between -1 and 1 from a seed.
class Uniform {
  public:
    explicit Uniform(uint32_t seed) : bits_(seed) {}
    double operator()() { return 2 * double(bits_()) / 4294967296.0 - 1; }

  private:
    std::mt19937 bits_;
};

/// What is so far away that others underflow in its unit.
enum class Far { none, center, row };

/// Rows along one axis and centers along another one, both ways, each a few units of int8 off.
/// Scores differ by as much as the rounding to int8 changes them, and where it changes one number
/// of a row or of a center, that is as much as their bounds allow. Every second center is on its
/// axis, so that int8 holds it exactly.
template <class T>
Generated<T> close_calls(int64_t n, int d, int k, Far far) {
    Generated<T> given(n, d, k, Kind(0));
    Uniform draw(uint32_t(d * 100 + k));
    const auto off = [&] { return 1.5 * draw() / 127; };
    const double unit = far == Far::none ? 1 : 0x1p-8;
    const int other = std::min(1, d - 1);
    for (int64_t i = 0; i < n; i++) {
        const double size = unit * std::exp2(3 * draw());
        for (int f = 0; f < d; f++)
            given.points[i * d + f] = T(size * ((f == 0) + (f <= 1 ? off() : 0)));
    }
    for (int j = 0; j < k; j++) {
        T* center = &given.centers[int64_t(j) * d];
        std::fill_n(center, d, T(0));
        if (j % 2 == 0) center[0] = T(unit * off());
        center[other] += T(unit * (j % 4 < 2 ? 1 + off() : -1 + off()));
    }
    if (far == Far::center) given.centers[0] = T(0x1p63);
    if (far == Far::row) given.points[(n - 1) * d] = T(0x1p60);
    std::fill(given.origin.begin(), given.origin.end(), T(0));
    return given;
}

/// Rows of very different sizes.
template <class T>
Generated<T> heavy_tails(int64_t n, int d, int k) {
    Generated<T> given(n, d, k, Kind(0));
    Uniform draw(17);
    for (int64_t i = 0; i < n; i++) {
        const double size = std::exp2(8 * draw());
        for (int f = 0; f < d; f++) given.points[i * d + f] = T(size * given.points[i * d + f]);
    }
    for (int j = 0; j < k; j++)
        for (int f = 0; f < d; f++)
            given.centers[int64_t(j) * d + f] = given.seen(j * 37 % n, f, Kind(0));
    return given;
}

/// Labels of all passes with screening and without: with a copy of the rows and without one, by
/// new bounds, and of rows that are unseen.
template <class T>
void check_screened_labels(const Generated<T>& given, const std::string& where) {
    for (int number : {0, 2}) {
        const Kind kind(number + (sizeof(T) == 8));
        Run<T> plain(given, kind, 1, 0), screened(given, kind, 1, Run<T>::ROOM, Screening::always);
        std::vector<T> centers = given.centers;
        for (int step = 0; step < 5; step++) {
            plain.nearest(centers, step == 0), screened.nearest(centers, step == 0);
            if (plain.labels != screened.labels || plain.sums != screened.sums)
                complain("a label or a sum that screening changes", where);
            if (step > 1) move(plain, centers, given.d);  // the first bounds: of the same centers
        }
        plain.measure(given.centers, true), screened.measure(given.centers, true);
        if (plain.labels != screened.labels || plain.distances != screened.distances)
            complain("a label or a distance of the last assignment that screening changes", where);
        screened.unseen(given.centers);
        if (plain.labels != screened.labels)
            complain("a label of an unseen row that screening changes", where);
    }
}

/// Bounds that screening builds leave out most rows of blobs that are far apart.
template <class T>
void check_screened_bounds(const std::string& where) {
    const int d = 16, k = 20;
    const Kind kind(sizeof(T) == 8);
    Generated<T> given(4000, d, k, kind);
    Uniform draw(3);
    for (T& x : given.centers) x = T(20 * draw());
    for (int64_t i = 0; i < given.n; i++)
        for (int f = 0; f < d; f++)
            given.points[i * d + f] = T(given.centers[i % k * d + f] + given.origin[f] + draw());
    Run<T> run(given, kind, 1, Run<T>::ROOM, Screening::always);
    // No label changes in the second step, so that the third one builds bounds.
    for (int step = 0; step < 4; step++) run.nearest(given.centers, step == 0);
    if (run.looked_at() > given.n / 10) complain("bounds of screening that skip no point", where);
}

/// The same seeds and the same sums of candidates, for rows of very different sizes.
template <class T>
void check_screened_seeds(const std::string& where) {
    for (int d : {3, 17, 40}) {
        const Generated<T> given = heavy_tails<T>(2500, d, 30);
        const Kind kind(sizeof(T) == 8);
        Run<T> plain(given, kind, 1, 0), screened(given, kind, 3, 0, Screening::always);
        plain.seeding(), screened.seeding(), plain.seeds(), screened.seeds();
        if (plain.found.value() != screened.found.value())
            complain("a seed that screening changes", where);
    }
}

/// Rows and centers that are not finite, denormal or as large as a number can be. What is found
/// means nothing, but nothing is read or written out of bounds.
template <class T>
void run_strange_numbers() {
    typedef std::numeric_limits<T> Limits;
    const T strange[] = {
        Limits::quiet_NaN(), Limits::infinity(),   -Limits::infinity(), Limits::max(),
        -Limits::max(),      Limits::denorm_min(), Limits::min(),       T(0)};
    const int64_t n = 150;
    for (int d : {1, 5, 40})
        for (int k : {3, 70})
            for (T number : strange)
                for (int place = 0; place < 5; place++) {
                    Generated<T> given(n, d, k, Kind(0));
                    std::fill(given.origin.begin(), given.origin.end(), T(0));
                    if (place == 0) std::fill(given.points.begin(), given.points.end(), number);
                    if (place == 1) std::fill(given.centers.begin(), given.centers.end(), number);
                    for (int64_t i = 0; place == 2 && i < n; i += 7) given.points[i * d] = number;
                    for (int j = 0; place == 3 && j < k; j += 2) given.centers[j * d] = number;
                    for (int j = 0; place == 4 && j < k * d; j++)
                        given.centers[j] = 0, given.points[j % (n * d)] = number;
                    for (int kind : {0, 2}) {
                        Run<T> run(given, Kind(kind + (sizeof(T) == 8)), 1, 0, Screening::always);
                        for (int step = 0; step < 3; step++) run.nearest(given.centers, step == 0);
                        run.measure(), run.unseen(), run.seeding();
                        minibatch(run, given, some_rows(given));
                        approach(run, given, 0, given.k);
                    }
                }
}

template <class T>
void check_screening(const std::string& where) {
    for (int d : {1, 2, 3, 17})
        for (int k : {2, 9, 100})
            for (Far far : {Far::none, Far::center, Far::row}) {
                std::ostringstream more;
                more << where << ", close calls d " << d << " k " << k << " far " << int(far);
                check_screened_labels(close_calls<T>(300, d, k, far), more.str());
            }
    check_screened_labels(heavy_tails<T>(2500, 20, 100), where + ", heavy tails");
    check_screened_bounds<T>(where), check_screened_seeds<T>(where);
    run_strange_numbers<T>();
}
