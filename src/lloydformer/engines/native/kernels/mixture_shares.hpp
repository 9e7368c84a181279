// The E-step of Gaussian mixtures: responsibilities of the rows, a tile of them at a time.
//
// Rows are compared with components with one row in each SIMD lane: squared distances in units of
// the covariance, and soft-max by powers of 2 of vectors (exponents.hpp), relative to the largest
// one of the row. Responsibilities below the rounding of 1 are 0. Nothing of size n x k is kept.
//
// Rows of float32 are compared in float32 where that is precise enough (`find_unsure`), otherwise
// in float64. This depends on the row and the components alone, so that labels do not depend on the
// rows that are read together.
#pragma once

#include "exponents.hpp"
#include "workspace.hpp"

namespace lloydformer::ISA {

/// Vectors of rows in a tile. Four components and four vectors make 16 sums, which AVX-512 keeps in
/// its 32 registers; the others have 16 registers.
constexpr int ROW_VECTORS = LANE_BYTES == 64 ? 4 : 2;
template <class T>
constexpr int TILE_POINTS = ROW_VECTORS * W<T>;

/// What the precision of a component is: one for each column, or a triangular matrix F, with F F^T
/// the precision, of each component or of all.
enum class Precision { columns, matrices, one_matrix };

/// Components as the caller passes them, in float64.
struct GivenComponents {
    int k, d;
    Precision precision;
    const double *means, *constants, *factors;

    GivenComponents(Call& call, int d)
        : d(d), precision(static_cast<Precision>(call.integer("precision"))) {
        Call::require(precision >= Precision::columns && precision <= Precision::one_matrix,
                      "precision", "pass 0, 1 or 2");
        const auto given = call.in<double>("means", "(k, d)", {ANY, d});
        means = given.data, k = int(given.shape[0]);
        constants = call.in<double>("constants", "(k)", {k});
        if (precision == Precision::columns)
            factors = call.in<double>("factors", "(k, d)", {k, d});
        else if (precision == Precision::matrices)
            factors = call.in<double>("factors", "(k, d, d)", {k, d, d});
        else
            factors = call.in<double>("factors", "(d, d)", {d, d});
    }

    bool has_matrices() const { return precision != Precision::columns; }

    /// Upper bound of the largest eigenvalue of the precision of a component: of matrices the
    /// smaller one of the sum of the squares of F and the product of its largest sums of a row and
    /// of a column.
    double sharpness(int j) const {
        double squares = 0, of_rows = 0;
        if (!has_matrices()) {
            for (int f = 0; f < d; f++)
                squares = std::max(squares, std::pow(factors[int64_t(j) * d + f], 2));
            return squares;
        }
        std::vector<double> of_columns(d);
        const double* f = factors + (precision == Precision::matrices ? int64_t(j) * d * d : 0);
        for (int row = 0; row < d; row++, f += d) {
            double own = 0;
            for (int c = 0; c < d; c++) {
                const double size = std::fabs(f[c]);
                squares += size * size, own += size, of_columns[c] += size;
            }
            of_rows = std::max(of_rows, own);
        }
        return std::min(squares, of_rows * *std::max_element(of_columns.begin(), of_columns.end()));
    }

    /// |m|^2 of a component.
    double squared_mean(int j) const {
        double square = 0;
        for (int f = 0; f < d; f++) square += std::pow(means[int64_t(j) * d + f], 2);
        return square;
    }
};

/// Components in T, in the order in which tiles read them. Scores are logarithms to base 2 of the
/// weighted densities, less `highest`.
template <class T>
struct PackedComponents {
    int k, d, groups, width;
    Precision precision;
    Aligned<T> columns;    // (k / 4, d, 8): scales s of four components, and -m s
    Aligned<T> matrices;   // of each: lower triangle, by four rows, column by column
    Aligned<T> means;      // (k, width), padded with zeros
    Aligned<T> starts;     // (k, 4 groups): what the rounding of the means takes from products
    Aligned<T> constants;  // (k)
    std::vector<double> rounding;  // (k, d): by how much the means are rounded up
    double highest;
    // Of each component: the largest |x|^2 of rows that T compares well enough with it, the largest
    // eigenvalue of the precision times eps^2, and |m|^2. For float alone.
    std::vector<T> limits, blur, squared_means;
    T least_limit = HUGE_SCORE<T>, largest_limit = -1;

    explicit PackedComponents(const GivenComponents& given)
        : k(given.k),
          d(given.d),
          groups((d + 3) / 4),
          width(padded<T>(d)),
          precision(given.precision),
          means(int64_t(k) * width),
          constants(k),
          rounding(int64_t(k) * d) {
        for (int j = 0; j < k; j++)
            for (int f = 0; f < d; f++) {
                const double mean = given.means[j * d + f];
                means[j * width + f] = T(mean);
                rounding[j * d + f] = double(means[j * width + f]) - mean;
            }
        highest = *std::max_element(given.constants, given.constants + k);
        for (int j = 0; j < k; j++) constants[j] = T((given.constants[j] - highest) * LOG2_E);
        if (given.has_matrices()) pack_matrices(given);
        if (precision != Precision::matrices) pack_columns(given);
        if (sizeof(T) == 4) find_limits(given);
    }

    static int64_t matrix_size(int groups) { return int64_t(groups) * (groups + 1) * 8; }

  private:
    static constexpr double LOG2_E = 1.4426950408889634;
    // sqrt(log2(e) / 2), by which precisions are scaled, so that |z|^2 is the whole score
    static constexpr double ROOT = 0.84932180028801907;

    /// Numbers of a row and of a mean are rounded by eps / 2 of their size, which moves the row by
    /// up to eps sqrt(|x|^2 |F|^2) standard deviations: at most 1e-4, so that log-densities of rows
    /// in the middle of a component are right to 1e-3 at worst.
    void find_limits(const GivenComponents& given) {
        constexpr double eps = std::numeric_limits<T>::epsilon(), most = 1e-4 * 1e-4;
        for (int j = 0; j < k; j++) {
            const bool first = j == 0 || precision != Precision::one_matrix;
            const double off = first ? given.sharpness(j) * eps * eps : double(blur[0]);
            const double square = given.squared_mean(j), highest = double(HUGE_SCORE<T>);
            blur.push_back(T(std::min(off, highest)));
            squared_means.push_back(T(std::min(square, highest)));
            limits.push_back(square * off > most ? T(-1) : T(std::min(most / off, highest)));
            least_limit = std::min(least_limit, limits[j]);
            largest_limit = std::max(largest_limit, limits[j]);
        }
    }

    /// F^T, which is lower triangular.
    void pack_matrices(const GivenComponents& given) {
        const int count = precision == Precision::matrices ? k : 1;
        matrices.resize(count * matrix_size(groups));
        if (precision == Precision::matrices) starts.resize(int64_t(k) * 4 * groups);
        T* to = matrices.data();
        for (int j = 0; j < count; j++) {
            const double* factor = given.factors + int64_t(j) * d * d;
            for (int g = 0; g < groups; g++)
                for (int f = 0; f < 4 * g + 4; f++)
                    for (int i = 4 * g; i < 4 * g + 4; i++)
                        *to++ = i < d && f <= i ? T(ROOT * factor[int64_t(f) * d + i]) : T(0);
            for (int i = 0; i < d && precision == Precision::matrices; i++) {
                double moved = 0;
                for (int f = 0; f <= i; f++)
                    moved += factor[int64_t(f) * d + i] * rounding[j * d + f];
                starts[int64_t(j) * 4 * groups + i] = T(ROOT * moved);
            }
        }
    }

    /// Scales and shifted means; with one matrix, those of rows that it has been applied to.
    void pack_columns(const GivenComponents& given) {
        columns.resize(int64_t((k + 3) / 4) * d * 8);
        for (int j = 0; j < k; j++)
            for (int i = 0; i < d; i++) {
                double scale = 1, moved = 0;
                if (precision == Precision::columns) {
                    scale = ROOT * given.factors[int64_t(j) * d + i];
                    moved = given.means[int64_t(j) * d + i] * scale;
                } else {
                    for (int f = 0; f <= i; f++)
                        moved += ROOT * given.factors[int64_t(f) * d + i] *
                                 given.means[int64_t(j) * d + f];
                }
                T* to = &columns[(int64_t(j / 4) * d + i) * 8 + j % 4];
                to[0] = T(scale), to[4] = T(-moved);
            }
    }
};

/// Calls each(group, products): a lower triangular matrix times a tile (4 groups, rows), by four
/// rows of the matrix.
template <class T, class Each>
inline void multiply_tile(const T* matrix, const T* tile, int groups, Each each) {
    for (int g = 0; g < groups; g++) {
        V<T> product[4][ROW_VECTORS]{};
        for (int f = 0; f < 4 * g + 4; f++, matrix += 4) {
            V<T> x[ROW_VECTORS];
#pragma GCC unroll 4
            for (int r = 0; r < ROW_VECTORS; r++) x[r] = load(tile + f * TILE_POINTS<T> + r * W<T>);
#pragma GCC unroll 4
            for (int i = 0; i < 4; i++)
#pragma GCC unroll 4
                for (int r = 0; r < ROW_VECTORS; r++) product[i][r] += x[r] * matrix[i];
        }
        each(g, product);
    }
}

/// The E-step of a tile of rows: responsibilities (k, tile), log-likelihoods and labels.
template <class T>
class TileShares {
  public:
    /// labelled: labels are found.
    TileShares(const PackedComponents<T>& components, bool labelled)
        : components_(components),
          labelled_(labelled),
          k_(components.k),
          d_(components.d),
          moved_(int64_t(4) * components.groups * TILE_POINTS<T>),
          scores_(int64_t((k_ + 15) / 16 * 16) * TILE_POINTS<T>) {}

    /// `lanes`: (4 groups, tile), the rows relative to the origin.
    void find(const T* lanes) {
        if (components_.precision == Precision::matrices) {
            compare_by_matrices(lanes);
        } else if (components_.precision == Precision::one_matrix) {
            turn(lanes);
            compare_by_columns<false>(moved_.data());
        } else {
            compare_by_columns<true>(lanes);
        }
        find_best();
        if (sizeof(T) == 4) find_unsure(lanes);
        normalise();
    }

    const T* shares(int j) const { return &scores_[int64_t(j) * TILE_POINTS<T>]; }
    T* shares(int j) { return &scores_[int64_t(j) * TILE_POINTS<T>]; }

    double likelihood[TILE_POINTS<T>];
    int32_t labels[TILE_POINTS<T>]{};
    T best[TILE_POINTS<T>];  // largest scores
    uint64_t unsure = 0;     // a bit for each row that T does not compare well enough

  private:
    /// Rows that need float64: their largest score is rounded by more than 1e-4, or they are too
    /// far from the origin for a component that may have a share of them.
    void find_unsure(const T* lanes) {
        constexpr T lowest = -2048;
        V<T> square[ROW_VECTORS]{};
        for (int f = 0; f < d_; f++)
#pragma GCC unroll 4
            for (int r = 0; r < ROW_VECTORS; r++) {
                const V<T> x = load(lanes + f * TILE_POINTS<T> + r * W<T>);
                square[r] += x * x;
            }
        unsure = 0;
        for (int r = 0; r < ROW_VECTORS; r++) {
            const V<T> most = load(best + r * W<T>), own = square[r];
            I<T> found = most < splat(lowest);
            if (bits(own > splat(components_.least_limit)) != 0)
                for (int j = 0; j < k_; j++) {
                    const T constant = components_.constants[j];
                    const V<T> away = constant - load(shares(j) + r * W<T>);  // |z|^2
                    // z is off by this. If that is a tenth of z, |z|^2 may be 0.81 of what it is.
                    const V<T> off =
                        max<T>(own, splat(components_.squared_means[j])) * components_.blur[j];
                    const I<T> shared =
                        (constant - away * T(0.81) >= most + FAINT<T>) | (away < off * T(100));
                    found |= shared & (own > splat(components_.limits[j]));
                }
            unsure |= uint64_t(bits(found)) << (r * W<T>);
        }
    }

    void compare_by_matrices(const T* lanes) {
        const int groups = components_.groups;
        for (int j = 0; j < k_; j++) {
            const T* mean = &components_.means[int64_t(j) * components_.width];
            for (int f = 0; f < d_; f++)
                for (int r = 0; r < TILE_POINTS<T>; r += W<T>)
                    store(&moved_[f * TILE_POINTS<T> + r],
                          load(lanes + f * TILE_POINTS<T> + r) - mean[f]);
            V<T> square[ROW_VECTORS]{};
            const T* start = &components_.starts[int64_t(j) * 4 * groups];
            const T* matrix = &components_.matrices[j * PackedComponents<T>::matrix_size(groups)];
            multiply_tile(matrix, moved_.data(), groups, [&](int g, auto& product) {
#pragma GCC unroll 4
                for (int i = 0; i < 4; i++)
#pragma GCC unroll 4
                    for (int r = 0; r < ROW_VECTORS; r++) {
                        const V<T> z = product[i][r] + start[4 * g + i];
                        square[r] += z * z;
                    }
            });
            for (int r = 0; r < ROW_VECTORS; r++) set_score(j, r, square[r]);
        }
    }

    /// Applies the matrix that all components share.
    void turn(const T* lanes) {
        multiply_tile(
            components_.matrices.data(), lanes, components_.groups, [&](int g, auto& product) {
                for (int i = 0; i < 4; i++)
                    for (int r = 0; r < ROW_VECTORS; r++)
                        store(&moved_[(4 * g + i) * TILE_POINTS<T> + r * W<T>], product[i][r]);
            });
    }

    /// Four components at a time; `scaled`: columns have scales.
    template <bool scaled>
    void compare_by_columns(const T* lanes) {
        const T* at = components_.columns.data();
        for (int j = 0; j < k_; j += 4) {
            V<T> square[4][ROW_VECTORS]{};
            for (int f = 0; f < d_; f++, at += 8) {
                V<T> x[ROW_VECTORS];
#pragma GCC unroll 4
                for (int r = 0; r < ROW_VECTORS; r++)
                    x[r] = load(lanes + f * TILE_POINTS<T> + r * W<T>);
#pragma GCC unroll 4
                for (int i = 0; i < 4; i++)
#pragma GCC unroll 4
                    for (int r = 0; r < ROW_VECTORS; r++) {
                        const V<T> z = scaled ? x[r] * at[i] + at[4 + i] : x[r] + at[4 + i];
                        square[i][r] += z * z;
                    }
            }
            for (int i = 0; i < std::min(4, k_ - j); i++)
                for (int r = 0; r < ROW_VECTORS; r++) set_score(j + i, r, square[i][r]);
        }
    }

    /// Squares may overflow: the lowest score is a number, so that all components share such a row.
    void set_score(int j, int r, V<T> square) {
        const V<T> score = components_.constants[j] - square;
        store(shares(j) + r * W<T>, max<T>(score, splat(-HUGE_SCORE<T> / 4)));
    }

    /// The largest score of each row, and the first component that has it if labels are wanted.
    /// Labels are indices whatever the scores are: they begin with 0, and change to a component
    /// that was compared.
    void find_best() {
        for (int r = 0; r < TILE_POINTS<T>; r += W<T>) {
            V<T> most = load(shares(0) + r);
            if (!labelled_) {
                for (int j = 1; j < k_; j++) most = max<T>(most, load(shares(j) + r));
            } else {
                I<T> index{};
                for (int j = 1; j < k_; j++) {
                    const V<T> score = load(shares(j) + r);
                    const I<T> better = score > most;
                    most = better ? score : most;
                    index = better ? j - I<T>{} : index;
                }
                for (int l = 0; l < W<T>; l++) labels[r + l] = static_cast<int32_t>(index[l]);
            }
            store(best + r, most);
        }
    }

    /// Scores become shares; 0 where they are below the rounding of 1.
    void normalise() {
        constexpr double two = 0.6931471805599453;  // log 2
        V<T> total[ROW_VECTORS]{};
        for (int j = 0; j < k_; j++)
#pragma GCC unroll 4
            for (int r = 0; r < ROW_VECTORS; r++) {
                T* at = shares(j) + r * W<T>;
                const V<T> x = load(at) - load(best + r * W<T>);
                const V<T> share = x > splat(FAINT<T>) ? faint_power<T>(x) : V<T>{};
                total[r] += share;
                store(at, share);
            }
        for (int r = 0; r < ROW_VECTORS; r++) {
            T logs[W<T>];
            store(logs, logarithm<T>(total[r]));
            for (int l = 0; l < W<T>; l += W<double>)
                store(likelihood + r * W<T> + l, as_doubles(best + r * W<T> + l) * two +
                                                     as_doubles(logs + l) + components_.highest);
            total[r] = T(1) / total[r];
        }
        for (int j = 0; j < k_; j++)
#pragma GCC unroll 4
            for (int r = 0; r < ROW_VECTORS; r++)
                store(shares(j) + r * W<T>, load(shares(j) + r * W<T>) * total[r]);
    }

    const PackedComponents<T>& components_;
    bool labelled_;
    int k_, d_;
    Aligned<T> moved_, scores_;
};

/// Reads rows in blocks and finds the shares of each of their tiles, for one thread.
template <class T>
class MixtureTiles {
  public:
    /// `exact`: the components in float64, for rows that float32 does not compare well enough.
    /// labelled: labels are found.
    MixtureTiles(const Rows<T>& rows, const PackedComponents<T>& components,
                 const PackedComponents<double>& exact, bool labelled)
        : found(components, labelled),
          rows_(rows),
          components_(components),
          block_(rows_of_block(rows.width)),
          own_(int64_t(block_) * rows.width),
          lanes_(int64_t(4) * components.groups * TILE_POINTS<T>),
          doubles_(sizeof(T) == 4 ? int64_t(4) * components.groups * TILE_POINTS<double> : 0),
          exactly_(exact, labelled) {
        unsure_.reserve(block_);
    }

    /// Rows of a block: it takes at most 256 KiB, a part of the second cache, but it has at least
    /// 64 rows and at most 1024. A multiple of the rows of a tile.
    static int rows_of_block(int width) {
        constexpr int bytes = 1 << 18, fewest = 64, most = 1024;
        const int fitting = bytes / int(width * sizeof(T)) / fewest * fewest;
        return std::max(fewest, std::min(most, fitting));
    }

    /// Calls each(block, count) for every tile, with the number of the first row of the block, and
    /// done() after every block. The rows of a tile are at `places` of the block. Rows that need
    /// float64 come once more at the end of their block; before, they have no shares.
    template <class Each, class Done>
    void run(Range range, Each each, Done done) {
        for (int64_t start = range.start; start < range.stop; start += block_) {
            const int count = int(std::min<int64_t>(block_, range.stop - start));
            for (int r = 0; r < count; r++) rows_.read(start + r, &own_[int64_t(r) * rows_.width]);
            unsure_.clear();
            if (sizeof(T) == 4 && components_.largest_limit < 0)
                for (int r = 0; r < count; r++) unsure_.push_back(r);
            for (int first = 0; first < count && int(unsure_.size()) < count;
                 first += TILE_POINTS<T>) {
                find_tile(first, std::min(TILE_POINTS<T>, count - first));
                each(start, std::min(TILE_POINTS<T>, count - first));
            }
            for (size_t first = 0; first < unsure_.size(); first += TILE_POINTS<T>) {
                const int rest = int(std::min<size_t>(TILE_POINTS<T>, unsure_.size() - first));
                find_exactly(&unsure_[first], rest);
                each(start, rest);
            }
            done();
        }
    }

    /// A row of the block, padded.
    const T* row(int place) const { return &own_[int64_t(place) * rows_.width]; }

    /// The log-likelihood of the rows of the tile, by their weights.
    double likelihood(int64_t block, int count) const {
        if (rows_.weighted() || count < TILE_POINTS<T>) {
            double total = 0;
            for (int r = 0; r < count; r++)
                total += rows_.weight(block + places[r]) * found.likelihood[r];
            return total;
        }
        V<double> total{};
        for (int r = 0; r < TILE_POINTS<T>; r += W<double>) total += load(found.likelihood + r);
        return sum<double>(total);
    }

    TileShares<T> found;  // of the tile
    int32_t places[TILE_POINTS<T>]{};

  private:
    void find_tile(int first, int count) {
        constexpr int step = 16 / sizeof(T);
        for (int f = 0; f < rows_.d; f += step)
            for (int r = 0; r < TILE_POINTS<T>; r += W<T>)
                transpose(&own_[int64_t(first + r) * rows_.width + f], rows_.width,
                          &lanes_[f * TILE_POINTS<T> + r], TILE_POINTS<T>);
        for (int r = 0; r < TILE_POINTS<T>; r++) places[r] = first + r;
        found.find(lanes_.data());
        for (uint64_t left = found.unsure; left != 0; left &= left - 1) {
            const int r = __builtin_ctzll(left);
            if (r >= count) break;
            unsure_.push_back(first + r);
            for (int j = 0; j < components_.k; j++) found.shares(j)[r] = 0;
            found.likelihood[r] = 0;
        }
    }

    /// Finds the shares of some rows of the block in float64.
    void find_exactly(const int32_t* chosen, int count) {
        for (int part = 0; part < count; part += TILE_POINTS<double>) {
            const int rows = std::min(TILE_POINTS<double>, count - part);
            for (int r = 0; r < rows; r++)
                for (int f = 0; f < rows_.d; f++)
                    doubles_[f * TILE_POINTS<double> + r] = double(row(chosen[part + r])[f]);
            exactly_.find(doubles_.data());
            std::copy_n(chosen + part, rows, places + part);
            std::copy_n(exactly_.likelihood, rows, found.likelihood + part);
            std::copy_n(exactly_.labels, rows, found.labels + part);
            for (int j = 0; j < components_.k; j++)
                for (int r = 0; r < rows; r++) found.shares(j)[part + r] = T(exactly_.shares(j)[r]);
        }
    }

    const Rows<T>& rows_;
    const PackedComponents<T>& components_;
    int block_;
    Aligned<T> own_, lanes_;  // (block, width), (4 groups, tile)
    Aligned<double> doubles_;
    TileShares<double> exactly_;
    std::vector<int32_t> unsure_;  // places of rows in the block
};

}  // namespace lloydformer::ISA
