// Measured costs: complete, of this model, and without an influence on what is trained.
#include "engine/cost_profile.hpp"

#include <filesystem>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/hash.hpp"
#include "engine/agreement.hpp"
#include "graph/split.hpp"
#include "stage/tensor_memory.hpp"
#include "unit/engine/support.hpp"
#include "unit/plan/plan_texts.hpp"

namespace vpp::test {
namespace {

TEST(CostProfile, WhatIsTooMuchIsTakenOffEveryPart) {
    std::vector<double> parts{1, 3, 5};
    EXPECT_DOUBLE_EQ(settle_times(parts, 6), 1);
    EXPECT_EQ(parts, (std::vector<double>{0, 2, 4}));
    parts = {0.25, 4, 4};
    EXPECT_DOUBLE_EQ(settle_times(parts, 6), 1) << "the first has less than its share";
    EXPECT_EQ(parts, (std::vector<double>{0, 3, 3}));
    parts = {1, 3};
    EXPECT_DOUBLE_EQ(settle_times(parts, 8), 0);
    EXPECT_EQ(parts, (std::vector<double>{2, 6})) << "too little is scaled up";
    parts = {0, 0};
    settle_times(parts, 1);
    EXPECT_EQ(parts, (std::vector<double>{0, 0}));
}

TEST(CostProfile, HalvesTakeAsMuchMoreAsThoseOfOneStage) {
    // A stage whose halves took 5 where its B took 4: parts with a B of 8 get 10, as they share it.
    std::vector<double> input_gradient{1, 2}, weight_gradient{5, 12};
    settle_halves(input_gradient, weight_gradient, 8, {2, 4, 3, 2});
    EXPECT_EQ(input_gradient, (std::vector<double>{0.5, 1}));
    EXPECT_EQ(weight_gradient, (std::vector<double>{2.5, 6}));
    settle_halves(input_gradient, weight_gradient, 16, {2, 4, 3, 2});
    EXPECT_EQ(weight_gradient, (std::vector<double>{5, 12})) << "up as well as down";
}

TEST(CostProfile, HalvesTakeNoLessThanTheWhole) {
    std::vector<double> input_gradient{1, 2}, weight_gradient{1, 0};
    settle_halves(input_gradient, weight_gradient, 8, {2, 6, 3, 1});
    EXPECT_EQ(input_gradient, (std::vector<double>{2, 4}));
    EXPECT_EQ(weight_gradient, (std::vector<double>{2, 0}));
}

TEST(CostProfile, HalvesOfAStageThatTookNoTimeStayAsTheyAre) {
    std::vector<double> input_gradient{1, 2}, weight_gradient{1, 0};
    settle_halves(input_gradient, weight_gradient, 0, {2, 0, 3, 1});
    EXPECT_EQ(input_gradient, (std::vector<double>{1, 2}));
    EXPECT_EQ(weight_gradient, (std::vector<double>{1, 0}));
}

TEST(CostProfile, APartHasTheNameOfWhatAllOfItLiesIn) {
    const auto name = [](const std::vector<std::string>& modules) {
        Graph graph;
        for (const std::string& module : modules) graph.ops.emplace_back().module = module;
        return module_of(graph, {0, graph.num_ops()});
    };
    EXPECT_EQ(name({"block0.ln", "block0.attention.q", "", "block0", "block0.mlp"}), "block0");
    EXPECT_EQ(name({"a.b.c", "a.b.d"}), "a.b");
    EXPECT_EQ(name({"", "head"}), "head");
    EXPECT_EQ(name({"block1.ln", "block10.ln"}), "block1.ln") << "nothing holds both: the first";
    EXPECT_EQ(name({"", ""}), "");
}

void expect_whole(const CostProfile& profile, const Graph& graph, const std::vector<int>& cuts) {
    const std::vector<PartTimes>& parts = profile.file.parts;
    ASSERT_EQ(parts.size(), cuts.size() + 1);
    for (size_t i = 0; i < cuts.size(); ++i) {
        EXPECT_EQ(parts[i].ops.end, cuts[i]);
        EXPECT_EQ(parts[i + 1].ops.begin, cuts[i]);
    }
    EXPECT_EQ(parts.back().ops.end, graph.num_ops());
    double forward = 0, backward = 0, halves = 0;
    int64_t kept = 0;
    for (const PartTimes& part : parts) {
        forward += part.times.forward;
        backward += part.times.backward;
        halves += part.times.input_gradient + part.times.weight_gradient;
        kept += part.kept_bytes;
    }
    EXPECT_GT(profile.whole.forward, 0);
    EXPECT_NEAR(forward, profile.whole.forward, 1e-9);
    EXPECT_NEAR(backward, profile.whole.backward, 1e-9);
    EXPECT_GE(halves, backward * (1 - 1e-9));
    EXPECT_GT(kept, 0);
    EXPECT_EQ(profile.file.model, to_hex(graph.digest));
    EXPECT_EQ(profile.file.microbatch_size, 2);
    EXPECT_GE(profile.num_passes, kFewestPasses);
}

TEST(CostProfile, TimesEveryPartOfEveryKindOfModel) {
    count_tensor_memory();
    for (const char* model : {"mlp", "bn_cnn", "dropout", "tied", "unet"}) {
        SCOPED_TRACE(model);
        const TemporaryFolder folder;
        Rig setup = set_up_tiny(model, folder.path("."), {"mesh.pp=2", "pipeline.recompute.what=stage"});
        const CostProfile profile = profile_costs(setup.plan, setup.data, test_device(), {});
        expect_whole(profile, setup.graph(), candidate_cuts(setup.graph(), setup.plan));
        const OpCosts& first = profile.file.parts.front().times;
        EXPECT_EQ(first.input_gradient, 0) << "nothing is before it";
        EXPECT_EQ(first.weight_gradient, first.backward);
        EXPECT_GT(profile.whole.input_gradient, 0);
        EXPECT_EQ(profile.file.transfer, kUsualTransferMs);
    }
}

TEST(CostProfile, MicrobatchesAreThoseOfThePlanWhateverItsLayout) {
    std::vector<std::string> replicas = with_replicas(2, true);
    replicas.emplace_back("mesh.pp=2");
    for (const std::vector<std::string>& set :
         {replicas,
          {"mesh.pp=2", "train.accumulate=2", "train.global_batch_size=12"},
          {"mesh.pp=2", "pipeline.schedule_type=ZERO_BUBBLE_V", "pipeline.virtual_chunks=2"},
          {"mesh.pp=2", "pipeline.tied_gradients=per_step", "pipeline.memory_limit=1GiB"}}) {
        SCOPED_TRACE(set.back());
        const TemporaryFolder folder;
        Rig setup = set_up_tiny("tied", folder.path("."), set);
        const CostProfile profile = profile_costs(setup.plan, setup.data, test_device(), {});
        EXPECT_EQ(profile.file.microbatch_size, setup.prepared.program.microbatch_size);
        EXPECT_EQ(profile.file.model, to_hex(setup.graph().digest)) << "the file is of the plan's graph";
    }
}

TEST(CostProfile, TheFileIsReadBackAndDecidesTheCut) {
    const TemporaryFolder folder;
    Rig setup = set_up_tiny("mlp", folder.path("."), {"mesh.pp=2", "pipeline.split_method=AUTO"});
    CostFile file = profile_costs(setup.plan, setup.data, test_device(), {}).file;
    // All of the work in the first part, then in the last.
    std::vector<int> first_cut;
    for (const size_t heavy : {size_t{0}, file.parts.size() - 1}) {
        for (size_t i = 0; i < file.parts.size(); ++i) {
            file.parts[i].times = i == heavy ? OpCosts{100, 200, 100, 100} : OpCosts{1, 2, 1, 1};
        }
        setup.plan.pipeline.cost_file = folder.write("c.json", to_json_text(file));
        const Program program = prepare(setup.plan, setup.data).program;
        EXPECT_TRUE(program.has_measured_costs);
        ASSERT_TRUE(program.balance);
        EXPECT_EQ(program.balance->cuts, program.training.split.cuts);
        EXPECT_GE(program.balance->bottleneck, 300);
        EXPECT_EQ(program.balance->lower_bound, 300);
        first_cut.push_back(program.training.split.cuts.at(0));
    }
    EXPECT_EQ(first_cut[0], file.parts.front().ops.end);
    EXPECT_EQ(first_cut[1], file.parts.back().ops.begin);
}

TEST(CostProfile, BitsAreThoseOfOneDevice) {
    const TemporaryFolder folder;
    for (const char* model : {"mlp", "tied"}) {
        Rig setup = set_up_tiny(model, folder.path("."), {"mesh.pp=2", "pipeline.split_method=AUTO"});
        setup.plan.pipeline.cost_file =
            folder.write("c.json", to_json_text(profile_costs(setup.plan, setup.data, test_device(), {}).file));
        setup.prepared = prepare(setup.plan, setup.data);
        setup.prepared.sources.place_on(test_device());
        const Program& program = setup.prepared.program;
        ASSERT_EQ(program.training.split.num_stages(), 2);
        const RunRecord reference = run_reference(setup, 3);
        const VerifyResult result = compare_runs(reference, run_program(setup, program, 3));
        EXPECT_TRUE(result.is_equal) << model << ": " << result.difference;
        EXPECT_GT(result.num_compared, 0);
    }
}

/// A run folder of two ranks, as train does it.
struct Provided {
    std::string log;
    std::string file;
    int claims = 0;
};

Provided provide(Rig& setup) {
    TextLog text;
    int claims = 0;
    InProcessWorld({.num_ranks = 2}).run([&](Transport& transport) {
        provide_costs(transport, setup.plan, setup.data, test_device(), text.log, [&] { ++claims; });
    });
    const std::filesystem::path path = std::filesystem::path(setup.plan.run.dir) / kRunCosts;
    return {text.text.str(), std::filesystem::exists(path) ? read_text_file(path, 1 << 20) : "", claims};
}

TEST(CostProfile, ARunMeasuresOnceAndAResumeGoesByTheSameFile) {
    const TemporaryFolder folder;
    Rig setup = set_up_tiny("mlp", folder.path("."),
                            {"mesh.pp=2", "pipeline.split_method=AUTO", "run.dir=" + folder.path("run")});
    EXPECT_TRUE(holds(setup.graph().warnings.back(), "has no measured costs here, so the cuts are by estimates"));
    const Provided first = provide(setup);
    EXPECT_TRUE(holds(first.log, "split_method = \"AUTO\": measured ")) << first.log;
    EXPECT_TRUE(holds(first.log, "which a resumed run goes by too")) << first.log;
    EXPECT_FALSE(first.file.empty());
    EXPECT_EQ(first.claims, 1) << "rank 0, before it writes";
    const Provided again = provide(setup);
    EXPECT_EQ(again.log, "");
    EXPECT_EQ(again.file, first.file);
    EXPECT_EQ(again.claims, 0);
    const Program program = prepare(setup.plan, setup.data).program;
    EXPECT_TRUE(program.has_measured_costs);
    for (const std::string& warning : program.training.graph.warnings) EXPECT_FALSE(holds(warning, "AUTO")) << warning;
    EXPECT_EQ(digest_of(program), digest_of(prepare(setup.plan, setup.data).program)) << "the file decides";

    setup.plan.train.global_batch_size = 12;
    const Provided other = provide(setup);
    EXPECT_TRUE(holds(other.log, "is of another model or other microbatches; costs are measured again"));
    EXPECT_NE(other.file, first.file);
    const auto refuse = [] { throw Error(ErrorKind::Output, "another job's"); };
    setup.plan.train.global_batch_size = 6;
    InProcessWorld({.num_ranks = 2}).run([&](Transport& transport) {
        const Error error =
            error_of([&] { provide_costs(transport, setup.plan, setup.data, test_device(), TextLog().log, refuse); });
        EXPECT_EQ(error.kind(), ErrorKind::Output);
    });
    EXPECT_EQ(read_text_file(std::filesystem::path(setup.plan.run.dir) / kRunCosts, 1 << 20), other.file);
}

TEST(CostProfile, NothingIsMeasuredForOtherMethods) {
    const TemporaryFolder folder;
    Rig setup = set_up_tiny("mlp", folder.path("."), {"mesh.pp=2", "run.dir=" + folder.path("run")});
    EXPECT_EQ(provide(setup).file, "");
}

TEST(CostProfile, ASearchedScheduleIsMeasuredForToo) {
    const TemporaryFolder folder;
    Rig setup = set_up_tiny("mlp", folder.path("."),
                            {"mesh.pp=2", "pipeline.schedule_type=AUTO", "run.dir=" + folder.path("run")});
    const Provided first = provide(setup);
    EXPECT_TRUE(holds(first.log, "schedule_type = \"AUTO\": measured ")) << first.log;
    EXPECT_FALSE(first.file.empty());
    EXPECT_TRUE(prepare(setup.plan, setup.data).program.has_measured_costs);
}

/// Data for which there is no memory, once a model runs.
class Endless final : public Dataset {
  public:
    explicit Endless(std::shared_ptr<Dataset> inner) : inner_(std::move(inner)) {}
    const Fields& fields() const override { return inner_->fields(); }
    void read(int64_t sample, int field, std::span<std::byte> out) const override { inner_->read(sample, field, out); }
    void read_draw(const Draw&, int, std::span<std::byte>) const override { throw std::bad_alloc(); }
    std::string digest() const override { return inner_->digest(); }

  private:
    std::shared_ptr<Dataset> inner_;
};

TEST(CostProfile, AModelThatDoesNotFitIsSaidSo) {
    const TemporaryFolder folder;
    Rig setup = set_up_tiny("mlp", folder.path("."), {"mesh.pp=2", "pipeline.split_method=AUTO"});
    const Datasets data{std::make_shared<Endless>(setup.data.training), nullptr};
    const Error error = error_of([&] { profile_costs(setup.plan, data, test_device(), {}); });
    EXPECT_EQ(error.kind(), ErrorKind::OutOfMemory);
    const std::string text = error.what();
    EXPECT_EQ(
        text.rfind("measuring costs runs the whole model with its gradients on one device, and there is no memory "
                   "for that (",
                   0),
        0u)
        << text;
    EXPECT_TRUE(holds(text,
                      "); smaller microbatches take less, and with pipeline.cost_file, measured on a larger "
                      "machine by vpp profile, nothing is measured here"))
        << text;
}

TEST(CostProfile, ARunsCostsThatCannotBeReadAreMeasuredAgain) {
    const TemporaryFolder folder;
    Rig setup = set_up_tiny("mlp", folder.path("."),
                            {"mesh.pp=2", "pipeline.split_method=AUTO", "run.dir=" + folder.path("run")});
    std::filesystem::create_directories(folder.path("run"));
    folder.write("run/costs.json", "{");
    const Provided broken = provide(setup);
    EXPECT_TRUE(holds(broken.log, "costs.json: ")) << broken.log;
    EXPECT_TRUE(holds(broken.log, "; costs are measured again")) << broken.log;
    EXPECT_EQ(broken.claims, 1);
    EXPECT_EQ(provide(setup).log, "");
}

TEST(CostProfile, MessagesAreTimed) {
    TransferTimes times{-1, -1};
    InProcessWorld({.num_ranks = 2}).run([&](Transport& transport) {
        const TransferTimes own = time_transfers(transport);
        if (transport.rank() == 0) times = own;
    });
    EXPECT_GT(times.ms, 0);
    EXPECT_GE(times.ms_per_mebibyte, 0);
}

}  // namespace
}  // namespace vpp::test
