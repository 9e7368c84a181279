// The nearest of many centers with many features, for several blocks of points at a time.
//
// Scores of a tile are added up slice by slice of the features. That order of additions differs
// from that of centers.hpp, and with it the bound of the error; labels are exact either way.
#pragma once

#include "centers.hpp"

namespace lloydformer::ISA {

/// Compares blocks of points with a tile of centers that stays in the second cache, a slice of the
/// features at a time, so that the block stays in the first one.
template <class T>
class TiledSearch {
  public:
    static constexpr int BLOCKS = 4;  // that share a tile while it is in the second cache

    explicit TiledSearch(const PackedCenters<T>& centers)
        : centers_(centers),
          // Additions of a score one after the other: within a slice, and of slices.
          error_(SLICE + slices_of(centers.d)),
          tile_(std::min(centers.k, tile_of(centers.d))),
          lowered_(centers.k) {
        for (int j = 0; j < centers.k; j++) lowered_[j] = error_.lowered(centers.squares[j]);
        if (centers.d > SLICE) scores_.resize(int64_t(BLOCKS) * tile_ * P<T>);
        least_.resize(int64_t(BLOCKS) * groups() * P<T>);
    }

    /// True if it is faster than to compare each block with all centers: where a block of all
    /// features does not stay in the first cache. Beyond 192 features of float32 with AVX-512
    /// (docs/speed.md).
    static bool is_faster(const PackedCenters<T>& centers) {
        return centers.k > TOGETHER && centers.d > SLICE * 3 / 2;
    }

    /// The b-th block of the next `run`, and what is read after it.
    void begin(int b, const T* lanes, Prefetch next) {
        lanes_[b] = lanes;
        found_[b] = BestScores<T>();
        next_[b] = next;
        next_[b].share_among(int64_t(centers_.k) / TOGETHER * slices_of(centers_.d));
    }

    void run(int n_blocks) {
        for (int from = 0; from < centers_.k; from += tile_)
            for (int f = 0; f < centers_.d; f += SLICE)
                for (int b = 0; b < n_blocks; b++)
                    compare(b, from, std::min(from + tile_, centers_.k), f);
    }

    const BestScores<T>& found(int b) const { return found_[b]; }

    const ScoreError<T>& error() const { return error_; }

    /// The nearest center of a point of the b-th block in float64, the first one on ties: among the
    /// groups of eight in which rounding allows the best score. `row`, `square`, `best`: as for
    /// the function of this name.
    int nearest_exactly(int b, int point, const double* row, T square, T best) const {
        const T most = best + 2 * error_.row(square);
        ExactSearch<T> search(row, centers_, square);
        for (int g = 0; g < groups(); g++)
            if (least_[(int64_t(b) * groups() + g) * P<T> + point] <= most)
                for (int j = g * TOGETHER; j < std::min((g + 1) * TOGETHER, centers_.k); j++)
                    search.compare(j);
        return search.nearest;
    }

  private:
    // Features of a slice: 16 KiB of a block, half of a first-level cache of 32 KiB. Bytes of a
    // slice of centers: a quarter of a second-level cache of 1 MiB.
    static constexpr int SLICE = 16384 / (P<T> * sizeof(T));
    static constexpr int64_t TILE = 1 << 18;

    /// Centers of a tile, in whole groups of eight.
    static int tile_of(int d) {
        return int(TILE / sizeof(T)) / std::min(d, SLICE) / TOGETHER * TOGETHER;
    }

    int groups() const { return (centers_.k + TOGETHER - 1) / TOGETHER; }
    static int slices_of(int d) { return (d + SLICE - 1) / SLICE; }

    /// Adds the features from f on to the scores of a block with the centers [from, to).
    void compare(int b, int from, int to, int f) {
        const int count = std::min(SLICE, centers_.d - f);
        const bool last = f + count == centers_.d;
        const T* lanes = lanes_[b] + f * P<T>;
        T* kept = scores_.data() + int64_t(b) * tile_ * P<T>;
        BestScores<T> found = found_[b];
        by_eights(from, to, [&](int first, auto J) {
            V<T> s[J][2];
            next_[b].advance();
            T* own = kept + int64_t(first - from) * P<T>;
            for (int j = 0; j < J; j++) s[j][0] = s[j][1] = V<T>{};
            add_products<T, J>(lanes, count, centers_.eight(first) + f * J, s);
            for (int j = 0; j < J; j++)
                for (int h = 0; h < 2; h++)
                    s[j][h] +=
                        f == 0 ? splat(lowered_[first + j]) : load(own + j * P<T> + h * W<T>);
            if (last) {
                store_least<J>(s, &least_[(int64_t(b) * groups() + first / TOGETHER) * P<T>]);
                return found.update(s, first);
            }
            for (int j = 0; j < J; j++)
                for (int h = 0; h < 2; h++) store(own + j * P<T> + h * W<T>, s[j][h]);
        });
        found_[b] = found;
    }

    /// The least score of a group for each point of a block.
    template <int J>
    static void store_least(const V<T> (&s)[J][2], T* out) {
        for (int h = 0; h < 2; h++) {
            V<T> least = s[0][h];
            for (int j = 1; j < J; j++) least = min<T>(least, s[j][h]);
            store(out + h * W<T>, least);
        }
    }

    const PackedCenters<T>& centers_;
    const ScoreError<T> error_;
    int tile_;  // centers
    const T* lanes_[BLOCKS];
    BestScores<T> found_[BLOCKS];
    Prefetch next_[BLOCKS];
    std::vector<T> lowered_;  // |c|^2 less the bound of the error
    Aligned<T> scores_;       // of a tile, block by block
    Aligned<T> least_;        // of each group, block by block
};

}  // namespace lloydformer::ISA
