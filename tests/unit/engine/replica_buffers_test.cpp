#include "engine/replica_buffers.hpp"

#include <ATen/ops/equal.h>
#include <ATen/ops/full_like.h>

#include "unit/engine/support.hpp"

namespace vpp::test {
namespace {

class ReplicaBuffersOf : public ::testing::TestWithParam<const char*> {};

TEST_P(ReplicaBuffersOf, followReplicaZero) {
    const TemporaryFolder folder;
    Rig setup = set_up_tiny(GetParam(), folder.path("."), with_replicas(3));
    const Program& program = setup.prepared.program;
    InProcessWorld({.num_ranks = 3}).run([&](Transport& transport) {
        Weights weights;
        weights.load(*setup.prepared.sources.training, program.training.split, {0});
        int num_buffers = 0;
        const auto each = [&](const std::function<void(const GraphParameter&, const at::Tensor&)>& body) {
            for (int parameter : weights.owned()) {
                body(setup.graph().parameters[static_cast<size_t>(parameter)], weights.at(parameter).detach());
            }
        };
        each([&](const GraphParameter&, const at::Tensor& tensor) { tensor.fill_(transport.rank() + 5); });
        ReplicaBuffers(setup.graph(), weights, transport, {0, 1, 2}).follow_first();
        each([&](const GraphParameter& entry, const at::Tensor& tensor) {
            const bool follows = entry.written;
            num_buffers += follows;
            const double expected = follows ? 5 : transport.rank() + 5;
            EXPECT_TRUE(at::equal(tensor, at::full_like(tensor, expected))) << entry.name;
        });
        EXPECT_GT(num_buffers, 2);
    });
}

INSTANTIATE_TEST_SUITE_P(models, ReplicaBuffersOf, ::testing::Values("bn_cnn", "remembers"));

}  // namespace
}  // namespace vpp::test
