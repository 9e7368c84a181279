// Runs the kernels of one instruction set without Python, for sanitizers and instruction counts.
//
// `driver sweep N,.. D,.. K,..` checks every kernel with 1 and 3 threads, with and without bounds.
// `driver KERNEL N D K` runs one kernel on float32 in one thread and prints a checksum.
//
// driver.py compiles it with the flags of an instruction set and -I .../native/kernels.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <sstream>
#include <string>

#include "generated.hpp"
#include "kernels.cpp"

namespace {

using namespace lloydformer;
using lloydformer::ISA::kernels;

/// A session over a generated problem, with the arrays that kernels write.
template <class T>
class Run {
  public:
    Run(const Generated<T>& given, const Kind& kind, int n_threads, bool bounded)
        : given_(given),
          n_(given.n),
          k_(given.k),
          d_(given.d),
          labels(n_, -1),
          previous(n_, -1),
          trimmed(n_),
          distances(n_),
          sums(k_ * d_),
          masses(k_),
          session_(kernels.session(
              Points{given.points.data(), n_, given.d, sizeof(T) == 4, given.origin.data(),
                     kind.scaled ? given.shift.data() : nullptr,
                     kind.scaled ? given.scale.data() : nullptr,
                     kind.weights ? given.weights.data() : nullptr, kind.directions, 0, false,
                     LEAF},
              n_threads, bounded)) {}

    int64_t nearest(const std::vector<T>& centers, bool fresh) {
        Call call = with_state();
        call.set("centers", const_cast<T*>(centers.data()), {k_, d_});
        call.set("fresh", int64_t(fresh));
        set_sums(call);
        return changes("nearest", call);
    }

    void measure() {
        std::vector<double> spread(k_);
        Call call = with_centers();
        set_state(call);
        set(call, "distances", distances);
        set(call, "spread", spread);
        set(call, "masses", masses);
        session_->run("measure", call);
        found.add(spread), found.add(masses), found.add(labels), found.add(distances);
    }

    void shares() {
        std::vector<double> energy(1);
        Call call = with_centers();
        set_state(call);
        set_sums(call);
        call.set("inverse_temperature", 0.5);
        set(call, "energy", energy);
        session_->run("shares", call);
        found.add(energy), add_sums();
    }

    /// Both kernels of a symmetric layer, for one to four heads.
    void symmetric() {
        std::vector<double> near(2), costs(k_);
        Call call = with_centers();
        set(call, "sums", near);
        set(call, "masses", masses);
        set(call, "costs", costs);
        session_->run("two_nearest", call);
        found.add(near), found.add(masses), found.add(costs);
        for (int64_t h = 1; h <= 4; h++) attention(h);
    }

    /// Trimming: the digits of each cluster's radius, then the sums within it.
    void trim() {
        measure();
        std::vector<int64_t> prefix(k_);
        std::vector<double> counts(k_ * 256);
        for (int shift = 8 * int(sizeof(T)) - 8; shift >= 0; shift -= 8) {
            Call call = with_distances();
            set(call, "prefix", prefix);
            call.set("shift", int64_t(shift));
            call.set("masses", counts.data(), {k_, 256});
            session_->run("histogram", call);
            for (int64_t j = 0; j < k_; j++) prefix[j] = (prefix[j] << 8) + middle(&counts[j << 8]);
            found.add(counts);
        }
        std::vector<T> radius(k_);
        for (int64_t j = 0; j < k_; j++) std::memcpy(&radius[j], &prefix[j], sizeof(T));
        Call call = with_distances();
        set(call, "radius", radius);
        set(call, "trimmed", trimmed);
        found.add(trimmed);
        add_step("within", call);
    }

    /// Robust k-means: best scores, two rounds of thresholds, and both ways to weigh.
    void robust() {
        measure();
        std::vector<double> best(k_), at_best(k_), scores(k_), radius(k_, 1e300),
            threshold(k_, -1e300);
        Call first = with_scores();
        set(first, "best", best);
        set(first, "masses", at_best);
        session_->run("best", first);
        for (int round = 0; round < 2; round++) {
            Call call = with_scores();
            set(call, "threshold", threshold);
            set(call, "masses", masses);
            set(call, "scores", scores);
            session_->run("above", call);
            for (int64_t j = 0; j < k_; j++)
                threshold[j] = masses[j] > 0 ? (scores[j] - 1) / masses[j] : 0;
        }
        for (bool within : {false, true}) {
            Call call = with_scores();
            set(call, "level", within ? best : threshold);
            if (within) set(call, "radius", radius);
            add_step("weighted", call);
        }
    }

    /// k-means++: each center in turn as a seed, all of them as candidates.
    void seeding() {
        std::vector<double> leaves((n_ + LEAF - 1) / LEAF), gains(k_);
        for (int64_t j = 0; j < k_; j++) {
            Call add = with_distances();
            add.set("seed", const_cast<T*>(&given_.centers[j * d_]), {d_});
            add.set("first", int64_t(j == 0));
            set(add, "masses", leaves);
            session_->run("closer", add);
            Call try_all = with_distances();
            try_all.set("candidates", const_cast<T*>(given_.centers.data()), {k_, d_});
            set(try_all, "gains", gains);
            session_->run("gains", try_all);
        }
        found.add(distances), found.add(leaves), found.add(gains);
    }

    void moments() {
        std::vector<double> out(3 + d_);
        Call call;
        set(call, "out", out);
        session_->run("moments", call);
        found.add(out);
    }

    void add_sums() { found.add(sums), found.add(masses), found.add(labels); }

  private:
    static constexpr int64_t LEAF = 1000;  // not a multiple of a block of points
    const Generated<T>& given_;
    int64_t n_, k_, d_;

  public:
    std::vector<int32_t> labels, previous;
    std::vector<uint8_t> trimmed;
    std::vector<T> distances;
    std::vector<double> sums, masses;
    Checksum found;

  private:
    template <class U>
    static void set(Call& call, const char* name, std::vector<U>& values) {
        call.set(name, values.data(), {int64_t(values.size())});
    }

    void set_state(Call& call) { set(call, "labels", labels), set(call, "previous", previous); }

    void set_sums(Call& call) {
        call.set("sums", sums.data(), {k_, d_});
        set(call, "masses", masses);
    }

    Call with_state() {
        Call call;
        set_state(call);
        return call;
    }

    Call with_centers() {
        Call call;
        call.set("centers", const_cast<T*>(given_.centers.data()), {k_, d_});
        return call;
    }

    Call with_distances() {
        Call call;
        set(call, "labels", labels);
        set(call, "distances", distances);
        return call;
    }

    Call with_scores() {
        Call call = with_distances();
        call.set("inverse_temperature", 0.01);
        return call;
    }

    int64_t changes(const char* kernel, Call& call) {
        session_->run(kernel, call);
        return std::get<int64_t>(call.results.at(0));
    }

    void add_step(const char* kernel, Call& call) {
        std::vector<double> objective(1);
        set(call, "previous", previous);
        set(call, "objective", objective);
        set_sums(call);
        found.add(changes(kernel, call));
        found.add(objective), add_sums();
    }

    void attention(int64_t h) {
        std::vector<double> sharpness{0.5, 2, 8, 30}, ones(k_ * h, 1.0), some(k_ * h * h, 0.3);
        std::vector<double> level(k_ * h), mass(k_ * h), sum(k_ * h * d_);
        Call call = with_centers();
        call.set("unit", 1.5);
        call.set("sharpness", sharpness.data(), {h});
        for (const char* name : {"distance", "nearest", "second"})
            call.set(name, some.data(), {k_, h});
        call.set("log_belonging", ones.data(), {k_, h});
        call.set("belonging", some.data(), {k_, h, h});
        call.set("level", level.data(), {k_, h});
        call.set("masses", mass.data(), {k_, h});
        call.set("sums", sum.data(), {k_, h, d_});
        session_->run("attention", call);
        found.add(level), found.add(mass), found.add(sum);
    }

    static int middle(const double* counts) {
        double all = 0, reached = 0;
        for (int digit = 0; digit < 256; digit++) all += counts[digit];
        for (int digit = 0; digit < 256; digit++)
            if ((reached += counts[digit]) >= all / 2) return digit;
        return 255;
    }

    std::unique_ptr<Session> session_;
};

/// Moves the centers to the means; one without mass stays.
template <class T>
void move(const Run<T>& run, std::vector<T>& centers, int d) {
    for (size_t i = 0; i < centers.size(); i++)
        if (run.masses[i / d] > 0) centers[i] = T(run.sums[i] / run.masses[i / d]);
}

/// The number of labels that do not name the nearest center in float64, by differences.
template <class T>
int64_t farther(const Generated<T>& given, const Kind& kind, const std::vector<T>& centers,
                const std::vector<int32_t>& labels) {
    int64_t wrong = 0;
    for (int64_t i = 0; i < given.n; i++) {
        double least = 1e300, own = 0;
        for (int j = 0; j < given.k; j++) {
            double away = 0;
            for (int f = 0; f < given.d; f++) {
                const double apart =
                    double(given.seen(i, f, kind)) - double(centers[int64_t(j) * given.d + f]);
                away += apart * apart;
            }
            least = std::min(least, away);
            if (j == labels[i]) own = away;
        }
        wrong += own > least * (1 + 1e-13);
    }
    return wrong;
}

/// A batch of three problems, from given centers (some clusters may be empty) or drawn ones.
template <class T>
void solve_batch(const Generated<T>& given, const Kind& kind, int n_threads, bool drawn,
                 Checksum& found) {
    const int b = 3, n = int(given.n / b), trials = 3;
    if (n < given.k) return;
    std::vector<double> centers, inertia(b), draws(int64_t(b) * given.k * trials);
    std::vector<int32_t> labels(b * n), n_iter(b);
    for (int p = 0; p < b; p++)
        for (double c : given.centers) centers.push_back(c + double(given.origin[0]));
    for (size_t i = 0; i < draws.size(); i++) draws[i] = double(i * 2654435761u % 1000) / 1000;
    kernels.solve(Batch{given.points.data(), b, n, given.d, given.k, sizeof(T) == 4,
                        kind.weights ? given.weights.data() : nullptr,
                        drawn ? draws.data() : nullptr, trials, 1e-4, 5, kind.directions,
                        centers.data(), labels.data(), inertia.data(), n_iter.data()},
                  n_threads);
    found.add(centers), found.add(labels), found.add(inertia), found.add(n_iter);
}

template <class T>
uint64_t every_kernel(const Generated<T>& given, const Kind& kind, int n_threads) {
    Run<T> run(given, kind, n_threads, true);
    run.moments(), run.seeding(), run.shares(), run.symmetric();
    run.trim(), run.robust(), run.measure();
    for (bool drawn : {false, true}) solve_batch(given, kind, n_threads, drawn, run.found);
    return run.found.value();
}

void complain(const char* what, const std::string& where) {
    std::printf("%s: %s\n", where.c_str(), what);
    std::exit(1);
}

/// Lloyd's iterations with bounds, without, and in three threads must give the same bits.
template <class T>
void iterate(const Generated<T>& given, const Kind& kind, const std::string& where,
             Checksum& first) {
    Run<T> all(given, kind, 1, false), bounded(given, kind, 1, true), threads(given, kind, 3, true);
    std::vector<T> centers = given.centers;
    for (int step = 0; step < 6; step++) {
        all.nearest(centers, step == 0), bounded.nearest(centers, step == 0),
            threads.nearest(centers, step == 0);
        if (all.labels != bounded.labels || all.sums != bounded.sums)
            complain("bounds change a label or a sum", where);
        if (threads.sums != bounded.sums || threads.labels != bounded.labels)
            complain("threads change bits", where);
        if (kind.plain() && farther(given, kind, centers, all.labels) > 0)
            complain("not the nearest center", where);
        if (step == 0 && kind.plain()) first.add(all.labels);
        move(all, centers, given.d);
    }
}

template <class T>
void check(int64_t n, int d, int k, int number, Checksum& first) {
    const Kind kind(number);
    const Generated<T> given(n, d, k, kind);
    std::ostringstream where;
    where << "n " << n << " d " << d << " k " << k << " kind " << number;
    iterate(given, kind, where.str(), first);
    if (every_kernel(given, kind, 1) != every_kernel(given, kind, 3))
        complain("threads change bits of a kernel", where.str());
}

std::vector<int> list(const char* words) {
    std::vector<int> numbers;
    std::istringstream stream(words);
    for (std::string word; std::getline(stream, word, ',');) numbers.push_back(std::stoi(word));
    return numbers;
}

/// All sizes; the kinds of problems alternate from size to size.
int sweep(const std::vector<int>& ns, const std::vector<int>& ds, const std::vector<int>& ks) {
    Checksum first;
    int number = 0, tried = 0;
    for (int n : ns)
        for (int d : ds)
            for (int k : ks)
                for (int turn = 0; turn < 2; turn++, tried++) {
                    number = (number + 5) % Kind::count;
                    Kind(number).single ? check<float>(n, d, k, number, first)
                                        : check<double>(n, d, k, number, first);
                }
    std::printf("%d problems, labels %016llx\n", tried,
                static_cast<unsigned long long>(first.value()));
    return 0;
}

}  // namespace

/// The function that callgrind counts.
extern "C" __attribute__((noinline)) void counted(const std::function<void()>& work) { work(); }

int one_kernel(const std::string& what, const Generated<float>& given) {
    const Kind plain(0);
    Run<float> run(given, plain, 1, what == "bounded");
    std::vector<float> centers = given.centers;
    for (int step = 0; step < 10; step++)
        run.nearest(centers, step == 0), move(run, centers, given.d);
    const auto iteration = [&] { run.nearest(centers, false), run.add_sums(); };
    const std::map<std::string, std::function<void()>> all{
        {"nearest", iteration},
        {"bounded", iteration},
        {"measure", [&] { run.measure(); }},
        {"shares", [&] { run.shares(); }},
        {"symmetric", [&] { run.symmetric(); }},
        {"trimmed", [&] { run.trim(); }},
        {"robust", [&] { run.robust(); }},
        {"seeding", [&] { run.seeding(); }},
        {"moments", [&] { run.moments(); }},
        {"batch", [&] { solve_batch(given, plain, 1, true, run.found); }},
    };
    if (all.count(what) == 0) return std::printf("driver: no kernel %s\n", what.c_str()), 2;
    run.found.closed = true;
    counted(all.at(what));
    run.found.closed = false;
    all.at(what)();
    std::printf("%016llx\n", static_cast<unsigned long long>(run.found.value()));
    return 0;
}

int main(int argc, char** argv) {
    if (argc != 5) return std::puts("driver sweep|KERNEL N D K"), 2;
    const std::string what = argv[1];
    if (what == "sweep") return sweep(list(argv[2]), list(argv[3]), list(argv[4]));
    return one_kernel(what, Generated<float>(std::atoi(argv[2]), std::atoi(argv[3]),
                                             std::atoi(argv[4]), Kind(0)));
}
