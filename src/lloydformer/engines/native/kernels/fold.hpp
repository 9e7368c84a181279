// Folds whose summary is a list of numbers that are added up.
//
// Numbers are float64, added in row order within a leaf and along the tree of tree.hpp between
// leaves, so the bits do not depend on the number of threads.
#pragma once

#include "rows.hpp"
#include "tree.hpp"

namespace lloydformer::ISA {

typedef std::vector<double> Numbers;

/// Sums in float64.
struct Sums {
    Numbers numbers;

    void merge(Sums& right) {
        for (size_t i = 0; i < numbers.size(); i++)
            numbers[i] += right.numbers[i], right.numbers[i] = 0;
    }
};

/// Adds up `size` numbers over all rows, dense or sparse. make(unit) is called once for each unit
/// of work and returns work(numbers, leaf), which adds the rows of a leaf. `work` owns its buffers,
/// as units run in different threads.
template <class Rows, class Make>
Numbers fold(ThreadPool& pool, const Rows& rows, int64_t size, Make make) {
    Tree<Sums> tree(Units(rows.n, rows.leaf, size), pool.size(), Sums{Numbers(size)});
    return std::move(tree.run(pool,
                              [&](Range unit) {
                                  return [work = make(unit)](Sums& sums, Range leaf) mutable {
                                      work(sums.numbers, leaf);
                                  };
                              })
                         .numbers);
}

/// Adds w x to the sums (k, d), and w to the masses (k) behind them.
template <class T>
inline void add(Numbers& sums, int k, const T* row, int d, int label, double weight) {
    double* own = &sums[int64_t(label) * d];
    for (int f = 0; f < d; f++) own[f] += weight * row[f];
    sums[int64_t(k) * d + label] += weight;
}

}  // namespace lloydformer::ISA
