// A fold: each segment has a summary of numbers, and they are added up in the segments' order.
#pragma once

#include <vector>

#include "team.hpp"

namespace lloydformer {

typedef std::vector<double> Numbers;

/// work(numbers, start, stop) for every segment; `size` numbers, which begin as zeros.
template <class Work>
Numbers fold(Team& team, int64_t rows, int64_t size, Work work) {
    const Segments segments(rows, size);
    std::vector<Numbers> parts(segments.count, Numbers(size));
    team.run(segments.count,
             [&](int s) { work(parts[s], segments.start(s), segments.start(s + 1)); });
    for (int s = 1; s < segments.count; s++)
        for (int64_t i = 0; i < size; i++) parts[0][i] += parts[s][i];
    return parts[0];
}

}  // namespace lloydformer
