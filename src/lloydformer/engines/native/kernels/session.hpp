// What the module sees of the kernels, whichever instruction set they are compiled for.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace lloydformer {

/// Points (n, d) of floats or doubles, and how they are to be seen. Null: not scaled, not weighted.
struct Points {
    const void* points;
    int64_t n;
    int d;
    bool single;  // floats, and so are origin, shift, scale, centers and distances
    const void *origin, *shift, *scale;
    const double* weights;
    bool directions;
    double farthest;  // no |x|^2 is above it
    bool mapped;      // from a file
};

/// What is known of each point, as in the contract of engines.
struct State {
    int32_t *labels, *before;
    void* distances;
};

/// The numbers of a step of a symmetric layer: (h), of each center (k, h), and (k, h, h).
struct Heads {
    int count;  // h, from 1 to 4
    double unit;
    const double *sharpness, *distance, *log_belonging, *nearest, *second, *belonging;
};

/// Folds over the same points. Each takes arrays for its summary and fills them.
class Session {
  public:
    virtual ~Session() = default;

    /// w |x|^2; and of points with weight, their number and |x|^2, then their sums (d): 3 + d.
    virtual void moments(double* out) = 0;
    /// Sums (k, d) and masses (k) by nearest center. fresh: `before` knows nothing. Returns
    /// changes.
    virtual int64_t nearest(const void* centers, int k, State, bool fresh, double* sums,
                            double* masses) = 0;
    /// Lloyd's iterations from centers (k, d), in float64, to where they end; of each, the sum of
    /// w (|c|^2 - 2 x c) that it began with. Returns how many there were.
    virtual int iterate(double* centers, int k, State, double tolerance, int max_iter,
                        double* history) = 0;
    /// How many points the last `nearest` had to look at.
    virtual int64_t looked_at() const = 0;
    /// Labels and distances by nearest center; the sum of w d^2 and the mass of each cluster, (k).
    virtual void measure(const void* centers, int k, State, double* spread, double* masses) = 0;
    /// Sums (k, d) and masses (k) of soft-max shares; energy. `before` is left to the caller.
    /// Returns changes.
    virtual int64_t shares(const void* centers, int k, double inverse_temperature, State,
                           double* sums, double* masses, double* energy) = 0;
    /// Sums of w r and w s (2), and of w and of w r by nearest center (k): r and s are the squared
    /// distances to the nearest and second nearest center.
    virtual void served(const void* centers, int k, double* sums, double* masses,
                        double* costs) = 0;
    /// Levels (k, h), masses (k, h) and sums (k, h, d) of soft-max over points, by center and head.
    virtual void attended(const void* centers, int k, const Heads&, double* level, double* masses,
                          double* sums) = 0;
    /// Masses (k, 256) by the next eight bits of a distance, of points that agree with the prefix.
    virtual void histogram(State, const int64_t* prefix, int k, int shift, double* masses) = 0;
    /// Sums (k, d) and masses (k) of points within their cluster's radius; objective. Returns
    /// changes.
    virtual int64_t within(State, const void* radius, int k, double* sums, double* masses,
                           double* objective) = 0;
    /// The best score -gamma d^2 of each cluster (k), and the mass that attains it (k).
    virtual void best(State, double inverse_temperature, int k, double* best, double* masses) = 0;
    /// Mass and weighted score of points above their cluster's threshold, (k) each.
    virtual void above(State, double inverse_temperature, const double* threshold, int k,
                       double* masses, double* scores) = 0;
    /// Sums (k, d) and masses (k) with weights (z - level)_+, or exp(z - level) within a radius
    /// where one is given, z = -gamma d^2; objective. Returns changes.
    virtual int64_t weighted(State, double inverse_temperature, const double* level,
                             const double* radius, int k, double* sums, double* masses,
                             double* objective) = 0;
    /// Distances to the nearest seed and its number, one being new; the mass of w d^2 in each leaf
    /// of so many rows.
    virtual void closer(const void* seed, bool first, State, int64_t leaf, double* masses) = 0;
    /// By how much the sum of w d^2 would shrink with each of m candidates as a new seed.
    virtual void gains(const void* candidates, int m, State, double* gains) = 0;
    /// Both in turn, k - 1 times, from the first row on, with draws (k - 1, trials) from [0, 1).
    /// Returns how many rows there are: fewer than k where no mass is left.
    virtual int choose(int64_t* rows, int k, const double* draws, int trials, State) = 0;
    /// From centers (k, d), in float64, to relocated ones: so many are moved, and splits are the
    /// best of some draws. Fills the objectives before and after.
    virtual void relocate(double* centers, int k, uint64_t seed, int64_t layer, int moved,
                          int draws, double* objectives) = 0;
};

/// Many problems (b, n, d) from their starts (b, k, d), each until its own stop rule says so.
/// Where there are draws (b, k, trials) from [0, 1), starts are drawn by greedy k-means++.
struct Problems {
    const void* points;
    int64_t b;
    int n, d, k;
    bool single;
    const double* weights;  // (b, n) or null
    const double* draws;    // or null
    int trials;
    double tol;
    int max_iter;
    bool directions;
    double* centers;  // (b, k, d): starts, then results
    int32_t* labels;  // (b, n)
    double* inertia;  // (b)
    int32_t* n_iter;  // (b)
};

struct Kernels {
    /// room: bytes that bounds may take; without it no work is skipped.
    std::unique_ptr<Session> (*session)(const Points&, int n_threads, int64_t room);
    void (*solve)(const Problems&, int n_threads);
    int (*bytes_of_bounds)(bool single, int d, int k);
};

namespace avx512 {
extern const Kernels kernels;
}
namespace avx2 {
extern const Kernels kernels;
}
namespace portable {
extern const Kernels kernels;
}

}  // namespace lloydformer
