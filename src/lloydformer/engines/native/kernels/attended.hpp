// What each center attends to, head by head: soft-max over all points, with a running maximum.
#pragma once

#include <algorithm>
#include <cmath>

#include "exponents.hpp"
#include "served.hpp"
#include "session.hpp"

namespace lloydformer::ISA {

/// Levels (k, h), masses (k, h) and sums (k, h, d): masses and sums are those of e^(score - level).
struct Attention {
    Numbers level, masses, sums;

    Attention(int64_t rows, int d)
        : level(rows, -HUGE_SCORE<double>), masses(rows), sums(rows * d) {}

    /// Adds another one, of later points.
    void take(const Attention& other, int d) {
        for (size_t c = 0; c < level.size(); c++) {
            const double to = std::max(level[c], other.level[c]);
            const double one = std::exp(level[c] - to), two = std::exp(other.level[c] - to);
            level[c] = to, masses[c] = one * masses[c] + two * other.masses[c];
            for (size_t f = c * d; f < (c + 1) * d; f++)
                sums[f] = one * sums[f] + two * other.sums[f];
        }
    }
};

/// The numbers of a step of H heads, as a block uses them: scores are logarithms in base 2.
template <class T, int H>
struct Attending {
    /// Of a center and head: what p^1 to p^H, D, log p without D, log r and log s count.
    static constexpr int ways = H + 4;
    static constexpr double TO_2 = 1.4426950408889634;  // 1 / log 2
    const Rows<T>& rows;
    const Packed<T>& centers;
    T unit, sharpness[H], sharpness_2[H];
    std::vector<T> numbers;  // (k, H, ways)

    Attending(const Rows<T>& rows, const Packed<T>& centers, const Heads& heads)
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

    Attention operator()(Team& team) const;
};

/// The points of one segment, block by block.
template <class T, int H>
class Looking {
    static constexpr int ways = Attending<T, H>::ways;
    static constexpr int AT_ONCE = H > 2 ? 2 : 4;  // centers whose heads are gathered together
    static constexpr int MARGIN = 4;               // of a level: later points may be higher

  public:
    Looking(const Attending<T, H>& all, Attention& out)
        : all_(all),
          out_(out),
          k_(all.centers.k),
          d_(all.rows.d),
          width_(all.rows.width),
          block_(all.rows),
          away_(k_ * P<T>),
          parts_(k_ * H * P<T>),
          sums_(int64_t(k_) * H * width_),
          level_(k_ * H, -HUGE_SCORE<T>),
          masses_(k_ * H) {}

    void run(int64_t start, int64_t stop) {
        constexpr int held = 16;  // blocks whose sums are held in T
        int since = 0;
        all_.rows.reading(start, stop);
        for (int64_t i = start; i < stop; i += P<T>) {
            block_.read_rows(i, stop);
            measure();
            belong();
            weigh(i);
            int j = 0;
            for (; j + AT_ONCE <= k_; j += AT_ONCE) look<AT_ONCE>(j);
            for (; j < k_; j++) look<1>(j);
            if (++since == held || i + P<T> >= stop) flush(), since = 0;
        }
    }

  private:
    /// D of all centers, and the nearest two.
    void measure() {
        const Packed<T>& centers = all_.centers;
        Found<T> found;
        by_eights(0, k_, [&](int first, auto count) {
            V<T> s[count][2];
            score<T, count>(block_.lanes(), d_, centers.eight(first), &centers.squares[first], s);
            for (int j = 0; j < count; j++)
                for (int h = 0; h < 2; h++) store(&away_[(first + j) * P<T> + h * W<T>], s[j][h]);
            found.see(s, first);
        });
        block_.squares(squares_);
        const Near<T> near(found, squares_, k_);
        for (int h = 0; h < 2; h++) {
            nearest_[h] = near.first[h];
            served_[0][h] = logarithm<T>(near.first[h] * all_.unit + T(0.01));
            served_[1][h] = logarithm<T>(near.second[h] * all_.unit + T(0.01));
        }
    }

    /// e^(gamma (r - D)) for each head, which p is a multiple of.
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

    /// The logarithms of the points' weights; what is behind the last point weighs nothing.
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

    /// Some centers: their shares of the points, and these times rows.
    template <int J>
    void look(int j) {
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
                s[h] += served_[0][h] * number[H + 2];
                s[h] += served_[1][h] * number[H + 3];
                for (int b = 0; b < H; b++) s[h] += p[b][h] * number[b];
            }
            const V<T> most = max<T>(s[0], s[1]);
            if (bits(most > splat(level_[c]))) raise(c, MARGIN - least<T>(-most));
            for (int h = 0; h < 2; h++) {
                const V<T> share = faint_power<T>(s[h] - level_[c]);
                masses_[c] += share;
                store(shares + g * P<T> + h * W<T>, share);
            }
        }
    }

    /// What was added so far is seen from a higher level.
    void raise(int c, T level) {
        const T factor = T(std::exp2(double(level_[c]) - double(level)));
        level_[c] = level, out_.level[c] = double(level) / Attending<T, H>::TO_2;
        masses_[c] *= factor, out_.masses[c] *= factor;
        T* sums = &sums_[int64_t(c) * width_];
        for (int f = 0; f < width_; f += W<T>) store(sums + f, load(sums + f) * factor);
        for (int f = 0; f < d_; f++) out_.sums[int64_t(c) * d_ + f] *= factor;
    }

    /// Adds shares times rows: some heads and vectors of features at a time.
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
            double* to = &out_.sums[int64_t(c) * d_];
            T* from = &sums_[int64_t(c) * width_];
            for (int f = 0; f < d_; f++) to[f] += from[f];
            std::fill_n(from, width_, T(0));
            out_.masses[c] += double(sum<T>(masses_[c]));
            masses_[c] = V<T>{};
        }
    }

    const Attending<T, H>& all_;
    Attention& out_;
    int k_, d_, width_;
    Block<T> block_;
    alignas(64) T squares_[P<T>], shares_[AT_ONCE * H * P<T>];
    V<T> nearest_[2], served_[2][2], inverse_[H][2], own_[H][2], weights_[2];
    Aligned<T> away_, parts_, sums_, level_;  // (k, P), (k, H, P), (k, H, width), (k, H)
    std::vector<V<T>> masses_;
};

template <class T, int H>
Attention Attending<T, H>::operator()(Team& team) const {
    const int64_t count = int64_t(centers.k) * H;
    const Segments segments(rows.n, count * (rows.d + 2));
    std::vector<Attention> parts(segments.count, Attention(count, rows.d));
    team.run(segments.count, [&](int s) {
        Looking<T, H>(*this, parts[s]).run(segments.start(s), segments.start(s + 1));
    });
    for (int s = 1; s < segments.count; s++) parts[0].take(parts[s], rows.d);
    return parts[0];
}

/// For as many heads as there are kernels for: 1 to 4.
template <class T, int H = 4>
Attention attended(Team& team, const Rows<T>& rows, const Packed<T>& centers, const Heads& heads) {
    if constexpr (H > 1)
        if (heads.count < H) return attended<T, H - 1>(team, rows, centers, heads);
    return Attending<T, H>(rows, centers, heads)(team);
}

}  // namespace lloydformer::ISA
