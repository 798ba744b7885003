#include "stage/pass.hpp"

#include <ATen/TensorOperators.h>
#include <torch/csrc/autograd/function.h>

#include <set>

#include "engine/loader.hpp"
#include "stage/batch_statistics.hpp"
#include "support/pipeline.hpp"
#include "unit/stage/support.hpp"

namespace vpp::test {
namespace {

/// The whole of a tiny model as one segment.
class Whole {
  public:
    explicit Whole(const std::string& model, const std::vector<std::string>& set = {}, bool is_recomputed = false)
        : setup_(set_up_tiny(model, folder_.path("."), set)),
          split_(make_stages(setup_.graph(), {}, recomputed(is_recomputed))),
          io_(find_segment_io(setup_.graph(), split_, 0)) {
        weights_.load(*setup_.prepared.sources.training, split_, {0});
        weights_ = BatchStatistics(setup_.graph(), weights_).seen_by_ops();
        runner_ = std::make_unique<PassRunner>(setup_.graph(), split_, 0, io_, *setup_.prepared.sources.training,
                                               weights_, true);
    }

    PassInputs inputs(uint64_t key = 7) const {
        const Loader loader(*setup_.data.training, setup_.graph());
        PassInputs inputs;
        inputs.key = key;
        for (size_t i = 0; i < setup_.graph().inputs.size(); ++i) {
            const GraphValue& value = setup_.graph().values[static_cast<size_t>(setup_.graph().inputs[i].value)];
            const std::vector<Draw> draws{{0}, {1}};
            inputs.tensors[value.tensors[0]] = loader.load(static_cast<int>(i), draws).to(test_device());
        }
        return inputs;
    }

    PassRunner& runner() { return *runner_; }

    std::string buffers() const {
        std::string text;
        const auto& parameters = setup_.graph().parameters;
        for (size_t i = 0; i < parameters.size(); ++i) {
            if (parameters[i].is_buffer) text += form_of(weights_.at(static_cast<int>(i))) + "|";
        }
        return text;
    }

  private:
    std::vector<OpRange> recomputed(bool all) const {
        return all ? std::vector<OpRange>{{0, setup_.graph().num_ops()}} : std::vector<OpRange>();
    }

    TemporaryFolder folder_;
    Rig setup_;
    Split split_;
    SegmentIo io_;
    Weights weights_;
    std::unique_ptr<PassRunner> runner_;
};

TEST(PassRunner, aSecondRunFromSavedInputsHasTheBitsOfTheFirst) {
    for (const char* model : {"bn_cnn", "dropout", "views", "containers"}) {
        Whole whole(model);
        const PassInputs inputs = whole.inputs();
        const PassInputs saved = whole.runner().save(inputs);
        const std::string first = form_of(whole.runner().run(inputs).loss);
        EXPECT_EQ(form_of(whole.runner().run(saved).loss), first) << model;
    }
}

TEST(PassRunner, aWeightThatMayBeWrittenIsTrainedFromItsOldState) {
    Whole whole("kept");
    const PassInputs saved = whole.runner().save(whole.inputs());
    ASSERT_EQ(saved.old_state.size(), 1u) << "w2, as far as can be seen";
    whole.runner().run(saved).loss.backward();
    const std::vector<at::Tensor> trained = whole.runner().trained();
    EXPECT_EQ(trained.size(), 6u);
    for (const at::Tensor& weight : trained) EXPECT_TRUE(weight.grad().defined()) << weight.sizes();
}

TEST(PassRunner, whatBackwardWantsOutlivesLaterMicrobatches) {
    Whole alone("remembers"), whole("remembers");
    alone.runner().run(alone.inputs()).loss.backward();
    const Pass first = whole.runner().run(whole.inputs());
    const std::string once = whole.buffers();
    whole.runner().run(whole.inputs());
    EXPECT_NE(whole.buffers(), once) << "the second one writes what the first one reads";
    first.loss.backward();
    const std::vector<at::Tensor> expected = alone.runner().trained(), trained = whole.runner().trained();
    ASSERT_EQ(trained.size(), 4u);
    for (size_t i = 0; i < trained.size(); ++i) EXPECT_EQ(form_of(trained[i].grad()), form_of(expected[i].grad())) << i;
}

class PassRunnerWithBuffers : public ::testing::TestWithParam<bool> {};

TEST_P(PassRunnerWithBuffers, advancesThemOnceAlthoughTheOpsRunTwice) {
    Whole whole("bn_cnn", {std::string("pipeline.deferred_batch_norm=") + (GetParam() ? "true" : "false")});
    const std::string before = whole.buffers();
    const PassInputs inputs = whole.inputs();
    PassInputs saved = whole.runner().save(inputs);
    EXPECT_EQ(saved.old_state.size(), 6u) << "mean, variance and count of two layers";
    whole.runner().run(inputs);
    const std::string once = whole.buffers();
    EXPECT_NE(once, before);
    whole.runner().run(saved);
    EXPECT_EQ(whole.buffers(), once);
    saved.old_state.clear();
    whole.runner().run(saved);
    EXPECT_NE(whole.buffers(), once) << "the control: without what was saved they advance again";
}

INSTANTIATE_TEST_SUITE_P(deferredBatchNorm, PassRunnerWithBuffers, ::testing::Bool());

TEST(PassRunner, masksFollowTheKey) {
    Whole whole("dropout");
    const std::string one = form_of(whole.runner().run(whole.inputs(1)).loss);
    EXPECT_EQ(form_of(whole.runner().run(whole.inputs(1)).loss), one);
    EXPECT_NE(form_of(whole.runner().run(whole.inputs(2)).loss), one);
}

TEST(RunModel, whatOpsThrowIsTheModelsFaultAndMemoryIsNot) {
    EXPECT_HAS(error_of(ErrorKind::BadData, [] { run_model([] { throw std::runtime_error("shapes"); }); }),
               "the model fails: shapes");
    const std::string text = error_of(ErrorKind::BadData, [] { run_model([] { TORCH_CHECK(false, "no such dim"); }); });
    EXPECT_EQ(text, "the model fails: no such dim") << "without LibTorch's own stack";
    EXPECT_THROW(run_model([] { throw std::runtime_error("DefaultCPUAllocator: can't allocate memory"); }),
                 std::bad_alloc);
}

/// What a microbatch gives: its loss and the gradients of all weights.
std::string trained_form(Whole& whole) {
    for (const at::Tensor& weight : whole.runner().trained()) weight.mutable_grad().reset();
    const Pass pass = whole.runner().run(whole.inputs());
    pass.loss.backward();
    std::string text = form_of(pass.loss);
    for (const at::Tensor& weight : whole.runner().trained()) text += "|" + form_of(weight.grad());
    return text;
}

int64_t num_shared_casts(const Pass& pass) {
    std::set<torch::autograd::Node*> seen{pass.loss.grad_fn().get()};
    std::vector<torch::autograd::Node*> open(seen.begin(), seen.end());
    int64_t count = 0;
    while (!open.empty()) {
        const torch::autograd::Node* node = open.back();
        open.pop_back();
        count += node->name() == "vpp::CastNode" ? 1 : 0;
        for (const torch::autograd::Edge& edge : node->next_edges()) {
            if (edge.function && seen.insert(edge.function.get()).second) open.push_back(edge.function.get());
        }
    }
    return count;
}

TEST(PassRunner, whatIsRecomputedCastsItsWeightsItself) {
    Whole whole("mlp", {"train.precision=bf16"}, true);
    whole.runner().begin_step();
    EXPECT_EQ(num_shared_casts(whole.runner().run(whole.inputs())), 0);
}

TEST(PassRunner, microbatchesOfAStepShareCastsOfWeightsAndHaveTheSameBits) {
    for (const char* model : {"mlp", "bn_cnn", "tied"}) {
        Whole whole(model, {"train.precision=bf16"});
        const std::string before = trained_form(whole);
        EXPECT_EQ(num_shared_casts(whole.runner().run(whole.inputs())), 0) << "no step has begun";
        whole.runner().begin_step();
        EXPECT_GT(num_shared_casts(whole.runner().run(whole.inputs())), 2) << model;
        EXPECT_EQ(trained_form(whole), before) << model;
        for (const at::Tensor& weight : whole.runner().trained()) weight.detach().mul_(1.5);
        const std::string updated = trained_form(whole);
        EXPECT_NE(updated, before) << "what a weight was is not used";
        whole.runner().begin_step();
        EXPECT_EQ(trained_form(whole), updated) << model;
    }
}

}  // namespace
}  // namespace vpp::test
