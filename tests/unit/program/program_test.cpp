// The program as bytes: whole, and every field in the digest.
#include "program/program.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "base/error.hpp"
#include "program/program_json.hpp"
#include "unit/graph/graphs.hpp"

namespace vpp {
namespace {

/// A program whose every list has an entry and whose every number is not its default.
Program sample() {
    test::GraphMaker maker;
    const int x = maker.input("x"), w = maker.parameter("w", 4), table = maker.parameter("table", 3, false, true);
    const int n = maker.plain("m", {x});
    const int a = maker.op("m", {x, w, table, n}, 3.5);
    const int b = maker.write("m", a);
    maker.op("m.k", {b, table, n, a});
    maker.forbid(1, "why");
    maker.modules({"m:Block"});
    Program program;
    program.plan_text = "[model]\n";
    program.mesh = {2, 3, 1};
    program.fields = {{{"x", DType::F32, {4}, 5}}, 77};
    program.microbatch_size = 2;
    program.data_digest = "data";
    program.token_types = "uint16";
    program.costs = {{{3, 4, 5, 6}}, 7, {{1, 8}}, 2, {{1, 3}}, 9, 10};
    program.cost_unit = "ms";
    program.cost_source = "a file";
    program.balance = Balance{{3}, 4, 3.5, 4.5};
    program.search.emplace();
    program.search->best_generator = "1F1B";
    program.search->origin = "GPIPE";
    Phase& phase = program.training;
    phase.graph = maker.finish();
    phase.graph.parameters[0].aliases = {"tied"};
    phase.graph.digest = {1, 2};
    phase.graph.warnings = {"note"};
    phase.graph.deferred_batch_norms = {{1, 2, 3, 0.5, true}};
    phase.split = make_stages(phase.graph, {3});
    phase.schedule = {"1F1B", 2, 4, {0, 1}, {{{ActionKind::F, 0, 1}}, {{ActionKind::SendB, 1, 2, 0, 0}}}, false};
    program.evaluation = phase;
    program.evaluation->schedule.forward_only = true;
    return program;
}

using Change = std::function<void(Program&)>;

/// One change for every field of every type.
std::vector<std::pair<std::string, Change>> changes() {
    std::vector<std::pair<std::string, Change>> all{
        {"plan_text", [](Program& p) { p.plan_text += " "; }},
        {"mesh.pp", [](Program& p) { ++p.mesh.pp; }},
        {"mesh.dp", [](Program& p) { ++p.mesh.dp; }},
        {"mesh.tp", [](Program& p) { ++p.mesh.tp; }},
        {"replicas_per_rank", [](Program& p) { ++p.replicas_per_rank; }},
        {"field.name", [](Program& p) { p.fields.fields[0].name += "x"; }},
        {"field.dtype", [](Program& p) { p.fields.fields[0].dtype = DType::I64; }},
        {"field.shape", [](Program& p) { p.fields.fields[0].shape.push_back(1); }},
        {"field.bound", [](Program& p) { ++p.fields.fields[0].bound; }},
        {"num_samples", [](Program& p) { ++p.fields.num_samples; }},
        {"microbatch_size", [](Program& p) { ++p.microbatch_size; }},
        {"data_digest", [](Program& p) { p.data_digest += "x"; }},
        {"token_types", [](Program& p) { p.token_types += "x"; }},
        {"evaluation", [](Program& p) { p.evaluation.reset(); }},
        {"evaluation.loss", [](Program& p) { ++p.evaluation->graph.loss; }},
    };
    const auto costs = [&](const std::string& name, const std::function<void(ScheduleCosts&)>& change) {
        all.emplace_back(name, [change](Program& p) { change(p.costs); });
    };
    costs("costs.forward", [](ScheduleCosts& c) { ++c.stages[0].forward; });
    costs("costs.backward", [](ScheduleCosts& c) { ++c.stages[0].backward; });
    costs("costs.input_gradient", [](ScheduleCosts& c) { ++c.stages[0].input_gradient; });
    costs("costs.weight_gradient", [](ScheduleCosts& c) { ++c.stages[0].weight_gradient; });
    costs("costs.transfer", [](ScheduleCosts& c) { ++c.transfer; });
    costs("costs.transfer_of", [](ScheduleCosts& c) { ++c.transfer_of[1]; });
    costs("costs.overlap_percent", [](ScheduleCosts& c) { ++c.overlap_percent; });
    costs("costs.occupied", [](ScheduleCosts& c) { ++c.occupied; });
    costs("costs.occupied_of", [](ScheduleCosts& c) { ++c.occupied_of[1]; });
    costs("costs.ticks_per_unit", [](ScheduleCosts& c) { c.ticks_per_unit *= 10; });
    all.emplace_back("cost_unit", [](Program& p) { p.cost_unit += "x"; });
    all.emplace_back("cost_source", [](Program& p) { p.cost_source += "x"; });
    all.emplace_back("has_measured_costs", [](Program& p) { p.has_measured_costs ^= true; });
    all.emplace_back("balance", [](Program& p) { p.balance.reset(); });
    all.emplace_back("balance.cuts", [](Program& p) { ++p.balance->cuts[0]; });
    all.emplace_back("balance.bottleneck", [](Program& p) { ++p.balance->bottleneck; });
    all.emplace_back("balance.lower_bound", [](Program& p) { ++p.balance->lower_bound; });
    all.emplace_back("balance.next_best", [](Program& p) { p.balance->next_best.reset(); });
    all.emplace_back("search", [](Program& p) { p.search.reset(); });
    const auto search = [&](const std::string& name, const std::function<void(SearchRecord&)>& change) {
        all.emplace_back(name, [change](Program& p) { change(*p.search); });
    };
    search("search.stages_per_rank", [](SearchRecord& r) { ++r.stages_per_rank; });
    search("search.makespan", [](SearchRecord& r) { ++r.makespan; });
    search("search.span", [](SearchRecord& r) { ++r.span; });
    search("search.best_generator", [](SearchRecord& r) { r.best_generator += "x"; });
    search("search.best_generated", [](SearchRecord& r) { ++r.best_generated; });
    search("search.origin", [](SearchRecord& r) { r.origin += "x"; });
    search("search.lower_bound", [](SearchRecord& r) { ++r.lower_bound; });
    search("search.moves", [](SearchRecord& r) { ++r.moves; });
    search("search.objective", [](SearchRecord& r) { r.objective = SearchObjective::Span; });
    const auto graph = [&](const std::string& name, const std::function<void(Graph&)>& change) {
        all.emplace_back(name, [change](Program& p) { change(p.training.graph); });
    };
    graph("tensor.name", [](Graph& g) { g.tensors[0].name += "x"; });
    graph("tensor.dtype", [](Graph& g) { g.tensors[0].dtype = DType::F64; });
    graph("tensor.shape", [](Graph& g) { ++g.tensors[0].shape[0]; });
    graph("tensor.requires_grad", [](Graph& g) { g.tensors[0].requires_grad ^= true; });
    graph("tensor.message_bytes", [](Graph& g) { ++g.tensors[0].message_bytes; });
    graph("tensor.producer", [](Graph& g) { ++g.tensors[0].producer; });
    graph("tensor.input", [](Graph& g) { ++g.tensors[0].input; });
    graph("tensor.parameter", [](Graph& g) { ++g.tensors[0].parameter; });
    graph("tensor.writers", [](Graph& g) { g.tensors[0].writers.push_back(1); });
    graph("tensor.gradient_flips", [](Graph& g) { g.tensors[0].gradient_flips.push_back(1); });
    graph("tensor.is_view", [](Graph& g) { g.tensors[0].is_view ^= true; });
    graph("tensor.travels", [](Graph& g) { g.tensors[0].travels ^= true; });
    graph("tensor.from_branch", [](Graph& g) { g.tensors[0].from_branch ^= true; });
    graph("value.plain_bytes", [](Graph& g) { ++g.values[0].plain_bytes; });
    graph("value.name", [](Graph& g) { g.values[0].name += "x"; });
    graph("value.type", [](Graph& g) { g.values[0].type += "x"; });
    graph("value.is_tensor", [](Graph& g) { g.values[0].is_tensor ^= true; });
    graph("value.tensors", [](Graph& g) { g.values[0].tensors.push_back(0); });
    graph("value.producer", [](Graph& g) { ++g.values[0].producer; });
    graph("value.uses", [](Graph& g) { g.values[0].uses.push_back(0); });
    graph("op.kind", [](Graph& g) { g.ops[0].kind += "x"; });
    graph("op.module", [](Graph& g) { g.ops[0].module += "x"; });
    graph("op.inputs", [](Graph& g) { g.ops[0].inputs.push_back(0); });
    graph("op.outputs", [](Graph& g) { g.ops[0].outputs.push_back(0); });
    graph("op.parameters", [](Graph& g) { g.ops[0].parameters.push_back(0); });
    graph("op.casts", [](Graph& g) { g.ops[0].casts.push_back(0); });
    graph("op.flops", [](Graph& g) { g.ops[0].flops += 0.5; });
    graph("op.kept_bytes", [](Graph& g) { ++g.ops[0].kept_bytes; });
    graph("op.inner_bytes", [](Graph& g) { ++g.ops[0].inner_bytes; });
    graph("op.passing_bytes", [](Graph& g) { ++g.ops[0].passing_bytes; });
    graph("op.indices", [](Graph& g) { g.ops[0].indices.push_back({0, 0, 5}); });
    graph("op.ignored_targets", [](Graph& g) { g.ops[0].ignored_targets.push_back(-1); });
    graph("op.random", [](Graph& g) { g.ops[0].random ^= true; });
    graph("parameter.name", [](Graph& g) { g.parameters[0].name += "x"; });
    graph("parameter.aliases", [](Graph& g) { g.parameters[0].aliases.clear(); });
    graph("parameter.dtype", [](Graph& g) { g.parameters[0].dtype = DType::F16; });
    graph("parameter.shape", [](Graph& g) { ++g.parameters[0].shape[0]; });
    graph("parameter.is_buffer", [](Graph& g) { g.parameters[0].is_buffer ^= true; });
    graph("parameter.requires_grad", [](Graph& g) { g.parameters[0].requires_grad ^= true; });
    graph("parameter.has_data", [](Graph& g) { g.parameters[0].has_data ^= true; });
    graph("parameter.written", [](Graph& g) { g.parameters[0].written ^= true; });
    graph("parameter.uses", [](Graph& g) { g.parameters[0].uses.push_back(9); });
    graph("module.name", [](Graph& g) { g.modules[1].name += "x"; });
    graph("module.class_name", [](Graph& g) { g.modules[1].class_name += "x"; });
    graph("graph_input.name", [](Graph& g) { g.inputs[0].name += "x"; });
    graph("graph_input.value", [](Graph& g) { ++g.inputs[0].value; });
    graph("loss", [](Graph& g) { ++g.loss; });
    graph("outputs", [](Graph& g) { g.outputs.push_back({"y", 1}); });
    graph("tallies", [](Graph& g) { g.tallies.push_back({"t", 1}); });
    graph("cut.legal", [](Graph& g) { g.cuts[1].legal ^= true; });
    graph("cut.reason", [](Graph& g) { g.cuts[1].reason += "x"; });
    graph("digest.high", [](Graph& g) { ++g.digest.high; });
    graph("digest.low", [](Graph& g) { ++g.digest.low; });
    graph("shapes_follow_data", [](Graph& g) { g.shapes_follow_data ^= true; });
    graph("warnings", [](Graph& g) { g.warnings[0] += "x"; });
    const auto norm = [&](const std::string& name, const std::function<void(DeferredBatchNorm&)>& change) {
        graph("deferred." + name, [change](Graph& g) { change(g.deferred_batch_norms[0]); });
    };
    norm("running_mean", [](DeferredBatchNorm& n) { ++n.running_mean; });
    norm("running_var", [](DeferredBatchNorm& n) { ++n.running_var; });
    norm("num_batches_tracked", [](DeferredBatchNorm& n) { ++n.num_batches_tracked; });
    norm("momentum", [](DeferredBatchNorm& n) { n.momentum += 1; });
    norm("cumulative", [](DeferredBatchNorm& n) { n.cumulative = false; });
    const auto split = [&](const std::string& name, const std::function<void(Split&)>& change) {
        all.emplace_back(name, [change](Program& p) { change(p.training.split); });
    };
    split("cuts", [](Split& s) { ++s.cuts[0]; });
    split("loss_stage", [](Split& s) { ++s.loss_stage; });
    split("stage.ops.begin", [](Split& s) { ++s.stages[0].ops.begin; });
    split("stage.ops.end", [](Split& s) { ++s.stages[0].ops.end; });
    split("stage.parameters", [](Split& s) { s.stages[0].parameters.pop_back(); });
    split("stage.borrowed", [](Split& s) { s.stages[1].borrowed.pop_back(); });
    split("stage.inputs", [](Split& s) { s.stages[0].inputs.pop_back(); });
    split("stage.flops", [](Split& s) { s.stages[0].flops += 1; });
    split("stage.num_parameters", [](Split& s) { ++s.stages[0].num_parameters; });
    split("stage.parameter_bytes", [](Split& s) { ++s.stages[0].parameter_bytes; });
    split("stage.buffer_bytes", [](Split& s) { ++s.stages[0].buffer_bytes; });
    split("stage.activation_bytes", [](Split& s) { ++s.stages[0].activation_bytes; });
    split("edge.id", [](Split& s) { ++s.edges[0].id; });
    split("edge.name", [](Split& s) { s.edges[0].name += "x"; });
    split("edge.tensor", [](Split& s) { ++s.edges[0].tensor; });
    split("edge.parameter", [](Split& s) { ++s.edges[0].parameter; });
    split("edge.segments.producer", [](Split& s) { ++s.edges[0].segments.producer; });
    split("edge.segments.consumer", [](Split& s) { ++s.edges[0].segments.consumer; });
    split("edge.segments.gradient_to", [](Split& s) { ++s.edges[0].segments.gradient_to; });
    split("segment.ops", [](Split& s) { ++s.segments[0].ops.end; });
    split("segment.stage", [](Split& s) { ++s.segments[0].stage; });
    split("segment.recompute", [](Split& s) { s.segments[0].recompute ^= true; });
    split("segment.inputs", [](Split& s) { s.segments[0].inputs.push_back(7); });
    split("segment.cast_bytes", [](Split& s) { ++s.segments[0].cast_bytes; });
    split("segment.kept_bytes", [](Split& s) { ++s.segments[0].kept_bytes; });
    split("segment.passing_bytes", [](Split& s) { ++s.segments[0].passing_bytes; });
    split("segment.waiting_bytes", [](Split& s) { ++s.segments[0].waiting_bytes; });
    split("segment.working_bytes", [](Split& s) { ++s.segments[0].working_bytes; });
    split("segment.activation_bytes", [](Split& s) { ++s.segments[0].activation_bytes; });
    split("segment.input_bytes", [](Split& s) { ++s.segments[0].input_bytes; });
    split("edge.values", [](Split& s) { s.edges.back().values.pop_back(); });
    split("edge.producer", [](Split& s) { ++s.edges[0].producer; });
    split("edge.consumer", [](Split& s) { ++s.edges[0].consumer; });
    split("edge.has_gradient", [](Split& s) { s.edges[0].has_gradient ^= true; });
    split("edge.gradient_to", [](Split& s) { ++s.edges[0].gradient_to; });
    split("edge.bytes", [](Split& s) { ++s.edges[0].bytes; });
    split("edge.message_bytes", [](Split& s) { ++s.edges[0].message_bytes; });
    const auto schedule = [&](const std::string& name, const std::function<void(Schedule&)>& change) {
        all.emplace_back(name, [change](Program& p) { change(p.training.schedule); });
    };
    schedule("schedule.name", [](Schedule& s) { s.name += "x"; });
    schedule("num_ranks", [](Schedule& s) { ++s.num_ranks; });
    schedule("num_microbatches", [](Schedule& s) { ++s.num_microbatches; });
    schedule("rank_of_stage", [](Schedule& s) { ++s.rank_of_stage[0]; });
    schedule("forward_only", [](Schedule& s) { s.forward_only ^= true; });
    schedule("action.kind", [](Schedule& s) { s.actions[0][0].kind = ActionKind::B; });
    schedule("action.stage", [](Schedule& s) { ++s.actions[0][0].stage; });
    schedule("action.microbatch", [](Schedule& s) { ++s.actions[0][0].microbatch; });
    schedule("action.edge", [](Schedule& s) { ++s.actions[0][0].edge; });
    schedule("action.peer", [](Schedule& s) { ++s.actions[0][0].peer; });
    schedule("action.paired", [](Schedule& s) { s.actions[0][0].paired ^= true; });
    return all;
}

TEST(Program, GoesThroughBytesUnchanged) {
    const Program program = sample();
    const Bytes bytes = to_bytes(program);
    const Program again = program_from_bytes(bytes);
    EXPECT_EQ(to_bytes(again), bytes);
    EXPECT_EQ(digest_of(again), digest_of(program));
    EXPECT_EQ(again.training.graph.tensors.size(), program.training.graph.tensors.size());
    EXPECT_EQ(again.training.split.edges.back().values, program.training.split.edges.back().values);
    EXPECT_EQ(again.training.schedule.actions, program.training.schedule.actions);
    ASSERT_TRUE(again.evaluation);
    EXPECT_TRUE(again.evaluation->schedule.forward_only);
}

TEST(Program, PathsThatAreNoUtf8AreWrittenWithReplacements) {
    Program program = sample();
    program.cost_source = "a\xff";
    EXPECT_NE(to_json_text_with(program, "more", "[1]").find("\"a\xef\xbf\xbd\""), std::string::npos);
    EXPECT_EQ(program_from_bytes(to_bytes(program)).cost_source, "a\xff") << "ranks get the bytes themselves";
}

TEST(Program, EveryFieldIsInTheBytesAndInTheDigest) {
    const Digest digest = digest_of(sample());
    EXPECT_EQ(digest_of(sample()), digest);
    for (const auto& [name, change] : changes()) {
        Program program = sample();
        change(program);
        EXPECT_NE(digest_of(program), digest) << name;
        EXPECT_EQ(digest_of(program_from_bytes(to_bytes(program))), digest_of(program)) << name;
    }
}

TEST(Program, BytesThatAreNoneAreRefused) {
    const Bytes bytes = to_bytes(sample());
    const auto refuse = [](std::span<const std::byte> wrong) {
        try {
            program_from_bytes(wrong);
            ADD_FAILURE() << "nothing was thrown for " << wrong.size() << " bytes";
        } catch (const Error& error) {
            EXPECT_EQ(error.kind(), ErrorKind::BadData);
            EXPECT_THAT(error.what(), ::testing::HasSubstr("these bytes are not a program: "));
        }
    };
    for (size_t length = 0; length < bytes.size(); length += 37) refuse(std::span(bytes).first(length));
    refuse(to_bytes(std::string_view("\xa0", 1)));  // an empty map
    Bytes longer = bytes;
    longer.push_back(std::byte{0});
    refuse(longer);
}

TEST(Program, StagesOfARankComeFromTheSchedule) {
    Program program = sample();
    program.training.schedule.rank_of_stage = {0, 1, 0, 1};
    EXPECT_EQ(program.stages_of(1), (std::vector<int>{1, 3}));
}

}  // namespace
}  // namespace vpp
