#include "schedule/v_shape.hpp"

#include <string>

#include "base/error.hpp"
#include "schedule/placement.hpp"

namespace vpp {

void check_two_stages_per_rank(const ScheduleSize& size, const char* name) {
    if (size.stages_per_rank == 2) return;
    throw Error(ErrorKind::Plan, std::string(name) + " puts two stages on each rank (got virtual_chunks = " +
                                     std::to_string(size.stages_per_rank) + ", expected 2); try virtual_chunks = 2");
}

Schedule make_empty_v(const ScheduleSize& size, const char* name) {
    return {name, size.num_ranks, size.num_microbatches, place_stages(Placement::V, size), {}};
}

size_t VListWriter::slot(ActionKind kind, Leg leg) {
    const size_t row = kind == ActionKind::F ? 0 : kind == ActionKind::W ? 2 : 1;
    return 2 * row + (leg == Leg::Up ? 1 : 0);
}

void VListWriter::add(ActionKind kind, Leg leg) {
    const int microbatch = counts_.at(slot(kind, leg))++;
    if (kind == ActionKind::B) ++counts_.at(slot(ActionKind::W, leg));
    if (microbatch >= size_.num_microbatches) return;
    list_.push_back({kind, stage_on(leg, size_.num_ranks, rank_), microbatch});
}

void VListWriter::add_paired_forward(Leg leg) {
    add(ActionKind::F, leg);
    list_.back().paired = true;
}

}  // namespace vpp
