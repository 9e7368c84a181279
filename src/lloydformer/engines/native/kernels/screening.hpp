// Labels by screening: int8 products rule out nearly all centers, the few left are compared
// exactly.
//
// Let S_j = |c_j|^2 - 2 x.c_j be the score of a center, in exact arithmetic. With the bound of
// int8.hpp, and G_j = 2 (|dx| / scale |c_j| + |q| |dc_j|),
//
//     low_j = |c_j|^2 - scale (2 step_j q.r_j + G_j)  <=  S_j  <=  low_j + 2 scale G_j.
//
// A center whose low_j is above the upper bound of another one is not the nearest. Both sides are
// computed in float32. Every rounding is a share of |x|^2 or |c_j|^2: those of c_j are covered by
// `Int8Centers::lowered`; for those of x and of the center i with the least upper bound U, which
// has |c_i|^2 <= (|x| + |x - c_i|)^2 <= 4 |x|^2 + 2 max(U, 0), `most_score` adds them to U. The
// nearest center is never ruled out, so labels are those of assign.hpp, bit for bit.
//
// Where the two nearest centers are wanted, U is the second least of the upper bounds, of two
// different centers. The second is chosen by lowered scores in T (assign_two.hpp), so a center is
// ruled out only if its lowered score is above those of two others. With u the unit of `ScoreError`
// and D = S + |x|^2 that is so if
//
//     D_j - 2 (2 u |c_j|^2) - u |x|^2  >  D_U + u |x|^2,    |c_j|^2 <= 2 |x|^2 + 2 D_j,
//
// which follows from D_j (1 - 8 u) > D_U + 10 u |x|^2 and, as u is below 1/72, from
// S_j > U + 9 u U + 20 u |x|^2; what products lose that underflow is added as well.
#pragma once

#include <optional>

#include "centers.hpp"

namespace lloydformer::ISA {

/// Says that the two nearest centers are wanted: by scores in T with this error, a share of squares
/// and what is lost when products underflow.
struct TwoNearest {
    float share, tiny;
};

/// Candidates for the nearest center of each row of a block, or for the two nearest ones.
class Screen {
  public:
    static constexpr int ROWS = 96;  // of a block: whole tiles, and whole blocks of points
    static constexpr int MOST = 64;  // candidates of a row; with more of them it is not screened

    explicit Screen(const Int8Centers& centers, std::optional<TwoNearest> two = std::nullopt)
        : centers_(centers),
          two_(two),
          // A part of the centers stays in the second cache while all rows of a block pass, half of
          // 1 MiB. Its lower bounds for a tile of rows fit in there as well.
          part_(std::min(centers.tiles,
                         std::max(1, (1 << 18) / (centers.quads * QUAD * TILE_CENTERS)))),
          sums_(TILE_ROWS * part_ * TILE_CENTERS),
          least_(TILE_ROWS * part_ * W<float>) {}

    /// Finds candidates for `count` rows, whose bytes are `stride` apart; whole tiles of them can
    /// be read. Scales are in the unit of the centers. Calls visit(r, tile, low), unless it is
    /// null, with the lower bounds of row r and a tile of centers; also for up to TILE_ROWS rows
    /// behind the last one, where they mean nothing.
    template <class Visit = std::nullptr_t>
    void run(const uint8_t* bytes, int stride, const Int8Row* rows, int count,
             Visit visit = nullptr) {
        bytes_ = bytes, stride_ = stride;
        for (int r = 0; r < count; r++) found_[r] = {0, Int8Centers::FILLER};
        for (int first = 0; first < centers_.tiles; first += part_) {
            const int last = std::min(first + part_, centers_.tiles);
            for (int r = 0; r < count; r += TILE_ROWS) {
                // The last tile may hold other bytes: nothing reads what they give.
                if (centers_.fast)
                    compare<true>(rows, r, std::min(TILE_ROWS, count - r), first, last, visit);
                else
                    compare<false>(rows, r, std::min(TILE_ROWS, count - r), first, last, visit);
            }
        }
        for (int r = 0; r < count; r++) found_[r].drop_beyond();
    }

    /// The number of candidates of row r; 0 if they are too many, or the row is too far away.
    int count(int r) const { return found_[r].count > MOST ? 0 : found_[r].count; }
    const int32_t* candidates(int r) const { return found_[r].centers; }

    /// Lower bounds of the scores of one row with the vector of centers from `first` on.
    V<float> low(const uint8_t* bytes, const Int8Row& row, int first) const {
        const uint8_t* const rows[] = {bytes};
        I<float> sums[1];
        const Terms terms(centers_, first / TILE_CENTERS * TILE_CENTERS, {row.error, row.norm});
        const int vector = first % TILE_CENTERS / W<float>;
        if (centers_.fast)
            multiply_rows<true>(rows, centers_, first / TILE_CENTERS, vector, sums);
        else
            multiply_rows<false>(rows, centers_, first / TILE_CENTERS, vector, sums);
        int32_t numbers[TILE_CENTERS];
        std::memcpy(numbers + vector * W<float>, sums, sizeof sums);
        return terms.low(numbers, vector, row.scale);
    }

    /// Rows that are so far beyond all centers that float32 cannot tell these apart are not
    /// screened.
    static bool is_far(const Int8Row& row) { return !(row.scale < 0x1p40f); }

  private:
    struct Found {
        int count;
        float most;  // no score above it is the least one
        int32_t centers[MOST];
        float low[MOST];

        /// Centers behind the last one only fill up its tile. None of them is near, unless a row
        /// holds NaN.
        void add(int center, float bound, int k) {
            if (center >= k) return;
            if (count == MOST) drop_beyond();
            if (count < MOST) centers[count] = center, low[count] = bound;
            count = std::min(count + 1, MOST + 1);
        }

        /// Drops candidates that a later part of the centers has ruled out.
        void drop_beyond() {
            if (count > MOST) return;
            int left = 0;
            for (int c = 0; c < count; c++)
                if (low[c] <= most) centers[left] = centers[c], low[left++] = low[c];
            count = left;
        }
    };

    /// Upper bound of the least score, from U = min_j low_j + 2 scale G_j and |x|^2.
    static float most_score(float upper, float square) {
        return upper + Int8Centers::ROUNDING * (16 * square + 8 * std::abs(upper)) + 0x1p-100f;
    }

    /// Compares up to TILE_ROWS rows with tiles of centers.
    template <bool Fast, class Visit>
    [[gnu::noinline]] void compare(const Int8Row* all, int start, int count, int first, int last,
                                   Visit visit) {
        const Int8Row* rows = all + start;
        // The largest error and norm of these rows hold for all of them, and hardly differ.
        Shared most{0, 0};
        float scale[TILE_ROWS]{};
        for (int r = 0; r < count; r++) {
            if (!is_far(rows[r])) scale[r] = rows[r].scale;
            most.error = std::max(most.error, rows[r].error);
            most.norm = std::max(most.norm, rows[r].norm);
        }
        // Copies of addresses: otherwise they are read again after every store.
        const uint8_t* bytes = bytes_ + int64_t(start) * stride_;
        const Int8Centers& centers = centers_;
        int32_t* sums = sums_.data();
        float* least = least_.data();
        const int apart = part_;
        for (int tile = first; tile < last; tile++) {
            multiply_tile<Fast>(bytes, stride_, centers, tile, sums, apart * TILE_CENTERS);
            // Read from memory again: there are not enough registers to keep them, and a second
            // copy of them would be stored.
            asm volatile("" ::: "memory");
            const Terms terms(centers, tile * TILE_CENTERS, most);
#pragma GCC unroll 8
            for (int r = 0; r < TILE_ROWS; r++) {
                const int32_t* own = sums + r * apart * TILE_CENTERS;
                V<float> low[TILE_VECTORS];
#pragma GCC unroll 8
                for (int v = 0; v < TILE_VECTORS; v++) low[v] = terms.low(own, v, scale[r]);
                store(least + r * apart * W<float>,
                      min<float>(min<float>(low[0], low[1]), min<float>(low[2], low[3])));
                if constexpr (!std::is_same_v<Visit, std::nullptr_t>) visit(start + r, tile, low);
            }
            sums += TILE_CENTERS, least += W<float>;
        }
        for (int r = 0; r < count; r++) {
            Found& found = found_[start + r];
            if (is_far(rows[r]))
                found.count = MOST + 1;
            else
                collect(found, r, rows[r], most, first, last);
        }
    }

    /// The largest |dx| / scale and |q| of a tile of rows.
    struct Shared {
        float error, norm;
    };

    /// What the lower bounds of a tile of centers have in common for a tile of rows.
    struct Terms {
        V<float> square[TILE_VECTORS], step[TILE_VECTORS], gap[TILE_VECTORS];

        Terms(const Int8Centers& centers, int j, Shared rows) {
#pragma GCC unroll 8
            for (int v = 0; v < TILE_VECTORS; v++, j += W<float>) {
                square[v] = load(&centers.lowered[j]), step[v] = load(&centers.step[j]);
                gap[v] = rows.error * load(&centers.norm[j]) + rows.norm * load(&centers.error[j]);
            }
        }

        V<float> low(const int32_t* sums, int v, float scale) const {
            const I<float> own =
                (I<float>)load(reinterpret_cast<const float*>(sums) + v * W<float>);
            return square[v] - scale * (__builtin_convertvector(own, V<float>) * step[v] + gap[v]);
        }
    };

    /// No score of some tiles above it is the least one.
    float limit(const float* least, const int32_t* sums, const Int8Row& row, Shared most, int first,
                int last) const {
        V<float> lowest = load(least);
        for (int t = 1; t < last - first; t++)
            lowest = min<float>(lowest, load(least + t * W<float>));
        const int t = find_tile(least, last - first, ISA::least<float>(lowest));
        V<float> upper = splat(Int8Centers::FILLER);
        add_uppers(sums, row, most, first, t,
                   [&](V<float> next) { upper = min<float>(upper, next); });
        const float length = row.scale * (row.norm + row.error);
        return most_score(ISA::least<float>(upper), length * length);
    }

    /// No score of some tiles above it is one of the two least ones. The upper bounds are those of
    /// the tiles in which the two least lower bounds are.
    float second_limit(const float* least, const int32_t* sums, const Int8Row& row, Shared most,
                       int first, int last) const {
        TwoLeast lows, uppers;
        for (int t = 0; t < last - first; t++) lows.add(load(least + t * W<float>));
        const int t = find_tile(least, last - first, lows.least());
        const int other = find_tile(least, last - first, lows.second(), t);
        for (int tile : {t, other}) {
            add_uppers(sums, row, most, first, tile, [&](V<float> next) { uppers.add(next); });
            if (other == t) break;
        }
        const float upper = uppers.second(), length = row.scale * (row.norm + row.error);
        const float square = length * length;
        return most_score(upper, square) + two_->share * (9 * std::abs(upper) + 20 * square) +
               two_->tiny;
    }

    /// The two least of some numbers.
    struct TwoLeast {
        V<float> best = splat(Int8Centers::FILLER), next = best;

        void add(V<float> numbers) {
            next = min<float>(next, max<float>(best, numbers));
            best = min<float>(best, numbers);
        }

        float least() const { return ISA::least<float>(best); }

        float second() const {
            const unsigned at = bits_at_most(best, splat(least()));
            if (at == 0) return Int8Centers::FILLER;  // NaN
            V<float> others = best;
            others[__builtin_ctz(at)] = next[__builtin_ctz(at)];
            return ISA::least<float>(others);
        }
    };

    /// The first tile but `without` with a lower bound of at most `low`. If the caller's rows
    /// change meanwhile there may be none: numbers from them are no indices unless they are
    /// checked.
    static int find_tile(const float* least, int count, float low, int without = -1) {
        for (int t = 0; t < count; t++)
            if (t != without && bits_at_most(load(least + t * W<float>), splat(low)) != 0) return t;
        return std::max(without, 0);
    }

    /// Calls add(upper bounds) for the vectors of centers of a tile.
    template <class Add>
    void add_uppers(const int32_t* sums, const Int8Row& row, Shared most, int first, int t,
                    Add add) const {
        const Terms terms(centers_, (first + t) * TILE_CENTERS, most);
        for (int v = 0; v < TILE_VECTORS; v++)
            add(terms.low(sums + t * TILE_CENTERS, v, row.scale) + 2 * row.scale * terms.gap[v]);
    }

    /// Adds the centers of some tiles that may be the nearest of row r.
    void collect(Found& found, int r, const Int8Row& row, Shared most, int first, int last) {
        const float* least = &least_[r * part_ * W<float>];
        const int32_t* sums = &sums_[r * part_ * TILE_CENTERS];
        found.most = std::min(found.most, two_ ? second_limit(least, sums, row, most, first, last)
                                               : limit(least, sums, row, most, first, last));
        const V<float> limit = splat(found.most);
        for (int t = 0; t < last - first; t++) {
            if (bits_at_most(load(least + t * W<float>), limit) == 0) continue;
            const int j = (first + t) * TILE_CENTERS;
            const Terms terms(centers_, j, most);
#pragma GCC unroll 8
            for (int v = 0; v < TILE_VECTORS; v++) {
                const V<float> low = terms.low(sums + t * TILE_CENTERS, v, row.scale);
                for (unsigned near = bits_at_most(low, limit); near != 0; near &= near - 1)
                    found.add(j + v * W<float> + __builtin_ctz(near), low[__builtin_ctz(near)],
                              centers_.k);
            }
        }
    }

    const Int8Centers& centers_;
    const std::optional<TwoNearest> two_;
    int part_;  // tiles
    const uint8_t* bytes_ = nullptr;
    int stride_ = 0;
    // Of a tile of rows with a part of the centers: sums of products, and in each tile the least
    // lower bound, lane by lane.
    Aligned<int32_t> sums_;
    Aligned<float> least_;
    Found found_[ROWS];
};

/// The nearest center of a row in float64, as in `nearest_exactly`, but only candidates are
/// compared, and all centers if there is no list of them. exact() reads the row in float64.
template <class T, class Exact>
int nearest_candidate(const T* row, const PackedCenters<T>& centers, const int32_t* candidates,
                      int count, Exact exact) {
    if (count == 0) return nearest_exactly(row, exact(), centers);
    const T square = dot(row, row, centers.width), slack = 2 * centers.error.row(square);
    T scores[Screen::MOST], least = HUGE_SCORE<T>;  // lowered; the least upper bound
    for (int c = 0; c < count; c++) {
        const int j = candidates[c];
        scores[c] = centers.lowered[j] - 2 * dot(row, centers.row(j), centers.width);
        least = std::min(least, scores[c] + 2 * centers.error.center(centers.squares[j]));
    }
    int left = 0, last = 0;
    for (int c = 0; c < count; c++)
        if (scores[c] - least <= slack) left++, last = candidates[c];
    if (left == 1) return last;
    ExactSearch<T> search(exact(), centers, square);
    for (int c = 0; c < count; c++)
        if (scores[c] - least <= slack) search.compare(candidates[c]);
    return search.nearest;
}

/// Rows of a range, block by block, with their candidates. Rows are rounded to int8 when they are
/// read, unless there is a copy of them.
template <class T>
class ScreenedRows {
  public:
    static constexpr int MOST = Screen::ROWS;

    /// two: the two nearest centers are wanted.
    ScreenedRows(const Rows<T>& rows, const PackedCenters<T>& centers, bool two = false)
        : rows_(rows),
          centers_(centers),
          screen_(*centers.int8, two ? std::optional(two_nearest(centers)) : std::nullopt),
          exact_(rows),
          stride_(padded<float>(rows.d)) {
        if (rows.int8 != nullptr) {
            one_.resize(rows.width);
            return;
        }
        read_.resize(MOST * rows.width), scaled_.resize(stride_), bytes_.resize(MOST * stride_);
    }

    /// Reads `count` rows from `start` on, at most MOST, as the next block.
    void read(int64_t start, int count) {
        start_ = start, count_ = count;
        for (int r = 0; r < count && rows_.int8 == nullptr; r++)
            rows_.read(start + r, &read_[r * rows_.width]);
    }

    /// Finds the labels of the block. Precondition: its numbers are finite.
    void label(int32_t* labels) {
        screen();
        for (int r = 0; r < count_; r++)
            labels[r] = screen_.count(r) == 1
                            ? screen_.candidates(r)[0]
                            : nearest_candidate(row(r), centers_, screen_.candidates(r),
                                                screen_.count(r), [&] { return exact(r); });
    }

    /// Finds candidates for the rows of the block. Precondition: its numbers are finite.
    void screen() {
        const double unit = centers_.int8->unit;
        for (int r = 0; r < count_; r++)
            rounded_[r] = rows_.int8 != nullptr ? rows_.int8->row(start_ + r, unit)
                                                : round_row(&read_[r * rows_.width], rows_.width,
                                                            T(unit), scaled_, &bytes_[r * stride_]);
        if (rows_.int8 != nullptr)
            screen_.run(rows_.int8->bytes_of(start_), rows_.int8->stride, rounded_, count_);
        else
            screen_.run(bytes_.data(), stride_, rounded_, count_);
    }

    /// Finds the nearest and the second nearest center of row r. Returns false where rounding
    /// decides which centers have the two best scores (assign_two.hpp).
    bool label_two(int r, int32_t& label, int32_t& other) {
        const int count = screen_.count(r);
        const int32_t* all = screen_.candidates(r);
        if (count < 2) return false;
        const T* x = row(r);
        const T square = dot(x, x, centers_.width), slack = 2 * centers_.error.row(square);
        // Lowered scores, and by how much a true score may be above: errors of centers.hpp. Scores
        // in the order of `add_products` have these bounds as well.
        T scores[Screen::MOST], errors[Screen::MOST];
        int a = -1, b = -1;  // places of the two best
        for (int c = 0; c < count; c++) {
            scores[c] = centers_.lowered[all[c]] - 2 * dot(x, centers_.row(all[c]), centers_.width);
            errors[c] = 2 * centers_.error.center(centers_.squares[all[c]]);
            if (a < 0 || scores[c] < scores[a])
                b = a, a = c;
            else if (b < 0 || scores[c] < scores[b])
                b = c;
        }
        const T most = std::max(scores[a] + errors[a], scores[b] + errors[b]) + 2 * slack;
        for (int c = 0; c < count; c++)
            if (c != a && c != b && scores[c] - errors[c] <= most) return false;
        if (scores[b] - scores[a] - errors[a] <= slack) {
            ExactSearch<T> search(exact(r), centers_, square);
            search.compare(all[std::min(a, b)]), search.compare(all[std::max(a, b)]);
            if (search.nearest == all[b]) std::swap(a, b);
        }
        label = all[a], other = all[b];
        return true;
    }

    /// Row r of the block, padded; valid until the next call.
    const T* row(int r) {
        if (rows_.int8 == nullptr) return &read_[r * rows_.width];
        rows_.read(start_ + r, one_.data());
        return one_.data();
    }

    /// `count` rows of the block from its r-th on, as a block of points.
    void fill(PointBlock<T>& block, int r, int count) {
        if (rows_.int8 == nullptr)
            block.view(start_ + r, &read_[r * rows_.width], count);
        else
            block.defer(start_ + r, start_ + r + count);
    }

  private:
    static TwoNearest two_nearest(const PackedCenters<T>& centers) {
        const double unit = centers.int8->unit, lost = 2 * double(centers.error.tiny) * unit * unit;
        return {float(centers.error.unit), float(std::min(lost, 0x1p100))};
    }

    const double* exact(int r) { return exact_.read(start_ + r, centers_.centered()); }

    const Rows<T>& rows_;
    const PackedCenters<T>& centers_;
    Screen screen_;
    ExactReader<T> exact_;
    int stride_;  // of `bytes_`
    int64_t start_ = 0;
    int count_ = 0;
    Int8Row rounded_[MOST];
    Aligned<T> read_, one_;
    Aligned<float> scaled_;
    Aligned<uint8_t> bytes_;
};

}  // namespace lloydformer::ISA
