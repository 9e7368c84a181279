// Labels or distances of rows in one pass, for predict, transform and score: it also finds NaN,
// infinity and numbers whose squares are too large, which a fit looks for before.
//
// Labels are exact, as in assign.hpp, and sums of squared distances are computed by differences in
// float64, as in measure.hpp. If a square is not finite, labels and distances mean
// nothing, and the caller checks the rows and raises the error.
#pragma once

#include "assign.hpp"
#include "workspace.hpp"

namespace lloydformer::ISA {

/// The largest |x|^2 of some rows, and if one of them is 0. Bits are compared as integers: kernels
/// are compiled for finite numbers (-ffinite-math-only), and comparisons of others may give
/// anything.
template <class T>
class Squares {
  public:
    /// `squares`: those of the first `count` rows of a block. The lanes behind them hold rows of
    /// earlier blocks, or zeros.
    void add(const T (&squares)[P<T>], int count) {
        constexpr Bits magnitude = std::numeric_limits<Bits>::max();
        for (int h = 0; h < 2; h++) {
            const I<T> found = (I<T>)load(squares + h * W<T>) & magnitude;
            largest_ = found > largest_ ? found : largest_;
            if (count == P<T>) zeros_ |= found == 0;
        }
        for (int r = 0; count < P<T> && r < count; r++) zeros_[0] |= squares[r] == 0 ? -1 : 0;
    }

    void merge(const Squares& other) {
        largest_ = other.largest_ > largest_ ? other.largest_ : largest_;
        zeros_ |= other.zeros_;
    }

    /// True if all squares so far are finite.
    bool finite() const { return bits(largest_ > bits_of(HUGE_SCORE<T>) - I<T>{}) == 0; }

    /// Results of a call: True if all squares are finite, the largest of them, True if one is 0.
    void report(Call& call) const {
        Bits most = 0;
        for (int l = 0; l < W<T>; l++) most = std::max<Bits>(most, largest_[l]);
        T square;
        std::memcpy(&square, &most, sizeof square);
        call.results = {finite(), finite() ? double(square) : 0.0, bits(zeros_) != 0};
    }

  private:
    typedef std::conditional_t<sizeof(T) == 4, int32_t, int64_t> Bits;

    static Bits bits_of(T number) {
        Bits found;
        std::memcpy(&found, &number, sizeof found);
        return found;
    }

    I<T> largest_{}, zeros_{};
};

/// `assign_unseen` by screening. Blocks from the first one on that is not finite are not compared:
/// NaN has no place among candidates.
template <class T, class Each>
void screen_unseen(const Rows<T>& rows, Range range, const PackedCenters<T>& centers,
                   Squares<T>& seen, Each each) {
    constexpr int MOST = ScreenedRows<T>::MOST;
    ScreenedRows<T> screened(rows, centers);
    PointBlock<T> block(rows);
    int32_t labels[MOST];
    T squares[P<T>];
    for (int64_t i = range.start; i < range.stop; i += MOST) {
        const int count = int(std::min<int64_t>(MOST, range.stop - i));
        screened.read(i, count);
        for (int first = 0; first < count; first += P<T>) {
            std::fill_n(squares, P<T>, T(0));
            for (int r = first; r < std::min(first + P<T>, count); r++)
                squares[r - first] = dot(screened.row(r), screened.row(r), rows.width);
            seen.add(squares, std::min(P<T>, count - first));
        }
        if (seen.finite())
            screened.label(labels);
        else
            std::fill_n(labels, count, 0);
        for (int r = 0; r < count; r += P<T>) {
            screened.fill(block, r, std::min(P<T>, count - r));
            each(i + r, block, labels + r);
        }
    }
}

/// Like `assign`, for rows whose largest square is not known.
template <class T, class Each>
inline void assign_unseen(const Rows<T>& rows, Range range, const PackedCenters<T>& centers,
                          Squares<T>& seen, Each each) {
    if (centers.int8 != nullptr) return screen_unseen(rows, range, centers, seen, each);
    PointBlock<T> block(rows);
    int32_t labels[P<T>];
    T squares[P<T>];
    for (int64_t i = range.start; i < range.stop; i += P<T>) {
        block.read(i, range.stop);
        block.squares(squares);
        seen.add(squares, block.count);
        const BestScores<T> found = nearest(block.lanes(), centers, centers.for_labels);
        V<T> largest = max<T>(load(squares), load(squares + W<T>));
        for (int h = 0; h < 2; h++)
            for (int l = 0; l < W<T>; l++)
                labels[h * W<T> + l] = static_cast<int32_t>(found.index[h][l]);
        // A little more, because `settle_ties` adds up each square in another order.
        settle_ties(block, centers, T(1.001) * -least<T>(-largest), found, labels);
        each(i, block, labels);
    }
}

/// Labels by nearest center, and of each cluster the sum of w d^2 (k), if `spread` is given.
/// Returns what `Squares` reports.
template <class T>
void run_labels(Workspace<T>& work, Call& call) {
    const Rows<T>& rows = work.rows;
    const PackedCenters<T> centers = work.centers(call);
    int32_t* labels = work.labels(call);
    const bool sums = call.has("spread");
    double* spread = sums ? call.out<double>("spread", "(k)", {centers.k}).data : nullptr;
    const Units units(rows.n, rows.leaf, sums ? centers.k : 0), ranges = units.without_sums();
    // By range or by unit of sums: short leaves make more units than ranges.
    std::vector<Squares<T>> seen(std::max(units.count, ranges.count));
    // Leaves with many sums are long, and threads would wait for each other if rows were compared
    // leaf by leaf: with 1000 centers and 784 features a leaf has 65,536 rows. Where leaves are
    // short, labels and sums come from one pass over the rows.
    const bool apart = !sums || (work.pool.size() > 1 && ranges.count > units.count);
    if (apart)
        work.pool.run(ranges.count, [&](int u, int) {
            const Range range = ranges.unit(u);
            rows.prefetch_after(range.start, range.stop);
            assign_unseen(rows, range, centers, seen[u],
                          [&](int64_t i, PointBlock<T>& points, const int32_t* label) {
                              std::copy_n(label, points.count, labels + i);
                          });
        });
    if (sums) {
        const Numbers found = fold(work.pool, rows, centers.k, [&](Range unit) {
            rows.prefetch_after(unit.start, unit.stop);
            Squares<T>& own = seen[unit.start / units.unit(0).stop];
            return [&, reader = ExactReader<T>(rows)](Numbers& sum, Range leaf) mutable {
                const auto add = [&](int64_t i) {
                    sum[labels[i]] +=
                        rows.weight(i) * exact_square(rows, i, reader, centers, labels[i]);
                };
                if (apart) {
                    for (int64_t i = leaf.start; i < leaf.stop; i++) add(i);
                    return;
                }
                assign_unseen(rows, leaf, centers, own,
                              [&](int64_t i, PointBlock<T>& points, const int32_t* label) {
                                  std::copy_n(label, points.count, labels + i);
                                  for (int r = 0; r < points.count; r++) add(i + r);
                              });
            };
        });
        std::copy(found.begin(), found.end(), spread);
    }
    for (size_t u = 1; u < seen.size(); u++) seen[0].merge(seen[u]);
    seen[0].report(call);
}

/// Distances (n, k) of all rows to all centers; or halves of the squared ones.
template <class T>
class AllDistances {
  public:
    AllDistances(const Rows<T>& rows, const PackedCenters<T>& centers, bool halved)
        : halved_(halved),
          rows_(rows),
          centers_(centers),
          reader_(rows),
          block_(rows),
          width_(padded<T>(centers.k)),
          found_(int64_t(width_) * P<T>),
          turned_(STEP * width_) {}

    void write(Range range, Squares<T>& seen, T* out) {
        T squares[P<T>];
        for (int64_t i = range.start; i < range.stop; i += P<T>) {
            block_.read(i, range.stop);
            block_.squares(squares);
            seen.add(squares, block_.count);
            by_eights(0, centers_.k, [&](int first, auto count) {
                V<T> s[count][2];
                score<T, count>(block_.lanes(), centers_.d, centers_.eight(first),
                                &centers_.squares[first], s);
                for (int j = 0; j < count; j++) store_squares(first + j, s[j], squares);
            });
            finish();
            turn(out + i * centers_.k);
        }
    }

  private:
    static constexpr int STEP = 16 / sizeof(T);  // points that `transpose` turns at a time

    /// Writes the distances of the block, point by point.
    void turn(T* out) {
        const int k = centers_.k;
        for (int r = 0; r < block_.count; r += STEP) {
            for (int j = 0; j < k; j += W<T>)
                transpose(&found_[int64_t(j) * P<T> + r], P<T>, &turned_[j], width_);
            for (int s = 0; s < std::min(STEP, block_.count - r); s++)
                std::copy_n(&turned_[s * width_], k, out + int64_t(r + s) * k);
        }
    }

    /// Squares above 2^-10 (|x|^2 + |c|^2) come from scores, whose error is at most twice
    /// `ScoreError::unit` of that sum: 2^11 unit of the square. Smaller ones are computed again by
    /// differences in float64 and rounded once, so that equal rows have 0.
    void store_squares(int j, const V<T> (&scores)[2], const T (&squares)[P<T>]) {
        // Below it more than ten bits are lost to cancellation, as in data/rows.py.
        constexpr T cancelled = T(0x1p-10);
        T* to = &found_[int64_t(j) * P<T>];
        for (int h = 0; h < 2; h++) {
            const V<T> own = load(squares + h * W<T>), away = scores[h] + own;
            store(to + h * W<T>, max<T>(away, V<T>{}));
            for (unsigned close = bits(away <= cancelled * (own + centers_.squares[j])); close != 0;
                 close &= close - 1) {
                const int r = h * W<T> + __builtin_ctz(close);
                if (r >= block_.count) break;
                to[r] = T(exact_square(rows_, block_.number(r), reader_, centers_, j));
            }
        }
    }

    void finish() {
        if (halved_)
            for (T& square : found_) square /= 2;
        else
            for (T& square : found_) square = std::sqrt(square);
    }

    bool halved_;
    const Rows<T>& rows_;
    const PackedCenters<T>& centers_;
    ExactReader<T> reader_;
    PointBlock<T> block_;
    int width_;          // centers, padded to whole vectors
    Aligned<T> found_;   // of a block: center by center, P numbers each
    Aligned<T> turned_;  // of STEP points: point by point
};

/// Distances (n, k) to all centers. halved: half of the squared ones, which are 1 - cos for
/// directions. Returns what `Squares` reports.
template <class T>
void run_distances(Workspace<T>& work, Call& call) {
    const Rows<T>& rows = work.rows;
    const PackedCenters<T> centers = work.centers(call);
    T* out = call.out<T>("out", "(n, k)", {rows.n, centers.k});
    const bool halved = call.flag("halved");
    const Units units = Units(rows.n, rows.leaf, centers.k).without_sums();
    std::vector<Squares<T>> seen(units.count);
    work.pool.run(units.count, [&](int u, int) {
        const Range unit = units.unit(u);
        rows.prefetch_after(unit.start, unit.stop);
        AllDistances<T>(rows, centers, halved).write(unit, seen[u], out);
    });
    for (int u = 1; u < units.count; u++) seen[0].merge(seen[u]);
    seen[0].report(call);
}

}  // namespace lloydformer::ISA
