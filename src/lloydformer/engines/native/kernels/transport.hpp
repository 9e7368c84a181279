// The task BoundedAssignment: the cheapest assignment of points to clusters whose sizes are
// bounded.
//
//   minimise   sum_i w_i |x_i - c_{a(i)}|^2
//   such that  lower_j <= number of points with a(i) = j <= upper_j    for each cluster j.
//
// It is a transport problem, solved exactly by successive shortest paths. Each cluster has a price
// p_j, and each point is in a cluster with the smallest w_i |x_i - c_j|^2 + p_j. A path moves one
// point from each of its clusters to the next one, from a cluster that has too many points to one
// that has room. Paths run in a graph of k + 1 nodes: the arc a -> b costs what the cheapest point
// of a pays for moving to b, and the node k, the ground, stands for the numbers of places that are
// used: it has an arc from each cluster that may still grow and one to each that may still shrink.
//
// Of n k arcs only those are listed whose reduced cost is at most `reach_`: few for each point. An
// arc that is not listed cost more than that when the list was made, and falls as the price of its
// cluster rises (`slack_`). A path is used only if it is no longer than every path through such an
// arc; otherwise the list is made again. So the result is optimal, and no n k numbers are stored.
// For the last points of large problems the shortest path that is listed has to do; the bound that
// is computed in the end says how much better another assignment could be at most.
#pragma once

#include <memory>
#include <unordered_map>

#include "assign.hpp"
#include "workspace.hpp"

namespace lloydformer::ISA {

/// A cluster that a point may be in, and the cost of the point there, with its weight.
struct Choice {
    int32_t cluster;
    double cost;
};

/// The choices of some points, one after the other; a point whose only choice is its own cluster
/// has none.
struct Choices {
    std::vector<uint32_t> counts;  // by point
    std::vector<Choice> all;
    double cost = 0, least = 0;  // if they are asked for: of the labels, and at the prices
};

/// The graph of the clusters: for each pair the points that may move, the cheapest first.
class MoveGraph {
  public:
    struct Move {
        double cost;
        int32_t point;
        bool operator<(const Move& other) const {  // std::push_heap has the largest first
            return cost != other.cost ? cost > other.cost : point > other.point;
        }
    };

    explicit MoveGraph(int k) : k_(k), from_(k) {
        // Up to 64 MB; beyond that a table of the pairs that exist.
        if (k <= 4096) table_.assign(int64_t(k) * k, -1);
    }

    void add(int a, int b, Move move) { moves(a, b).push_back(move); }

    void push(int a, int b, Move move) {
        std::vector<Move>& heap = moves(a, b);
        heap.push_back(move);
        std::push_heap(heap.begin(), heap.end());
    }

    void make_heaps() {
        for (std::vector<Move>& heap : heaps_) std::make_heap(heap.begin(), heap.end());
    }

    const std::vector<int>& arcs(int a) const { return from_[a]; }
    int to(int arc) const { return to_[arc]; }

    /// The cheapest move of an arc from cluster a; null if no point is left. Points that have moved
    /// away are dropped only now: to find them in all heaps would take longer.
    const Move* cheapest(int a, int arc, const int32_t* labels) {
        std::vector<Move>& heap = heaps_[arc];
        while (!heap.empty() && labels[heap.front().point] != a) {
            std::pop_heap(heap.begin(), heap.end());
            heap.pop_back();
        }
        return heap.empty() ? nullptr : &heap.front();
    }

  private:
    std::vector<Move>& moves(int a, int b) {
        const int64_t pair = int64_t(a) * k_ + b;
        int& arc = table_.empty() ? pairs_.try_emplace(pair, -1).first->second : table_[pair];
        if (arc < 0) {
            arc = int(heaps_.size());
            heaps_.emplace_back();
            to_.push_back(b);
            from_[a].push_back(arc);
        }
        return heaps_[arc];
    }

    int k_;
    std::vector<std::vector<int>> from_;  // arcs of each cluster
    std::vector<int> to_;                 // by arc
    std::vector<std::vector<Move>> heaps_;
    std::vector<int> table_;
    std::unordered_map<int64_t, int> pairs_;
};

/// Every `stride`-th row, with bounds for so many; labels (count) are those of these rows.
template <class T>
class Transport {
  public:
    Transport(ThreadPool& pool, const Rows<T>& rows, const PackedCenters<T>& centers,
              const int64_t* lower, const int64_t* upper, int64_t n_weighted, int64_t stride,
              int32_t* labels)
        : pool_(pool),
          rows_(rows),
          centers_(centers),
          k_(centers.k),
          stride_(stride),
          count_((rows.n + stride - 1) / stride),
          labels_(labels),
          lower_(k_),
          upper_(k_),
          used_(k_),
          excess_(k_ + 1) {
        for (int64_t t = 0; t < count_; t++) n_active_ += rows.weight(t * stride) > 0;
        const double share = stride == 1 ? 1 : double(n_active_) / double(n_weighted);
        for (int j = 0; j < k_; j++) {
            lower_[j] = stride == 1 ? lower[j] : int64_t(std::floor(double(lower[j]) * share));
            upper_[j] = stride == 1 ? upper[j] : int64_t(std::ceil(double(upper[j]) * share));
        }
    }

    /// Finds labels and prices (k); prices are those to begin with.
    void solve(std::vector<double>& prices) {
        prices_ = prices;
        prices_.push_back(0);  // the ground
        if (count_ * k_ > SMALL) raise_prices();
        list_moves(true);
        balance();
        int64_t moved = 0;  // paths since the list was made
        for (int lists = 1;;) {
            const int source = next_source();
            if (source >= 0) {
                if (advance(source))
                    moved++;
                else
                    stuck_[source] = 1;
                continue;
            }
            if (*std::max_element(excess_.begin(), excess_.end()) <= 0) break;
            if (choices_of_all_) throw std::invalid_argument("lower, upper: no assignment fits");
            // Rows that stand for others only have to find prices.
            if (stride_ > 1 && lists > 1) break;
            // The last points may need arcs that are hardly ever listed: then they take the
            // shortest path that is known, and `certify` says what that costs.
            if (lists > 1 && count_ * k_ > LARGE) proved_ = false;
            // A list takes as long as thousands of paths.
            if (moved < 1024) per_point_ *= 2;
            list_moves(false);
            moved = 0, lists++;
        }
        for (int j = 0; j < k_; j++) prices[j] = prices_[j] - prices_[k_];
    }

    /// The share of points that must move, at the prices to begin with: the labels are set.
    double overflow(const std::vector<double>& prices) {
        prices_ = prices;
        prices_.push_back(0);
        reach_ = 0;
        Choices all = compare(true, false);
        balance();
        int64_t sum = 0;
        for (int j = 0; j <= k_; j++) sum += std::max<int64_t>(excess_[j], 0);
        return double(sum) / double(std::max<int64_t>(1, n_active_));
    }

    /// The cost of the labels, and a lower bound of the cost of every assignment within the bounds:
    /// the dual objective at the prices. A proof for any prices, however they were found.
    void certify(const std::vector<double>& prices, double& cost, double& bound) {
        prices_ = prices;
        prices_.push_back(0);
        reach_ = 0;
        Choices all = compare(false, true);
        cost = all.cost, bound = all.least;
        for (int j = 0; j < k_; j++)
            bound -= prices[j] * double(prices[j] > 0 ? upper_[j] : lower_[j]);
    }

  private:
    /// Lists the moves of every point whose reduced cost is at most `reach_`. fresh: the labels are
    /// those of the smallest cost plus price.
    void list_moves(bool fresh) {
        choose_reach();
        const Choices found = compare(fresh, false);
        choices_ = found.all;
        starts_.assign(count_ + 1, 0);
        for (int64_t t = 0; t < count_; t++) starts_[t + 1] = starts_[t] + found.counts[t];
        graph_ = std::make_unique<MoveGraph>(k_);
        for (int64_t t = 0; t < count_; t++)
            add_moves(t, [&](int a, int b, MoveGraph::Move move) { graph_->add(a, b, move); });
        graph_->make_heaps();
        slack_.assign(k_, reach_);
        stuck_.assign(k_ + 1, 0);
    }

    template <class Add>
    void add_moves(int64_t t, Add add) {
        const int own = labels_[t];
        double cost = 0;
        for (int64_t c = starts_[t]; c < starts_[t + 1]; c++)
            if (choices_[c].cluster == own) cost = choices_[c].cost;
        for (int64_t c = starts_[t]; c < starts_[t + 1]; c++)
            if (choices_[c].cluster != own)
                add(own, choices_[c].cluster, {choices_[c].cost - cost, int32_t(t)});
    }

    /// Chooses `reach_` so that points have about `per_point_` choices each, by some of the points.
    void choose_reach() {
        choices_of_all_ = count_ * k_ <= SMALL || per_point_ >= k_;
        reach_ = HUGE_SCORE<double>;
        if (choices_of_all_) return;
        const int64_t most = 1024, step = std::max<int64_t>(1, count_ / most);
        std::vector<double> apart;
        std::vector<T> row(rows_.width), scores(k_);
        for (int64_t t = 0; t < count_; t += step) {
            const double weight = rows_.weight(t * stride_);
            if (!(weight > 0)) continue;
            rows_.read(t * stride_, row.data());
            double best = HUGE_SCORE<double>;
            const size_t first = apart.size();
            for (int j = 0; j < k_; j++) {
                const double away = squared_distance(row.data(), centers_.row(j), centers_.width);
                apart.push_back(weight * away + prices_[j]);
                best = std::min(best, apart.back());
            }
            for (size_t at = first; at < apart.size(); at++) apart[at] -= best;
        }
        const size_t rank = std::min(apart.size() - 1, apart.size() / size_t(k_) * per_point_);
        std::nth_element(apart.begin(), apart.begin() + int64_t(rank), apart.end());
        reach_ = apart[rank];
    }

    /// Compares all points with all centers at the prices.
    Choices compare(bool fresh, bool measured) {
        const std::vector<T> priced = priced_squares();
        double highest = 0;
        for (int j = 0; j < k_; j++) highest = std::max(highest, std::abs(prices_[j]));
        const Units units = Units(count_, rows_.leaf, 1).without_sums();
        std::vector<Choices> parts(units.count);
        pool_.run(units.count, [&](int u, int) {
            parts[u] = compare(units.unit(u), priced, T(highest), fresh, measured);
        });
        Choices all;
        for (Choices& part : parts) {
            all.counts.insert(all.counts.end(), part.counts.begin(), part.counts.end());
            all.all.insert(all.all.end(), part.all.begin(), part.all.end());
            all.cost += part.cost, all.least += part.least;
            part = {};
        }
        return all;
    }

    Choices compare(Range range, const std::vector<T>& priced, T highest, bool fresh,
                    bool measured) {
        Choices found;
        found.counts.reserve(range.stop - range.start);
        PointBlock<T> block(rows_);
        ExactReader<T> reader(rows_);
        Aligned<T> scores(int64_t(k_) * P<T>);
        std::vector<int32_t> near[P<T>];
        std::vector<Choice> own;
        T limits[P<T>], squares[P<T>], shares[P<T>];
        for (int64_t t = range.start; t < range.stop; t += P<T>) {
            const int count = read(block, t, range.stop, shares);
            score_all(block, priced, shares, scores);
            block.squares(squares);
            V<T> best[2] = {splat(HUGE_SCORE<T>), splat(HUGE_SCORE<T>)};
            for (int64_t j = 0; j < k_; j++)
                for (int h = 0; h < 2; h++)
                    best[h] = min<T>(best[h], load(&scores[j * P<T> + h * W<T>]));
            for (int r = 0; r < P<T>; r++) {
                // Twice the error of a score, whose terms now are the price as well.
                const double error = 2 * (double(centers_.error.row(squares[r])) +
                                          double(centers_.error.center(centers_.largest)) +
                                          2 * double(centers_.error.unit) * double(highest) *
                                              (rows_.weighted() ? double(shares[r]) : 1.0));
                near[r].clear();
                limits[r] = HUGE_SCORE<T>;
                if (choices_of_all_ && reach_ > 0) continue;
                const double limit =
                    double(best[r / W<T>][r % W<T>]) + reach_ * double(shares[r]) + error;
                // A step up, as rounding to T must not leave out a center.
                if (limit < double(HUGE_SCORE<T>) / 2)
                    limits[r] = T(limit + std::abs(limit) * std::numeric_limits<T>::epsilon());
            }
            for (int j = 0; j < k_; j++)
                for (int h = 0; h < 2; h++) {
                    unsigned mask = bits_at_most(load(&scores[int64_t(j) * P<T> + h * W<T>]),
                                                 load(limits + h * W<T>));
                    for (; mask != 0; mask &= mask - 1)
                        near[h * W<T> + __builtin_ctz(mask)].push_back(j);
                }
            for (int r = 0; r < count; r++)
                choose(t + r, near[r], reader, fresh, measured, own, found);
        }
        return found;
    }

    /// Scores of a block with all centers: |c|^2 - 2 x c + p / w, (k, P).
    void score_all(const PointBlock<T>& block, const std::vector<T>& priced, const T* shares,
                   Aligned<T>& scores) const {
        const bool weighted = rows_.weighted();
        by_eights(0, k_, [&](int first, auto together) {
            V<T> s[together][2];
            score<T, together>(block.lanes(), centers_.d, centers_.eight(first), &priced[first], s);
            for (int j = 0; j < together; j++)
                for (int h = 0; h < 2; h++) {
                    if (weighted) s[j][h] += splat(T(prices_[first + j])) * load(shares + h * W<T>);
                    store(&scores[int64_t(first + j) * P<T> + h * W<T>], s[j][h]);
                }
        });
    }

    /// Takes the label of a point, or keeps it, and adds its choices, by exact costs in float64.
    void choose(int64_t t, std::vector<int32_t>& near, ExactReader<T>& reader, bool fresh,
                bool measured, std::vector<Choice>& own, Choices& found) {
        const int64_t i = t * stride_;
        const double weight = rows_.weight(i);
        int32_t& label = labels_[t];
        found.counts.push_back(0);
        if (!fresh && weight > 0 && std::find(near.begin(), near.end(), label) == near.end())
            near.insert(std::lower_bound(near.begin(), near.end(), label), label);
        if (near.size() == 1 && !measured) {
            if (fresh) label = near[0];
            return;
        }
        own.clear();
        const double share = weight > 0 ? weight : 1;
        int best = 0;
        for (int32_t j : near) {
            own.push_back({j, share * exact_square(rows_, i, reader, centers_, j)});
            if (value(own.back(), weight) < value(own[best], weight)) best = int(own.size()) - 1;
        }
        if (fresh || !(weight > 0)) label = own[best].cluster;
        if (!(weight > 0)) return;
        if (measured) {
            for (const Choice& choice : own)
                if (choice.cluster == label) found.cost += choice.cost;
            found.least += value(own[best], weight);
            return;
        }
        if (own.size() == 1) return;
        found.counts.back() = uint32_t(own.size());
        found.all.insert(found.all.end(), own.begin(), own.end());
    }

    double value(const Choice& choice, double weight) const {
        return choice.cost + (weight > 0 ? prices_[choice.cluster] : 0.0);
    }

    /// Chooses the numbers of places that are used, as the prices demand: all of them in a cluster
    /// with a positive price, the fewest in one with a negative price.
    void balance() {
        std::vector<int64_t> sizes(k_, 0);
        for (int64_t t = 0; t < count_; t++) sizes[labels_[t]] += rows_.weight(t * stride_) > 0;
        excess_[k_] = -n_active_;
        for (int j = 0; j < k_; j++) {
            const double price = prices_[j] - prices_[k_];
            used_[j] = price > 0   ? upper_[j]
                       : price < 0 ? lower_[j]
                                   : std::clamp(sizes[j], lower_[j], upper_[j]);
            excess_[j] = sizes[j] - used_[j];
            excess_[k_] += used_[j];
        }
    }

    /// The node with the most points too many, of those from which a path may be known; or -1.
    int next_source() const {
        int found = -1;
        for (int node = 0; node <= k_; node++)
            if (excess_[node] > 0 && !stuck_[node] && (found < 0 || excess_[node] > excess_[found]))
                found = node;
        return found;
    }

    /// Raises the prices of all clusters that have too many points at once, each by as much as
    /// sends the surplus to the second best clusters, until few points are too many; prices that
    /// are too high fall. A round takes as long as a list, but moves many points: with 100,000
    /// points, 64 features and 1,000 clusters 16 rounds leave a tenth of 26,000 paths.
    void raise_prices() {
        const Units units = Units(count_, rows_.leaf, 1).without_sums();
        std::vector<T> margins(count_);
        std::vector<std::vector<T>> own(k_);
        int64_t last = std::numeric_limits<int64_t>::max();
        constexpr int most_rounds = 64;
        for (int round = 0; round < most_rounds; round++) {
            const std::vector<T> priced = priced_squares();
            pool_.run(units.count,
                      [&](int u, int) { find_margins(units.unit(u), priced, margins.data()); });
            for (std::vector<T>& each : own) each.clear();
            for (int64_t t = 0; t < count_; t++)
                if (rows_.weight(t * stride_) > 0) own[labels_[t]].push_back(margins[t]);
            int64_t left = 0;
            for (int j = 0; j < k_; j++)
                left += std::max<int64_t>(0, int64_t(own[j].size()) - upper_[j]);
            // Paths are faster for the last ones, or where rounds gain little.
            if (k_ == 1 || left <= count_ / 256 || left > last - last / 16) return;
            last = left;
            for (int j = 0; j < k_; j++) {
                const int64_t surplus = int64_t(own[j].size()) - upper_[j];
                const bool raises = surplus > 0;
                // The points that would come at a lower price are about as near as those that would
                // go at a higher one. Half of them, as other prices fall too.
                const bool lowers = surplus < -1 && prices_[j] > 0 && round < 4;
                if (own[j].empty() || !(raises || lowers)) continue;
                const int64_t moving = raises ? surplus : -surplus / 2;
                const int64_t last_one = std::min<int64_t>(moving, int64_t(own[j].size())) - 1;
                const auto rank = own[j].begin() + last_one;
                std::nth_element(own[j].begin(), rank, own[j].end());
                prices_[j] =
                    raises ? prices_[j] + double(*rank) : std::max(0.0, prices_[j] - double(*rank));
            }
        }
    }

    /// Labels of some points at the prices, and by how much the second best cluster is dearer.
    void find_margins(Range range, const std::vector<T>& priced, T* margins) {
        PointBlock<T> block(rows_);
        Aligned<T> scores(rows_.weighted() ? int64_t(k_) * P<T> : 0);
        T shares[P<T>], apart[P<T>];
        for (int64_t t = range.start; t < range.stop; t += P<T>) {
            const int count = read(block, t, range.stop, shares);
            BestScores<T> found;
            if (!rows_.weighted()) {
                found = nearest(block.lanes(), centers_, priced);
            } else {
                score_all(block, priced, shares, scores);
                for (int j = 0; j < k_; j++) {
                    V<T> s[1][2];
                    for (int h = 0; h < 2; h++)
                        s[0][h] = load(&scores[int64_t(j) * P<T> + h * W<T>]);
                    found.update(s, j);
                }
            }
            for (int h = 0; h < 2; h++) store(apart + h * W<T>, found.second[h] - found.best[h]);
            for (int r = 0; r < count; r++) {
                labels_[t + r] = int32_t(found.index[r / W<T>][r % W<T>]);
                margins[t + r] = shares[r] > 0 ? apart[r] / shares[r] : apart[r];
            }
        }
    }

    /// Reads points from `t` on; returns their number. shares: 1 / w, and 0 without weight.
    int read(PointBlock<T>& block, int64_t t, int64_t stop, T* shares) const {
        const int count = int(std::min<int64_t>(P<T>, stop - t));
        if (stride_ == 1) {
            block.read(t, stop);
        } else {
            int64_t numbers[P<T>];
            for (int r = 0; r < count; r++) numbers[r] = (t + r) * stride_;
            block.gather(numbers, count);
        }
        // A price is for one point: for each unit of its weight a heavy point pays less.
        for (int r = 0; r < P<T>; r++) {
            const double weight = rows_.weight(std::min(t + r, stop - 1) * stride_);
            shares[r] = weight > 0 ? T(std::min(1 / weight, 1e30)) : T(0);
        }
        return count;
    }

    /// |c|^2 + p, the same for all points; without the price if points have weights.
    std::vector<T> priced_squares() const {
        std::vector<T> priced(centers_.squares);
        for (int j = 0; j < k_ && !rows_.weighted(); j++) priced[j] += T(prices_[j]);
        return priced;
    }

    /// Moves points along the shortest path from a node with too many; false if no path is known to
    /// be the shortest one. Dijkstra's algorithm, which ends at the first node with room: reduced
    /// costs are not negative, and stay so if prices of the nodes before it rise by what they are
    /// nearer than it.
    bool advance(int source) {
        if (away_.empty()) away_.assign(k_ + 1, FAR), through_.assign(k_ + 1, {-1, -1});
        seen_.clear();
        done_.clear();
        std::vector<Reached>& next = queue_;
        next.clear();
        const auto reach = [&](int node, double distance, int from, int arc) {
            if (!(distance < away_[node])) return;
            if (away_[node] == FAR) seen_.push_back(node);
            away_[node] = distance;
            through_[node] = {from, arc};
            next.push_back({distance, node});
            std::push_heap(next.begin(), next.end(), std::greater<>());
        };
        reach(source, 0, -1, -1);
        double limit = FAR;  // no path through an arc that is not listed is shorter
        int target = -1;
        while (!next.empty() && target < 0) {
            const auto [distance, node] = next.front();
            std::pop_heap(next.begin(), next.end(), std::greater<>());
            next.pop_back();
            if (distance > away_[node]) continue;  // it was reached again by a shorter path
            if (distance > limit && proved_) break;
            done_.push_back(node);
            if (excess_[node] < 0) {
                target = node;
                break;
            }
            const double price = prices_[node];
            if (node == k_) {
                for (int j = 0; j < k_; j++)
                    if (used_[j] > lower_[j])
                        reach(j, distance + std::max(0.0, prices_[j] - price), node, -1);
                continue;
            }
            limit = std::min(limit, distance + std::max(0.0, slack_[node]));
            if (used_[node] < upper_[node])
                reach(k_, distance + std::max(0.0, prices_[k_] - price), node, -1);
            for (int arc : graph_->arcs(node)) {
                const MoveGraph::Move* move = graph_->cheapest(node, arc, labels_);
                if (move == nullptr) continue;
                const int to = graph_->to(arc);
                reach(to, distance + std::max(0.0, move->cost + prices_[to] - price), node, arc);
            }
        }
        if (target >= 0) {
            const double length = away_[target];
            for (int node : done_) {
                const double rise = length - away_[node];
                prices_[node] += rise;
                if (node < k_) slack_[node] -= rise;
            }
            move_along(source, target);
        }
        for (int node : seen_) away_[node] = FAR;
        return target >= 0;
    }

    void move_along(int source, int target) {
        // A path through the ground alone may move many places at once.
        int64_t most = std::min(excess_[source], -excess_[target]);
        for (int node = target; node != source; node = through_[node].from) {
            const auto [from, arc] = through_[node];
            if (arc >= 0)
                most = 1;
            else
                most = std::min(
                    most, from == k_ ? used_[node] - lower_[node] : upper_[from] - used_[from]);
        }
        for (int node = target; node != source; node = through_[node].from) {
            const auto [from, arc] = through_[node];
            if (arc < 0) {
                (from == k_ ? used_[node] : used_[from]) += from == k_ ? -most : most;
                continue;
            }
            const int32_t point = graph_->cheapest(from, arc, labels_)->point;
            labels_[point] = node;
            // Its arcs that are not listed cost as much from here, as the arc it took costs 0.
            slack_[node] = std::min(slack_[node], slack_[from]);
            add_moves(point, [&](int a, int b, MoveGraph::Move move) { graph_->push(a, b, move); });
        }
        excess_[source] -= most, excess_[target] += most;
    }

    typedef std::pair<double, int> Reached;
    struct Through {
        int from, arc;
    };
    static constexpr double FAR = HUGE_SCORE<double>;
    // Up to so many costs every move is listed, which takes about 10 ms.
    static constexpr int64_t SMALL = 1 << 18;
    // Up to so many costs the result is the optimum; above that nearly so, where it would take more
    // than two lists.
    static constexpr int64_t LARGE = 1 << 24;

    ThreadPool& pool_;
    const Rows<T>& rows_;
    const PackedCenters<T>& centers_;
    int k_;
    int64_t stride_, count_, n_active_ = 0;
    int32_t* labels_;
    std::vector<int64_t> lower_, upper_, used_, excess_;  // (k); excess (k + 1)
    std::vector<double> prices_;                          // (k + 1)
    std::vector<double> slack_;  // (k): least reduced cost of an arc that is not listed
    double reach_ = 0;
    // Choices of a point in the first list: with fewer, lists are made more often; with more, each
    // takes longer.
    int64_t per_point_ = 3;
    bool choices_of_all_ = false;
    bool proved_ = true;  // only paths are used of which it is known that none is shorter
    std::vector<Choice> choices_;
    std::vector<int64_t> starts_;
    std::unique_ptr<MoveGraph> graph_;
    std::vector<double> away_;
    std::vector<Through> through_;
    std::vector<int> seen_, done_;
    std::vector<char> stuck_;  // nodes from which no path is known to be the shortest one
    std::vector<Reached> queue_;
};

/// Labels (n) within the bounds, and the prices (k) of the clusters, which are those to begin with.
/// Results: the cost, and its lower bound; both 0 unless `certify`.
template <class T>
void run_bounded_assignment(Workspace<T>& work, Call& call) {
    const PackedCenters<T> centers = work.centers(call);
    const int64_t k = centers.k, n = work.rows.n;
    const auto lower = call.in<int64_t>("lower", "(k)", {k});
    const auto upper = call.in<int64_t>("upper", "(k)", {k});
    double* given = call.out<double>("prices", "(k)", {k});
    int32_t* labels = work.labels(call);
    const bool certify = call.flag("certify");
    Call::require(n < int64_t(1) << 31, "labels", "pass fewer than 2^31 rows");
    std::vector<double> prices(given, given + k);
    const bool cold = std::all_of(prices.begin(), prices.end(), [](double p) { return p == 0; });
    int64_t weighted = 0;
    for (int64_t i = 0; i < n; i++) weighted += work.rows.weight(i) > 0;
    const auto problem = [&](int64_t stride, int32_t* found) {
        return Transport<T>(work.pool, work.rows, centers, lower, upper, weighted, stride, found);
    };
    work.labels_written = true;
    // Without prices, those of every 4^h-th row come first, from few rows to many: each has prices
    // that are nearly right for the next one, and a path of few rows costs as much as one of many.
    if (cold && n * k > 1 << 18 && problem(1, labels).overflow(prices) > 0.01) {
        int64_t stride = 1;
        while (n / (4 * stride) >= 32 * k) stride *= 4;
        std::vector<int32_t> some(n);
        for (; stride > 1; stride /= 4) problem(stride, some.data()).solve(prices);
    }
    problem(1, labels).solve(prices);
    double cost = 0, bound = 0;
    if (certify) problem(1, labels).certify(prices, cost, bound);
    std::copy(prices.begin(), prices.end(), given);
    call.results.push_back(cost);
    call.results.push_back(bound);
}

}  // namespace lloydformer::ISA
