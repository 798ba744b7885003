#include "optim/optimizer.hpp"

#include <ATen/ops/empty_strided.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <map>

#include "optim/lr.hpp"
#include "unit/optim/support.hpp"

namespace vpp {
namespace {

using test::bits_of;
using test::code_of;
using test::floats;
using test::leaf;
using test::values_of;

OptimizerPlan optimizer_plan(const std::string& kind) {
    OptimizerPlan plan;
    plan.kind = kind;
    plan.values.lr = 0.1;
    plan.values.weight_decay = 0.05;
    if (kind == "sgd") plan.values.momentum = 0.9;
    plan.values.amsgrad = kind == "adam";
    OptimizerGroup group{{"*.bias"}, plan.values};
    group.values.weight_decay = 0;
    group.values.lr = 0.3;
    plan.groups.push_back(group);
    return plan;
}

/// Three parameters: "a.weight" with swapped strides, "a.bias", and "late" that has no gradient in the first two steps.
struct Model {
    std::vector<TrainedParameter> parameters = {
        {"a.weight", leaf(floats({1, 2, 3, 4, 5, 6}).view({2, 3}).t())},
        {"a.bias", leaf(floats({0.5F, -0.5F}))},
        {"late", leaf(floats({7}))},
    };
    void set_gradients(int64_t step) {
        for (size_t i = 0; i < parameters.size(); ++i) {
            at::Tensor& tensor = parameters[i].tensor;
            const double size = 0.37 * static_cast<double>(step + 1) - static_cast<double>(i);
            tensor.mutable_grad() = i == 2 && step < 2 ? at::Tensor() : tensor.detach().mul(size).add(0.1);
        }
    }
    std::string bits() const {
        std::string all;
        for (const TrainedParameter& parameter : parameters) all += bits_of(parameter.tensor);
        return all;
    }
};

void train(Model& model, Optimizer& optimizer, int64_t from, int64_t to) {
    LrSchedulePlan schedule;
    schedule.kind = "linear";
    for (int64_t step = from; step < to; ++step) {
        model.set_gradients(step);
        optimizer.step(schedule, step, 10);
    }
}

/// State as a checkpoint has it: contiguous copies by name.
std::map<std::string, at::Tensor> saved(const Optimizer& optimizer) {
    std::map<std::string, at::Tensor> tensors;
    for (const StateTensor& state : optimizer.state()) tensors[state.name] = state.tensor.contiguous().clone();
    return tensors;
}

StateReader reader_of(const std::map<std::string, at::Tensor>& tensors) {
    return [&tensors](const std::string& name, at::ScalarType, const std::vector<int64_t>&) {
        const auto found = tensors.find(name);
        return found == tensors.end() ? std::nullopt : std::optional(found->second);
    };
}

std::vector<std::string> state_names(const Optimizer& optimizer) {
    std::vector<std::string> names;
    for (const StateTensor& state : optimizer.state()) names.push_back(state.name);
    return names;
}

TEST(OptimizerTest, EveryGroupHasItsRate) {
    const Model model;
    const Optimizer optimizer(optimizer_plan("adamw"), model.parameters);
    LrSchedulePlan schedule;
    schedule.kind = "linear";
    EXPECT_EQ(optimizer.learning_rates(schedule, 5, 10),
              (std::vector<double>{learning_rate(schedule, 0.3, 5, 10), learning_rate(schedule, 0.1, 5, 10)}));
}

TEST(OptimizerTest, GroupsUseTheirOwnValues) {
    OptimizerPlan plan = optimizer_plan("sgd");
    plan.values = plan.groups[0].values = {};
    plan.values.lr = 0.5;
    plan.values.weight_decay = 1;
    plan.groups[0].values.lr = 0.25;
    const at::Tensor weight = leaf(floats({4})), bias = leaf(floats({4}));
    Optimizer optimizer(plan, {{"x.weight", weight}, {"x.bias", bias}});
    weight.mutable_grad() = floats({2});
    bias.mutable_grad() = floats({2});
    optimizer.step({}, 0, 1);
    EXPECT_EQ(values_of(weight)[0], 4 - 0.5 * (2 + 4));
    EXPECT_EQ(values_of(bias)[0], 4 - 0.25 * 2);
    EXPECT_EQ(values_of(weight.grad())[0], 2) << "gradients are the engine's to clear";
}

TEST(OptimizerTest, AParameterWithoutGradientIsLeftAlone) {
    for (const char* kind : {"adamw", "adam", "sgd"}) {
        Model model;
        Optimizer optimizer(optimizer_plan(kind), model.parameters);
        EXPECT_TRUE(optimizer.state().empty());
        train(model, optimizer, 0, 2);
        EXPECT_EQ(values_of(model.parameters[2].tensor)[0], 7) << kind;
        for (const std::string& name : state_names(optimizer)) EXPECT_NE(name.substr(0, 4), "late");
        train(model, optimizer, 2, 3);
        EXPECT_NE(values_of(model.parameters[2].tensor)[0], 7) << kind;
    }
}

TEST(OptimizerTest, StateIsNamedAsTorchNamesIt) {
    const std::map<std::string, std::vector<std::string>> slots = {
        {"adamw", {"step", "exp_avg", "exp_avg_sq"}},
        {"adam", {"step", "exp_avg", "exp_avg_sq", "max_exp_avg_sq"}},
        {"sgd", {"momentum_buffer"}}};
    for (const auto& [kind, names] : slots) {
        Model model;
        Optimizer optimizer(optimizer_plan(kind), model.parameters);
        train(model, optimizer, 0, 1);
        std::vector<std::string> expected;
        for (const char* parameter : {"a.weight.", "a.bias."}) {
            for (const std::string& name : names) expected.push_back(parameter + name);
        }
        EXPECT_EQ(state_names(optimizer), expected);
        EXPECT_EQ(optimizer.state()[names.size() - 1].tensor.strides(), model.parameters[0].tensor.strides());
    }
}

TEST(OptimizerTest, EachCountsItsOwnSteps) {
    Model model;
    Optimizer optimizer(optimizer_plan("adamw"), model.parameters);
    train(model, optimizer, 0, 5);
    const auto state = saved(optimizer);
    EXPECT_EQ(state.at("a.weight.step").item<float>(), 5);
    EXPECT_EQ(state.at("late.step").item<float>(), 3);
    EXPECT_EQ(state.at("late.step").dim(), 0);
}

TEST(OptimizerTest, AResumedRunHasTheBitsOfAnUnbrokenOne) {
    for (const char* kind : {"adamw", "adam", "sgd"}) {
        for (int64_t cut = 0; cut <= 4; ++cut) {
            SCOPED_TRACE(std::string(kind) + " cut after " + std::to_string(cut));
            Model unbroken, resumed;
            Optimizer whole(optimizer_plan(kind), unbroken.parameters),
                before(optimizer_plan(kind), resumed.parameters);
            train(unbroken, whole, 0, 6);
            train(resumed, before, 0, cut);
            const auto state = saved(before);
            Optimizer after(optimizer_plan(kind), resumed.parameters);
            after.load_state(reader_of(state));
            EXPECT_EQ(after.state().size(), before.state().size());
            train(resumed, after, cut, 6);
            EXPECT_EQ(resumed.bits(), unbroken.bits());
        }
    }
}

TEST(OptimizerTest, WrongStateHasOtherBits) {
    Model unbroken, without_state, one_step_off;
    Optimizer whole(optimizer_plan("adamw"), unbroken.parameters);
    train(unbroken, whole, 0, 6);
    Optimizer before(optimizer_plan("adamw"), without_state.parameters);
    train(without_state, before, 0, 3);
    Optimizer fresh(optimizer_plan("adamw"), without_state.parameters);
    train(without_state, fresh, 3, 6);
    EXPECT_NE(without_state.bits(), unbroken.bits());

    Optimizer first(optimizer_plan("adamw"), one_step_off.parameters);
    train(one_step_off, first, 0, 3);
    auto state = saved(first);
    state.at("a.bias.step").add_(1);
    first.load_state(reader_of(state));
    train(one_step_off, first, 3, 6);
    EXPECT_NE(one_step_off.bits(), unbroken.bits());
}

TEST(OptimizerTest, LoadedStateIsACopyAndReplacesAll) {
    Model model;
    Optimizer optimizer(optimizer_plan("sgd"), model.parameters);
    train(model, optimizer, 0, 1);
    const auto state = saved(optimizer);
    const std::string bits = bits_of(state.at("a.bias.momentum_buffer"));
    train(model, optimizer, 1, 3);
    EXPECT_EQ(optimizer.state().size(), 3u);
    optimizer.load_state(reader_of(state));
    EXPECT_EQ(optimizer.state().size(), 2u);
    train(model, optimizer, 1, 2);
    EXPECT_EQ(bits_of(state.at("a.bias.momentum_buffer")), bits);
}

TEST(OptimizerTest, StateInPartsOrOfAnotherKindIsRefusedAndChangesNothing) {
    Model model;
    Optimizer optimizer(optimizer_plan("adamw"), model.parameters);
    train(model, optimizer, 0, 1);
    const auto state = saved(optimizer);
    auto part = state, wrong_shape = state, wrong_dtype = state;
    part.erase("a.bias.exp_avg_sq");
    wrong_shape["a.bias.exp_avg"] = floats({1, 2, 3});
    wrong_dtype["a.bias.step"] = at::zeros({}, at::kLong);
    train(model, optimizer, 1, 2);
    const auto later = saved(optimizer);
    std::string text;
    EXPECT_EQ(code_of([&] { optimizer.load_state(reader_of(part)); }, &text), 65);
    EXPECT_TRUE(text.starts_with("the saved optimizer state is not whole: a.bias.")) << text;
    EXPECT_TRUE(text.ends_with(" is there, a.bias.exp_avg_sq is not")) << text;
    EXPECT_EQ(code_of([&] { optimizer.load_state(reader_of(wrong_shape)); }, &text), 65);
    EXPECT_EQ(text, "the saved optimizer state a.bias.exp_avg has another dtype or shape than its parameter");
    EXPECT_EQ(code_of([&] { optimizer.load_state(reader_of(wrong_dtype)); }), 65);
    // Not even a.weight's, which are good and come before those of a.bias.
    for (const auto& [name, tensor] : saved(optimizer)) EXPECT_EQ(bits_of(tensor), bits_of(later.at(name))) << name;
    EXPECT_NE(bits_of(later.at("a.weight.exp_avg")), bits_of(state.at("a.weight.exp_avg")));
}

TEST(OptimizerTest, TheWholeStateIsAsLargeAsItIsSaidToBe) {
    for (const char* kind : {"adamw", "adam", "sgd"}) {
        Model model;
        Optimizer optimizer(optimizer_plan(kind), model.parameters);
        const int64_t said = optimizer.full_state_bytes();
        train(model, optimizer, 0, 3);
        int64_t size = 0;
        for (const StateTensor& state : optimizer.state()) size += static_cast<int64_t>(state.tensor.nbytes());
        EXPECT_EQ(said, size) << kind;
    }
}

// "late" begins with its whole gradient, beside a.weight, which goes on with a part of its own.
TEST(OptimizerTest, AParameterThatJoinsLateHasAFirstStepOfItsOwn) {
    OptimizerPlan plan = optimizer_plan("sgd");
    plan.values.dampening = 0.25;
    Model together, alone;
    Optimizer of_all(plan, together.parameters), of_late(plan, {alone.parameters[2]});
    train(together, of_all, 0, 4);
    train(alone, of_late, 0, 4);
    EXPECT_EQ(bits_of(together.parameters[2].tensor), bits_of(alone.parameters[2].tensor));
}

TEST(OptimizerTest, AmsgradMayBeSwitchedOnBetweenRuns) {
    Model model;
    Optimizer before(optimizer_plan("adamw"), model.parameters);
    train(model, before, 0, 3);
    const auto state = saved(before);
    Optimizer after(optimizer_plan("adam"), model.parameters);
    after.load_state(reader_of(state));
    EXPECT_EQ(after.state().size(), 12u);
    EXPECT_NO_THROW(train(model, after, 3, 4));
}

TEST(OptimizerTest, DtypesDoNotMeetInOneCall) {
    const at::Tensor narrow = leaf(floats({1, 2})), wide = leaf(test::doubles({1, 2}));
    Optimizer optimizer(optimizer_plan("adamw"), {{"narrow", narrow}, {"wide", wide}});
    narrow.mutable_grad() = floats({1, 2});
    wide.mutable_grad() = test::doubles({1, 2});
    optimizer.step({}, 0, 1);
    EXPECT_NEAR(values_of(narrow)[0], values_of(wide)[0], 1e-6);
    EXPECT_NE(values_of(wide)[0], 1);
}

TEST(OptimizerTest, LayoutsThatTheKernelsWouldMixUpAreRefused) {
    const at::Tensor spread = at::empty_strided({2, 2}, {4, 1}, at::kFloat).fill_(1);
    const at::Tensor parameter = leaf(spread), other = leaf(floats({3}));
    Optimizer optimizer(optimizer_plan("sgd"), {{"first", other}, {"h.spread", parameter}});
    other.mutable_grad() = floats({1});
    parameter.mutable_grad() = at::full({2, 2}, 1.0F);
    std::string text;
    EXPECT_EQ(code_of([&] { optimizer.step({}, 0, 1); }, &text), 65);
    EXPECT_NE(text.find("h.spread"), std::string::npos) << text;
    EXPECT_EQ(values_of(other)[0], 3) << "nothing was updated";
}

TEST(OptimizerTest, WrongCallsAreTold) {
    const at::Tensor tensor = leaf(floats({1}));
    EXPECT_EQ(code_of([&] { Optimizer(optimizer_plan("sgd"), {{"a", tensor}, {"a", tensor}}); }), 70);
    EXPECT_EQ(code_of([&] { Optimizer(optimizer_plan("sgd"), {{"a", at::zeros({1}, at::kLong)}}); }), 70);
    EXPECT_EQ(code_of([&] { Optimizer(optimizer_plan("sgdw"), {}); }), 78);
}

}  // namespace
}  // namespace vpp
