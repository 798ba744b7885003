#include "stage/segment.hpp"

#include <ATen/ops/ones.h>
#include <c10/core/StorageImpl.h>

#include <algorithm>

#include "data/synthetic.hpp"
#include "engine/loader.hpp"
#include "stage/message.hpp"
#include "support/pipeline.hpp"
#include "unit/stage/support.hpp"

namespace vpp::test {
namespace {

/// A tiny model cut anywhere, run microbatch by microbatch without engine or schedule.
class Line {
  public:
    Line(Rig& setup, const std::vector<int>& cuts, bool training = true, int recomputed_microbatches = 0)
        : setup_(setup),
          split_(make_stages(setup.graph(), cuts, recomputed_microbatches > 0 ? ranges(setup, cuts) : Ranges{})),
          loader_(*setup.data.training, setup.graph()) {
        std::vector<int> all;
        for (int i = 0; i < split_.num_stages(); ++i) all.push_back(i);
        weights_.load(*setup.prepared.sources.training, split_, all);
        SegmentOptions options;
        options.training = training;
        options.loss_scale = 1.0 / 3;
        options.recomputed_microbatches = recomputed_microbatches;
        for (int i : all) {
            stages_.push_back(std::make_unique<Segment>(setup.graph(), split_, i, *setup.prepared.sources.training,
                                                        weights_, options));
            stages_.back()->begin_step();
        }
    }

    Segment& stage(int index) { return *stages_[static_cast<size_t>(index)]; }
    const Split& split() const { return split_; }
    const at::Tensor& weight(const std::string& name) const {
        const auto& parameters = setup_.graph().parameters;
        const auto found =
            std::find_if(parameters.begin(), parameters.end(), [&](const auto& p) { return p.name == name; });
        return weights_.at(static_cast<int>(found - parameters.begin()));
    }

    void feed(int index, int microbatch) {
        const std::vector<Draw> draws{{2 * microbatch}, {2 * microbatch + 1}};
        for (int input : split_.stages[static_cast<size_t>(index)].inputs) {
            stage(index).set_input(microbatch, input, loader_.load(input, draws).to(test_device()));
        }
    }

    void forward(int index, int microbatch) {
        feed(index, microbatch);
        stage(index).forward(microbatch, static_cast<uint64_t>(microbatch));
        for (int id : stage(index).io().exports) {
            const Edge& edge = split_.edges[static_cast<size_t>(id)];
            Segment& to = stage(edge.consumer);
            if (edge.is_bundle()) {
                to.receive_values(microbatch, edge, stage(index).take_values(microbatch, edge));
            } else {
                const at::Tensor tensor = stage(index).take_tensor(microbatch, edge);
                to.receive_tensor(microbatch, edge, tensor.detach(), tensor.requires_grad());
            }
        }
    }

    void backward(int index, int microbatch) {
        stage(index).backward(microbatch);
        for (const Edge& edge : split_.edges) {
            if (edge.consumer != index || !edge.has_gradient) continue;
            stage(edge.gradient_to).add_gradient(microbatch, edge, stage(index).take_gradient(microbatch, edge));
        }
    }

    /// I or W, and what it hands back.
    void half(int index, int microbatch, bool weights) {
        if (weights)
            stage(index).weight_gradients(microbatch);
        else
            stage(index).input_gradients(microbatch);
        for (const Edge& edge : split_.edges) {
            if (edge.consumer != index || !edge.has_gradient || edge.is_tied() != weights) continue;
            stage(edge.gradient_to).add_gradient(microbatch, edge, stage(index).take_gradient(microbatch, edge));
        }
    }

    void run(int microbatch) {
        for (int i = 0; i < split_.num_stages(); ++i) forward(i, microbatch);
        for (int i = split_.num_stages() - 1; i >= 0; --i) backward(i, microbatch);
    }

    /// All gradients as text.
    std::string gradients() const {
        std::string text;
        for (int parameter : weights_.owned()) text += form_of(weights_.at(parameter).grad()) + "|";
        return text;
    }

  private:
    using Ranges = std::vector<OpRange>;

    /// Every stage is recomputed as a whole.
    static Ranges ranges(const Rig& setup, const std::vector<int>& cuts) {
        Ranges ranges;
        for (const StageSpec& stage : make_stages(setup.graph(), cuts).stages) ranges.push_back(stage.ops);
        return ranges;
    }

    Rig& setup_;
    Split split_;
    Loader loader_;
    Weights weights_;
    std::vector<std::unique_ptr<Segment>> stages_;
};

class SegmentTest : public ::testing::Test {
  protected:
    Rig open_tiny(const std::string& name) { return set_up_tiny(name, folder_.path(".")); }
    TemporaryFolder folder_;
};

std::string reference_gradients(Rig& setup, int num_microbatches) {
    Line line(setup, {});
    for (int m = 0; m < num_microbatches; ++m) line.run(m);
    return line.gradients();
}

/// Where the most used value of a model is used: the cuts right behind its uses.
struct Shared {
    int tensor = -1;
    std::vector<int> cuts;
};
Shared find_shared(const Rig& setup) {
    const GraphValue* most = nullptr;
    for (const GraphValue& value : setup.graph().values) {
        if (value.producer >= 0 && value.is_tensor && (!most || value.uses.size() > most->uses.size())) most = &value;
    }
    Shared shared{most->tensors[0], {}};
    for (int use : most->uses) {
        if (use + 1 < setup.graph().num_ops() && setup.graph().cuts[static_cast<size_t>(use) + 1].legal) {
            shared.cuts.push_back(use + 1);
        }
    }
    return shared;
}

TEST_F(SegmentTest, hasTheBitsOfTheUncutModel) {
    Rig setup = open_tiny("share");
    const std::string expected = reference_gradients(setup, 3);
    const Shared shared = find_shared(setup);
    Line line(setup, {shared.cuts.at(0), shared.cuts.at(2)});
    for (int m = 0; m < 3; ++m) line.run(m);
    EXPECT_EQ(line.gradients(), expected);
}

TEST_F(SegmentTest, backwardInAnyOrderHasTheSameBits) {
    Rig setup = open_tiny("share");
    const std::string expected = reference_gradients(setup, 3);
    Line line(setup, {find_shared(setup).cuts.at(1)});
    for (int m = 0; m < 3; ++m) line.forward(0, m);
    for (int m = 0; m < 3; ++m) line.forward(1, m);
    for (int m : {2, 1, 0}) line.backward(1, m);
    EXPECT_EQ(line.stage(1).parked_bytes(), 0) << "all of its turns came";
    for (int m : {1, 2, 0}) line.backward(0, m);
    EXPECT_EQ(line.stage(0).parked_bytes(), 0);
    EXPECT_EQ(line.gradients(), expected);
}

// The control of the order of sums: the gradient of the last stage goes straight to the producer, where it is added to
// that of the middle one, instead of through it. The numbers are as right, the bits are not.
TEST_F(SegmentTest, sumsInAnotherOrderAreSeen) {
    Rig setup = open_tiny("share");
    const std::string expected = reference_gradients(setup, 1);
    const Shared shared = find_shared(setup);
    int different = 0, tried = 0;
    for (size_t a = 0; a + 1 < shared.cuts.size(); ++a) {
        for (size_t b = a + 1; b < shared.cuts.size(); ++b) {
            Line line(setup, {shared.cuts[a], shared.cuts[b]});
            for (int i = 0; i < 3; ++i) line.forward(i, 0);
            const Edge *near = nullptr, *far = nullptr;
            for (const Edge& edge : line.split().edges) {
                if (edge.tensor != shared.tensor) continue;
                (edge.consumer == 2 ? far : near) = &edge;
            }
            if (!near || !far) continue;
            ++tried;
            line.stage(2).backward(0);
            const at::Tensor last = line.stage(2).take_gradient(0, *far);
            for (const Edge& edge : line.split().edges) {
                if (edge.consumer != 2 || !edge.has_gradient || &edge == far) continue;
                line.stage(edge.gradient_to).add_gradient(0, edge, line.stage(2).take_gradient(0, edge));
            }
            line.stage(1).backward(0);
            const at::Tensor middle = line.stage(1).take_gradient(0, *near);
            for (const Edge& edge : line.split().edges) {
                if (edge.consumer != 1 || !edge.has_gradient || &edge == near) continue;
                line.stage(0).add_gradient(0, edge, line.stage(1).take_gradient(0, edge));
            }
            line.stage(0).add_gradient(0, *near, middle + last);
            line.stage(0).backward(0);
            different += line.gradients() != expected;
        }
    }
    EXPECT_GT(tried, 3);
    EXPECT_GT(different, 0) << "the model does not tell orders of sums apart, so it proves nothing";
}

TEST_F(SegmentTest, halvesHaveTheBitsOfOneBackwardWhateverLiesBetween) {
    for (const char* name : {"share", "unet", "bn_cnn", "dropout", "tied", "two_tower"}) {
        Rig setup = open_tiny(name);
        const std::string expected = reference_gradients(setup, 3);
        const std::vector<int> legal = setup.legal_cuts();
        Line line(setup, {legal[legal.size() / 3], legal[2 * legal.size() / 3]});
        for (int m = 0; m < 3; ++m) {
            for (int i = 0; i < 3; ++i) line.forward(i, m);
            for (int i : {2, 1, 0}) line.half(i, m, /*weights=*/false);
        }
        EXPECT_EQ(line.gradients().find("Float"), std::string::npos) << "I touches no .grad";
        for (int m : {2, 0, 1}) {
            for (int i : {2, 1, 0}) line.half(i, m, /*weights=*/true);
        }
        EXPECT_EQ(line.gradients(), expected) << name;
    }
}

TEST_F(SegmentTest, tiedParametersHaveTheBitsOfOneBackward) {
    Rig setup = open_tiny("tied");
    const std::string expected = reference_gradients(setup, 2);
    for (int cut : setup.legal_cuts()) {
        Line line(setup, {cut});
        for (int m = 0; m < 2; ++m) line.run(m);
        EXPECT_EQ(line.gradients(), expected) << "cut before op " << cut;
    }
}

// The control: every stage adds its own part to the owner's `.grad`, as systems do that sum copies after backward.
TEST_F(SegmentTest, tiedGradientsSummedBehindBackwardAreSeen) {
    Rig setup = open_tiny("tied");
    const std::string expected = reference_gradients(setup, 1);
    int different = 0;
    for (int cut : setup.legal_cuts()) {
        Line line(setup, {cut});
        for (int i : {0, 1}) line.forward(i, 0);
        line.stage(1).backward(0);
        std::vector<std::pair<const Edge*, at::Tensor>> late;
        for (const Edge& edge : line.split().edges) {
            if (!edge.has_gradient) continue;
            const at::Tensor gradient = line.stage(1).take_gradient(0, edge);
            if (edge.is_tied())
                late.emplace_back(&edge, gradient);
            else
                line.stage(0).add_gradient(0, edge, gradient);
        }
        line.stage(0).backward(0);
        for (const auto& [edge, gradient] : late) {
            const at::Tensor own = line.weight(edge->name).grad();
            if (gradient.defined() && own.defined()) own.add_(gradient);
        }
        different += line.gradients() != expected;
    }
    EXPECT_GT(different, 0) << "the model does not tell orders of sums apart, so it proves nothing";
}

/// The cut behind the n-th op of a kind.
int cut_behind(const Rig& setup, const std::string& kind, int skip = 0) {
    for (int op = 0; op < setup.graph().num_ops(); ++op) {
        if (setup.graph().ops[static_cast<size_t>(op)].kind == kind && skip-- == 0) return op + 1;
    }
    ADD_FAILURE() << "no op " << kind;
    return 1;
}

TEST_F(SegmentTest, recomputeHasTheSameBitsForAllMicrobatchesOrSome) {
    for (const char* name : {"share", "unet", "bn_cnn", "dropout", "views", "written", "tied", "containers"}) {
        Rig setup = open_tiny(name);
        const std::string expected = reference_gradients(setup, 3);
        const std::vector<int> legal = setup.legal_cuts();
        for (int recomputed : {2, 3}) {
            Line line(setup, {legal[legal.size() / 2]}, true, recomputed);
            for (int m = 0; m < 3; ++m) {
                for (int i : {0, 1}) line.forward(i, m);
                for (int i : {1, 0}) line.half(i, m, /*weights=*/false);
            }
            for (int m : {1, 2, 0}) {
                for (int i : {1, 0}) line.half(i, m, /*weights=*/true);
            }
            EXPECT_EQ(line.gradients(), expected) << name;
        }
    }
}

TEST_F(SegmentTest, aRecomputedSegmentKeepsItsInputsAlone) {
    Rig setup = open_tiny("mlp");
    // What linear gives is kept by no op, what tanh gives is: unless the segment is recomputed.
    const auto is_freed = [&](int recomputed) {
        Line line(setup, {cut_behind(setup, "aten::tanh")}, true, recomputed);
        line.feed(0, 0);
        line.stage(0).forward(0, 0);
        const Edge& edge = line.split().edges.at(0);
        at::Tensor tensor = line.stage(0).take_tensor(0, edge);
        EXPECT_TRUE(tensor.requires_grad()) << "the flag travels though there is no graph";
        const c10::weak_intrusive_ptr<c10::StorageImpl> memory = tensor.storage().getWeakStorageImpl();
        tensor.reset();
        return memory.expired();
    };
    EXPECT_FALSE(is_freed(0));
    EXPECT_TRUE(is_freed(1));
}

TEST_F(SegmentTest, aSkippedWeightHalfIsSeen) {
    Rig setup = open_tiny("mlp");
    Line line(setup, {setup.legal_cuts().at(2)});
    for (int i : {0, 1}) line.forward(i, 0);
    for (int i : {1, 0}) line.half(i, 0, /*weights=*/false);
    line.half(1, 0, /*weights=*/true);
    EXPECT_NE(line.gradients(), reference_gradients(setup, 1));
}

bool dies_when_sent(Rig& setup, int cut) {
    Line line(setup, {cut});
    line.feed(0, 0);
    line.stage(0).forward(0, 0);
    bool freed = false;
    for (int id : line.stage(0).io().exports) {
        const Edge& edge = line.split().edges[static_cast<size_t>(id)];
        at::Tensor tensor = line.stage(0).take_tensor(0, edge);
        encode_tensor(tensor, 1 << 20, edge.name);
        const c10::weak_intrusive_ptr<c10::StorageImpl> memory = tensor.storage().getWeakStorageImpl();
        EXPECT_FALSE(memory.expired());
        tensor.reset();
        freed = memory.expired();
    }
    return freed;
}

TEST_F(SegmentTest, outputsAreFreedOnceSentUnlessBackwardNeedsThem) {
    Rig setup = open_tiny("mlp");
    EXPECT_TRUE(dies_when_sent(setup, cut_behind(setup, "aten::linear", 1))) << "no op saves what a linear gives";
    EXPECT_FALSE(dies_when_sent(setup, cut_behind(setup, "aten::tanh"))) << "tanh saves its result";
}

TEST_F(SegmentTest, keepsTheMemoryUntilTheLastEdgeHasTakenIt) {
    Rig setup = open_tiny("share");
    const Shared shared = find_shared(setup);
    Line line(setup, {shared.cuts.at(0), shared.cuts.at(2)});
    line.feed(0, 0);
    line.stage(0).forward(0, 0);
    std::vector<at::Tensor> taken;
    for (int id : line.stage(0).io().exports) {
        const Edge& edge = line.split().edges[static_cast<size_t>(id)];
        if (edge.tensor == shared.tensor) taken.push_back(line.stage(0).take_tensor(0, edge));
    }
    ASSERT_EQ(taken.size(), 2u);
    EXPECT_TRUE(taken[0].is_same(taken[1]));
}

TEST_F(SegmentTest, evaluationKeepsNothingAndGivesTheSameLoss) {
    for (const char* name : {"share", "containers", "views"}) {
        Rig setup = open_tiny(name);
        Line reference(setup, {}, false);
        reference.forward(0, 0);
        const double expected = reference.stage(0).take_loss(0).item<double>();
        for (int cut : setup.legal_cuts()) {
            Line line(setup, {cut}, false);
            line.forward(0, 0);
            line.forward(1, 0);
            EXPECT_EQ(line.stage(line.split().loss_stage).take_loss(0).item<double>(), expected)
                << name << " cut before op " << cut;
            EXPECT_FALSE(line.weight("w1").grad().defined());
        }
    }
}

TEST_F(SegmentTest, evaluationGivesWhatTheLastOpGathers) {
    Rig setup = open_tiny("mlp");
    setup.prepared.program.training.graph.outputs = {{"output0", 0}};  // the last op makes the loss: one tensor
    Line line(setup, {setup.legal_cuts().at(0)}, false);
    EXPECT_LT(line.stage(0).io().gathered, 0);
    EXPECT_GE(line.stage(1).io().gathered, 0);
    for (int microbatch : {0, 1}) line.forward(microbatch, 0);
    line.forward(0, 1);
    const at::Tensor loss = line.stage(1).take_loss(0);
    const std::vector<at::Tensor> outputs = line.stage(1).take_outputs(0);
    ASSERT_EQ(outputs.size(), 1U);
    EXPECT_EQ(form_of(outputs[0]), form_of(loss));
}

TEST_F(SegmentTest, refusesAGradientThatWasNotForeseen) {
    Rig setup = open_tiny("mlp");
    Line line(setup, {cut_behind(setup, "aten::tanh")});
    Edge edge = line.split().edges.at(0);
    edge.has_gradient = false;
    const std::string text = error_of(ErrorKind::BadData, [&] {
        line.stage(1).receive_tensor(0, edge, at::ones({2, 8}), /*requires_grad=*/true);
    });
    EXPECT_HAS(text, "carries gradient, other than when the model was prepared");
    EXPECT_HAS(text, "'" + edge.name + "'");
}

/// Of microbatch 0; the edge between the stages carries a tensor that needs a gradient, or none.
const Edge& forward_both(Line& line, bool needs) {
    line.feed(0, 0);
    line.feed(1, 0);
    line.stage(0).forward(0, 0);
    const Edge& edge = line.split().edges.at(0);
    line.stage(1).receive_tensor(0, edge, line.stage(0).take_tensor(0, edge).detach(), needs);
    line.stage(1).forward(0, 0);
    return edge;
}

// What a branch gave, which needs a gradient another time.
TEST_F(SegmentTest, aTensorThatNeedsNoGradientThisTimeGetsNone) {
    Rig setup = open_tiny("mlp");
    for (const bool in_halves : {false, true}) {
        for (const bool needs : {false, true}) {
            Line line(setup, {cut_behind(setup, "aten::tanh")});
            const Edge& edge = forward_both(line, needs);
            if (in_halves) {
                line.stage(1).input_gradients(0);
            } else {
                line.stage(1).backward(0);
            }
            EXPECT_EQ(line.stage(1).take_gradient(0, edge).defined(), needs);
            if (in_halves) line.stage(1).weight_gradients(0);
            EXPECT_TRUE(line.weight("w2").grad().defined());
        }
    }
}

TEST_F(SegmentTest, aLossWithoutAGradientIsRefused) {
    Rig setup = open_tiny("mlp");
    for (const bool needs : {true, false}) {
        Line line(setup, {setup.graph().num_ops() - 1});
        forward_both(line, needs);
        if (needs) {
            EXPECT_NO_THROW(line.stage(1).backward(0));
        } else {
            EXPECT_HAS(error_of(ErrorKind::BadData, [&] { line.stage(1).backward(0); }),
                       "the loss of this microbatch has no gradient");
        }
    }
}

TEST_F(SegmentTest, anOpThatFailsIsNamed) {
    Rig setup = open_tiny("mlp");
    Line line(setup, {cut_behind(setup, "aten::tanh")});
    line.feed(1, 0);
    line.stage(1).receive_tensor(0, line.split().edges.at(0), at::ones({2, 5}, test_device()), true);
    const std::string text = error_of(ErrorKind::BadData, [&] { line.stage(1).forward(0, 0); });
    EXPECT_HAS(text, "the op aten::linear in the model's forward at <string>:4 fails: mat1 and mat2");
}

// A list that holds another number of tensors than the probe saw.
TEST_F(SegmentTest, refusesAListThatChanged) {
    Rig setup = open_tiny("containers");
    Line line(setup, {cut_behind(setup, "aten::chunk")});
    line.feed(1, 0);
    for (const Edge& edge : line.split().edges) {
        if (edge.tensor >= 0) line.stage(1).receive_tensor(0, edge, at::ones({2, 4}), edge.has_gradient);
    }
    for (const Edge& edge : line.split().edges) {
        if (edge.tensor >= 0) continue;
        std::vector<c10::IValue> values;
        for (int value : edge.values) {
            const bool list = !setup.graph().values[static_cast<size_t>(value)].tensors.empty();
            const at::Tensor one = at::ones({2, 4});
            values.push_back(list ? c10::IValue(c10::List<at::Tensor>({one, one, one})) : c10::IValue(int64_t{2}));
        }
        line.stage(1).receive_values(0, edge, values);
    }
    const std::string text = error_of(ErrorKind::BadData, [&] { line.stage(1).forward(0, 0); });
    EXPECT_HAS(text, "it holds more tensors");
    EXPECT_HAS(text, "a model whose values change their form between microbatches cannot be cut there");
}

}  // namespace
}  // namespace vpp::test
