// The candidates that may be nearer to a row than something else, by products in int8: those of
// seeds (seeding.hpp) and of medoids (medoid_gains.hpp).
#pragma once

#include "int8.hpp"

namespace lloydformer::ISA {

/// Compares rows of the copy in int8 with some candidates.
template <class T>
class CandidateScreen {
  public:
    static constexpr int ROWS = 8;  // at a time: as many sums hide how long an addition takes

    /// `candidates` (m, d): less the origin, as the copy is.
    CandidateScreen(const Int8Rows& rows, const T* candidates, int m, int d)
        : rows_(rows),
          m_(m),
          centers_(candidates, m, d, d),
          // Distances in T have a relative error of d + 2 roundings, and squares that underflow
          // lose at most the smallest normal number each.
          up_(1 + (d + 8) * double(std::numeric_limits<T>::epsilon())),
          tiny_((d + 8) * double(std::numeric_limits<T>::min())) {}

    /// Calls near(p, candidate) for all p below `count` and the candidates whose squared distance
    /// from row number(p) may be below square(number(p)). For each candidate p ascends.
    template <class Number, class Square, class Near>
    void run(int64_t count, Number number, Square square, Near near) const {
        int64_t numbers[ROWS];
        const uint8_t* bytes[ROWS];
        Limit limits[ROWS];
        for (int64_t p = 0; p < count; p += ROWS) {
            const int here = int(std::min<int64_t>(ROWS, count - p));
            for (int r = 0; r < ROWS; r++) {
                numbers[r] = number(p + std::min(r, here - 1));
                bytes[r] = rows_.bytes_of(numbers[r]);
                limits[r] = limit(numbers[r], double(square(numbers[r])));
            }
            for (int64_t next = p + 2 * ROWS; next < std::min(p + 3 * ROWS, count); next++)
                __builtin_prefetch(rows_.bytes_of(number(next)));
            for (int v = 0; v * W<float> < m_; v++) {
                I<float> sums[ROWS];
                const int tile = v / TILE_VECTORS, vector = v % TILE_VECTORS;
                if (centers_.fast)
                    multiply_rows<true>(bytes, centers_, tile, vector, sums);
                else
                    multiply_rows<false>(bytes, centers_, tile, vector, sums);
                for (int r = 0; r < here; r++)
                    for (unsigned found = compare(limits[r], v, sums[r]); found != 0;
                         found &= found - 1)
                        near(p + r, v * W<float> + __builtin_ctz(found));
            }
        }
    }

  private:
    static constexpr unsigned ALL = (1u << (W<float> - 1)) * 2 - 1;

    /// A row, and the score beyond which a candidate is too far.
    struct Limit {
        Int8Row row;
        float most;
    };

    /// A score is the squared distance less |x|^2, so a candidate is farther than d^2 if the lower
    /// bound of its score (screening.hpp) is above d^2 - |x|^2 and what covers the rounding.
    Limit limit(int64_t i, double distance) const {
        const Int8Row row = rows_.row(i, centers_.unit);
        const double square = rows_.square(i, centers_.unit),
                     now = (distance * up_ + tiny_) * centers_.unit * centers_.unit;
        if (!(row.scale < 0x1p40f) || !(now < 0x1p100))
            return {{0, 0, 0}, std::numeric_limits<float>::max()};
        const double share = 32 * double(Int8Centers::ROUNDING);
        return {row, float(now - square + share * (now + square) + 0x1p-100)};
    }

    /// One bit for each candidate of a vector that may be near enough. Here numbers of candidates
    /// are checked: bits behind the last one are cleared, as bounds that are NaN may set any.
    unsigned compare(const Limit& limit, int v, I<float> sums) const {
        const Int8Row& row = limit.row;
        const int j = v * W<float>;
        const V<float> gap =
            row.error * load(&centers_.norm[j]) + row.norm * load(&centers_.error[j]);
        const V<float> low =
            load(&centers_.lowered[j]) -
            row.scale * (__builtin_convertvector(sums, V<float>) * load(&centers_.step[j]) + gap);
        return bits_at_most(low, splat(limit.most)) & ALL >> std::max(0, j + W<float> - m_);
    }

    const Int8Rows& rows_;
    int m_;
    Int8Centers centers_;
    double up_, tiny_;
};

}  // namespace lloydformer::ISA
