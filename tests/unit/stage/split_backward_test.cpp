#include "stage/split_backward.hpp"

#include <ATen/ops/empty.h>
#include <ATen/ops/group_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tanh.h>

#include <functional>
#include <thread>

#include "data/synthetic.hpp"
#include "device/memory_begin.hpp"
#include "stage/input_node.hpp"
#include "support/far_device.hpp"
#include "unit/stage/support.hpp"

namespace vpp::test {
namespace {

at::Tensor numbers(const std::vector<int64_t>& shape, int64_t key) {
    at::Tensor tensor = at::empty(shape);
    for (int64_t i = 0; i < tensor.numel(); ++i) {
        tensor.mutable_data_ptr<float>()[i] = static_cast<float>(synthetic_normal(synthetic_bits(key, 1, i)));
    }
    return tensor;
}

at::Tensor trained(const std::vector<int64_t>& shape, int64_t key) {
    return numbers(shape, key).set_requires_grad(true);
}

/// A stage of one input: builds its graph twice and compares both ways of running it backward.
class Halves {
  public:
    using Forward = std::function<at::Tensor(const at::Tensor&)>;

    Halves(std::vector<at::Tensor> parameters, at::Tensor input, Forward forward)
        : parameters_(std::move(parameters)), input_(std::move(input)), forward_(std::move(forward)) {}

    void expect_equal() {
        const std::string whole = run(/*split=*/false), halves = run(/*split=*/true);
        EXPECT_EQ(halves, whole);
    }

    /// Gradients of the input and of the parameters.
    std::string run(bool split, const std::function<void()>& between = {}) {
        for (at::Tensor& parameter : parameters_) parameter.mutable_grad().reset();
        const auto inputs = std::make_shared<InputNode>();
        at::Tensor input = input_.detach();
        inputs->attach(input);
        at::Tensor out = forward_(input);
        BackwardRoots roots;
        roots.add(edge_of(out), numbers(out.sizes().vec(), 99));
        out.reset();
        std::string text;
        if (split) {
            SplitBackward halves;
            text = form_of(halves.run_inputs(roots, inputs).at(0));
            roots = {};
            for (const at::Tensor& parameter : parameters_) EXPECT_FALSE(parameter.grad().defined());
            captured_bytes_ = halves.captured_bytes();
            if (between) between();
            halves.run_weights({});
        } else {
            vpp::run_backward(roots);
            text = form_of(inputs->gradients().at(0));
        }
        for (const at::Tensor& parameter : parameters_) text += "|" + form_of(parameter.grad());
        return text;
    }

    int64_t captured_bytes() const { return captured_bytes_; }

  private:
    std::vector<at::Tensor> parameters_;
    at::Tensor input_;
    Forward forward_;
    int64_t captured_bytes_ = 0;
};

TEST(SplitBackward, hasTheBitsOfOnePass) {
    const at::Tensor w1 = trained({8, 8}, 1), b1 = trained({8}, 2), w2 = trained({8, 8}, 3);
    Halves halves({w1, b1, w2}, numbers({4, 8}, 4), [&](const at::Tensor& x) {
        const at::Tensor h = at::tanh(at::linear(x, w1, b1));
        return at::linear(h * x, w2) + h;
    });
    halves.expect_equal();
    EXPECT_EQ(halves.captured_bytes(), 2 * 4 * 8 * 4) << "one gradient for each of the two linear layers";
}

// The trap of splits without a cut: the first use would be walked through again from the second one.
TEST(SplitBackward, countsAParameterOnceThatIsUsedTwiceOnThePath) {
    const at::Tensor w = trained({8, 8}, 1);
    Halves({w}, numbers({4, 8}, 2), [&](const at::Tensor& x) {
        return at::matmul(at::tanh(at::matmul(x, w)), w) * x;
    }).expect_equal();
}

TEST(SplitBackward, takesBranchesThatMeetParametersOnly) {
    const at::Tensor w = trained({8, 8}, 1), scale = trained({8}, 2), shift = trained({8}, 3);
    Halves({w, scale, shift}, numbers({4, 8}, 4), [&](const at::Tensor& x) {
        const at::Tensor table = at::tanh(scale * shift);  // leads to no input
        return at::linear(x, w * table) + table;
    }).expect_equal();
}

// LibTorch crashes here without the sink.
TEST(SplitBackward, survivesGroupNormOnChannelsLastMemory) {
    const at::Tensor gain = trained({8}, 1), shift = trained({8}, 2);
    const at::Tensor input = numbers({2, 8, 6, 6}, 3).contiguous(at::MemoryFormat::ChannelsLast);
    Halves({gain, shift}, input, [&](const at::Tensor& x) { return at::group_norm(x, 2, gain, shift); }).expect_equal();
}

TEST(SplitBackward, leavesAllToTheSecondHalfWithoutAnInput) {
    const at::Tensor w = trained({8, 8}, 1);
    const at::Tensor data = numbers({4, 8}, 2);
    const auto run = [&](bool split) {
        at::Tensor(w).mutable_grad().reset();
        const auto inputs = std::make_shared<InputNode>();
        BackwardRoots roots;
        roots.add(edge_of(at::tanh(at::linear(data, w))), at::ones({4, 8}));
        if (!split) {
            vpp::run_backward(roots);
            return form_of(w.grad());
        }
        SplitBackward halves;
        EXPECT_TRUE(halves.run_inputs(roots, inputs).empty());
        EXPECT_FALSE(w.grad().defined());
        halves.run_weights({});
        return form_of(w.grad());
    };
    EXPECT_EQ(run(true), run(false));
}

TEST(SplitBackward, freesWhatOnlyThePathNeeds) {
    const at::Tensor w = trained({8, 8}, 1);
    c10::weak_intrusive_ptr<c10::StorageImpl> only_path(c10::intrusive_ptr<c10::StorageImpl>{}), kept = only_path;
    Halves halves({w}, numbers({4, 8}, 2), [&](const at::Tensor& x) {
        const at::Tensor wave = at::tanh(x);  // its result is saved for its own gradient
        const at::Tensor input = wave * 2;    // saved for the gradient of w
        only_path = wave.storage().getWeakStorageImpl();
        kept = input.storage().getWeakStorageImpl();
        return at::linear(input, w);
    });
    bool was_checked = false;
    halves.run(true, [&] {
        EXPECT_TRUE(only_path.expired());
        EXPECT_FALSE(kept.expired()) << "W needs it";
        was_checked = true;
    });
    EXPECT_TRUE(was_checked);
    EXPECT_TRUE(kept.expired());
}

TEST(SplitBackward, addsRootsOfTheSecondHalf) {
    const at::Tensor w = trained({8, 8}, 1);
    const auto inputs = std::make_shared<InputNode>();
    at::Tensor input = numbers({4, 8}, 2);
    inputs->attach(input);
    BackwardRoots roots, tied;
    roots.add(edge_of(at::linear(input, w)), at::ones({4, 8}));
    tied.add(edge_of(w), at::ones({8, 8}));
    SplitBackward halves;
    halves.run_inputs(roots, inputs);
    halves.run_weights(tied);
    const at::Tensor both = w.grad().clone();
    at::Tensor(w).mutable_grad().reset();
    vpp::run_backward([&] {
        BackwardRoots alone;
        alone.add(edge_of(at::linear(numbers({4, 8}, 2), w)), at::ones({4, 8}));
        return alone;
    }());
    EXPECT_EQ(form_of(both), form_of(at::ones({8, 8}) + w.grad()));
}

// A write into a part of a parameter's memory: LibTorch keeps the edges twice.
TEST(SplitBackward, cutsTheEdgeInsideOfAWriteIntoAPart) {
    const at::Tensor w = trained({4, 8}, 1);
    Halves({w}, numbers({4, 8}, 2), [&](const at::Tensor& x) {
        const at::Tensor whole = w * 2;
        whole.slice(0, 1).copy_(at::tanh(x).slice(0, 1));
        return whole * 2;
    }).expect_equal();
}

// As where the op that made it is in the same graph.
TEST(SplitBackward, addsToAGradientThatArrivedInItsMemoryAndFreesIt) {
    const at::Tensor w = trained({4, 8}, 1);
    at::Tensor gradient = empty_beginning_at(32, {4, 8}, {8, 1}, at::kFloat).copy_(numbers({4, 8}, 2));
    const void* arrived = gradient.const_data_ptr();
    c10::weak_intrusive_ptr<c10::StorageImpl> memory(gradient.storage().getWeakStorageImpl());
    const at::Tensor wave = at::tanh(w);
    const void* summed = nullptr;
    wave.register_hook([&](const at::Tensor& sum) { summed = sum.const_data_ptr(); });
    bool is_freed = false;
    w.register_hook([&](const at::Tensor&) { is_freed = memory.expired(); });
    BackwardRoots roots;
    roots.add(edge_of(wave), std::move(gradient));
    roots.add(edge_of(at::sin(wave)), numbers({4, 8}, 3));
    vpp::run_backward(std::move(roots));
    EXPECT_EQ(summed, arrived);
    EXPECT_TRUE(is_freed);
}

TEST(SplitBackward, runsOnTheThreadThatAsks) {
    at::Tensor w = trained({8, 8}, 1).to(device_beside_cpu()).detach().requires_grad_();
    std::thread::id ran_on;
    w.register_hook([&](const at::Tensor&) { ran_on = std::this_thread::get_id(); });
    BackwardRoots roots;
    roots.add(edge_of(at::tanh(w)), at::ones({8, 8}, w.options().requires_grad(false)));
    vpp::run_backward(roots);
    EXPECT_EQ(ran_on, std::this_thread::get_id());
}

TEST(BackwardRoots, leaveUndefinedGradientsOut) {
    BackwardRoots roots;
    roots.add(edge_of(trained({2}, 1)), {});
    EXPECT_TRUE(roots.edges.empty());
    vpp::run_backward(roots);  // nothing to do
}

}  // namespace
}  // namespace vpp::test
