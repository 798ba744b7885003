#include "engine/loader.hpp"

#include "unit/engine/support.hpp"

namespace vpp::test {
namespace {

TEST(Loader, givesTheSamplesOfTheFieldThatTheInputNames) {
    const TemporaryFolder folder;
    const Rig setup = set_up_tiny("bn_cnn", folder.path("."));
    const Loader loader(*setup.data.training, setup.graph());
    const std::vector<Draw> draws{{5}, {3}, {5}};
    const at::Tensor images = loader.load(0, draws), labels = loader.load(1, draws);
    EXPECT_EQ(images.sizes().vec(), (std::vector<int64_t>{3, 1, 8, 8}));
    EXPECT_TRUE(images.is_contiguous());
    EXPECT_EQ(images[0][0][2][3].item<float>(), static_cast<float>(synthetic_normal(synthetic_bits(5, 0, 19))));
    EXPECT_TRUE(images[0].equal(images[2]));
    EXPECT_FALSE(images[0].equal(images[1]));
    EXPECT_EQ(labels.scalar_type(), at::kLong);
    EXPECT_EQ(labels[1].item<int64_t>(), static_cast<int64_t>(synthetic_bits(3, 1, 0) % 4));
}

TEST(Loader, refusesAnInputThatIsNoField) {
    const TemporaryFolder folder;
    const Rig setup = set_up_tiny("mlp", folder.path("."));
    Graph graph = setup.graph();
    graph.inputs[1].name = "z";
    EXPECT_HAS(error_of(ErrorKind::BadData, [&] { Loader(*setup.data.training, graph); }),
               "'z' is no field of the data");
    graph.inputs[1].value = -1;
    EXPECT_NO_THROW(Loader(*setup.data.training, graph)) << "an input that the model does not use may be absent";
}

}  // namespace
}  // namespace vpp::test
