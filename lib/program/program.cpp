#include "program/program.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/json_text.hpp"
#include "program/program_json.hpp"

namespace vpp {

// The fields of every value, once, for both directions.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Digest, high, low)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Mesh, pp, dp, tp)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Field, name, dtype, shape, bound)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Fields, fields, num_samples)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(GraphTensor, name, dtype, shape, requires_grad, message_bytes, producer, input,
                                   parameter, writers, gradient_flips, is_view, fills_memory, travels, is_complex,
                                   from_branch)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(GraphValue, name, type, is_tensor, tensors, plain_bytes, producer, uses)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(GraphIndex, value, least, size)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(GraphOp, kind, module, inputs, outputs, parameters, casts, flops, kept_bytes,
                                   inner_bytes, passing_bytes, random, indices, ignored_targets)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(GraphParameter, name, aliases, dtype, shape, is_buffer, requires_grad, has_data,
                                   written, uses)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(GraphModule, name, class_name)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(GraphCut, legal, reason)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(GraphInput, name, value)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(GraphOutput, name, tensor)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(DeferredBatchNorm, running_mean, running_var, num_batches_tracked, momentum,
                                   cumulative)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Graph, ops, values, tensors, parameters, modules, inputs, loss, outputs, tallies,
                                   cuts, deferred_batch_norms, digest, shapes_follow_data, warnings)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(OpRange, begin, end)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(StageSpec, ops, parameters, borrowed, inputs, flops, num_parameters, parameter_bytes,
                                   buffer_bytes, activation_bytes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(SegmentSpec, ops, stage, recompute, inputs, cast_bytes, kept_bytes, passing_bytes,
                                   activation_bytes, input_bytes, waiting_bytes, working_bytes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Edge::Ends, producer, consumer, gradient_to)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Edge, id, name, tensor, values, parameter, producer, consumer, has_gradient,
                                   gradient_to, segments, bytes, message_bytes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Split, cuts, stages, segments, edges, loss_stage)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Action, kind, stage, microbatch, edge, peer, paired)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Schedule, name, num_ranks, num_microbatches, rank_of_stage, actions, forward_only)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Phase, graph, split, schedule)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(StageCosts, forward, backward, input_gradient, weight_gradient)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ScheduleCosts, stages, transfer, transfer_of, occupied, occupied_of, overlap_percent,
                                   ticks_per_unit)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(SearchRecord, stages_per_rank, makespan, span, best_generator, best_generated,
                                   origin, lower_bound, moves, objective)

void to_json(nlohmann::json& json, const Balance& balance) {
    json = {{"cuts", balance.cuts}, {"bottleneck", balance.bottleneck}, {"lower_bound", balance.lower_bound}};
    if (balance.next_best) json["next_best"] = *balance.next_best;
}

void from_json(const nlohmann::json& json, Balance& balance) {
    json.at("cuts").get_to(balance.cuts);
    json.at("bottleneck").get_to(balance.bottleneck);
    json.at("lower_bound").get_to(balance.lower_bound);
    if (json.contains("next_best")) balance.next_best = json.at("next_best").get<double>();
}

namespace {

using nlohmann::json;

json to_json_value(const Program& program) {
    json value{{"plan", program.plan_text},
               {"mesh", program.mesh},
               {"replicas_per_rank", program.replicas_per_rank},
               {"fields", program.fields},
               {"microbatch_size", program.microbatch_size},
               {"training", program.training},
               {"data_digest", program.data_digest},
               {"token_types", program.token_types},
               {"costs", program.costs},
               {"cost_unit", program.cost_unit},
               {"cost_source", program.cost_source},
               {"has_measured_costs", program.has_measured_costs}};
    if (program.search) value["search"] = *program.search;
    if (program.balance) value["balance"] = *program.balance;
    if (program.evaluation) value["evaluation"] = *program.evaluation;
    return value;
}

}  // namespace

Bytes to_bytes(const Program& program) {
    const std::vector<uint8_t> cbor = json::to_cbor(to_json_value(program));
    const auto view = std::as_bytes(std::span(cbor));
    return Bytes(view.begin(), view.end());
}

Program program_from_bytes(std::span<const std::byte> bytes) {
    try {
        const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
        const json value = json::from_cbor(data, data + bytes.size());
        Program program;
        value.at("plan").get_to(program.plan_text);
        value.at("mesh").get_to(program.mesh);
        value.at("replicas_per_rank").get_to(program.replicas_per_rank);
        value.at("fields").get_to(program.fields);
        value.at("microbatch_size").get_to(program.microbatch_size);
        value.at("training").get_to(program.training);
        value.at("data_digest").get_to(program.data_digest);
        value.at("token_types").get_to(program.token_types);
        value.at("costs").get_to(program.costs);
        value.at("cost_unit").get_to(program.cost_unit);
        value.at("cost_source").get_to(program.cost_source);
        value.at("has_measured_costs").get_to(program.has_measured_costs);
        if (value.contains("search")) program.search = value.at("search").get<SearchRecord>();
        if (value.contains("balance")) program.balance = value.at("balance").get<Balance>();
        if (value.contains("evaluation")) program.evaluation = value.at("evaluation").get<Phase>();
        return program;
    } catch (const json::exception& error) {
        throw Error(ErrorKind::BadData, std::string("these bytes are not a program: ") + error.what());
    }
}

std::string to_json_text_with(const Program& program, const std::string& name, const std::string& value) {
    json whole = to_json_value(program);
    whole[name] = json::parse(value);
    return json_text(whole, 2);
}

bool Phase::makes_losses(int pp_rank) const {
    return std::ranges::count(schedule.stages_of(pp_rank), split.loss_stage) > 0;
}

Digest digest_of(const Program& program) {
    return hash_bytes(to_bytes(program));
}

}  // namespace vpp
