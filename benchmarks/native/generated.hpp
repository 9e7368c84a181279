// Problems for the driver: points, weights, scaling and centers from a seed.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

/// Ends the driver with what is wrong.
inline void complain(const char* what, const std::string& where) {
    std::printf("%s: %s\n", where.c_str(), what);
    std::exit(1);
}

/// How the points of a problem are transformed; numbered, so that a sweep covers all kinds.
struct Kind {
    bool single, weights, directions, scaled, duplicates, mapped;

    static constexpr int count = 64;
    explicit Kind(int number)
        : single(!(number & 1)),
          weights(number & 2),
          directions(number & 4),
          scaled(number & 8),
          duplicates(number & 16),
          mapped(number & 32) {}

    bool plain() const { return !directions && !scaled; }
};

/// Points (n, d) in exactly as much memory as they need, so that sanitizers see reads past the end.
template <class T>
struct Generated {
    int64_t n;
    int d, k;
    std::vector<T> points, origin, shift, scale, centers;
    std::vector<double> weights;

    Generated(int64_t n, int d, int k, const Kind& kind)
        : n(n),
          d(d),
          k(k),
          points(n * d),
          origin(d),
          shift(d),
          scale(d),
          centers(int64_t(k) * d),
          weights(n) {
        std::mt19937 bits(uint32_t(n * 31 + d * 7 + k));
        // Not by std::normal_distribution, which differs between standard libraries.
        const auto unit = [&] { return double(bits()) / 4294967296.0; };
        const auto bell = [&] {
            return std::sqrt(-2 * std::log(1 - unit())) * std::cos(6.283185307179586 * unit());
        };
        // Multiples of 2^-18: the origin is subtracted without rounding, so that rows in T and in
        // float64 are the same, and one reference holds for both.
        for (T& x : points) x = T(std::nearbyint(bell() * 0x1p18) * 0x1p-18);
        for (int64_t i = 0; i < n; i++)
            for (int f = 0; f < d; f++)
                points[i * d + f] += T(4 * ((i * 7 + f) % (k + 1)) / (k + 1));
        for (int64_t i = 1; i < n && kind.duplicates; i++)
            std::memcpy(&points[i * d], &points[i % 5 * d], d * sizeof(T));
        for (double& w : weights) w = unit() < 0.1 ? 0 : unit();
        for (int64_t i = 7; i < n && kind.mapped; i += 97) weights[i] *= 1e9;
        weights[0] = 1;
        for (int f = 0; f < d; f++)
            origin[f] = kind.directions ? T(0) : T(2), shift[f] = T(0.5), scale[f] = T(1.5 + f);
        for (int j = 0; j < k; j++)
            for (int f = 0; f < d; f++) centers[int64_t(j) * d + f] = seen(j % n, f, kind);
    }

    /// A feature after the transformation, except for directions.
    T seen(int64_t i, int f, const Kind& kind) const {
        const T x = points[i * d + f];
        return (kind.scaled ? T((x - shift[f]) / scale[f]) : x) - origin[f];
    }

    /// A row after the transformation, in float64.
    std::vector<double> row(int64_t i, const Kind& kind) const {
        std::vector<double> out(d);
        double square = 0;
        for (int f = 0; f < d; f++) out[f] = seen(i, f, kind), square += out[f] * out[f];
        for (int f = 0; f < d && kind.directions && square > 0; f++) out[f] /= std::sqrt(square);
        return out;
    }

    double weight(int64_t i, const Kind& kind) const { return kind.weights ? weights[i] : 1.0; }

    /// Upper bound of |x|^2 after the transformation.
    double farthest(const Kind& kind) const {
        if (kind.directions) return 1;
        double corner = 0;
        for (int f = 0; f < d; f++) {
            double most = 0;
            for (int64_t i = 0; i < n; i++)
                most = std::max(most, std::fabs(double(seen(i, f, kind))));
            corner += most * most;
        }
        return corner * (1 + 1e-5);
    }
};

/// Puts strange numbers into some places of an array, or into all: NaN, infinity, the largest
/// number, denormals and zeros.
template <class T>
void make_strange(std::vector<T>& numbers, int turn) {
    typedef std::numeric_limits<T> Limits;
    const T strange[] = {
        Limits::quiet_NaN(), Limits::infinity(),   -Limits::infinity(),  Limits::max(),
        -Limits::max(),      Limits::denorm_min(), -Limits::quiet_NaN(), T(0),
        Limits::min()};
    const size_t count = sizeof strange / sizeof *strange, step = turn % 3 == 0 ? 1 : 1 + turn % 7;
    // A single kind of them in each third turn, as then no comparison is true.
    for (size_t i = size_t(turn) % step; i < numbers.size(); i += step)
        numbers[i] = strange[turn % 3 == 0 ? size_t(turn / 3) % count : (i + size_t(turn)) % count];
}

/// A checksum of results: equal bits give equal checksums.
class Checksum {
  public:
    template <class T>
    void add(const std::vector<T>& values) {
        add(values.data(), values.size() * sizeof(T));
    }
    template <class T>
    void add(const T& value) {
        add(&value, sizeof(T));
    }
    uint64_t value() const { return value_; }
    bool closed = false;  // nothing is added, so that only the work of kernels is counted

  private:
    void add(const void* data, size_t size) {
        if (closed) return;
        for (size_t i = 0; i < size; i++)
            value_ = (value_ ^ static_cast<const unsigned char*>(data)[i]) * 1099511628211u;
    }

    uint64_t value_ = 14695981039346656037u;
};
