// The simulation of a queue for Python: reads the columns of Queue (../arrays.py), which has checked them.
#include "register_queue.hpp"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "arrays.hpp"
#include "queue.hpp"

namespace nb = nanobind;

namespace {

using Column = advisor::Array<std::int64_t>;
using Starts = nb::ndarray<nb::numpy, std::int64_t, nb::ndim<1>>;

// Holds the arrays for as long as the core reads them.
class JobHolder {
public:
    explicit JobHolder(nb::handle jobs)
        : submit_s_(advisor::read<std::int64_t>(jobs, "submit_s_J")),
          run_s_(advisor::read<std::int64_t>(jobs, "run_s_J")),
          walltime_s_(advisor::read<std::int64_t>(jobs, "walltime_s_J")),
          size_(advisor::read<std::int64_t>(jobs, "size_J")),
          partition_(advisor::read<std::int64_t>(jobs, "partition_J")),
          user_(advisor::read<std::int64_t>(jobs, "user_J")) {}

    advisor::JobColumns columns() const {
        return {submit_s_.size(), submit_s_.data(),  run_s_.data(), walltime_s_.data(),
                size_.data(),     partition_.data(), user_.data()};
    }

private:
    Column submit_s_, run_s_, walltime_s_, size_, partition_, user_;
};

class ClusterHolder {
public:
    explicit ClusterHolder(nb::handle cluster)
        : units_(advisor::read<std::int64_t>(cluster, "units_P")),
          pool_(advisor::read<std::int64_t>(cluster, "pool_P")),
          tier_(advisor::read<std::int64_t>(cluster, "tier_P")),
          factor_(advisor::read<double>(cluster, "job_factor_P")),
          pool_units_(advisor::read<std::int64_t>(cluster, "units_Q")) {}

    advisor::ClusterColumns columns() const {
        return {units_.size(), pool_units_.size(), units_.data(),     pool_.data(),
                tier_.data(),  factor_.data(),     pool_units_.data()};
    }

private:
    Column units_, pool_, tier_;
    advisor::Array<double> factor_;
    Column pool_units_;
};

template <typename Value>
Value value(nb::handle object, const char *name) {
    return nb::cast<Value>(object.attr(name));
}

advisor::PriorityRules read_rules(nb::handle rules) {
    return {value<double>(rules, "age_weight"),
            value<double>(rules, "size_weight"),
            value<double>(rules, "fair_share_weight"),
            value<double>(rules, "partition_weight"),
            value<double>(rules, "max_age_s"),
            value<double>(rules, "half_life_s"),
            value<std::int64_t>(rules, "period_s"),
            value<bool>(rules, "favors_small"),
            value<bool>(rules, "is_fair_tree")};
}

advisor::Backfill parse_backfill(const std::string &backfill) {
    if (backfill == "none") return advisor::Backfill::none;
    if (backfill == "easy") return advisor::Backfill::easy;
    if (backfill == "conservative") return advisor::Backfill::conservative;
    throw std::invalid_argument("'" + backfill + "' is not a valid Backfill");
}

std::pair<Starts, Starts> simulate_queue(nb::handle queue) {
    const JobHolder jobs(queue.attr("jobs"));
    const JobHolder probes(queue.attr("probes"));
    const ClusterHolder cluster(queue.attr("cluster"));
    const advisor::Queue simulated{jobs.columns(),
                                   probes.columns(),
                                   cluster.columns(),
                                   read_rules(queue.attr("rules")),
                                   parse_backfill(value<std::string>(queue, "backfill")),
                                   value<std::size_t>(queue, "num_users")};
    auto start_s = std::make_unique<std::int64_t[]>(simulated.jobs.size);
    auto probe_start_s = std::make_unique<std::int64_t[]>(simulated.probes.size);
    {
        nb::gil_scoped_release release;
        advisor::simulate_queue(simulated, start_s.get(), probe_start_s.get());
    }
    return {advisor::to_numpy<std::int64_t, 1>(std::move(start_s), {simulated.jobs.size}),
            advisor::to_numpy<std::int64_t, 1>(std::move(probe_start_s), {simulated.probes.size})};
}

}  // namespace

void register_queue(nb::module_ &module) {
    module.def("simulate_queue", &simulate_queue, nb::arg("queue"),
               "When each job starts, and each probe; see advisor.native.reference.");
}
