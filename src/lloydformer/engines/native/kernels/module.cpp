// The Python module: arrays in, arrays filled. Shapes are checked here and nowhere deeper.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <optional>
#include <stdexcept>

#include "session.hpp"

namespace nb = nanobind;
using namespace lloydformer;

namespace {

template <class T>
using Array = nb::ndarray<T, nb::device::cpu, nb::c_contig>;
typedef Array<double> Doubles;
typedef Array<const double> Given;
typedef Array<int32_t> Labels;
typedef nb::ndarray<nb::ro, nb::device::cpu, nb::c_contig> Values;  // floats or doubles
typedef nb::ndarray<nb::device::cpu, nb::c_contig> Written;

void require(bool holds, const char* what) {
    if (!holds) throw std::invalid_argument(what);
}

struct Choice {
    std::string name;
    const Kernels* kernels;
};

/// The widest instruction set that this machine has; or the one that is asked for.
Choice choose(const std::string& wanted) {
#if defined(__x86_64__)
    __builtin_cpu_init();
    const bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw");
    if ((wanted.empty() || wanted == "avx512") && wide) return {"avx512", &avx512::kernels};
    const bool half = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if ((wanted.empty() || wanted == "avx2") && half) return {"avx2", &avx2::kernels};
#endif
    if (wanted.empty() || wanted == "portable") return {"portable", &portable::kernels};
    throw std::invalid_argument("isa: found \"" + wanted + "\", which this machine does not have");
}

const void* data(const std::optional<Values>& array) { return array ? array->data() : nullptr; }

/// A session, and what keeps its arrays alive.
class Folds {
  public:
    Folds(Values points, std::optional<Values> origin, std::optional<Values> shift,
          std::optional<Values> scale, std::optional<Given> weights, bool directions,
          double farthest, bool mapped, int n_threads, int64_t room, const std::string& isa)
        : points_(points),
          weights_(weights),
          n_(points.shape(0)),
          d_(int(points.shape(1))),
          single_(points.dtype() == nb::dtype<float>()) {
        require(points.ndim() == 2 && n_ > 0 && d_ > 0, "points: pass (n, d)");
        require(single_ || points.dtype() == nb::dtype<double>(),
                "points: pass float32 or float64");
        for (const auto& row : {origin, shift, scale})
            require(!row || (row->size() == size_t(d_) && row->dtype() == points.dtype()),
                    "origin, shift, scale: pass (d)");
        require(!weights || weights->size() == size_t(n_), "weights: pass (n)");
        const Points given{
            points.data(), n_,          d_,          single_,
            data(origin),  data(shift), data(scale), weights ? weights->data() : nullptr,
            directions,    farthest,    mapped};
        nb::gil_scoped_release free;
        session_ = choose(isa).kernels->session(given, n_threads, room);
    }

    void moments(Doubles out) {
        require(out.size() == size_t(3 + d_), "out: pass (3 + d)");
        nb::gil_scoped_release free;
        session_->moments(out.data());
    }

    int64_t nearest(Values centers, Labels labels, Labels before, bool fresh, Doubles sums,
                    Doubles masses) {
        const int k = count(centers, sums, masses);
        const State state = known(labels, before, nullptr);
        nb::gil_scoped_release free;
        return session_->nearest(centers.data(), k, state, fresh, sums.data(), masses.data());
    }

    int iterate(Doubles centers, Labels labels, Labels before, double tolerance, Doubles history) {
        require(centers.ndim() == 2 && centers.shape(1) == size_t(d_), "centers: pass (k, d)");
        const State state = known(labels, before, nullptr);
        nb::gil_scoped_release free;
        return session_->iterate(centers.data(), int(centers.shape(0)), state, tolerance,
                                 int(history.size()), history.data());
    }

    int64_t looked_at() const { return session_->looked_at(); }

    void measure(Values centers, Labels labels, Labels before, Written distances, Doubles spread,
                 Doubles masses) {
        const int k = centered(centers);
        require(masses.size() == size_t(k) && spread.size() == size_t(k),
                "masses, spread: pass (k)");
        const State state = known(labels, before, &distances);
        nb::gil_scoped_release free;
        session_->measure(centers.data(), k, state, spread.data(), masses.data());
    }

    int64_t shares(Values centers, double gamma, Labels labels, Labels before, Doubles sums,
                   Doubles masses, Doubles energy) {
        const int k = count(centers, sums, masses);
        const State state = known(labels, before, nullptr);
        nb::gil_scoped_release free;
        return session_->shares(centers.data(), k, gamma, state, sums.data(), masses.data(),
                                energy.data());
    }

    void served(Values centers, Doubles sums, Doubles masses, Doubles costs) {
        const int k = centered(centers);
        require(sums.size() == 2 && masses.size() == size_t(k) && costs.size() == size_t(k),
                "sums: pass (2); masses, costs: pass (k)");
        nb::gil_scoped_release free;
        session_->served(centers.data(), k, sums.data(), masses.data(), costs.data());
    }

    void attended(Values centers, double unit, Given sharpness, Given distance, Given log_belonging,
                  Given nearest, Given second, Given belonging, Doubles level, Doubles masses,
                  Doubles sums) {
        const int k = centered(centers);
        const size_t h = sharpness.size(), each = size_t(k) * h;
        require(0 < h && h <= 4, "sharpness: pass (h), h from 1 to 4");
        for (const Given& part : {distance, log_belonging, nearest, second})
            require(part.size() == each, "distance, log_belonging, nearest, second: pass (k, h)");
        require(belonging.size() == each * h, "belonging: pass (k, h, h)");
        require(level.size() == each && masses.size() == each && sums.size() == each * size_t(d_),
                "level, masses: pass (k, h); sums: pass (k, h, d)");
        const Heads heads{
            int(h),         unit,          sharpness.data(), distance.data(), log_belonging.data(),
            nearest.data(), second.data(), belonging.data()};
        nb::gil_scoped_release free;
        session_->attended(centers.data(), k, heads, level.data(), masses.data(), sums.data());
    }

    void histogram(Labels labels, Written distances, Array<const int64_t> prefix, int shift,
                   Doubles masses) {
        require(masses.size() == prefix.size() << 8, "masses: pass (k, 256)");
        const State state = known(labels, labels, &distances);
        nb::gil_scoped_release free;
        session_->histogram(state, prefix.data(), int(prefix.size()), shift, masses.data());
    }

    int64_t within(Labels labels, Labels before, Written distances, Values radius, Doubles sums,
                   Doubles masses, Doubles objective) {
        require(radius.dtype() == points_.dtype() && radius.size() == masses.size(),
                "radius: pass (k)");
        const State state = known(labels, before, &distances);
        summed(sums, masses);
        nb::gil_scoped_release free;
        return session_->within(state, radius.data(), int(masses.size()), sums.data(),
                                masses.data(), objective.data());
    }

    void best(Labels labels, Written distances, double gamma, Doubles best, Doubles masses) {
        require(best.size() == masses.size(), "masses: pass (k)");
        const State state = known(labels, labels, &distances);
        nb::gil_scoped_release free;
        session_->best(state, gamma, int(best.size()), best.data(), masses.data());
    }

    void above(Labels labels, Written distances, double gamma, Given threshold, Doubles masses,
               Doubles scores) {
        require(threshold.size() == masses.size() && scores.size() == masses.size(),
                "masses: pass (k)");
        const State state = known(labels, labels, &distances);
        nb::gil_scoped_release free;
        session_->above(state, gamma, threshold.data(), int(masses.size()), masses.data(),
                        scores.data());
    }

    int64_t weighted(Labels labels, Labels before, Written distances, double gamma, Given level,
                     std::optional<Given> radius, Doubles sums, Doubles masses, Doubles objective) {
        require(level.size() == masses.size() && (!radius || radius->size() == masses.size()),
                "level: pass (k)");
        const State state = known(labels, before, &distances);
        summed(sums, masses);
        nb::gil_scoped_release free;
        return session_->weighted(state, gamma, level.data(), radius ? radius->data() : nullptr,
                                  int(masses.size()), sums.data(), masses.data(), objective.data());
    }

    void closer(Values seed, bool first, Labels labels, Written distances, int64_t leaf,
                Doubles masses) {
        require(seed.size() == size_t(d_) && seed.dtype() == points_.dtype(), "seed: pass (d)");
        require(leaf > 0 && masses.size() == size_t((n_ + leaf - 1) / leaf),
                "masses: pass one for each leaf");
        const State state = known(labels, labels, &distances);
        nb::gil_scoped_release free;
        session_->closer(seed.data(), first, state, leaf, masses.data());
    }

    void gains(Values candidates, Labels labels, Written distances, Doubles gains) {
        require(gains.size() == size_t(centered(candidates)), "gains: pass one for each candidate");
        const State state = known(labels, labels, &distances);
        nb::gil_scoped_release free;
        session_->gains(candidates.data(), int(gains.size()), state, gains.data());
    }

    int seeds(Array<int64_t> rows, Given draws, Labels labels, Written distances) {
        require(rows.size() > 0 && draws.ndim() == 2 && draws.shape(0) + 1 == rows.size(),
                "rows: pass (k); draws: pass (k - 1, trials)");
        require(rows.data()[0] >= 0 && rows.data()[0] < n_, "rows: the first one is not there");
        const State state = known(labels, labels, &distances);
        nb::gil_scoped_release free;
        return session_->choose(rows.data(), int(rows.size()), draws.data(), int(draws.shape(1)),
                                state);
    }

    nb::tuple relocate(Doubles centers, uint64_t seed, int64_t layer, int moved, int draws) {
        require(centers.ndim() == 2 && centers.shape(1) == size_t(d_), "centers: pass (k, d)");
        require(moved > 0 && draws > 0, "moved, draws: pass numbers above 0");
        double objectives[2];
        {
            nb::gil_scoped_release free;
            session_->relocate(centers.data(), int(centers.shape(0)), seed, layer, moved, draws,
                               objectives);
        }
        return nb::make_tuple(objectives[0], objectives[1]);
    }

  private:
    int centered(const Values& centers) const {
        require(centers.ndim() == 2 && centers.shape(1) == size_t(d_) &&
                    centers.dtype() == points_.dtype(),
                "centers: pass (k, d) in the points' dtype");
        return int(centers.shape(0));
    }

    void summed(const Doubles& sums, const Doubles& masses) const {
        require(sums.size() == masses.size() * d_, "sums: pass (k, d)");
    }

    int count(const Values& centers, const Doubles& sums, const Doubles& masses) const {
        require(masses.size() == size_t(centered(centers)), "masses: pass (k)");
        summed(sums, masses);
        return int(masses.size());
    }

    void written(const Written& distances) const {
        require(distances.size() == size_t(n_) && distances.dtype() == points_.dtype(),
                "distances: pass (n)");
    }

    State known(const Labels& labels, const Labels& before, const Written* distances) const {
        require(labels.size() == size_t(n_) && before.size() == size_t(n_), "labels: pass (n)");
        if (distances != nullptr) written(*distances);
        return {labels.data(), before.data(), distances == nullptr ? nullptr : distances->data()};
    }

    Values points_;
    std::optional<Given> weights_;
    int64_t n_;
    int d_;
    bool single_;
    std::unique_ptr<Session> session_;
};

void solve(Values points, std::optional<Given> weights, std::optional<Given> draws, double tol,
           int max_iter, bool directions, Doubles centers, Labels labels, Doubles inertia,
           Labels n_iter, int n_threads, const std::string& isa) {
    require(points.ndim() == 3 && centers.ndim() == 3,
            "points: pass (b, n, d); centers: pass (b, k, d)");
    const size_t b = points.shape(0), n = points.shape(1), d = points.shape(2);
    require(points.dtype() == nb::dtype<float>() || points.dtype() == nb::dtype<double>(),
            "points: pass float32 or float64");
    require(centers.shape(0) == b && centers.shape(2) == d && labels.size() == b * n,
            "centers: pass (b, k, d); labels: pass (b, n)");
    require((!weights || weights->size() == b * n) && inertia.size() == b && n_iter.size() == b,
            "weights, inertia, n_iter: wrong size");
    require(!draws ||
                (draws->ndim() == 3 && draws->shape(0) == b && draws->shape(1) == centers.shape(1)),
            "draws: pass (b, k, trials)");
    const Problems all{points.data(),
                       int64_t(b),
                       int(n),
                       int(d),
                       int(centers.shape(1)),
                       points.dtype() == nb::dtype<float>(),
                       weights ? weights->data() : nullptr,
                       draws ? draws->data() : nullptr,
                       draws ? int(draws->shape(2)) : 0,
                       tol,
                       max_iter,
                       directions,
                       centers.data(),
                       labels.data(),
                       inertia.data(),
                       n_iter.data()};
    nb::gil_scoped_release free;
    choose(isa).kernels->solve(all, n_threads);
}

}  // namespace

NB_MODULE(_kernels, m) {
    m.doc() = "Kernels for folds over points in memory.";
    m.def(
        "isa", [](const std::string& wanted) { return choose(wanted).name; },
        nb::arg("wanted") = "", "The instruction set that kernels use here.");
    m.def(
        "bytes_of_bounds",
        [](bool single, int d, int k) { return choose("").kernels->bytes_of_bounds(single, d, k); },
        "Bytes a point that skipping work takes.");
    m.def("solve", &solve, nb::arg("points"), nb::arg("weights").none(), nb::arg("draws").none(),
          nb::arg("tol"), nb::arg("max_iter"), nb::arg("directions"), nb::arg("centers"),
          nb::arg("labels"), nb::arg("inertia"), nb::arg("n_iter"), nb::arg("n_threads"),
          nb::arg("isa") = "", "Many problems, each from its start to its end.");
    nb::class_<Folds>(m, "Folds")
        .def(nb::init<Values, std::optional<Values>, std::optional<Values>, std::optional<Values>,
                      std::optional<Given>, bool, double, bool, int, int64_t, const std::string&>(),
             nb::arg("points"), nb::arg("origin").none(), nb::arg("shift").none(),
             nb::arg("scale").none(), nb::arg("weights").none(), nb::arg("directions"),
             nb::arg("farthest"), nb::arg("mapped"), nb::arg("n_threads"), nb::arg("room"),
             nb::arg("isa") = "")
        .def("moments", &Folds::moments)
        .def("nearest", &Folds::nearest)
        .def("iterate", &Folds::iterate)
        .def("looked_at", &Folds::looked_at)
        .def("measure", &Folds::measure)
        .def("shares", &Folds::shares)
        .def("served", &Folds::served)
        .def("attended", &Folds::attended)
        .def("histogram", &Folds::histogram)
        .def("within", &Folds::within)
        .def("best", &Folds::best)
        .def("above", &Folds::above)
        .def("weighted", &Folds::weighted, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(),
             nb::arg().none(), nb::arg(), nb::arg(), nb::arg())
        .def("closer", &Folds::closer)
        .def("gains", &Folds::gains)
        .def("seeds", &Folds::seeds)
        .def("relocate", &Folds::relocate);
}
