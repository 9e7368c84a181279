// The binary tree along which summaries of rows are merged.
//
// Leaf i holds the rows [i * leaf, (i + 1) * leaf). A node of level h covers the leaves
// [j * 2^h, (j + 1) * 2^h): its left child merged with its right child, or the left child alone
// where no rows are left for the right one. The result depends on the leaves only. It is the same
// for any number of threads, and 2^h leaves that begin at a multiple of 2^h give a node of the
// whole tree when they are folded alone.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "simd.hpp"
#include "thread_pool.hpp"

namespace lloydformer::ISA {

struct Range {
    int64_t start, stop;  // rows
};

/// Work for threads: aligned subtrees of the same number of leaves. They are nodes of the tree, so
/// their size changes no bit.
struct Units {
    int64_t rows, leaf;
    int count = 1, height = 0;  // a unit has 2^height leaves

    /// `size`: numbers in a summary. It limits the number of units, each of which keeps a summary.
    /// Without rows there is one unit, which is empty.
    Units(int64_t rows, int64_t leaf, int64_t size)
        : rows(rows), leaf(std::max<int64_t>(1, std::min(leaf, rows))) {
        // 64 units keep a few threads busy to the end, though units differ in work; summaries of
        // all units take at most 16 MiB together.
        constexpr int64_t most_units = 64, most_numbers = 1 << 21;
        const int64_t most = std::max<int64_t>(1, std::min(most_units, most_numbers / (size + 1)));
        while (number() > most) height++;
        count = int(number());
    }

    /// Ranges for work that adds nothing up, so that it needs no leaves: these units, or more of
    /// them where they are so few that threads would wait for each other.
    Units without_sums() const {
        constexpr int enough = 8;
        // A summary of so many numbers makes 16 units at most, of 1024 rows or more, so that
        // handing them out costs little.
        constexpr int64_t fewest_rows = 1024, sixteen = (1 << 17) - 1;
        return count < enough ? Units(rows, fewest_rows, sixteen) : *this;
    }

    Range unit(int u) const { return {u * length(), std::min(rows, (u + 1) * length())}; }

  private:
    int64_t length() const { return leaf << height; }
    int64_t number() const { return std::max<int64_t>(1, (rows + length() - 1) / length()); }
};

/// Merges summaries along the tree, and keeps its buffers from one run to the next.
///
/// `Summary` has merge(Summary& right), which merges the summary of the rows that follow, and
/// leaves `right` empty.
template <class Summary>
class Tree {
  public:
    Tree(const Units& units, int n_threads, const Summary& empty)
        : units_(units),
          parts_(units.count, empty),
          stacks_(n_threads),
          empty_(units.height > 0 ? 1 : 0, empty) {}

    /// make(unit) is called once for each unit and returns work(summary, leaf), which adds the rows
    /// of a leaf to an empty summary. Returns the summary of all rows; the caller must leave it
    /// empty before the next run.
    template <class Make>
    Summary& run(ThreadPool& pool, Make make) {
        pool.run(units_.count, [&](int u, int thread) {
            std::vector<Summary>& stack = stacks_[thread];
            if (units_.height > 0 && stack.empty()) stack.assign(units_.height, empty_[0]);
            fold_unit(units_.unit(u), parts_[u], stack, make(units_.unit(u)));
        });
        for (int apart = 1; apart < units_.count; apart *= 2)
            for (int u = 0; u + apart < units_.count; u += 2 * apart)
                parts_[u].merge(parts_[u + apart]);
        return parts_[0];
    }

    const Units& units() const { return units_; }

  private:
    /// A binary counter of leaves: each of its ones is a complete subtree on the stack.
    template <class Work>
    void fold_unit(Range unit, Summary& bottom, std::vector<Summary>& above, Work work) {
        const auto at = [&](int place) -> Summary& { return place ? above[place - 1] : bottom; };
        int top = -1;
        for (int64_t start = unit.start, leaves = 0; start < unit.stop; start += units_.leaf) {
            work(at(++top), Range{start, std::min(unit.stop, start + units_.leaf)});
            for (int64_t ones = leaves++; ones & 1; ones >>= 1, top--) at(top - 1).merge(at(top));
        }
        for (; top > 0; top--) at(top - 1).merge(at(top));
    }

    Units units_;
    std::vector<Summary> parts_;                // by unit
    std::vector<std::vector<Summary>> stacks_;  // by thread
    std::vector<Summary> empty_;                // to copy
};

}  // namespace lloydformer::ISA
