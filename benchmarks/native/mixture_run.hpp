// Mixtures for the driver, and calls of their kernels.
#pragma once

#include "session_run.hpp"

/// Components about the centers of a problem: precisions of columns, matrices, or one matrix.
struct GivenMixture {
    int64_t k, d;
    int precision;
    std::vector<double> means, constants, factors;

    /// `sharpness`: about one over the standard deviation.
    template <class T>
    GivenMixture(const Generated<T>& given, int precision, double sharpness)
        : k(given.k),
          d(given.d),
          precision(precision),
          means(given.centers.begin(), given.centers.end()),
          constants(k),
          factors(precision == 0 ? k * d : (precision == 1 ? k : 1) * d * d) {
        std::mt19937 bits(uint32_t(precision * 100 + k * 7 + d));
        const auto unit = [&] { return double(bits()) / 4294967296.0; };
        for (double& mean : means) mean += 0.3 * unit();
        if (precision == 0)
            for (double& factor : factors) factor = sharpness * (0.5 + unit());
        for (int64_t at = 0; precision > 0 && at < int64_t(factors.size()); at++) {
            const int64_t row = at / d % d, column = at % d;
            if (row == column) factors[at] = sharpness * (0.5 + unit());
            if (row < column) factors[at] = sharpness * (unit() - 0.5) / double(d);
        }
        for (double& constant : constants) constant = 3 * unit() - 40;
    }

    /// |z|^2, the squared distance of a row in units of the precision.
    double square(const double* x, int64_t j) const {
        double total = 0;
        for (int64_t i = 0; i < d; i++) {
            double z = 0;
            if (precision == 0) z = (x[i] - means[j * d + i]) * factors[j * d + i];
            for (int64_t f = 0; precision > 0 && f <= i; f++)
                z +=
                    (x[f] - means[j * d + f]) * factors[((precision == 1 ? j : 0) * d + f) * d + i];
            total += z * z;
        }
        return total;
    }

    Call call() {
        Call call;
        call.set("precision", int64_t(precision));
        call.set("means", means.data(), {k, d});
        call.set("constants", constants.data(), {k});
        if (precision == 0) call.set("factors", factors.data(), {k, d});
        if (precision == 1) call.set("factors", factors.data(), {k, d, d});
        if (precision == 2) call.set("factors", factors.data(), {d, d});
        return call;
    }
};

/// What the kernels of mixtures find.
template <class T>
struct MixtureFound {
    std::vector<double> masses, sums, squares, likelihood, of_labels;
    std::vector<T> shares, likelihoods;

    MixtureFound(Run<T>& run, GivenMixture& mixture)
        : masses(mixture.k),
          sums(mixture.k * mixture.d),
          squares(mixture.precision == 2 ? 0 : sums.size() * (mixture.precision ? mixture.d : 1)),
          likelihood(1),
          of_labels(1),
          shares(int64_t(run.labels.size()) * mixture.k),
          likelihoods(run.labels.size()) {
        const int64_t k = mixture.k, d = mixture.d, n = int64_t(run.labels.size());
        run.disturb(mixture.means), run.disturb(mixture.constants), run.disturb(mixture.factors);
        Call call = mixture.call();
        run.set(call, "masses", masses), run.set(call, "likelihood", likelihood);
        call.set("sums", sums.data(), {k, d});
        if (mixture.precision == 0) call.set("squares", squares.data(), {k, d});
        if (mixture.precision == 1) call.set("squares", squares.data(), {k, d, d});
        run.call_kernel("mixture_sums", call);
        Call labels = mixture.call();
        run.set(labels, "labels", run.labels), run.set(labels, "likelihood", of_labels);
        run.call_kernel("mixture_labels", labels);
        Call rows = mixture.call();
        run.set(rows, "likelihoods", likelihoods);
        rows.set("shares", shares.data(), {n, k});
        run.call_kernel("mixture_rows", rows);
        run.found.add(masses), run.found.add(sums), run.found.add(squares);
        run.found.add(likelihood), run.found.add(of_labels), run.found.add(run.labels);
        run.found.add(shares), run.found.add(likelihoods);
    }
};

/// Wide components, and narrow ones, for which rows of float32 are compared in float64.
template <class T>
void every_mixture(Run<T>& run, const Generated<T>& given) {
    for (int precision = 0; precision < 3; precision++)
        for (double sharpness : {0.3, 1e4}) {
            GivenMixture mixture(given, precision, sharpness);
            MixtureFound<T>(run, mixture);
        }
}
