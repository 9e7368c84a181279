// The fold AttentionSums: attention of the centers over all points, head by head, as soft-max with
// a running maximum.
//
// Instruction sets differ in the number of points of a block. Sums do not depend on it: they are
// added point by point, masses in a fixed number of lanes, and levels are whole numbers in base 2,
// so that raising a level earlier or later scales everything exactly, by a power of two.
#pragma once

#include <algorithm>
#include <cmath>

#include "exponents.hpp"
#include "nearest_costs.hpp"

namespace lloydformer::ISA {

/// The numbers of a step of a symmetric layer: (h), (k, h), and (k, h, h) for `belonging`.
struct Heads {
    int count;  // h
    double unit;
    const double *sharpness, *distance, *log_belonging, *nearest, *second, *belonging;
};

/// Levels (k, h), masses (k, h) and sums (k, h, d): masses and sums are those of 2^(score - level).
struct Attention {
    Numbers level, masses, sums;

    Attention(int64_t n_heads, int d)
        : level(n_heads, -HUGE_SCORE<double>), masses(n_heads), sums(n_heads * d) {}

    /// Merges that of the rows that follow; `right` is empty afterwards.
    void merge(Attention& right) {
        const size_t d = sums.size() / level.size();
        for (size_t c = 0; c < level.size(); c++) {
            const double to = std::max(level[c], right.level[c]);
            const double one = std::exp2(level[c] - to), two = std::exp2(right.level[c] - to);
            level[c] = to, masses[c] = one * masses[c] + two * right.masses[c];
            for (size_t f = c * d; f < (c + 1) * d; f++) {
                sums[f] = one * sums[f] + two * right.sums[f];
                right.sums[f] = 0;
            }
            right.level[c] = -HUGE_SCORE<double>, right.masses[c] = 0;
        }
    }
};

/// The numbers of a step of H heads, in the order that a pass reads them. Scores are logarithms in
/// base 2.
template <class T, int H>
struct AttentionNumbers {
    /// Factors for a center and head: of p^1 to p^H, D, log p without D, log r and log s.
    static constexpr int ways = H + 4;
    static constexpr double TO_2 = 1.4426950408889634;  // 1 / log 2
    const Rows<T>& rows;
    const PackedCenters<T>& centers;
    T unit, sharpness[H], sharpness_2[H];
    std::vector<T> numbers;  // (k, H, ways)

    AttentionNumbers(const Rows<T>& rows, const PackedCenters<T>& centers, const Heads& heads)
        : rows(rows), centers(centers), unit(T(1 / heads.unit)) {
        for (int g = 0; g < H; g++) {
            sharpness[g] = T(heads.sharpness[g] / heads.unit);
            sharpness_2[g] = T(heads.sharpness[g] / heads.unit * TO_2);
        }
        for (int c = 0; c < centers.k * H; c++) {
            const double own = heads.log_belonging[c];
            for (int g = 0; g < H; g++) add(heads.belonging[c * H + g]);
            add(-(own * heads.sharpness[c % H] + heads.distance[c]) / heads.unit);
            for (double way : {own, heads.nearest[c], heads.second[c]}) add(way);
        }
    }

    void add(double number) { numbers.push_back(T(number * TO_2)); }
};

/// Adds points block by block; the buffers of one thread.
template <class T, int H>
class AttentionPass {
    static constexpr int ways = AttentionNumbers<T, H>::ways;
    static constexpr int AT_ONCE = H > 2 ? 2 : 4;  // centers that are added up together
    // Of a level above the highest score, in base 2: it rises less often, at the cost of four of
    // the bits above FAINT.
    static constexpr int MARGIN = 4;
    static constexpr int LANES = 32 / sizeof(T);  // in which masses are added up

  public:
    explicit AttentionPass(const AttentionNumbers<T, H>& all)
        : all_(all),
          k_(all.centers.k),
          d_(all.rows.d),
          width_(all.rows.width),
          block_(all.rows),
          away_(k_ * P<T>),
          parts_(k_ * H * P<T>),
          sums_(int64_t(k_) * H * width_),
          level_(k_ * H),
          masses_(k_ * H * LANES) {}

    /// Adds the points of a range to an empty `out`.
    void run(Attention& out, Range range) {
        // Blocks that are added up in T before they are added to float64: always 512 points of
        // float or 256 of double, so that bits do not depend on the number of points in a block.
        constexpr int held = 2048 / sizeof(T) / P<T>;
        int since = 0;
        out_ = &out;
        std::fill(level_.begin(), level_.end(), -HUGE_SCORE<T>);
        for (int64_t i = range.start; i < range.stop; i += P<T>) {
            block_.read_rows(i, range.stop);
            measure();
            belong();
            weigh(i);
            int j = 0;
            for (; j + AT_ONCE <= k_; j += AT_ONCE) attend_centers<AT_ONCE>(j);
            for (; j < k_; j++) attend_centers<1>(j);
            if (++since == held || i + P<T> >= range.stop) flush(), since = 0;
        }
    }

  private:
    /// Squared distances D of all centers, and the nearest two.
    void measure() {
        const PackedCenters<T>& centers = all_.centers;
        BestScores<T> found;
        by_eights(0, k_, [&](int first, auto count) {
            V<T> s[count][2];
            score<T, count>(block_.lanes(), d_, centers.eight(first), &centers.squares[first], s);
            for (int j = 0; j < count; j++)
                for (int h = 0; h < 2; h++) store(&away_[(first + j) * P<T> + h * W<T>], s[j][h]);
            found.update(s, first);
        });
        block_.squares(squares_);
        const TwoDistances<T> near(found, squares_, k_);
        for (int h = 0; h < 2; h++) {
            nearest_[h] = near.first[h];
            log_nearest_[0][h] = logarithm<T>(near.first[h] * all_.unit + T(0.01));
            log_nearest_[1][h] = logarithm<T>(near.second[h] * all_.unit + T(0.01));
        }
    }

    /// e^(gamma (r - D)) for each head, from which p is computed.
    void belong() {
        V<T> total[H][2]{};
        for (int j = 0; j < k_; j++)
            for (int h = 0; h < 2; h++) {
                T* at = &away_[j * P<T> + h * W<T>];
                const V<T> away = max<T>(load(at) + load(squares_ + h * W<T>), V<T>{});
                store(at, away);
                const V<T> past = nearest_[h] - away;
                for (int g = 0; g < H; g++) {
                    const V<T> part = faint_power<T>(past * all_.sharpness_2[g]);
                    total[g][h] += part;
                    store(&parts_[(j * H + g) * P<T> + h * W<T>], part);
                }
            }
        for (int g = 0; g < H; g++)
            for (int h = 0; h < 2; h++) {
                inverse_[g][h] = T(1) / total[g][h];
                own_[g][h] = nearest_[h] * all_.sharpness[g] - logarithm<T>(total[g][h]);
            }
    }

    /// Logarithms of the weights; lanes behind the last point have weight 0.
    void weigh(int64_t start) {
        constexpr T never = sizeof(T) == sizeof(float) ? T(-1e30) : T(-1e300);
        T logs[P<T>]{};
        if (all_.rows.weighted() || block_.count < P<T>)
            for (int r = 0; r < P<T>; r++) {
                const double weight = r < block_.count ? all_.rows.weight(start + r) : 0;
                logs[r] = weight > 0 ? T(std::log2(weight)) : never;
            }
        for (int h = 0; h < 2; h++) weights_[h] = load(logs + h * W<T>);
    }

    /// Adds J centers: their shares of the points, times rows.
    template <int J>
    void attend_centers(int j) {
        for (int c = 0; c < J; c++) attend(j + c, &shares_[c * H * P<T>]);
        int f = 0;
        for (; f + 2 * W<T> <= width_; f += 2 * W<T>) mix<J * H, 2>(j * H, f);
        if (f < width_) mix<J * H, 1>(j * H, f);
    }

    /// 2^(score - level) of one center.
    void attend(int j, T* shares) {
        V<T> p[H][2], away[2];
        for (int h = 0; h < 2; h++) {
            away[h] = load(&away_[j * P<T> + h * W<T>]);
            for (int g = 0; g < H; g++)
                p[g][h] = load(&parts_[(j * H + g) * P<T> + h * W<T>]) * inverse_[g][h];
        }
        for (int g = 0; g < H; g++) {
            const int c = j * H + g;
            const T* number = &all_.numbers[c * ways];
            V<T> s[2];
            for (int h = 0; h < 2; h++) {
                s[h] = weights_[h] + away[h] * number[H] + own_[g][h] * number[H + 1];
                s[h] += log_nearest_[0][h] * number[H + 2];
                s[h] += log_nearest_[1][h] * number[H + 3];
                for (int b = 0; b < H; b++) s[h] += p[b][h] * number[b];
            }
            const V<T> most = max<T>(s[0], s[1]);
            if (bits(most > splat(level_[c]))) raise(c, MARGIN + std::ceil(-least<T>(-most)));
            const T far = std::abs(level_[c]) < T(1 << 20) ? T(0) : level_[c];
            for (int h = 0; h < 2; h++)
                store(shares + g * P<T> + h * W<T>, faint_power<T>(s[h] - far, level_[c] - far));
            add_masses(c, shares + g * P<T>);
        }
    }

    /// Adds the shares of a block, lane by lane.
    void add_masses(int c, const T* shares) {
        typedef T Lanes __attribute__((vector_size(32)));
        Lanes sum, more;
        std::memcpy(&sum, &masses_[c * LANES], sizeof sum);
        for (int first = 0; first < P<T>; first += LANES) {
            std::memcpy(&more, shares + first, sizeof more);
            sum += more;
        }
        std::memcpy(&masses_[c * LANES], &sum, sizeof sum);
    }

    /// Rescales what was added so far to a higher level.
    void raise(int c, T level) {
        const T factor = T(std::exp2(double(level_[c]) - double(level)));
        level_[c] = level, out_->level[c] = double(level);
        for (int l = 0; l < LANES; l++) masses_[c * LANES + l] *= factor;
        out_->masses[c] *= factor;
        T* sums = &sums_[int64_t(c) * width_];
        for (int f = 0; f < width_; f += W<T>) store(sums + f, load(sums + f) * factor);
        for (int f = 0; f < d_; f++) out_->sums[int64_t(c) * d_ + f] *= factor;
    }

    /// Adds shares times rows: J heads and F vectors of features at a time.
    template <int J, int F>
    void mix(int c, int f) {
        V<T> sum[J][F];
        for (int j = 0; j < J; j++)
            for (int v = 0; v < F; v++)
                sum[j][v] = load(&sums_[int64_t(c + j) * width_ + f + v * W<T>]);
        const T *shares = shares_, *row = block_.row(0) + f;
        for (int r = 0; r < block_.count; r++, shares++, row += width_) {
            V<T> x[F];
            for (int v = 0; v < F; v++) x[v] = load(row + v * W<T>);
#pragma GCC unroll 8
            for (int j = 0; j < J; j++) {
                const V<T> share = splat(shares[j * P<T>]);
                for (int v = 0; v < F; v++) sum[j][v] += x[v] * share;
            }
        }
        for (int j = 0; j < J; j++)
            for (int v = 0; v < F; v++)
                store(&sums_[int64_t(c + j) * width_ + f + v * W<T>], sum[j][v]);
    }

    void flush() {
        for (int c = 0; c < k_ * H; c++) {
            double* to = &out_->sums[int64_t(c) * d_];
            T* from = &sums_[int64_t(c) * width_];
            for (int f = 0; f < d_; f++) to[f] += from[f];
            std::fill_n(from, width_, T(0));
            double mass = 0;
            for (int l = 0; l < LANES; l++) mass += double(masses_[c * LANES + l]);
            std::fill_n(&masses_[c * LANES], LANES, T(0));
            out_->masses[c] += mass;
        }
    }

    const AttentionNumbers<T, H>& all_;
    Attention* out_ = nullptr;
    int k_, d_, width_;
    PointBlock<T> block_;
    alignas(64) T squares_[P<T>], shares_[AT_ONCE * H * P<T>];
    V<T> nearest_[2], log_nearest_[2][2], inverse_[H][2], own_[H][2], weights_[2];
    Aligned<T> away_, parts_, sums_;  // (k, P), (k, H, P), (k, H, width)
    Aligned<T> level_, masses_;       // (k, H), (k, H, LANES)
};

/// Attention for 1 to 4 heads.
template <class T, int H = 4>
Attention attention(ThreadPool& pool, const Rows<T>& rows, const PackedCenters<T>& centers,
                    const Heads& heads) {
    if constexpr (H > 1)
        if (heads.count < H) return attention<T, H - 1>(pool, rows, centers, heads);
    const AttentionNumbers<T, H> numbers(rows, centers, heads);
    const int64_t n_heads = int64_t(centers.k) * H;
    Tree<Attention> tree(Units(rows.n, rows.leaf, n_heads * (rows.d + 2)), pool.size(),
                         Attention(n_heads, rows.d));
    return std::move(tree.run(pool, [&](Range unit) {
        rows.prefetch_after(unit.start, unit.stop);
        return [pass = AttentionPass<T, H>(numbers)](Attention& out, Range leaf) mutable {
            pass.run(out, leaf);
        };
    }));
}

/// Levels (k, h), masses (k, h) and sums (k, h, d).
template <class T>
void run_attention_sums(Workspace<T>& work, Call& call) {
    const PackedCenters<T> centers = work.centers(call);
    const auto sharpness = call.in<double>("sharpness", "(h)", {ANY});
    const int64_t k = centers.k, h = sharpness.shape[0];
    Call::require(0 < h && h <= 4, "sharpness", "pass (h), h from 1 to 4");
    const auto given = [&](const char* name) {
        return call.in<double>(name, "(k, h)", {k, h}).data;
    };
    const Heads heads{int(h),
                      call.number("unit"),
                      sharpness,
                      given("distance"),
                      given("log_belonging"),
                      given("nearest"),
                      given("second"),
                      call.in<double>("belonging", "(k, h, h)", {k, h, h})};
    double* level = call.out<double>("level", "(k, h)", {k, h});
    double* masses = call.out<double>("masses", "(k, h)", {k, h});
    double* sums = call.out<double>("sums", "(k, h, d)", {k, h, work.rows.d});
    const Attention found = attention(work.pool, work.rows, centers, heads);
    for (size_t c = 0; c < found.level.size(); c++)
        level[c] = found.level[c] / AttentionNumbers<T, 1>::TO_2;
    std::copy(found.masses.begin(), found.masses.end(), masses);
    std::copy(found.sums.begin(), found.sums.end(), sums);
}

}  // namespace lloydformer::ISA
