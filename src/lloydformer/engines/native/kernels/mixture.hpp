// EM of Gaussian mixtures: the folds MixtureSums and MixtureLabels, and the task MixtureRows.
//
// The sums of responsibilities r, of r (x - m) and of r (x - m)(x - m)^T, over the pairs of a row
// and a component with a responsibility: most rows belong to one or two of k components. Sums are
// about the means rounded to T, in T over the rows of a block, and then in float64, so that rows
// far from the origin lose nothing.
#pragma once

#include "mixture_shares.hpp"

namespace lloydformer::ISA {

/// The sums of a mixture over a leaf, for one thread: masses (k), sums (k, d), squares and the
/// log-likelihood, one after the other. Of matrices of squares only the lower triangle counts.
template <class T>
class MixturePass {
  public:
    MixturePass(const Rows<T>& rows, const PackedComponents<T>& components,
                const PackedComponents<double>& exact)
        : rows_(rows),
          components_(components),
          k_(components.k),
          d_(components.d),
          is_full_(components.precision == Precision::matrices),
          has_squares_(components.precision != Precision::one_matrix),
          room_(MixtureTiles<T>::rows_of_block(rows.width) + W<T>),
          stride_((d_ + 15) / 16 * 16),
          tiles_(rows, components, exact, false),
          places_(int64_t(k_) * room_),
          shares_(int64_t(k_) * room_),
          counts_(k_),
          away_(is_full_ ? int64_t(CHUNK) * stride_ : 0),
          weighted_(is_full_ ? int64_t(CHUNK) * stride_ : 0) {}

    /// Numbers of the sums.
    static int64_t size(const PackedComponents<T>& components) {
        const int64_t k = components.k, d = components.d;
        if (components.precision == Precision::matrices) return k * (1 + d + d * d) + 1;
        return k * (1 + d + (components.precision == Precision::columns ? d : 0)) + 1;
    }

    void run(Numbers& sum, Range leaf) {
        masses_ = sum.data(), sums_ = masses_ + k_, squares_ = sums_ + int64_t(k_) * d_;
        double& likelihood = sum.back();
        tiles_.run(
            leaf,
            [&](int64_t block, int count) {
                likelihood += tiles_.likelihood(block, count);
                collect(block, count);
            },
            [&] {
                for (int j = 0; j < k_; j++) {
                    if (counts_[j] == 0) continue;
                    const int count = take(j);
                    if (is_full_)
                        add_products(j, count);
                    else if (has_squares_)
                        add_columns<true>(j, count);
                    else
                        add_columns<false>(j, count);
                }
            });
        if (sizeof(T) == 4) undo_rounding();
    }

  private:
    // Pairs of a component whose products are added in T before they are added to float64: many, as
    // these are d^2 / 2 sums, and few enough for the first or second cache.
    static constexpr int CHUNK = 128;
    // Rows and vectors of columns of a matrix that are added up in registers.
    static constexpr int FEATURES = LANE_BYTES == 64 ? 8 : 4, VECTORS = 3;
    // Vectors of columns, or of rows of one column, that are added up in registers.
    static constexpr int COLUMNS = LANE_BYTES == 64 ? 4 : 2;

    /// Notes the pairs of a row and a component with a share, and their weights. A row comes once
    /// in a block (it has no shares before it is compared in float64), so that `room_` suffices
    /// even where NaN counts as a share above 0.
    void collect(int64_t block, int count) {
        T weights[TILE_POINTS<T>];
        for (int r = 0; r < count; r++) weights[r] = T(rows_.weight(block + tiles_.places[r]));
        std::fill(weights + count, weights + TILE_POINTS<T>, T(0));
        for (int j = 0; j < k_; j++) {
            const T* own = tiles_.found.shares(j);
            int32_t* places = &places_[int64_t(j) * room_];
            T* shares = &shares_[int64_t(j) * room_];
            int at = counts_[j];
            for (int r = 0; r < count; r += W<T>) {
                const V<T> share = load(own + r) * load(weights + r);
                const unsigned there = count - r < W<T> ? (1u << (count - r)) - 1 : ~0u;
                const unsigned chosen = bits(share > V<T>{}) & there;
                if (chosen != 0)
                    at += append(chosen, share, tiles_.places + r, shares + at, places + at);
            }
            counts_[j] = at;
        }
    }

    /// Writes the chosen lanes and their places one after the other; returns how many there are.
    static int append(unsigned chosen, V<T> share, const int32_t* from, T* shares,
                      int32_t* places) {
#if LANE_BYTES == 64
        if constexpr (sizeof(T) == 4) {
            const __mmask16 mask = __mmask16(chosen);
            _mm512_storeu_ps(shares, _mm512_maskz_compress_ps(mask, (__m512)share));
            const __m512i here = _mm512_loadu_si512(from);
            _mm512_storeu_si512(places, _mm512_maskz_compress_epi32(mask, here));
        } else {
            const __mmask8 mask = __mmask8(chosen);
            _mm512_storeu_pd(shares, _mm512_maskz_compress_pd(mask, (__m512d)share));
            const __m256i here = _mm256_loadu_si256((const __m256i*)from);
            _mm256_storeu_si256((__m256i*)places, _mm256_maskz_compress_epi32(mask, here));
        }
        return __builtin_popcount(chosen);
#else
        T lanes[W<T>];
        store(lanes, share);
        int count = 0;
        for (; chosen != 0; chosen &= chosen - 1, count++) {
            shares[count] = lanes[__builtin_ctz(chosen)];
            places[count] = from[__builtin_ctz(chosen)];
        }
        return count;
#endif
    }

    /// Adds the collected shares of a component to its mass, and forgets their number. Up to W of
    /// the first row with the share 0 follow.
    int take(int j) {
        const int count = counts_[j];
        T* shares = &shares_[int64_t(j) * room_];
        std::fill_n(shares + count, W<T>, T(0));
        std::fill_n(&places_[int64_t(j) * room_ + count], W<T>, 0);
        V<T> mass{};
        for (int p = 0; p < count; p += W<T>) mass += load(shares + p);
        masses_[j] += sum<T>(mass);
        counts_[j] = 0;
        return count;
    }

    /// Adds a vector of T to the first numbers of a row in float64.
    static void add_to(double* row, V<T> values, int count) {
        T numbers[W<T>];
        store(numbers, values);
        if (count >= W<T>)
            for (int l = 0; l < W<T>; l += W<double>)
                store(row + l, load(row + l) + as_doubles(numbers + l));
        else
            for (int l = 0; l < count; l++) row[l] += numbers[l];
    }

    /// Adds r (x - m) of the collected pairs, and r (x - m)^2.
    template <bool squared>
    void add_columns(int j, int count) {
        const int vectors = (d_ + W<T> - 1) / W<T>;
        int v = 0;
        for (; v + COLUMNS <= vectors; v += COLUMNS)
            add_columns<squared, COLUMNS, 1>(j, v * W<T>, count);
        for (; v < vectors; v++) add_columns<squared, 1, COLUMNS>(j, v * W<T>, count);
    }

    /// N vectors of columns; sums of every M-th pair, so that one need not wait for the other.
    template <bool squared, int N, int M>
    void add_columns(int j, int f, int count) {
        static_assert(M <= W<T> || M == 2);
        const int32_t* places = &places_[int64_t(j) * room_];
        const T* shares = &shares_[int64_t(j) * room_];
        V<T> mean[N], once[M][N]{}, twice[M][N]{};
        for (int n = 0; n < N; n++)
            mean[n] = load(&components_.means[int64_t(j) * components_.width + f + n * W<T>]);
        for (int p = 0; p < count; p += M) {
#pragma GCC unroll 4
            for (int m = 0; m < M; m++) {
                const T *row = tiles_.row(places[p + m]) + f, share = shares[p + m];
#pragma GCC unroll 4
                for (int n = 0; n < N; n++) {
                    const V<T> away = load(row + n * W<T>) - mean[n], weighted = away * share;
                    once[m][n] += weighted;
                    if (squared) twice[m][n] += weighted * away;
                }
            }
        }
        for (int n = 0; n < N; n++) {
            for (int m = 1; m < M; m++) once[0][n] += once[m][n], twice[0][n] += twice[m][n];
            const int64_t at = int64_t(j) * d_ + f + n * W<T>;
            add_to(sums_ + at, once[0][n], d_ - f - n * W<T>);
            if (squared) add_to(squares_ + at, twice[0][n], d_ - f - n * W<T>);
        }
    }

    /// Adds r (x - m) and r (x - m)(x - m)^T of the collected pairs.
    void add_products(int j, int count) {
        double* squares = squares_ + int64_t(j) * d_ * d_;
        const int vectors = (d_ + W<T> - 1) / W<T>;
        for (int first = 0; first < count; first += CHUNK) {
            const int pairs = std::min(CHUNK, count - first);
            move(j, first, pairs);
            for (int v = 0; v < vectors; v += VECTORS)
                for (int f = v * W<T> / FEATURES * FEATURES; f < d_; f += FEATURES) {
                    // up to the diagonal
                    const int needed = std::min(vectors, (f + FEATURES - 1) / W<T> + 1) - v;
                    if (needed >= 3)
                        add_square<3>(squares, f, v * W<T>, pairs);
                    else if (needed == 2)
                        add_square<2>(squares, f, v * W<T>, pairs);
                    else if (needed == 1)
                        add_square<1>(squares, f, v * W<T>, pairs);
                }
        }
    }

    /// Writes x - m and r (x - m) of some pairs, and adds the latter.
    void move(int j, int first, int pairs) {
        const int32_t* places = &places_[int64_t(j) * room_ + first];
        const T* shares = &shares_[int64_t(j) * room_ + first];
        for (int f = 0; f < d_; f += W<T>) {
            const V<T> mean = load(&components_.means[int64_t(j) * components_.width + f]);
            V<T> once{};
            for (int p = 0; p < pairs; p++) {
                const V<T> away = load(tiles_.row(places[p]) + f) - mean;
                const V<T> weighted = away * shares[p];
                store(&away_[int64_t(p) * stride_ + f], away);
                store(&weighted_[int64_t(p) * stride_ + f], weighted);
                once += weighted;
            }
            add_to(sums_ + int64_t(j) * d_ + f, once, d_ - f);
        }
    }

    /// Rows f to f + FEATURES and N vectors of columns of the products.
    template <int N>
    void add_square(double* squares, int f, int column, int pairs) {
        V<T> product[FEATURES][N]{};
        const T *weighted = &weighted_[f], *away = &away_[column];
        for (int p = 0; p < pairs; p++, weighted += stride_, away += stride_) {
            V<T> x[N];
#pragma GCC unroll 3
            for (int n = 0; n < N; n++) x[n] = load(away + n * W<T>);
#pragma GCC unroll 8
            for (int a = 0; a < FEATURES; a++)
#pragma GCC unroll 3
                for (int n = 0; n < N; n++) product[a][n] += x[n] * weighted[a];
        }
        for (int a = 0; a < std::min(FEATURES, d_ - f); a++)
            for (int n = 0; n < N; n++)
                add_to(squares + int64_t(f + a) * d_ + column + n * W<T>, product[a][n],
                       d_ - column - n * W<T>);
    }

    /// Sums about the rounded means become sums about the means.
    void undo_rounding() {
        for (int j = 0; j < k_; j++) {
            const double *moved = &components_.rounding[int64_t(j) * d_], mass = masses_[j];
            double *sums = sums_ + int64_t(j) * d_,
                   *squares = squares_ + int64_t(j) * d_ * (is_full_ ? d_ : 1);
            for (int f = 0; f < d_ && is_full_; f++)
                for (int g = 0; g <= f; g++)
                    squares[int64_t(f) * d_ + g] +=
                        sums[f] * moved[g] + moved[f] * sums[g] + mass * moved[f] * moved[g];
            for (int f = 0; f < d_ && has_squares_ && !is_full_; f++)
                squares[f] += 2 * sums[f] * moved[f] + mass * moved[f] * moved[f];
            for (int f = 0; f < d_; f++) sums[f] += mass * moved[f];
        }
    }

    const Rows<T>& rows_;
    const PackedComponents<T>& components_;
    int k_, d_;
    bool is_full_, has_squares_;
    int room_, stride_;
    MixtureTiles<T> tiles_;
    std::vector<int32_t> places_;  // (k, room): of rows in the block
    Aligned<T> shares_;            // (k, room): times the weights of the rows
    std::vector<int> counts_;
    Aligned<T> away_, weighted_;  // (CHUNK, stride)
    double *masses_ = nullptr, *sums_ = nullptr, *squares_ = nullptr;
};

/// Components of a call, in T and in float64.
template <class T>
struct MixtureComponents {
    GivenComponents given;
    PackedComponents<T> packed;
    std::unique_ptr<PackedComponents<double>> doubled;

    MixtureComponents(const Rows<T>& rows, Call& call) : given(call, rows.d), packed(given) {
        if constexpr (sizeof(T) == 4) doubled = std::make_unique<PackedComponents<double>>(given);
    }

    const PackedComponents<double>& exact() const {
        if constexpr (sizeof(T) == 4)
            return *doubled;
        else
            return packed;
    }
};

/// `fold` of fold.hpp over shorter leaves, which are nodes of the same tree: rows of mixtures take
/// long, and threads would wait for the last leaf.
template <class T, class Make>
Numbers fold_short_leaves(Workspace<T>& work, int64_t size, Make make) {
    constexpr int64_t few = 2048;
    int64_t leaf = work.rows.leaf;
    while (leaf > few && leaf % 2 == 0) leaf /= 2;
    // Four times as many units as elsewhere: 64 MiB of sums at most, or one for each leaf.
    Tree<Sums> tree(Units(work.rows.n, leaf, size / 4), work.pool.size(), Sums{Numbers(size)});
    return std::move(tree.run(work.pool,
                              [&](Range unit) {
                                  work.rows.prefetch_after(unit.start, unit.stop);
                                  return [pass = make()](Sums& sums, Range range) mutable {
                                      pass->run(sums.numbers, range);
                                  };
                              })
                         .numbers);
}

/// Masses (k), sums (k, d) and squares about the means, and the log-likelihood of all rows.
/// Squares are (k, d) of columns, (k, d, d) of matrices, and not passed of one matrix.
template <class T>
void run_mixture_sums(Workspace<T>& work, Call& call) {
    const MixtureComponents<T> components(work.rows, call);
    const int k = components.packed.k, d = components.packed.d;
    const Precision precision = components.packed.precision;
    double* masses = call.out<double>("masses", "(k)", {k});
    double* sums = call.out<double>("sums", "(k, d)", {k, d});
    double* squares = nullptr;
    if (precision == Precision::columns)
        squares = call.out<double>("squares", "(k, d)", {k, d});
    else if (precision == Precision::matrices)
        squares = call.out<double>("squares", "(k, d, d)", {k, d, d});
    double* likelihood = call.out<double>("likelihood", "(1)", {1});
    const Numbers found = fold_short_leaves(work, MixturePass<T>::size(components.packed), [&] {
        return std::make_shared<MixturePass<T>>(work.rows, components.packed, components.exact());
    });
    const double* at = found.data();
    std::copy_n(at, k, masses), at += k;
    std::copy_n(at, int64_t(k) * d, sums), at += int64_t(k) * d;
    *likelihood = found.back();
    if (precision == Precision::columns) std::copy_n(at, int64_t(k) * d, squares);
    for (int j = 0; j < k && precision == Precision::matrices; j++, at += int64_t(d) * d)
        for (int f = 0; f < d; f++)
            for (int g = 0; g < d; g++)
                squares[(int64_t(j) * d + f) * d + g] =
                    at[int64_t(std::max(f, g)) * d + std::min(f, g)];
}

/// The labels of a leaf and its log-likelihood, for one thread.
template <class T>
struct LabelPass {
    const Rows<T>& rows;
    int32_t* labels;
    MixtureTiles<T> tiles;

    void run(Numbers& sum, Range leaf) {
        tiles.run(
            leaf,
            [&](int64_t block, int count) {
                for (int r = 0; r < count; r++)
                    labels[block + tiles.places[r]] = tiles.found.labels[r];
                sum[0] += tiles.likelihood(block, count);
            },
            [] {});
    }
};

/// Labels by the most probable component, and the log-likelihood of all rows.
template <class T>
void run_mixture_labels(Workspace<T>& work, Call& call) {
    const MixtureComponents<T> components(work.rows, call);
    int32_t* labels = work.labels(call);
    double* likelihood = call.out<double>("likelihood", "(1)", {1});
    work.labels_written = true;
    *likelihood = fold_short_leaves(work, 1, [&] {
        return std::make_shared<LabelPass<T>>(
            LabelPass<T>{work.rows, labels,
                         MixtureTiles<T>(work.rows, components.packed, components.exact(), true)});
    })[0];
}

/// Of each row, those that are asked for: responsibilities (n, k), log-likelihood and label.
template <class T>
void run_mixture_rows(Workspace<T>& work, Call& call) {
    const Rows<T>& rows = work.rows;
    const MixtureComponents<T> components(rows, call);
    const int k = components.packed.k;
    T* shares = call.has("shares") ? call.out<T>("shares", "(n, k)", {rows.n, k}).data : nullptr;
    T* likelihoods =
        call.has("likelihoods") ? call.out<T>("likelihoods", "(n)", {rows.n}).data : nullptr;
    int32_t* labels = call.has("labels") ? work.labels(call) : nullptr;
    const Units units = Units(rows.n, rows.leaf, k).without_sums();
    work.pool.run(units.count, [&](int u, int) {
        constexpr int step = 16 / sizeof(T);  // rows that `transpose` turns at a time
        const Range unit = units.unit(u);
        rows.prefetch_after(unit.start, unit.stop);
        MixtureTiles<T> tiles(rows, components.packed, components.exact(), labels != nullptr);
        const int width = padded<T>(k);
        Aligned<T> turned(int64_t(step) * width);
        tiles.run(
            unit,
            [&](int64_t block, int count) {
                const int32_t* places = tiles.places;
                for (int r = 0; r < count && labels != nullptr; r++)
                    labels[block + places[r]] = tiles.found.labels[r];
                for (int r = 0; r < count && likelihoods != nullptr; r++)
                    likelihoods[block + places[r]] = T(tiles.found.likelihood[r]);
                for (int r = 0; r < count && shares != nullptr; r += step) {
                    for (int j = 0; j < k; j += W<T>)
                        transpose(tiles.found.shares(j) + r, TILE_POINTS<T>, &turned[j], width);
                    for (int s = r; s < std::min(r + step, count); s++)
                        std::copy_n(&turned[int64_t(s - r) * width], k,
                                    shares + (block + places[s]) * k);
                }
            },
            [] {});
    });
}

}  // namespace lloydformer::ISA
