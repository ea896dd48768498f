// A cluster's queue simulated; ../reference.py says what happens, in the same order. Knows no Python.
#pragma once

#include <cstddef>
#include <cstdint>

namespace advisor {

// Columns of `size` jobs, owned by the caller, checked by Queue of ../arrays.py.
struct JobColumns {
    std::size_t size;
    const std::int64_t *submit_s;
    const std::int64_t *run_s;
    const std::int64_t *walltime_s;
    const std::int64_t *units;
    const std::int64_t *partition;
    const std::int64_t *user;
};

struct ClusterColumns {
    std::size_t num_partitions;
    std::size_t num_pools;
    const std::int64_t *partition_units;
    const std::int64_t *pool_of;
    const std::int64_t *tier;
    const double *job_factor;
    const std::int64_t *pool_units;
};

struct PriorityRules {
    double age_weight;
    double size_weight;
    double fair_share_weight;
    double partition_weight;
    double max_age_s;
    double half_life_s;
    std::int64_t period_s;
    bool favors_small;
    bool is_fair_tree;

    bool is_ranked() const noexcept {
        return age_weight != 0.0 || size_weight != 0.0 || fair_share_weight != 0.0 ||
               partition_weight != 0.0;
    }
};

enum class Backfill { none, easy, conservative };

struct Queue {
    JobColumns jobs;
    JobColumns probes;  // in order of submission
    ClusterColumns cluster;
    PriorityRules rules;
    Backfill backfill;
    std::size_t num_users;
};

// Writes the start of each job, and of each probe if it alone is submitted beside the jobs.
void simulate_queue(const Queue &queue, std::int64_t *start_s, std::int64_t *probe_start_s);

}  // namespace advisor
