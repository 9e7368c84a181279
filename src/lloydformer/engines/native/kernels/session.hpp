// What the Python module sees of the kernels, for every instruction set.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "call.hpp"

namespace lloydformer {

/// Points (n, d) in float32 or float64, and how they are transformed when they are read.
struct Points {
    const void* points;
    int64_t n;
    int d;
    bool single;  // float32, also for origin, shift, scale, centers and distances
    const void *origin, *shift, *scale;  // (d) each, or null
    const double* weights;               // (n), or null
    bool directions;                     // rows are divided by their norms
    double largest_square;               // upper bound of |x|^2 after the transformation
    bool mapped;                         // from a file
    int64_t leaf;                        // rows of a leaf of the tree of sums
    int screening;                       // 0: where it is faster, 1: never, 2: always
};

/// A CSR matrix (n, d) of float32 or float64. Within a row features ascend, each once.
struct CsrPoints {
    const void *starts, *features, *values;  // (n + 1), then one for each stored number
    int64_t n;
    int d;
    bool single;            // float32, also for centers and distances
    bool wide;              // starts and features are of 64 bits, not 32
    const double* weights;  // (n), or null
    bool directions;        // rows are divided by their norms
    double largest;         // upper bound of the absolute values
    int64_t leaf;           // rows of a leaf of the tree of sums
};

/// Kernels over the same points, by name.
class Session {
  public:
    virtual ~Session() = default;
    virtual void run(const std::string& kernel, Call& call) = 0;
};

/// Independent problems (b, n, d), each solved until its own stop rule ends it.
struct Batch {
    const void* points;
    int64_t b;
    int n, d, k;
    bool single;
    const double* weights;  // (b, n) or null
    const double* draws;    // (b, k, trials) from [0, 1): start by greedy k-means++. Null: centers
    int trials;
    double tol;
    int64_t max_iter;
    bool directions;
    double* centers;  // (b, k, d): starts, then results
    int32_t* labels;  // (b, n)
    double* inertia;  // (b)
    int64_t* n_iter;  // (b)
};

struct Kernels {
    /// bounds_bytes, int8_bytes: upper limits of the memory of bounds and of a copy of the rows in
    /// int8; 0 turns them off.
    std::unique_ptr<Session> (*session)(const Points&, int n_threads, int64_t bounds_bytes,
                                        int64_t int8_bytes);
    std::unique_ptr<Session> (*csr_session)(const CsrPoints&, int n_threads);
    void (*solve)(const Batch&, int n_threads);
    int (*bytes_of_bounds)(bool single, int d, int k);  // for each point
    /// The smallest and the largest number of each column of points (n, d), into out (2, d) of the
    /// same type. Returns false if a number is NaN or infinite.
    bool (*column_ends)(bool single, const void* points, int64_t n, int d, void* out,
                        int n_threads);
    /// `fill_missing` of masked.hpp.
    void (*fill)(bool single, const void* points, int64_t n, int d, void* filled, uint8_t* observed,
                 double* means, int64_t* counts, int64_t* missing);
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
