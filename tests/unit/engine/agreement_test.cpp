#include "engine/agreement.hpp"

#include <atomic>

#include "unit/engine/support.hpp"

namespace vpp::test {
namespace {

class Agreement : public ::testing::Test {
  protected:
    TemporaryFolder folder_;
    Rig setup_ = set_up_tiny("mlp", folder_.path("."), {"mesh.pp=2"});

    /// What a world of two throws; `plan_of` gives each rank its plan.
    std::string error_with(ErrorKind kind, const std::function<Plan(int rank)>& plan_of) {
        std::atomic<int> failed{0};
        const auto body = [&](Transport& transport) {
            const Plan plan = plan_of(transport.rank());
            try {
                agree_on_program(transport, plan, setup_.data);
            } catch (const Error& error) {
                ++failed;
                EXPECT_TRUE(error.kind() == kind || error.kind() == ErrorKind::RankLost) << error.what();
                throw;
            }
        };
        const std::string text = error_of(kind, [&] { InProcessWorld({.num_ranks = 2}).run(body); });
        EXPECT_EQ(failed, 2) << "every rank ends";
        return text;
    }
};

TEST_F(Agreement, everyRankGetsRankZerosProgramAndCanRunIt) {
    std::vector<std::string> digests(2);
    RunRecord record;
    InProcessWorld({.num_ranks = 2}).run([&](Transport& transport) {
        Prepared prepared = agree_on_program(transport, setup_.plan, setup_.data, test_device());
        digests[static_cast<size_t>(transport.rank())] = to_hex(digest_of(prepared.program));
        Engine engine(setup_.plan, prepared.program, prepared.sources, setup_.data, transport);
        RunRecord own = record_run(engine, 2);
        if (transport.rank() == 0) record = std::move(own);
    });
    EXPECT_EQ(digests[0], digests[1]);
    RunRecord reference;
    with_reference(
        setup_.plan, setup_.prepared.program, setup_.data,
        [&](Engine& engine, Program&) { reference = record_run(engine, 2); }, test_device());
    EXPECT_TRUE(compare_runs(reference, record).is_equal);
}

TEST_F(Agreement, refusesRanksWithDifferentPlans) {
    const std::string text = error_with(ErrorKind::RanksDisagree, [&](int rank) {
        Plan plan = setup_.plan;
        if (rank == 1) plan.resolved_text += "# other\n";
        return plan;
    });
    EXPECT_HAS(text, "the plan");
}

/// Data of other bytes.
class OtherData : public Dataset {
  public:
    explicit OtherData(const Dataset& data) : data_(data) {}
    const Fields& fields() const override { return data_.fields(); }
    void read(int64_t sample, int field, std::span<std::byte> out) const override { data_.read(sample, field, out); }
    std::string digest() const override { return "other"; }

  private:
    const Dataset& data_;
};

TEST_F(Agreement, refusesRanksWithDifferentData) {
    const auto expect_refused = [&](const Datasets& others) {
        const auto body = [&](Transport& transport) {
            agree_on_program(transport, setup_.plan, transport.rank() == 1 ? others : setup_.data);
        };
        EXPECT_HAS(error_of(ErrorKind::RanksDisagree, [&] { InProcessWorld({.num_ranks = 2}).run(body); }),
                   "the data files differs between ranks: rank 0 has ");
    };
    Datasets training = setup_.data, validation = setup_.data;
    training.training = std::make_shared<OtherData>(*setup_.data.training);
    expect_refused(training);
    validation.validation = std::make_shared<OtherData>(*setup_.data.training);
    expect_refused(validation);
}

TEST_F(Agreement, refusesRanksWithDifferentThreads) {
    const std::string text = error_with(ErrorKind::RanksDisagree, [&](int rank) {
        Plan plan = setup_.plan;
        plan.mesh.threads = 1 + rank;
        return plan;
    });
    EXPECT_HAS(text, "the numeric environment");
    EXPECT_HAS(text, "2 threads");
}

TEST_F(Agreement, refusesARankWithAnotherModelFile) {
    save_tiny_model("share", folder_.path("other.pt"));
    const std::string text = error_with(ErrorKind::RanksDisagree, [&](int rank) {
        Plan plan = setup_.plan;
        if (rank == 1) plan.model.file = folder_.path("other.pt");
        return plan;
    });
    EXPECT_HAS(text, "this rank reads another model file than rank 0");
}

TEST_F(Agreement, aProgramThatCannotBePreparedIsTheErrorOfAllRanks) {
    const std::string text = error_with(ErrorKind::MissingInput, [&](int) {
        Plan plan = setup_.plan;
        plan.model.file = folder_.path("nowhere.pt");
        return plan;
    });
    EXPECT_HAS(text, "nowhere.pt");
}

TEST_F(Agreement, groupsThatMatchNothingAreRefusedWithTheirPlace) {
    const std::string text = plan_text(folder_.path("mlp.pt"), tiny_model("mlp").fields,
                                       "[[optimizer.group]]\nmatch = [\"*.bais\"]\nweight_decay = 0.0\n");
    const Rig setup = set_up(text);
    EXPECT_HAS(error_of(ErrorKind::Plan, [&] { check_model_rules(setup.plan, setup.prepared.program); }), "*.bais");
    Program program = setup.prepared.program;
    program.training.graph.parameters.front().name = "of.bais";
    program.training.graph.parameters.front().requires_grad = false;
    EXPECT_HAS(error_of(ErrorKind::Plan, [&] { check_model_rules(setup.plan, program); }),
               "no parameter that '*.bais' matches is trained ('of.bais' is frozen)");
    EXPECT_NO_THROW(check_model_rules(setup_.plan, setup_.prepared.program));
}

TEST_F(Agreement, aWarmUpThatIsLongerThanAllEpochsIsRefused) {
    Plan plan = setup_.plan;
    plan.train.steps.reset();
    plan.train.epochs = 1;
    EXPECT_NO_THROW(check_model_rules(plan, setup_.prepared.program));
    plan.lr_schedule.warmup_steps = 100'000;
    EXPECT_HAS(error_of(ErrorKind::Plan, [&] { check_model_rules(plan, setup_.prepared.program); }),
               "the warm-up is longer than the training (got warmup_steps 100000, train.epochs 1 = ");
    plan.pipeline.forward_only = true;
    EXPECT_NO_THROW(check_model_rules(plan, setup_.prepared.program)) << "it trains nothing";
}

TEST_F(Agreement, aLossThatTrainsNothingIsRefused) {
    Program program = setup_.prepared.program;
    Graph& graph = program.training.graph;
    for (int tensor : graph.values[static_cast<size_t>(graph.loss)].tensors) {
        graph.tensors[static_cast<size_t>(tensor)].requires_grad = false;
    }
    EXPECT_HAS(error_of(ErrorKind::BadData, [&] { check_model_rules(setup_.plan, program); }),
               "the loss leads back to no parameter that is trained, so none would ever change");
    for (GraphParameter& parameter : graph.parameters) parameter.requires_grad = false;
    EXPECT_NO_THROW(check_model_rules(setup_.plan, program)) << "as asked: all of them are frozen";
}

TEST_F(Agreement, theNumericEnvironmentIsAText) {
    const NumericEnvironment environment{"2.11.0", "AVX512", 4, ""};
    EXPECT_EQ(environment.text(), "LibTorch 2.11.0, AVX512, 4 threads");
    const NumericEnvironment on_card{"2.11.0", "AVX512", 1, "NVIDIA H200 (9.0), CUDA 13.0"};
    EXPECT_EQ(on_card.text(), "LibTorch 2.11.0, AVX512, 1 thread, NVIDIA H200 (9.0), CUDA 13.0");
    EXPECT_EQ(numeric_environment(setup_.plan).threads, 1);
    EXPECT_FALSE(numeric_environment(setup_.plan).cpu_capability.empty());
}

}  // namespace
}  // namespace vpp::test
