#include "stage/recorded_randomness.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/equal.h>

#include "base/random.hpp"
#include "graph/model_output.hpp"
#include "stage/not_recordable.hpp"

namespace vpp {

void RecordedRandomness::record(const std::function<void()>& ops) {
    const at::Generator& host = at::detail::getDefaultCPUGenerator();
    const at::Tensor before = host.get_state();
    const int64_t prints_before = num_prints();
    seeds_->begin_recording();
    {
        const ListeningToSeeds listening(*this);
        ops();
    }
    seeds_->end_recording();
    if (!at::equal(host.get_state(), before)) throw NotRecordable{"it draws random numbers on the CPU"};
    if (num_prints() != prints_before) throw NotRecordable{"it prints"};
}

void RecordedRandomness::on_random_op(int64_t site, int64_t execution) {
    sites_.emplace_back(site, execution);
    seeds_->next();
}

void RecordedRandomness::set_key(uint64_t key) {
    std::vector<uint64_t> seeds;
    for (const auto& [site, execution] : sites_) seeds.push_back(site_seed(key, site, execution));
    seeds_->fill(seeds);
}

}  // namespace vpp
