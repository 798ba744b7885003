// Recordings over ops that a test can count and change. Without a card nothing can be recorded.
#include "stage/recordings.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/zeros.h>
#include <c10/core/Allocator.h>

#include <utility>

#include "device/device.hpp"
#include "device/memory_meter.hpp"
#include "support/far_device.hpp"
#include "unit/stage/support.hpp"

namespace vpp::test {
namespace {

constexpr int kInput = 0, kOutput = 1;

/// y = x * weight, whose gradient is g * x, for microbatches that are under way two at a time.
class Products {
  public:
    explicit Products(bool is_recomputed = false, std::shared_ptr<SharedRecorder> shared = make_shared_recorder())
        : is_recomputed_(is_recomputed) {
        start_device(test_device());
        weight_ = at::full({4}, 3.0, test_device()).set_requires_grad(true);
        SegmentOps ops;
        ops.forward = [this](Microbatch& now, bool recompute) { forward(now, recompute); };
        ops.backward = [this](Microbatch& now) {
            begin_backward(now);
            add_gradient(now);
        };
        ops.input_gradients = [this](Microbatch& now) { begin_backward(now); };
        ops.weight_gradients = [this](Microbatch& now) {
            ++num_calls_;
            add_gradient(now);
        };
        ops.save = [this](const PassInputs& inputs) { return save(inputs); };
        ops.writes = [this](int) { return is_written_; };
        recordings_ = std::make_unique<Recordings>(test_device(), std::move(shared), std::vector{weight_},
                                                   std::vector{weight_}, ops);
    }

    static std::shared_ptr<SharedRecorder> make_shared_recorder() {
        return std::make_shared<SharedRecorder>(test_device());
    }

    /// One step; what it gives must be what arithmetic gives. How many times the ops were called for it.
    int step(int number, const std::vector<int>& sizes = {4, 4, 4}, bool last_has_gradient = true,
             OpByOpBytes by_op = {}) {
        const at::NoGradGuard no_grad;
        const int before = num_calls_;
        weight_.mutable_grad().reset();
        recordings_->begin_step({}, /*may_record=*/true, by_op);
        std::vector<Microbatch> all(sizes.size());
        const auto input = [&](size_t i) {
            return at::arange(4, at::TensorOptions(at::kFloat))
                .add(10 * number + static_cast<int>(i))
                .repeat(sizes[i] / 4);
        };
        for (size_t i = 0; i < all.size() + 1; ++i) {
            if (i < all.size()) {
                all[i].inputs.tensors[kInput] = input(i).to(test_device());
                const at::Tensor given = all[i].inputs.tensors.at(kInput);
                recordings_->forward(static_cast<int>(i), all[i], is_recomputed_);
                if (is_written_) given.zero_();
                EXPECT_EQ(form_of(all[i].tensors.at(kOutput)), form_of(input(i) * 3));
            }
            if (i == 0) continue;
            Microbatch& last = all[i - 1];
            const bool has_gradient = last_has_gradient || i < all.size();
            last.arrived[kOutput] = has_gradient ? at::full_like(last.tensors.at(kOutput), 2) : at::Tensor();
            if (between_halves_ == 0) {
                recordings_->backward(static_cast<int>(i) - 1, last);
                continue;
            }
            recordings_->input_gradients(static_cast<int>(i) - 1, last);
            if (i >= between_halves_) finish(i - between_halves_, all);
        }
        for (size_t i = all.size() + 1 - between_halves_; i < all.size(); ++i) finish(i, all);
        at::Tensor sum = at::zeros({4});
        for (size_t i = 0; i < all.size(); ++i) {
            if (last_has_gradient || i + 1 < all.size()) sum += (input(i) * 2).view({-1, 4}).sum(0);
        }
        EXPECT_EQ(form_of(weight_.grad()), form_of(sum));
        return num_calls_ - before;
    }

    /// The steps before one can be recorded.
    void run_by_op(const std::vector<int>& sizes = {4, 4, 4}) {
        const int calls = between_halves_ > 0 ? 3 : 2;
        for (int number : {0, 1}) EXPECT_EQ(step(number, sizes), calls * static_cast<int>(sizes.size()));
    }

    /// I and W in place of B, so many microbatches between them at once.
    void have_halves(size_t between) { between_halves_ = between; }
    void have_forward_do(std::function<void(const at::Tensor&)> more) { more_ = std::move(more); }
    /// Others have the memory of inputs too, and write it behind forward.
    void have_inputs_written() { is_written_ = true; }
    void move_weight() { weight_.set_data(weight_.detach().clone()); }
    const at::Tensor& weight() const { return weight_; }
    const Recordings& recordings() const { return *recordings_; }

  private:
    void forward(Microbatch& now, bool recompute) {
        ++num_calls_;
        if (recompute) now.saved = save(now.inputs);
        const at::Tensor x = now.inputs.tensors.at(kInput);
        if (more_) more_(x);
        now.tensors[kOutput] = (x.view({-1, 4}) * weight_.detach()).view({-1});
        if (!recompute) now.pass.emplace().tensors[kInput] = x;
    }

    PassInputs save(PassInputs inputs) const {
        if (is_written_) inputs.tensors.at(kInput) = inputs.tensors.at(kInput).clone();
        return inputs;
    }

    void begin_backward(Microbatch& now) {
        ++num_calls_;
        if (now.saved) now.pass.emplace().tensors[kInput] = now.saved->tensors.at(kInput);
        now.saved.reset();
        now.pass->tensors[kOutput] = std::exchange(now.arrived[kOutput], at::Tensor());
    }

    void add_gradient(Microbatch& now) {
        const at::Tensor x = now.pass->tensors.at(kInput), arrived = now.pass->tensors.at(kOutput);
        now.pass.reset();
        if (!arrived.defined()) return;
        const at::Tensor gradient = (x * arrived).view({-1, 4}).sum(0);
        at::Tensor& sum = weight_.mutable_grad();
        if (sum.defined()) {
            sum.add_(gradient);
        } else {
            sum = gradient;
        }
    }

    void finish(size_t microbatch, std::vector<Microbatch>& all) {
        recordings_->weight_gradients(static_cast<int>(microbatch), all[microbatch]);
    }

    bool is_recomputed_, is_written_ = false;
    size_t between_halves_ = 0;
    at::Tensor weight_;
    std::function<void(const at::Tensor&)> more_;
    int num_calls_ = 0;
    std::unique_ptr<Recordings> recordings_;
};

class RecordingsOnCards : public testing::Test {
  protected:
    void SetUp() override {
        if (!test_device().is_cuda()) GTEST_SKIP() << "a card is needed";
    }
};

TEST_F(RecordingsOnCards, TwoStepsRunOpByOpAndTheNextAreReplayed) {
    Products products;
    products.run_by_op();
    EXPECT_FALSE(products.recordings().are_made());
    EXPECT_EQ(products.step(2), 4) << "F and B are recorded for each of the two that are under way at once";
    EXPECT_TRUE(products.recordings().are_made());
    EXPECT_GT(products.recordings().bytes(), 0);
    for (int number : {3, 4, 5}) EXPECT_EQ(products.step(number), 0);
    EXPECT_EQ(products.recordings().reason(), "");
}

TEST_F(RecordingsOnCards, AMicrobatchOfAnotherFormRunsOpByOp) {
    Products products;
    products.run_by_op({4, 8, 4});
    EXPECT_EQ(products.step(2, {4, 8, 4}), 4);
    EXPECT_EQ(products.step(3, {4, 8, 4}), 0);
    EXPECT_EQ(products.step(4, {4, 12, 4}), 2);
    EXPECT_EQ(products.step(5, {4, 8, 4}), 0);
}

TEST_F(RecordingsOnCards, WhoseGradientIsOtherThanExpectedRunsOnceMore) {
    Products products;
    products.run_by_op();
    products.step(2);
    EXPECT_EQ(products.step(3, {4, 4, 4}, false), 1) << "backward alone, from what forward was given";
    EXPECT_EQ(products.step(4), 0);
}

TEST_F(RecordingsOnCards, OneServesAllRecomputedMicrobatches) {
    Products products(/*is_recomputed=*/true);
    products.run_by_op();
    EXPECT_EQ(products.step(2), 2) << "F and B";
    for (int number : {3, 4}) EXPECT_EQ(products.step(number), 0);
    EXPECT_EQ(products.step(5, {4, 4, 4}, false), 1) << "backward alone, from what forward was given";
    EXPECT_EQ(products.step(6, {4, 8, 4}), 2) << "of another form";
    EXPECT_EQ(products.step(7), 0);
}

TEST_F(RecordingsOnCards, RecomputedMicrobatchesKeepWhatOthersWrite) {
    for (const size_t between : {0, 1}) {
        Products products(/*is_recomputed=*/true);
        products.have_halves(between);
        products.have_inputs_written();
        products.run_by_op();
        products.step(2);
        EXPECT_EQ(products.step(3), 0);
        EXPECT_EQ(products.step(4, {4, 4, 4}, false), between == 0 ? 1 : 2) << "op by op, from the same inputs";
    }
}

TEST_F(RecordingsOnCards, TheHalvesOfABackwardHaveOneForEachThatIsBetweenThem) {
    for (const bool is_recomputed : {false, true}) {
        Products products(is_recomputed);
        products.have_halves(2);
        products.run_by_op({4, 4, 4, 4});
        EXPECT_EQ(products.step(2, {4, 4, 4, 4}), 3 * (is_recomputed ? 2 : 3)) << "F, I and W";
        for (int number : {3, 4}) EXPECT_EQ(products.step(number, {4, 4, 4, 4}), 0);
        EXPECT_EQ(products.step(5, {4, 4, 4, 4}, false), 2) << "backward alone, from what forward was given";
        EXPECT_EQ(products.step(6, {4, 8, 4, 4}), 3) << "of another form";
        EXPECT_EQ(products.step(7, {4, 4, 4, 4}), 0);
        products.have_halves(3);
        EXPECT_EQ(products.step(8, {4, 4, 4, 4}), is_recomputed ? 2 : 3) << "one more between them";
        products.have_halves(2);
        EXPECT_EQ(products.step(9, {4, 4, 4, 4}), 0);
    }
}

TEST_F(RecordingsOnCards, WhatRecomputedMicrobatchesWorkWithIsShared) {
    const auto shared = Products::make_shared_recorder();
    EXPECT_EQ(shared->work_bytes(), 0);
    {
        Products some(true, shared), others(true, shared);
        some.run_by_op();
        others.run_by_op({4, 8, 4});
        EXPECT_EQ(some.step(2), 2);
        const int64_t work = shared->work_bytes(), kept = some.recordings().bytes();
        EXPECT_GT(work, 0);
        EXPECT_EQ(others.step(2, {4, 8, 4}), 4);
        EXPECT_EQ(shared->work_bytes(), work) << "the allocator gives 512 bytes to each";
        EXPECT_EQ(some.recordings().bytes(), kept);
        for (int number : {3, 4}) {
            EXPECT_EQ(some.step(number), 0);
            EXPECT_EQ(others.step(number, {4, 8, 4}), 0);
        }
        some.move_weight();
        some.run_by_op();
        EXPECT_EQ(others.step(5, {4, 8, 4}), 0);
        EXPECT_EQ(some.step(6), 2);
        EXPECT_EQ(others.step(6, {4, 8, 4}), 0);
        EXPECT_EQ(some.step(7), 0);
    }
    EXPECT_EQ(shared->work_bytes(), 0) << "nobody has it";
}

/// y = x + 1 of microbatches that no backward follows.
class Evaluations {
  public:
    explicit Evaluations(std::shared_ptr<SharedRecorder> shared = Products::make_shared_recorder()) {
        start_device(test_device());
        SegmentOps ops;
        ops.forward = [this](Microbatch& now, bool) {
            ++num_calls_;
            now.tensors[0] = now.inputs.tensors.at(0) + 1;
            now.inputs = {};
        };
        ops.writes = [](int) { return false; };
        recordings_ = std::make_unique<Recordings>(test_device(), std::move(shared), std::vector<at::Tensor>(),
                                                   std::vector<at::Tensor>(), ops);
    }

    /// A group of microbatches of so many samples each. How many times the ops were called for it.
    int run(const std::vector<int>& sizes, bool may_record = true) {
        const int before = num_calls_;
        recordings_->begin_step({}, may_record);
        for (const int size : sizes) {
            Microbatch now;
            now.inputs.tensors[0] = at::full({size}, 10.0 * size, test_device());
            recordings_->evaluate(now);
            EXPECT_EQ(form_of(now.tensors.at(0)), form_of(at::full({size}, 10.0 * size + 1, test_device())));
            EXPECT_TRUE(now.inputs.tensors.empty());
            now.tensors.clear();
            EXPECT_TRUE(now.is_done()) << "it has nothing more";
        }
        return num_calls_ - before;
    }
    const Recordings& recordings() const { return *recordings_; }

  private:
    int num_calls_ = 0;
    std::unique_ptr<Recordings> recordings_;
};

TEST_F(RecordingsOnCards, EachFormOfEvaluatedMicrobatchesIsRecordedOnce) {
    Evaluations all;
    EXPECT_EQ(all.run({4, 4, 4}), 3);
    EXPECT_EQ(all.run({3, 3, 3}), 3) << "the last of the data, which repeat a microbatch";
    EXPECT_EQ(all.run({4, 4, 4}, /*may_record=*/false), 3);
    EXPECT_FALSE(all.recordings().are_made());
    EXPECT_EQ(all.run({4, 4, 4}), 2) << "one of each size";
    for (const std::vector<int>& sizes : {std::vector{4, 3, 4}, {3, 3, 4}}) EXPECT_EQ(all.run(sizes), 0);
    EXPECT_EQ(all.run({4, 2, 4}), 1) << "a size that was never seen";
    EXPECT_EQ(all.run({4, 4, 4}), 0);
    EXPECT_EQ(all.recordings().reason(), "");
    Evaluations many;
    for (const std::vector<int>& sizes : {std::vector{1, 2, 3}, {3, 4, 5}, {1, 2, 3}}) EXPECT_EQ(many.run(sizes), 3);
    EXPECT_EQ(many.recordings().reason(), "its microbatches have more than four forms");
}

TEST_F(RecordingsOnCards, EvaluationIsNotRecordedInMemoryThatStepsNeed) {
    constexpr int64_t kMegabytes = 1 << 20, kLeftBytes = 256 * kMegabytes;
    for (const bool is_full : {false, true}) {
        const auto shared = Products::make_shared_recorder();
        Evaluations all(shared), next(shared);
        for (int i = 0; i < 2; ++i) EXPECT_EQ(all.run({4}) + next.run({4}), 2);
        c10::Allocator& allocator = *c10::GetAllocator(test_device().type());
        give_back_memory(test_device());
        const c10::DataPtr others = allocator.allocate(MemoryMeter(test_device()).free_bytes() - kLeftBytes);
        // What a step took is kept for the next one.
        allocator.allocate(kLeftBytes - (is_full ? 32 : 128) * kMegabytes);
        EXPECT_EQ(all.run({4}), 1) << "recorded, or run";
        EXPECT_EQ(all.recordings().are_made(), !is_full);
        EXPECT_EQ(all.recordings().reason(), is_full ? "the card has no room for it" : "");
        const c10::DataPtr more = allocator.allocate(is_full ? 1 : 96 * kMegabytes);
        next.run({4});
        EXPECT_FALSE(next.recordings().are_made()) << "the next segment gives back nothing, and steps need the same";
    }
}

/// As LibTorch's convolutions do, which then take another algorithm from then on.
void do_without_memory(const at::Tensor& x) {
    try {
        at::zeros({int64_t{1} << 50}, x.options());
    } catch (const c10::OutOfMemoryError&) {
    }
}

TEST_F(RecordingsOnCards, ALibraryThatDoesWithoutMemoryWhileItIsRecordedEndsTheStep) {
    Products products;
    products.run_by_op();
    products.have_forward_do(do_without_memory);
    try {
        products.step(2);
        FAIL() << "recorded";
    } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::OutOfMemory);
        EXPECT_NE(std::string(error.what()).find("pipeline.cuda_graphs = false"), std::string::npos);
    }
    const std::function<void(const std::function<void()>&)> runs[] = {[](const auto& ops) { ops(); }, run_model};
    for (const auto& run : runs) {
        Products failing;
        failing.run_by_op();
        failing.have_forward_do([&, is_first = true](const at::Tensor& x) mutable {
            if (!std::exchange(is_first, false)) return;
            run([&] { at::zeros({int64_t{1} << 50}, x.options()); });
        });
        EXPECT_EQ(failing.step(2), 7) << "one that says so is run op by op";
        EXPECT_NE(failing.recordings().reason().find("out of memory"), std::string::npos);
    }
}

TEST_F(RecordingsOnCards, WhereTheFirstHasNoRoomNoneIsTried) {
    Products products;
    products.run_by_op();
    EXPECT_EQ(products.step(2, {4, 4, 4}, true, {MemoryMeter(test_device()).free_bytes(), 0}), 6);
    EXPECT_EQ(products.recordings().reason(), "the card has no room for it");
}

TEST_F(RecordingsOnCards, WithoutRoomForTheRestOfTheRankNoneIsKept) {
    Products products;
    products.run_by_op();
    EXPECT_EQ(products.step(2, {4, 4, 4}, true, {0, MemoryMeter(test_device()).free_bytes()}), 10);
    EXPECT_EQ(products.recordings().reason(), "the card has no room for it");
}

TEST_F(RecordingsOnCards, WeightsElsewhereAreRecordedAnew) {
    Products products;
    products.run_by_op();
    products.step(2);
    products.move_weight();
    products.run_by_op();
    EXPECT_EQ(products.step(2), 4);
    EXPECT_EQ(products.step(3), 0);
}

TEST_F(RecordingsOnCards, WhatCannotBeReplayedIsNot) {
    const std::vector<std::pair<std::function<void(const at::Tensor&)>, std::string>> cases{
        {[](const at::Tensor&) { at::rand({1}); }, "it draws random numbers on the CPU"},
        {[](const at::Tensor& x) { x.sum().item(); }, "not permitted"},
    };
    for (const auto& [more, reason] : cases) {
        Products products;
        products.have_forward_do(more);
        products.run_by_op();
        products.step(2);
        EXPECT_FALSE(products.recordings().are_made());
        EXPECT_NE(products.recordings().reason().find(reason), std::string::npos) << products.recordings().reason();
        EXPECT_EQ(products.step(3), 6);
        EXPECT_EQ(products.step(4), 6) << "it is tried once";
    }
    Products waiting;
    waiting.run_by_op();
    const at::Tensor product = waiting.weight() * 2;  // whose backward pass may come
    waiting.step(2);
    EXPECT_EQ(waiting.recordings().reason(), "the backward pass of an earlier microbatch has not come");
    Products many;
    many.run_by_op({4, 8, 12, 16, 20});
    many.step(2, {4, 8, 12, 16, 20});
    EXPECT_EQ(many.recordings().reason(), "its microbatches have more than four forms");
}

}  // namespace
}  // namespace vpp::test
