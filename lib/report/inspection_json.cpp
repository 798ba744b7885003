#include "report/inspection_json.hpp"

#include <nlohmann/json.hpp>

#include "base/json_text.hpp"
#include "report/advice.hpp"

namespace vpp {

using nlohmann::json;

// The fields of every value, once.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(InspectedModule, depth, name, path, class_name, count, num_ops, num_parameters,
                                   parameter_bytes, flops, stages)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(InspectedStage, rank, ranks, first_op, last_op, whole_units, cut_units,
                                   num_parameters, weight_bytes, gradient_bytes, optimizer_bytes, buffer_bytes,
                                   activation_bytes, receive_bytes, flops, flops_share, time_share, modules)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(InspectedRank, ranks, stages, weight_bytes, gradient_bytes, optimizer_bytes,
                                   buffer_bytes, cast_bytes, activation_bytes, recorded_bytes, receive_bytes,
                                   saved_copy_bytes, input_bytes, total_bytes, recomputed_total_bytes, sent_bytes,
                                   replica_bytes, zero1_optimizer_bytes, unshared_optimizer_bytes, in_flight,
                                   busy_share, load)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(InspectedLink, from, to, forward_bytes, backward_bytes, messages)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(InspectedCut, op, bytes, better_op, better_bytes, better_largest, better_after,
                                   transfer_share)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(InspectedBlock, module, stage, num_ops)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(InspectedFlow, from, to, bytes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(CriticalShares, stages, messages)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(MicrobatchForecast, num_microbatches, bubble)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Machine, cores, memory_bytes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(CardShare, name, memory_bytes, num_ranks, kept_bytes, recorded_bytes)

namespace {

json edge_value(const InspectedEdge& edge) {
    json value{{"id", edge.id},
               {"name", edge.name},
               {"type", edge.type},
               {"producer", edge.producer},
               {"consumer", edge.consumer},
               {"tied", edge.tied},
               {"per_step", edge.per_step},
               {"step_bytes", edge.step_bytes}};
    value["bytes"] = edge.bytes ? json(*edge.bytes) : json();
    value["gradient_to"] = edge.gradient_to ? json(*edge.gradient_to) : json();
    return value;
}

}  // namespace

std::string inspection_json(const Inspection& inspection) {
    json value{{"plan_file", inspection.plan_file},
               {"model_files", inspection.model_files},
               {"digest", inspection.digest},
               {"num_ranks", inspection.num_ranks},
               {"pp", inspection.pp},
               {"dp", inspection.dp},
               {"threads", inspection.threads},
               {"machine", inspection.machine},
               {"num_ops", inspection.num_ops},
               {"legal_cuts", inspection.legal_cuts},
               {"num_parameters", inspection.num_parameters},
               {"parameter_bytes", inspection.parameter_bytes},
               {"buffer_bytes", inspection.buffer_bytes},
               {"flops", inspection.flops},
               {"notes", inspection.notes},
               {"samples", inspection.samples},
               {"microbatch_size", inspection.microbatch_size},
               {"accumulate", inspection.accumulate},
               {"num_microbatches", inspection.schedule.num_microbatches},
               {"schedule", inspection.schedule.name},
               {"cost_source", inspection.cost_source},
               {"cost_unit", inspection.cost_unit},
               {"split_method", inspection.split_method},
               {"unit_bubble", inspection.unit_bubble},
               {"bubble", inspection.bubble},
               {"makespan", inspection.makespan},
               {"even_makespan", inspection.even_makespan},
               {"critical_path", inspection.critical_path},
               {"more_microbatches", inspection.more_microbatches},
               {"modules", inspection.modules},
               {"stages", inspection.stages},
               {"ranks", inspection.ranks},
               {"cards", inspection.cards},
               {"no_room", inspection.no_room},
               {"links", inspection.links},
               {"cuts", inspection.cuts},
               {"blocks", inspection.blocks},
               {"flows", inspection.flows}};
    value["edges"] = json::array();
    for (const InspectedEdge& edge : inspection.edges) value["edges"].push_back(edge_value(edge));
    value["advice"] = json::array();
    for (const Advice& advice : advise(inspection)) {
        value["advice"].push_back({{"rule", advice.rule}, {"text", advice.text}});
    }
    return json_text(value, 2);
}

}  // namespace vpp
