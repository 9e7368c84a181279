// The Python module. Arrays of the caller are read and written in place, without copies, and stay
// locked while a kernel runs, so that Python cannot free or resize them.
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
using Typed = nb::ndarray<T, nb::device::cpu, nb::c_contig>;
typedef Typed<double> Doubles;
typedef Typed<const double> Given;
typedef Typed<int32_t> Labels;
typedef Typed<int64_t> Counts;
typedef nb::ndarray<nb::ro, nb::device::cpu, nb::c_contig> Values;  // floats or doubles

void require(bool holds, const char* what) {
    if (!holds) throw std::invalid_argument(what);
}

struct Choice {
    std::string name;
    const Kernels* kernels;
};

/// The widest instruction set of this machine, or the one that is wanted.
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

/// The buffers of a call: locked while it runs.
class Buffers {
  public:
    Buffers() { views_.reserve(16); }
    ~Buffers() {
        for (Py_buffer& view : views_) PyBuffer_Release(&view);
    }
    Buffers(const Buffers&) = delete;
    Buffers& operator=(const Buffers&) = delete;

    /// A C-contiguous NumPy array; read-only ones stay read-only.
    Array open(PyObject* object, const char* name) {
        Py_buffer view;
        constexpr int flags = PyBUF_C_CONTIGUOUS | PyBUF_FORMAT;
        if (PyObject_GetBuffer(object, &view, flags) != 0) {
            PyErr_Clear();
            Call::require(false, name, "pass a C-contiguous NumPy array or a number");
        }
        views_.push_back(view);
        return {view.buf, type(view), !view.readonly, Shape(view.shape, view.shape + view.ndim)};
    }

  private:
    static Type type(const Py_buffer& view) {
        const char format = view.format == nullptr ? 'B' : view.format[0];
        if (format == 'f') return Type::float32;
        if (format == 'd') return Type::float64;
        if (format == 'B' || format == '?') return Type::uint8;
        const bool whole = format == 'i' || format == 'l' || format == 'q';
        if (whole && view.itemsize == 4) return Type::int32;
        return whole && view.itemsize == 8 ? Type::int64 : Type::other;
    }

    std::vector<Py_buffer> views_;
};

/// An int as 64 bits; those from 2^63 to 2^64 - 1 (seeds) keep their bits.
int64_t integer(PyObject* value, const char* name) {
    int overflow = 0;
    const long long found = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (overflow == 0) return found;
    const unsigned long long bits = PyLong_AsUnsignedLongLong(value);
    if (PyErr_Occurred() != nullptr) {
        PyErr_Clear();
        Call::require(false, name, "pass an int of 64 bits");
    }
    return int64_t(bits);
}

nb::object as_python(const Call::Result& result) {
    return std::visit([](auto value) { return nb::cast(value); }, result);
}

/// Kernels by name over points that are open.
class OpenSession {
  public:
    /// Calls a kernel. An argument that is None is not passed.
    nb::object run(const std::string& kernel, const nb::kwargs& arguments) {
        Call call;
        Buffers buffers;
        PyObject *key, *value;
        for (Py_ssize_t at = 0; PyDict_Next(arguments.ptr(), &at, &key, &value);) {
            const std::string name = nb::cast<std::string>(nb::handle(key));
            if (value == Py_None) continue;
            if (PyLong_Check(value))
                call.set(name, integer(value, name.c_str()));
            else if (PyFloat_Check(value))
                call.set(name, PyFloat_AsDouble(value));
            else
                call.set(name, buffers.open(value, name.c_str()));
        }
        {
            nb::gil_scoped_release free;
            session_->run(kernel, call);
        }
        if (call.results.empty()) return nb::none();
        if (call.results.size() == 1) return as_python(call.results[0]);
        nb::list found;
        for (const Call::Result& result : call.results) found.append(as_python(result));
        return nb::tuple(found);
    }

  protected:
    std::unique_ptr<Session> session_;
};

/// A session over dense points, with references to the arrays that it reads.
class Folds : public OpenSession {
  public:
    Folds(Values points, std::optional<Values> origin, std::optional<Values> shift,
          std::optional<Values> scale, std::optional<Given> weights, bool directions,
          double largest_square, bool mapped, int n_threads, int64_t bounds_bytes, int64_t leaf,
          const std::string& isa, int64_t int8_bytes, int screening)
        : points_(points), weights_(weights) {
        require(points.ndim() == 2 && points.size() > 0, "points: pass (n, d)");
        const int64_t n = points.shape(0), d = points.shape(1);
        const bool single = points.dtype() == nb::dtype<float>();
        require(single || points.dtype() == nb::dtype<double>(), "points: pass float32 or float64");
        for (const auto& row : {origin, shift, scale})
            require(!row || (row->size() == size_t(d) && row->dtype() == points.dtype()),
                    "origin, shift, scale: pass (d) in the points' dtype");
        require(!weights || weights->size() == size_t(n), "weights: pass (n)");
        require(leaf > 0, "leaf: pass a number above 0");
        require(screening >= 0 && screening <= 2, "screening: pass 0, 1 or 2");
        const Points given{points.data(), n,
                           int(d),        single,
                           data(origin),  data(shift),
                           data(scale),   weights ? weights->data() : nullptr,
                           directions,    largest_square,
                           mapped,        leaf,
                           screening};
        nb::gil_scoped_release free;
        session_ = choose(isa).kernels->session(given, n_threads, bounds_bytes, int8_bytes);
    }

    nb::object looked_at() { return run("looked_at", nb::kwargs()); }

  private:
    Values points_;
    std::optional<Given> weights_;
};

/// A session over a CSR matrix, with references to the arrays that it reads.
class CsrFolds : public OpenSession {
  public:
    CsrFolds(Values starts, Values features, Values values, int64_t d, std::optional<Given> weights,
             bool directions, double largest, int n_threads, int64_t leaf, const std::string& isa)
        : starts_(starts), features_(features), values_(values), weights_(weights) {
        const bool single = values.dtype() == nb::dtype<float>();
        const bool wide = features.dtype() == nb::dtype<int64_t>();
        require(single || values.dtype() == nb::dtype<double>(), "values: pass float32 or float64");
        require((wide || features.dtype() == nb::dtype<int32_t>()) &&
                    starts.dtype() == features.dtype(),
                "starts, features: pass int32 or int64, both the same");
        require(starts.size() > 1 && values.size() == features.size() && d > 0 &&
                    d <= std::numeric_limits<int>::max(),
                "starts, features, values: pass the arrays of a CSR matrix");
        const int64_t n = int64_t(starts.size()) - 1;
        require(!weights || weights->size() == size_t(n), "weights: pass (n)");
        require(leaf > 0, "leaf: pass a number above 0");
        const CsrPoints given{
            starts.data(), features.data(), values.data(), n,
            int(d),        single,          wide,          weights ? weights->data() : nullptr,
            directions,    largest,         leaf};
        nb::gil_scoped_release free;
        session_ = choose(isa).kernels->csr_session(given, n_threads);
    }

  private:
    Values starts_, features_, values_;
    std::optional<Given> weights_;
};

void solve(Values points, std::optional<Given> weights, std::optional<Given> draws, double tol,
           int64_t max_iter, bool directions, Doubles centers, Labels labels, Doubles inertia,
           Counts n_iter, int n_threads, const std::string& isa) {
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
    const Batch all{points.data(),
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

bool column_ends(Values points, nb::ndarray<nb::device::cpu, nb::c_contig> out, int n_threads) {
    require(points.ndim() == 2 && points.size() > 0, "points: pass (n, d)");
    const bool single = points.dtype() == nb::dtype<float>();
    require(single || points.dtype() == nb::dtype<double>(), "points: pass float32 or float64");
    require(out.ndim() == 2 && out.shape(0) == 2 && out.shape(1) == points.shape(1) &&
                out.dtype() == points.dtype(),
            "out: pass (2, d) in the points' dtype");
    const int64_t n = points.shape(0);
    const int d = int(points.shape(1));
    nb::gil_scoped_release free;
    return choose("").kernels->column_ends(single, points.data(), n, d, out.data(), n_threads);
}

void fill_missing(Values points, nb::ndarray<nb::device::cpu, nb::c_contig> filled,
                  Typed<uint8_t> observed, Doubles means, Counts counts, Counts missing) {
    require(points.ndim() == 2 && points.size() > 0, "points: pass (n, d)");
    const bool single = points.dtype() == nb::dtype<float>();
    require(single || points.dtype() == nb::dtype<double>(), "points: pass float32 or float64");
    require(filled.size() == points.size() && filled.dtype() == points.dtype() &&
                observed.size() == points.size(),
            "filled, observed: pass (n, d); filled in the points' dtype");
    const size_t d = points.shape(1);
    require(means.size() == d && counts.size() == d && missing.size() == 3,
            "means, counts: pass (d); missing: pass (3)");
    const int64_t n = int64_t(points.shape(0));
    nb::gil_scoped_release free;
    choose("").kernels->fill(single, points.data(), n, int(d), filled.data(), observed.data(),
                             means.data(), counts.data(), missing.data());
}

}  // namespace

NB_MODULE(_kernels, m) {
    m.doc() = "Kernels over points in memory.";
    m.def(
        "isa", [](const std::string& wanted) { return choose(wanted).name; },
        nb::arg("wanted") = "", "The instruction set that the kernels use on this machine.");
    m.def(
        "bytes_of_bounds",
        [](bool single, int d, int k) { return choose("").kernels->bytes_of_bounds(single, d, k); },
        "Bytes that bounds take for each point.");
    m.def("column_ends", &column_ends, nb::arg("points"), nb::arg("out"), nb::arg("n_threads"),
          "Write the smallest and the largest number of each column; are all numbers finite?");
    m.def("fill_missing", &fill_missing, nb::arg("points"), nb::arg("filled"), nb::arg("observed"),
          nb::arg("means"), nb::arg("counts"), nb::arg("missing"),
          "Replace NaN by the means of the columns.");
    m.def("solve", &solve, nb::arg("points"), nb::arg("weights").none(), nb::arg("draws").none(),
          nb::arg("tol"), nb::arg("max_iter"), nb::arg("directions"), nb::arg("centers"),
          nb::arg("labels"), nb::arg("inertia"), nb::arg("n_iter"), nb::arg("n_threads"),
          nb::arg("isa") = "", "Solve many problems, each until its own stop rule ends it.");
    nb::class_<OpenSession>(m, "OpenSession")
        .def("run", &OpenSession::run, nb::arg("kernel"), nb::arg("arguments"),
             "Run a kernel by name. Arrays are read and written in place.");
    nb::class_<CsrFolds, OpenSession>(m, "CsrFolds")
        .def(nb::init<Values, Values, Values, int64_t, std::optional<Given>, bool, double, int,
                      int64_t, const std::string&>(),
             nb::arg("starts"), nb::arg("features"), nb::arg("values"), nb::arg("d"),
             nb::arg("weights").none(), nb::arg("directions"), nb::arg("largest"),
             nb::arg("n_threads"), nb::arg("leaf"), nb::arg("isa") = "");
    nb::class_<Folds, OpenSession>(m, "Folds")
        .def(nb::init<Values, std::optional<Values>, std::optional<Values>, std::optional<Values>,
                      std::optional<Given>, bool, double, bool, int, int64_t, int64_t,
                      const std::string&, int64_t, int>(),
             nb::arg("points"), nb::arg("origin").none(), nb::arg("shift").none(),
             nb::arg("scale").none(), nb::arg("weights").none(), nb::arg("directions"),
             nb::arg("largest_square"), nb::arg("mapped"), nb::arg("n_threads"),
             nb::arg("bounds_bytes"), nb::arg("leaf"), nb::arg("isa") = "",
             nb::arg("int8_bytes") = 0, nb::arg("screening") = 0)
        .def("looked_at", &Folds::looked_at,
             "How many points the last `nearest_sums` compared with centers.");
}
