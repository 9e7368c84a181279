// Checks of the kernels of mixtures: what they find beside plain loops in float64, and powers of 2
// beside the standard library.
#pragma once

#include "unseen_checks.hpp"

/// The sums of a mixture by plain loops, and bounds of their rounding by component.
template <class T>
class MixtureReference {
  public:
    MixtureReference(const Generated<T>& given, const Kind& kind, const GivenMixture& mixture,
                     double sharpness)
        : reference_(given, kind),
          mixture_(mixture),
          k_(mixture.k),
          d_(mixture.d),
          sharpness_(sharpness),
          // narrow components: rows of float32 are compared in float64
          unit_(sharpness > 1 && kind.plain() ? 0x1p-52 : std::numeric_limits<T>::epsilon()),
          sums_(k_ * (1 + d_ + d_ * d_)),
          off_(sums_.size()) {}

    void check(const MixtureFound<T>& found, const std::vector<int32_t>& labels,
               const std::string& where) {
        double total = 0, off = 0;
        for (int64_t i = 0; i < reference_.given.n; i++) {
            const double weight = reference_.given.weight(i, reference_.kind);
            const auto [likelihood, rounding] = check_row(found, labels, i, weight, where);
            total += weight * likelihood, off += weight * rounding;
        }
        off += 1e-13 * std::fabs(total);
        if (std::fabs(found.likelihood[0] - total) > off ||
            std::fabs(found.of_labels[0] - total) > off)
            complain("not the log-likelihood of all rows", where);
        check_sums(found, where);
    }

  private:
    /// Returns the log-likelihood of a row and its rounding.
    std::pair<double, double> check_row(const MixtureFound<T>& found,
                                        const std::vector<int32_t>& labels, int64_t i,
                                        double weight, const std::string& where) {
        constexpr double eps = std::numeric_limits<T>::epsilon();
        const double* x = &reference_.rows[i * d_];
        std::vector<double> scores(k_);
        double length = 0, total = 0;
        for (int64_t j = 0; j < k_; j++)
            scores[j] = mixture_.constants[j] - 0.5 * mixture_.square(x, j);
        for (int64_t f = 0; f < d_; f++) length += std::fabs(x[f]);
        const double best = *std::max_element(scores.begin(), scores.end());
        for (double score : scores) total += std::exp(score - best);
        const double likelihood = best + std::log(total), far = std::fabs(best) + 80;
        // The numbers of rows and means are rounded, and so are scores.
        const double moved = 8 * unit_ * sharpness_ * (length + 8 * double(d_));
        const double off = 8 * unit_ * double(d_ + 4) * far + 4 * moved * std::sqrt(2 * far);
        if (std::fabs(double(found.likelihoods[i]) - likelihood) > off + eps * far)
            complain("not the log-likelihood of a row", where);
        if (scores[labels[i]] < best - 2 * off) complain("not the most probable component", where);
        for (int64_t j = 0; j < k_; j++) {
            const double share = std::exp(scores[j] - best) / total,
                         rounding =
                             std::expm1(std::min(4 * off, 30.0)) * share + 4 * eps * share + 1e-13;
            if (std::fabs(double(found.shares[i * k_ + j]) - share) > rounding)
                complain("not the responsibility of a component", where);
            add(j, x, weight * share, weight * (rounding + 64 * eps * share));
        }
        return {likelihood, off};
    }

    void add(int64_t j, const double* x, double share, double off) {
        double *sum = &sums_[j * (1 + d_ + d_ * d_)], *bound = &off_[j * (1 + d_ + d_ * d_)];
        const double* mean = &mixture_.means[j * d_];
        *sum++ += share, *bound++ += off;
        for (int64_t f = 0; f < d_; f++)
            *sum++ += share * (x[f] - mean[f]), *bound++ += off * (1 + std::fabs(x[f] - mean[f]));
        for (int64_t f = 0; f < d_; f++)
            for (int64_t g = 0; g < d_; g++) {
                const double product = (x[f] - mean[f]) * (x[g] - mean[g]);
                *sum++ += share * product, *bound++ += off * (1 + std::fabs(product));
            }
    }

    void check_sums(const MixtureFound<T>& found, const std::string& where) {
        for (int64_t j = 0; j < k_; j++) {
            const double *sum = &sums_[j * (1 + d_ + d_ * d_)],
                         *bound = &off_[j * (1 + d_ + d_ * d_)];
            const auto check = [&](double number, int64_t at, const char* what) {
                if (!(std::fabs(number - sum[at]) <= bound[at] + 1e-300)) complain(what, where);
            };
            check(found.masses[j], 0, "not the mass of a component");
            for (int64_t f = 0; f < d_; f++) {
                check(found.sums[j * d_ + f], 1 + f, "not the sum of a component");
                for (int64_t g = 0; mixture_.precision == 1 && g < d_; g++)
                    check(found.squares[(j * d_ + f) * d_ + g], 1 + d_ + f * d_ + g,
                          "not the squares of a component");
                if (mixture_.precision == 0)
                    check(found.squares[j * d_ + f], 1 + d_ + f * d_ + f,
                          "not the squares of a component");
            }
        }
    }

    const Reference<T> reference_;
    const GivenMixture& mixture_;
    int64_t k_, d_;
    double sharpness_, unit_;
    std::vector<double> sums_, off_;  // of each component: mass, sums and squares
};

/// All kinds of precision, wide and narrow, in one thread and in three.
template <class T>
void check_mixtures(const Generated<T>& given, const Kind& kind, const std::string& where) {
    if (kind.directions || given.n * given.k * int64_t(given.d) * given.d > 100000000) return;
    for (int precision = 0; precision < 3; precision++)
        for (double sharpness : {0.3, 1e4}) {
            GivenMixture mixture(given, precision, sharpness);
            Run<T> alone(given, kind, 1, 0), several(given, kind, 3, 0);
            const MixtureFound<T> found(alone, mixture);
            MixtureFound<T>(several, mixture);
            if (alone.found.value() != several.found.value())
                complain("threads change bits of a mixture", where);
            MixtureReference<T>(given, kind, mixture, sharpness).check(found, alone.labels, where);
        }
}

/// 2^x from FAINT to 0.
template <class T>
void check_powers(const std::string& where) {
    using namespace lloydformer::ISA;
    constexpr double most = sizeof(T) == 4 ? 2.5e-7 : 4.5e-16;
    constexpr int steps = 1 << 18;
    for (int i = 0; i < steps; i += W<T>) {
        T from[W<T>], to[W<T>];
        for (int l = 0; l < W<T>; l++) from[l] = T(FAINT<T> * double(i + l) / steps);
        store(to, faint_power<T>(load(from)));
        for (int l = 0; l < W<T>; l++)
            if (std::fabs(double(to[l]) / std::exp2(double(from[l])) - 1) > most)
                complain("a power of 2 that is not precise", where);
    }
}
