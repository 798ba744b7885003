#include "engine/verify_matrix.hpp"

#include <memory>
#include <set>

#include "comm/passing_transport.hpp"
#include "graph/split.hpp"
#include "unit/engine/support.hpp"

namespace vpp::test {
namespace {

class VerifyMatrix : public ::testing::Test {
  protected:
    void open(const std::string& model) { rig_.emplace(set_up_tiny(model, folder_.path("."))); }

    MatrixResult run(const VerifyRequest& request, int world, const Faults& faults = {}) {
        return run(list_layouts(rig_->plan, request), request, world, faults);
    }

    MatrixResult run(const std::vector<LayoutChoice>& choices, const VerifyRequest& request, int world,
                     const Faults& faults = {}) {
        MatrixResult result;
        InProcessOptions options;
        options.num_ranks = world;
        InProcessWorld(options).run([&](Transport& job) {
            LayoutVerifier verifier(rig_->prepared.sources, rig_->data, job, request.steps, faults);
            const MatrixResult own =
                verify_matrix(rig_->plan, rig_->prepared.program, choices, verifier, job, request.steps, request.seed);
            if (job.rank() == 0) result = own;
        });
        return result;
    }

    TemporaryFolder folder_;
    std::optional<Rig> rig_;
};

VerifyRequest small_request() {
    VerifyRequest request;
    request.steps = 2;
    return request;
}

TEST_F(VerifyMatrix, WithoutWishesItIsThePlansOwnLayout) {
    open("mlp");
    const auto choices = list_layouts(rig_->plan, small_request());
    ASSERT_EQ(choices.size(), 1U);
    EXPECT_EQ(choices[0].text(), "1F1B, 1 rank x 1, M 3, FLOPS");
}

TEST_F(VerifyMatrix, SpansEveryCombinationOnce) {
    open("mlp");
    VerifyRequest request = small_request();
    request.all_schedules = request.all_splits = true;
    request.random_cuts = 2;
    request.microbatches = {1, 4};
    request.stages = {1, 2, 3};
    const auto choices = list_layouts(rig_->plan, request);
    std::set<std::string> texts, schedules, splits;
    for (const LayoutChoice& choice : choices) {
        texts.insert(choice.text());
        schedules.insert(choice.schedule);
        splits.insert(choice.split);
    }
    EXPECT_EQ(texts.size(), choices.size());
    EXPECT_GE(schedules.size(), 5U);
    EXPECT_FALSE(schedules.contains("FORWARD_ONLY"));
    EXPECT_FALSE(schedules.contains("CUSTOM"));
    EXPECT_TRUE(splits.contains("UNIFORM") && splits.contains("FLOPS") && splits.contains("random"));
    EXPECT_FALSE(splits.contains("MANUAL")) << "without split points it says nothing";
    EXPECT_EQ(choices.size() % (2 * 3), 0U);
}

TEST_F(VerifyMatrix, AllCombinationsOfAModelAreEqualAndTheRefusedOnesCounted) {
    open("share");
    VerifyRequest request = small_request();
    request.all_schedules = true;
    request.random_cuts = 1;
    request.microbatches = {1, 4};
    request.stages = {1, 2, 3};
    const MatrixResult result = run(request, 3);
    EXPECT_TRUE(result.is_equal()) << result.first_difference;
    EXPECT_EQ(result.num_references, 2) << "one for each number of microbatches";
    const auto choices = list_layouts(rig_->plan, request);
    EXPECT_EQ(static_cast<size_t>(result.all.equal + result.all.refused), choices.size());
    EXPECT_GT(result.all.equal, 20);
    EXPECT_GT(result.by_schedule.at("INTERLEAVED_1F1B").equal, 0);
    size_t refused = 0;
    for (const auto& [reason, layouts] : result.refused) refused += layouts.size();
    EXPECT_EQ(refused, static_cast<size_t>(result.all.refused));
    EXPECT_EQ(result.by_kind.at("norm"), result.all.equal * request.steps);
}

TEST_F(VerifyMatrix, EveryScheduleIsExactOnEveryKindOfModel) {
    VerifyRequest request = small_request();
    request.all_schedules = true;
    request.random_cuts = 1;
    request.stages = {2, 3};
    request.microbatches = {6};
    for (const char* model : {"tied", "two_tower", "unet", "bn_cnn", "dropout", "containers", "written"}) {
        open(model);
        request.seed += 1;
        const MatrixResult result = run(request, 3);
        EXPECT_TRUE(result.is_equal()) << model << ": " << result.first_difference << result.first_cuts;
        EXPECT_GT(result.all.equal, 25) << model;
        EXPECT_EQ(result.all.equal * request.steps * 6, result.by_kind.at("loss"));
    }
}

/// As one with links between cards, through the host as long as a rank takes memory.
class MindsTheHost final : public PassingTransport {
  public:
    using PassingTransport::PassingTransport;
    bool goes_through_host() const override { return is_through_host_; }
    void set_through_host(bool is_so) override { is_through_host_ = is_so; }

  private:
    bool is_through_host_ = false;
};

TEST_F(VerifyMatrix, LayoutsThatSentNothingOverLinksAreNamed) {
    open("mlp");
    VerifyRequest request = small_request();
    request.random_cuts = 1;
    request.stages = {1, 2};
    request.steps = 6;  // on a card as many as four take memory
    const Faults faults{.program = {},
                        .transport = [](Transport& job) { return std::make_unique<MindsTheHost>(job); },
                        .after_step = {}};
    EXPECT_EQ(run(request, 2, faults).through_host, std::vector<std::string>{}) << "only the first steps take memory";
    request.steps = 1;
    EXPECT_EQ(run(request, 2, faults).through_host, std::vector<std::string>{"1F1B, 2 ranks x 1, M 3, random:0"});
    EXPECT_EQ(run(request, 2).through_host, std::vector<std::string>{}) << "there are no links";
}

TEST_F(VerifyMatrix, RecomputeIsAnAxis) {
    open("unet");
    VerifyRequest request = small_request();
    request.random_cuts = 1;
    request.stages = {2};
    request.recompute = {"none", "stage", "stage:except_last", "units", "modules:nothing"};
    const auto choices = list_layouts(rig_->plan, request);
    ASSERT_EQ(choices.size(), 5U);
    EXPECT_EQ(choices[1].text(), "1F1B, 2 ranks x 1, M 3, random:0, recompute stage");
    const auto segments = [&](const LayoutChoice& choice) {
        const Layout layout = make_layout(rig_->plan, rig_->prepared.program, choice, 1);
        int again = 0;
        for (const SegmentSpec& segment : layout.program.training.split.segments) again += segment.recompute;
        return again;
    };
    EXPECT_EQ(segments(choices[0]), 0);
    EXPECT_EQ(segments(choices[1]), 2);
    const MatrixResult result = run(request, 2);
    EXPECT_TRUE(result.is_equal()) << result.first_difference;
    EXPECT_EQ(result.all.equal, 3);
    EXPECT_EQ(result.refused.size(), 2U) << "no units, no such module";
    request.recompute = {"sometimes"};
    EXPECT_HAS(error_of(ErrorKind::CommandLine, [&] { list_layouts(rig_->plan, request); }), "got sometimes");
}

TEST_F(VerifyMatrix, AFewCombinationsHaveEveryPair) {
    open("tied");
    VerifyRequest request = small_request();
    request.all_schedules = true;
    request.random_cuts = 2;
    request.stages = {1, 2};
    request.microbatches = {1, 4};
    request.recompute = {"none", "stage"};
    const auto choices = list_layouts(rig_->plan, request);
    const PairwiseLayouts few = choose_pairwise(rig_->plan, rig_->prepared.program, choices, request.seed);
    EXPECT_EQ(few.num_combinations, choices.size());
    EXPECT_GT(few.num_impossible, 0U) << "some schedules refuse one stage a rank";
    const MatrixResult result = run(few.choices, request, 2);
    EXPECT_TRUE(result.is_equal()) << result.first_difference;
    EXPECT_EQ(result.all.equal + result.all.refused, static_cast<int>(few.choices.size()));
    EXPECT_LT(result.all.equal * 4, static_cast<int>(choices.size()));
    for (const LayoutChoice& choice : choices)
        EXPECT_GT(result.by_schedule.at(choice.schedule).equal, 0) << choice.schedule;
}

TEST_F(VerifyMatrix, OneBrokenLayoutIsNamedWithItsCuts) {
    open("mlp");
    VerifyRequest request = small_request();
    request.stages = {1, 2, 3};
    request.random_cuts = 1;
    Faults faults;
    faults.program = [](Program& program) {  // only three stages lose a backward
        if (program.mesh.pp == 3) std::erase(program.training.schedule.actions[0], Action{ActionKind::B, 0, 2});
    };
    const MatrixResult result = run(request, 3, faults);
    EXPECT_FALSE(result.is_equal());
    EXPECT_EQ(result.all.equal, 2);
    EXPECT_EQ(result.different, std::vector<std::string>{"1F1B, 3 ranks x 1, M 3, random:0"});
    EXPECT_HAS(result.first_cuts, "cut before ops ");
    EXPECT_HAS(result.first_difference, "from microbatch 2 on");
}

TEST_F(VerifyMatrix, NothingComparedIsAnError) {
    open("mlp");
    VerifyRequest request = small_request();
    request.random_cuts = 1;
    request.chunks = {1000};
    EXPECT_HAS(error_of(ErrorKind::Plan, [&] { run(request, 1); }),
               "nothing was compared: the only combination was refused, since ");
    request.chunks = {1000, 1001};
    EXPECT_HAS(error_of(ErrorKind::Plan, [&] { run(request, 1); }),
               "nothing was compared: all 2 combinations were refused; 1 (1F1B, 1 rank x 1000, M 3, random:0) since ");
    EXPECT_HAS(error_of(ErrorKind::Plan, [&] { run(std::vector<LayoutChoice>{}, request, 1); }),
               "nothing was compared: there is no combination");
}

// A rule of one schedule comes first by name, and is not what all of them have in common.
TEST_F(VerifyMatrix, WhatMostCombinationsAreRefusedForIsSaidFirst) {
    open("mlp");
    VerifyRequest request = small_request();
    request.all_schedules = true;
    request.recompute = {"modules:nothing"};
    request.stages = {2};
    const std::string text = error_of(ErrorKind::Plan, [&] { run(request, 2); });
    EXPECT_HAS(text, " and others) since ");
    EXPECT_LT(text.find("nothing"), text.find("DUALPIPE_V needs")) << text;
    EXPECT_HAS(text, "DUALPIPE_V needs");
}

TEST_F(VerifyMatrix, StagesByHandSayHowManyRanksThereAre) {
    open("mlp");
    PipelinePlan& pipeline = rig_->plan.pipeline;
    pipeline.mode = "MANUAL_EAGER";
    pipeline.stages.resize(4);
    VerifyRequest request = small_request();
    const auto texts = [&] {
        std::vector<std::string> found;
        for (const LayoutChoice& choice : list_layouts(rig_->plan, request)) found.push_back(choice.text());
        return found;
    };
    using Texts = std::vector<std::string>;
    EXPECT_EQ(texts(), Texts{"1F1B, 1 rank x 1, M 3, MANUAL_EAGER"});
    request.chunks = {1, 2};
    EXPECT_EQ(texts(), (Texts{"1F1B, 4 ranks x 1, M 3, MANUAL_EAGER", "1F1B, 2 ranks x 2, M 3, MANUAL_EAGER"}));
    request.chunks = {3};
    EXPECT_EQ(texts(), Texts{"1F1B, 1 rank x 3, M 3, MANUAL_EAGER"}) << "which is refused with words";
    request.stages = {4};
    request.chunks = {1, 2};
    EXPECT_EQ(texts(), (Texts{"1F1B, 4 ranks x 1, M 3, MANUAL_EAGER", "1F1B, 4 ranks x 2, M 3, MANUAL_EAGER"}));
    request.random_cuts = 1;
    EXPECT_EQ(texts().size(), 2U) << "the model of all tables is cut elsewhere";
    request.all_splits = true;
    EXPECT_HAS(error_of(ErrorKind::CommandLine, texts), "--all-splits has no meaning in mode = \"MANUAL_EAGER\"");
}

TEST_F(VerifyMatrix, RandomCutsAreLegalAscendingAndAFunctionOfTheKey) {
    open("views");
    const std::vector<int> legal = rig_->legal_cuts();
    std::set<std::vector<int>> seen;
    for (uint64_t key = 0; key < 40; ++key) {
        const std::vector<int> cuts = random_cuts(rig_->graph(), 3, key);
        EXPECT_EQ(cuts, random_cuts(rig_->graph(), 3, key));
        ASSERT_EQ(cuts.size(), 2U);
        EXPECT_LT(cuts[0], cuts[1]);
        for (int cut : cuts) EXPECT_TRUE(std::find(legal.begin(), legal.end(), cut) != legal.end());
        seen.insert(cuts);
    }
    EXPECT_GT(seen.size(), 5U);
    EXPECT_TRUE(random_cuts(rig_->graph(), 1, 0).empty());
    EXPECT_HAS(error_of(ErrorKind::Plan, [&] { random_cuts(rig_->graph(), 1000, 0); }),
               "legal cuts, 1000 stages need 999");
}

TEST_F(VerifyMatrix, ALayoutKeepsTheSizeOfAMicrobatch) {
    open("mlp");
    const LayoutChoice choice{2, 1, false, 8, "GPIPE", 1, "UNIFORM", 0, ""};
    rig_->plan.pipeline.uniform_split_ops = true;
    const Layout layout = make_layout(rig_->plan, rig_->prepared.program, choice, 1);
    EXPECT_EQ(*layout.plan.train.global_batch_size, 16);
    EXPECT_EQ(layout.program.training.schedule.num_microbatches, 8);
    EXPECT_EQ(layout.program.mesh.num_ranks(), 2);
    EXPECT_EQ(layout.program.training.schedule.name, "GPIPE");
}

}  // namespace
}  // namespace vpp::test
