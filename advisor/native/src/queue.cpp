#include "queue.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

namespace advisor {
namespace {

using Seconds = std::int64_t;
using Units = std::int64_t;

constexpr Seconds never = Seconds{1} << 62;
constexpr Seconds not_yet = -never;
constexpr double ln_2 = 0.6931471805599453;

struct Job {
    Seconds submit_s;
    Seconds run_s;
    Seconds walltime_s;
    Units size;
    std::size_t partition;
    std::size_t user;
};

Job job_at(const JobColumns &columns, std::size_t row) noexcept {
    return {columns.submit_s[row], columns.run_s[row], columns.walltime_s[row], columns.units[row],
            static_cast<std::size_t>(columns.partition[row]), static_cast<std::size_t>(columns.user[row])};
}

// Units that are free from each time on, by what is planned; at the end all are.
class Profile {
public:
    explicit Profile(Units units) : steps_{{-never, units}} {}

    Seconds earliest(Units size, Seconds duration_s, Seconds now_s) const noexcept {
        Seconds begin_s = now_s;
        for (auto step = steps_.begin() + last_until(now_s);
             step != steps_.end() && step->time_s < begin_s + duration_s; ++step) {
            if (step->free < size) {
                begin_s = (step + 1)->time_s;
            }
        }
        return begin_s;
    }

    void add(Seconds begin_s, Seconds end_s, Units size) {
        const auto first = step_at(begin_s);
        const auto last = step_at(end_s);
        for (auto step = first; step != last; ++step) {
            steps_[step].free += size;
        }
        merge(last);
        merge(first);
    }

    void forget_before(Seconds now_s) { steps_.erase(steps_.begin(), steps_.begin() + last_until(now_s)); }

private:
    struct Step {
        Seconds time_s;
        Units free;
    };

    std::ptrdiff_t last_until(Seconds time_s) const noexcept {
        const auto after = std::upper_bound(steps_.begin(), steps_.end(), time_s,
                                            [](Seconds time, const Step &step) { return time < step.time_s; });
        return after - steps_.begin() - 1;
    }

    std::size_t step_at(Seconds time_s) {
        const auto step = last_until(time_s);
        const auto place = static_cast<std::size_t>(step);
        if (steps_[place].time_s == time_s) {
            return place;
        }
        steps_.insert(steps_.begin() + step + 1, {time_s, steps_[place].free});
        return place + 1;
    }

    void merge(std::size_t step) {
        if (step != 0 && steps_[step].free == steps_[step - 1].free) {
            steps_.erase(steps_.begin() + static_cast<std::ptrdiff_t>(step));
        }
    }

    std::vector<Step> steps_;
};

// What a user has used and uses, for the fair share.
struct User {
    double usage = 0.0;
    Units units = 0;
    Seconds since_s = 0;
    double factor = 1.0;

    void accrue(Seconds now_s, double half_life_s) noexcept {
        // Times may be negative, and the first is compared to 0.
        const auto past_s = static_cast<double>(std::max(Seconds{0}, now_s - since_s));
        if (half_life_s > 0.0) {
            const double left = std::exp2(-past_s / half_life_s);
            usage = usage * left + static_cast<double>(units) * (half_life_s / ln_2) * (1.0 - left);
        } else {
            usage += static_cast<double>(units) * past_s;
        }
        since_s = now_s;
    }
};

// Of a waiting job; the least comes first.
struct Rank {
    std::int64_t tier;
    std::int64_t priority;
    Seconds submit_s;
    std::size_t job;

    bool operator<(const Rank &other) const noexcept {
        return std::tie(tier, priority, submit_s, job) <
               std::tie(other.tier, other.priority, other.submit_s, other.job);
    }
};

using Timed = std::pair<Seconds, std::size_t>;  // a moment, and the job that it is of

struct Pool {
    std::vector<Rank> waiting;
    std::vector<Timed> running;  // by planned end
    bool has_released = false;
};

// The first job's: when it fits, and what is spare then of its pool and its partition.
struct Reservation {
    Seconds time_s;
    std::array<std::size_t, 2> resources;
    std::array<Units, 2> spare;
};

// One run of the queue, which can be copied in the middle. Resources are the pools, then the partitions.
class Simulation {
public:
    explicit Simulation(const Queue &queue)
        : queue_(&queue),
          free_(queue.cluster.pool_units, queue.cluster.pool_units + queue.cluster.num_pools),
          pools_(queue.cluster.num_pools),
          users_(queue.num_users),
          start_s_(queue.jobs.size, not_yet),
          reserved_s_(queue.jobs.size, never) {
        const auto *units = queue.cluster.partition_units;
        free_.insert(free_.end(), units, units + queue.cluster.num_partitions);
        for (const auto capacity : free_) {
            profiles_.emplace_back(capacity);
        }
    }

    Seconds next_s() const noexcept {
        const auto &jobs = queue_->jobs;
        Seconds next_s = num_submitted_ < jobs.size ? jobs.submit_s[num_submitted_] : never;
        if (probe_waits_) {
            next_s = std::min(next_s, probe_->submit_s);
        }
        if (!ends_.empty()) {
            next_s = std::min(next_s, ends_.front().first);
        }
        return std::min(next_s, next_reserved_s_);
    }

    void step(Seconds now_s) {
        end_jobs(now_s);
        if (queue_->rules.is_ranked() && now_s >= ranked_s_ + queue_->rules.period_s) {
            rank_again(now_s);
        }
        submit_jobs(now_s);
        next_reserved_s_ = never;
        for (auto &pool : pools_) {
            start_jobs(pool, now_s);
        }
    }

    void run() {
        for (Seconds now_s = next_s(); now_s < never; now_s = next_s()) {
            step(now_s);
        }
    }

    // On a copy: the start of one more job, after all that are submitted in the same second.
    Seconds start_of(const Job &probe) {
        probe_ = probe;
        probe_waits_ = true;
        start_s_.push_back(not_yet);
        reserved_s_.push_back(never);
        while (start_s_.back() == not_yet) {
            step(next_s());
        }
        return start_s_.back();
    }

    const std::vector<Seconds> &starts_s() const noexcept { return start_s_; }

private:
    Job job(std::size_t index) const noexcept {
        return index < queue_->jobs.size ? job_at(queue_->jobs, index) : *probe_;
    }

    std::size_t pool_of(const Job &job) const noexcept {
        return static_cast<std::size_t>(queue_->cluster.pool_of[job.partition]);
    }

    std::array<std::size_t, 2> resources(const Job &job) const noexcept {
        return {pool_of(job), pools_.size() + job.partition};
    }

    // Resources to plan with: a partition of all its pool's units never limits more than the pool.
    std::size_t num_planned(const Job &job) const noexcept {
        const auto &cluster = queue_->cluster;
        return cluster.partition_units[job.partition] < cluster.pool_units[pool_of(job)] ? 2 : 1;
    }

    bool fits(const Job &job) const noexcept {
        const auto [pool, partition] = resources(job);
        return free_[pool] >= job.size && free_[partition] >= job.size;
    }

    void submit_jobs(Seconds now_s) {
        while (num_submitted_ < queue_->jobs.size && queue_->jobs.submit_s[num_submitted_] <= now_s) {
            enter(num_submitted_++, now_s);
        }
        if (probe_waits_ && probe_->submit_s <= now_s) {
            enter(queue_->jobs.size, now_s);
            probe_waits_ = false;
        }
    }

    void enter(std::size_t index, Seconds now_s) {
        auto &waiting = pools_[pool_of(job(index))].waiting;
        const Rank rank = rank_of(index, now_s);
        waiting.insert(std::upper_bound(waiting.begin(), waiting.end(), rank), rank);
    }

    // --- Priority ------------------------------------------------------------------------------------

    Rank rank_of(std::size_t index, Seconds now_s) const noexcept {
        const Job one = job(index);
        const auto priority = queue_->rules.is_ranked() ? priority_of(one, now_s) : 0;
        return {-queue_->cluster.tier[one.partition], -priority, one.submit_s, index};
    }

    std::int64_t priority_of(const Job &job, Seconds now_s) const noexcept {
        const auto &rules = queue_->rules;
        const double age = std::min(static_cast<double>(now_s - job.submit_s) / rules.max_age_s, 1.0);
        const double share = static_cast<double>(job.size) /
                             static_cast<double>(queue_->cluster.pool_units[pool_of(job)]);
        return static_cast<std::int64_t>(
            rules.age_weight * age + rules.size_weight * (rules.favors_small ? 1.0 - share : share) +
            rules.fair_share_weight * users_[job.user].factor +
            rules.partition_weight * queue_->cluster.job_factor[job.partition]);
    }

    void rank_again(Seconds now_s) {
        ranked_s_ = now_s;
        if (queue_->rules.fair_share_weight != 0.0) {
            share_fairly(now_s);
        }
        for (auto &pool : pools_) {
            for (auto &rank : pool.waiting) {
                rank = rank_of(rank.job, now_s);
            }
            std::sort(pool.waiting.begin(), pool.waiting.end());
        }
    }

    void share_fairly(Seconds now_s) {
        std::vector<double> usages;
        for (auto &user : users_) {
            user.accrue(now_s, queue_->rules.half_life_s);
            usages.push_back(user.usage);
        }
        std::sort(usages.begin(), usages.end());
        double total = 0.0;
        for (const double usage : usages) {
            total += usage;
        }
        const auto num_users = static_cast<double>(usages.size());
        for (auto &user : users_) {
            if (queue_->rules.is_fair_tree) {
                const auto less = std::lower_bound(usages.begin(), usages.end(), user.usage) - usages.begin();
                user.factor = (num_users - static_cast<double>(less)) / num_users;
            } else {
                user.factor = total > 0.0 ? std::exp2(-user.usage * num_users / total) : 1.0;
            }
        }
    }

    // --- Starting and ending -------------------------------------------------------------------------

    void take(const Job &job, Units size, Seconds now_s) {
        for (const auto resource : resources(job)) {
            free_[resource] -= size;
        }
        if (queue_->rules.fair_share_weight != 0.0) {
            users_[job.user].accrue(now_s, queue_->rules.half_life_s);
            users_[job.user].units += size;
        }
    }

    void start(std::size_t index, Seconds now_s) {
        const Job one = job(index);
        start_s_[index] = now_s;
        take(one, one.size, now_s);
        ends_.emplace_back(now_s + one.run_s, index);
        std::push_heap(ends_.begin(), ends_.end(), std::greater<>());
        if (queue_->backfill == Backfill::easy) {
            auto &running = pools_[pool_of(one)].running;
            const Timed planned{now_s + one.walltime_s, index};
            running.insert(std::upper_bound(running.begin(), running.end(), planned), planned);
        }
    }

    void end_jobs(Seconds now_s) {
        while (!ends_.empty() && ends_.front().first <= now_s) {
            const std::size_t index = ends_.front().second;
            std::pop_heap(ends_.begin(), ends_.end(), std::greater<>());
            ends_.pop_back();
            end(index, now_s);
        }
    }

    void end(std::size_t index, Seconds now_s) {
        const Job one = job(index);
        take(one, -one.size, now_s);
        auto &pool = pools_[pool_of(one)];
        const Timed planned{start_s_[index] + one.walltime_s, index};
        if (queue_->backfill == Backfill::easy) {
            pool.running.erase(std::lower_bound(pool.running.begin(), pool.running.end(), planned));
        } else if (queue_->backfill == Backfill::conservative && planned.first > now_s) {
            pool.has_released = true;
            plan(one, now_s, planned.first, one.size);
        }
    }

    void start_jobs(Pool &pool, Seconds now_s) {
        switch (queue_->backfill) {
            case Backfill::none: start_in_order(pool, now_s); break;
            case Backfill::easy: start_easy(pool, now_s); break;
            case Backfill::conservative: start_due(pool, now_s); break;
        }
        const auto has_started = [this](const Rank &rank) { return start_s_[rank.job] != not_yet; };
        pool.waiting.erase(std::remove_if(pool.waiting.begin(), pool.waiting.end(), has_started),
                           pool.waiting.end());
    }

    void start_in_order(const Pool &pool, Seconds now_s) {
        std::vector<char> is_stopped(queue_->cluster.num_partitions, 0);
        for (const auto &rank : pool.waiting) {
            const Job one = job(rank.job);
            if (is_stopped[one.partition]) {
                continue;
            }
            if (fits(one)) {
                start(rank.job, now_s);
            } else if (free_[pool_of(one)] < one.size) {
                break;
            } else {
                is_stopped[one.partition] = 1;
            }
        }
    }

    void start_easy(Pool &pool, Seconds now_s) {
        std::optional<Reservation> reserved;
        for (const auto &rank : pool.waiting) {
            const Job one = job(rank.job);
            if (reserved && free_[pool_of(one)] == 0) {
                break;
            }
            if (!fits(one)) {
                if (!reserved) {
                    reserved = reservation(pool, one);
                }
            } else if (!reserved || delays_not(one, now_s, *reserved)) {
                start(rank.job, now_s);
            }
        }
    }

    Reservation reservation(const Pool &pool, const Job &first) const {
        Reservation reserved{never, resources(first), {}};
        for (std::size_t i = 0; i < 2; ++i) {
            reserved.spare[i] = free_[reserved.resources[i]] - first.size;
        }
        for (const auto &[planned_s, index] : pool.running) {
            if (planned_s > reserved.time_s) {
                break;
            }
            const Job other = job(index);
            reserved.spare[0] += other.size;
            reserved.spare[1] += other.partition == first.partition ? other.size : 0;
            if (reserved.spare[0] >= 0 && reserved.spare[1] >= 0) {
                reserved.time_s = std::min(reserved.time_s, planned_s);
            }
        }
        return reserved;
    }

    bool delays_not(const Job &job, Seconds now_s, Reservation &reserved) const noexcept {
        if (now_s + job.walltime_s <= reserved.time_s) {
            return true;
        }
        const bool is_alike = resources(job)[1] == reserved.resources[1];
        if (reserved.spare[0] < job.size || (is_alike && reserved.spare[1] < job.size)) {
            return false;
        }
        reserved.spare[0] -= job.size;
        reserved.spare[1] -= is_alike ? job.size : 0;
        return true;
    }

    void start_due(Pool &pool, Seconds now_s) {
        for (auto &profile : profiles_) {
            profile.forget_before(now_s);
        }
        for (const auto &rank : pool.waiting) {
            reserve(rank.job, now_s, pool.has_released);
        }
        pool.has_released = false;
        for (const auto &rank : pool.waiting) {
            if (reserved_s_[rank.job] == now_s) {
                start(rank.job, now_s);
            } else {
                next_reserved_s_ = std::min(next_reserved_s_, reserved_s_[rank.job]);
            }
        }
    }

    void reserve(std::size_t index, Seconds now_s, bool has_released) {
        const Seconds before_s = reserved_s_[index];
        if (before_s != never && (before_s == now_s || !has_released)) {
            return;
        }
        const Job one = job(index);
        if (before_s != never) {
            plan(one, before_s, before_s + one.walltime_s, one.size);
        }
        const Seconds begin_s = earliest(one, now_s);
        plan(one, begin_s, begin_s + one.walltime_s, -one.size);
        reserved_s_[index] = begin_s;
    }

    void plan(const Job &job, Seconds begin_s, Seconds end_s, Units size) {
        for (std::size_t i = 0; i < num_planned(job); ++i) {
            profiles_[resources(job)[i]].add(begin_s, end_s, size);
        }
    }

    Seconds earliest(const Job &job, Seconds now_s) const noexcept {
        Seconds begin_s = now_s;
        Seconds agreed_s = -never;
        while (agreed_s != begin_s) {
            agreed_s = begin_s;
            for (std::size_t i = 0; i < num_planned(job); ++i) {
                begin_s = profiles_[resources(job)[i]].earliest(job.size, job.walltime_s, begin_s);
            }
        }
        return begin_s;
    }

    const Queue *queue_;
    std::vector<Units> free_;
    std::vector<Profile> profiles_;
    std::vector<Pool> pools_;
    std::vector<User> users_;
    std::vector<Seconds> start_s_;
    std::vector<Seconds> reserved_s_;
    std::vector<Timed> ends_;
    std::optional<Job> probe_;
    bool probe_waits_ = false;
    std::size_t num_submitted_ = 0;
    Seconds ranked_s_ = -never;
    Seconds next_reserved_s_ = never;
};

}  // namespace

void simulate_queue(const Queue &queue, std::int64_t *start_s, std::int64_t *probe_start_s) {
    Simulation simulation(queue);
    for (std::size_t k = 0; k < queue.probes.size; ++k) {
        const Job probe = job_at(queue.probes, k);
        for (Seconds now_s = simulation.next_s(); now_s < probe.submit_s; now_s = simulation.next_s()) {
            simulation.step(now_s);
        }
        probe_start_s[k] = Simulation(simulation).start_of(probe);
    }
    simulation.run();
    std::copy(simulation.starts_s().begin(), simulation.starts_s().end(), start_s);
}

}  // namespace advisor
