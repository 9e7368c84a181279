// Threads that share the segments of a fold.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace lloydformer {

/// A few threads that wait for work. The caller works, too; a team of one has no threads.
class Team {
  public:
    explicit Team(int size) {
        for (int t = 1; t < size; t++) threads_.emplace_back([this] { serve(); });
    }

    ~Team() {
        {
            std::lock_guard<std::mutex> hold(lock_);
            ended_ = true;
        }
        wake_.notify_all();
        for (std::thread& thread : threads_) thread.join();
    }

    Team(const Team&) = delete;
    Team& operator=(const Team&) = delete;

    /// work(0), ..., work(count - 1), each once, in whatever order; returns when all are done.
    void run(int count, const std::function<void(int)>& work) {
        if (threads_.empty() || count == 1) {
            for (int i = 0; i < count; i++) work(i);
            return;
        }
        {
            std::lock_guard<std::mutex> hold(lock_);
            work_ = &work;
            count_ = count;
            next_ = 0;
            busy_ = static_cast<int>(threads_.size());
            round_++;
        }
        wake_.notify_all();
        take(work, count);
        std::unique_lock<std::mutex> hold(lock_);
        done_.wait(hold, [this] { return busy_ == 0; });
    }

  private:
    void take(const std::function<void(int)>& work, int count) {
        for (int i = next_++; i < count; i = next_++) work(i);
    }

    void serve() {
        uint64_t seen = 0;
        std::unique_lock<std::mutex> hold(lock_);
        while (true) {
            wake_.wait(hold, [&] { return ended_ || round_ != seen; });
            if (ended_) return;
            seen = round_;
            const std::function<void(int)>& work = *work_;
            const int count = count_;
            hold.unlock();
            take(work, count);
            hold.lock();
            if (--busy_ == 0) done_.notify_one();
        }
    }

    std::vector<std::thread> threads_;
    std::mutex lock_;
    std::condition_variable wake_, done_;
    const std::function<void(int)>* work_ = nullptr;
    std::atomic<int> next_{0};
    int count_ = 0, busy_ = 0;
    uint64_t round_ = 0;
    bool ended_ = false;
};

/// Rows [start(s), start(s + 1)) belong to segment s. How many there are does not depend on the
/// number of threads, and partial sums are merged in their order: every team gives the same bits.
struct Segments {
    int64_t rows;
    int count;

    /// `kept`: numbers that each segment keeps until they are merged.
    Segments(int64_t n, int64_t kept) : rows(n), count(1) {
        constexpr int64_t fewest_rows = 2048, most_numbers = 1 << 21;
        const int64_t by_rows = n / fewest_rows, by_memory = most_numbers / (kept + 1);
        count = static_cast<int>(std::max<int64_t>(1, std::min<int64_t>({64, by_rows, by_memory})));
    }

    int64_t start(int s) const { return s == count ? rows : rows * s / count / 32 * 32; }
};

}  // namespace lloydformer
