#pragma once
// A page of two stages on two ranks, made by hand, for the tests of its renderings.
#include "program/inspection.hpp"
#include "schedule/generators.hpp"
#include "schedule/lowering.hpp"

namespace vpp::test {

/// "in", two blocks and half of a third on rank 0; the other half and "head" on rank 1, which has twice the work.
inline Inspection two_stages() {
    Inspection page;
    page.plan_file = "plan.toml";
    page.model_files = "model.pt";
    page.data_text = "synthetic, 64 samples";
    page.mesh_text = "PP 2 x DP 1 x TP 1";
    page.digest = "00112233445566778899aabbccddeeff";
    page.num_ranks = page.pp = 2;
    page.machine = {2, int64_t{8} << 30};
    page.num_ops = 40;
    page.legal_cuts = 38;
    page.num_parameters = 3000;
    page.parameter_bytes = 12000;
    page.flops = 3e6;
    page.samples = 16;
    page.microbatch_size = 4;
    page.schedule = lower(make_schedule("1F1B", 2, 1, 4), {{0, 0, 1, true, 0}});
    page.costs.stages = {{1000, 2000, 1000, 1000}, {2000, 4000, 2000, 2000}};
    page.costs.ticks_per_unit = 1000;
    page.cost_source = "FLOPs; a byte sent counts 10";
    page.cost_unit = "x F of a mean rank";
    page.split_method = "UNIFORM";
    page.unit_bubble = 0.2;
    page.bubble = 0.325;
    page.makespan = 27;
    page.even_makespan = 22;
    page.critical_path = {{0.125, 0.75}, 0.125};
    page.more_microbatches = {{8, 0.29}, {16, 0.27}};
    page.modules = {{0, "model", "", "Net", 1, 40, 3000, 12000, 3e6, {0, 1}},
                    {1, "in", "in", "Linear", 1, 4, 300, 1200, 1e5, {0}},
                    {1, "blocks", "blocks", "ModuleList", 1, 30, 2400, 9600, 2.7e6, {0, 1}},
                    {2, "0..1", "blocks.0", "Block", 2, 20, 1600, 6400, 1.8e6, {0}},
                    {2, "2", "blocks.2", "Block", 1, 10, 800, 3200, 9e5, {0, 1}},
                    {3, "up", "blocks.2.up", "Linear", 1, 4, 400, 1600, 4e5, {0}},
                    {3, "down", "blocks.2.down", "Linear", 1, 4, 400, 1600, 4e5, {1}},
                    {3, "(itself)", "blocks.2", "", 1, 2, 0, 0, 1e5, {1}},
                    {1, "head", "head", "Linear", 1, 6, 300, 1200, 2e5, {1}}};
    InspectedStage first;
    first.ranks = {0};
    first.last_op = 27;
    first.whole_units = 2;
    first.cut_units = 1;
    first.num_parameters = 2300;
    first.weight_bytes = first.gradient_bytes = 9200;
    first.optimizer_bytes = 18400;
    first.activation_bytes = 65536;
    first.receive_bytes = 4096;
    first.flops = 1e6;
    first.flops_share = first.time_share = 1.0 / 3;
    first.modules = "in .. blocks.2";
    InspectedStage second = first;
    second.rank = 1;
    second.ranks = {1};
    second.first_op = 28;
    second.last_op = 39;
    second.whole_units = 0;
    second.num_parameters = 700;
    second.weight_bytes = second.gradient_bytes = 2800;
    second.optimizer_bytes = 5600;
    second.buffer_bytes = 8;
    second.activation_bytes = 32768;
    second.flops = 2e6;
    second.flops_share = second.time_share = 2.0 / 3;
    second.modules = "blocks.2, head";
    page.stages = {first, second};
    for (int rank = 0; rank < 2; ++rank) {
        const InspectedStage& stage = page.stages[static_cast<size_t>(rank)];
        InspectedRank entry;
        entry.ranks = {rank};
        entry.stages = {rank};
        entry.weight_bytes = stage.weight_bytes;
        entry.gradient_bytes = stage.gradient_bytes;
        entry.optimizer_bytes = entry.unshared_optimizer_bytes = entry.zero1_optimizer_bytes = stage.optimizer_bytes;
        entry.buffer_bytes = stage.buffer_bytes;
        entry.activation_bytes = stage.activation_bytes * (2 - rank);
        entry.receive_bytes = 8192;
        entry.input_bytes = 2048 >> rank;
        entry.saved_copy_bytes = entry.weight_bytes + entry.optimizer_bytes;
        entry.total_bytes = 200'000 - 100'000 * rank;
        entry.recomputed_total_bytes = entry.total_bytes / 2;
        entry.sent_bytes = 16384;
        entry.in_flight = 2 - rank;
        entry.busy_share = rank == 0 ? 0.45 : 0.9;
        entry.load = rank == 0 ? 2.0 / 3 : 4.0 / 3;
        page.ranks.push_back(entry);
    }
    page.edges = {{0, "x.6", "float32[4, 256]", 0, 1, false, 0, 4096, 32768, false}};
    page.links = {{0, 1, 16384, 0, 4}, {1, 0, 0, 16384, 4}};
    page.cuts = {{28, 4096, 28, 4096, 1, "blocks.2.up", 0.01}};
    page.blocks = {{1, 0, 4}, {3, 0, 20}, {5, 0, 4}, {6, 1, 4}, {7, 1, 2}, {8, 1, 6}};
    page.flows = {{0, 1, 4096}, {1, 2, 4096}, {2, 3, 4096}, {3, 4, 4096}, {4, 5, 4096}};
    return page;
}

}  // namespace vpp::test
