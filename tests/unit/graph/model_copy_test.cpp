// A model file written again: the same model, and the same bits, unless values were replaced.
#include "graph/model_copy.hpp"

#include <ATen/ops/full_like.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "unit/graph/models.hpp"

namespace vpp {
namespace {

using namespace test;
namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const TorchScriptOptions kCopyOptions = options_for({floats("x", {4})});

/// Two layers that share a weight, one of them in channels-last-like strides, and a batch norm.
fs::path tied_model() {
    const at::Tensor shared = weight({4, 4}, 3).t().contiguous().t().detach().set_requires_grad(true);
    ModuleSpec first{"First", "def forward(self, x):\n    return torch.linear(x, self.w)\n", {{"w", shared}}};
    ModuleSpec second{"Second", "def forward(self, x):\n    return torch.linear(x, self.w)\n", {{"w", shared}}};
    ModuleSpec model{
        "Model",
        "def forward(self, x):\n    return torch.mean(self.norm.forward(self.a.forward(self.b.forward(x))))\n"};
    model.children = {{"a", first}, {"b", second}, {"norm", batch_norm(4)}};
    return save(model);
}

LoadedModel load_copy(const fs::path& path) {
    return load_torchscript(std::make_shared<const Archive>(path), kCopyOptions);
}

fs::path write_copy(const ModelCopy& copy, const fs::path& beside) {
    const fs::path path = beside.string() + ".copy";
    std::ofstream out(path, std::ios::binary);
    copy.write([&](std::span<const std::byte> bytes) {
        out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    });
    return path;
}

TEST(ModelCopy, ListsWhatTheGraphHasUnderTheSameNames) {
    const fs::path path = tied_model();
    const ModelCopy copy(std::make_shared<const Archive>(path));
    const Graph graph = load_copy(path).graph;
    ASSERT_EQ(copy.weights().size(), graph.parameters.size());
    for (size_t i = 0; i < graph.parameters.size(); ++i) {
        EXPECT_EQ(copy.weights()[i].name, graph.parameters[i].name);
        EXPECT_EQ(copy.weights()[i].aliases, graph.parameters[i].aliases);
        EXPECT_EQ(copy.weights()[i].is_buffer, graph.parameters[i].is_buffer);
    }
    EXPECT_THAT(copy.weights()[0].aliases, ElementsAre("b.w"));
}

TEST(ModelCopy, AnUnchangedCopyIsTheSameModel) {
    const fs::path path = tied_model();
    const fs::path again = write_copy(ModelCopy(std::make_shared<const Archive>(path)), path);
    EXPECT_EQ(load_copy(path).graph.digest, load_copy(again).graph.digest);
}

TEST(ModelCopy, AParameterWithoutDataTakesValues) {
    ModuleSpec model{"Model", "def forward(self, x):\n    return torch.mean(self.a.forward(x))\n"};
    model.children = {{"a", linear(4, 4)}};
    at::Tensor& spread = model.children[0].second.parameters[0].second;
    spread = weight({1}).detach().expand({4, 4}).set_requires_grad(true);
    const fs::path path = save(model);
    const ModelCopy copy(std::make_shared<const Archive>(path));
    EXPECT_TRUE(copy.weights()[0].tensor.isnan().all().item<bool>());
    EXPECT_FALSE(copy.weights()[0].has_data);
    at::Tensor(copy.weights()[0].tensor).copy_(weight({4, 4}, 5));
    LoadedModel after = load_copy(write_copy(copy, path));
    EXPECT_TRUE(after.graph.parameters[0].has_data);
    EXPECT_EQ(bits_of(after.source->weight(0)), bits_of(weight({4, 4}, 5)));
    EXPECT_TRUE(after.source->weight(0).requires_grad());
}

TEST(ModelCopy, AParameterWithRowsInOneMemoryTakesAValueForEach) {
    ModuleSpec model{"Model", "def forward(self, x):\n    return torch.mean(self.a.forward(x))\n"};
    model.children = {{"a", linear(4, 4)}};
    at::Tensor& spread = model.children[0].second.parameters[0].second;
    spread = weight({1, 4}).detach().expand({4, 4}).set_requires_grad(true);
    const fs::path path = save(model);
    const ModelCopy copy(std::make_shared<const Archive>(path));
    EXPECT_TRUE(copy.weights()[0].has_data);
    EXPECT_EQ(bits_of(copy.weights()[0].tensor), bits_of(weight({1, 4}).expand({4, 4})));
    at::Tensor(copy.weights()[0].tensor).copy_(weight({4, 4}, 5));
    LoadedModel after = load_copy(write_copy(copy, path));
    EXPECT_EQ(bits_of(after.source->weight(0)), bits_of(weight({4, 4}, 5)));
}

TEST(ModelCopy, NewValuesArriveWithTiesAndStrides) {
    const fs::path path = tied_model();
    const ModelCopy copy(std::make_shared<const Archive>(path));
    at::Tensor(copy.weights()[0].tensor).fill_(2.5);
    LoadedModel before = load_copy(path), after = load_copy(write_copy(copy, path));
    EXPECT_NE(before.graph.digest, after.graph.digest);
    ASSERT_EQ(after.graph.parameters.size(), before.graph.parameters.size());
    EXPECT_THAT(after.graph.parameters[0].aliases, ElementsAre("b.w"));
    const at::Tensor tensor = after.source->weight(0);
    EXPECT_TRUE(tensor.equal(at::full_like(tensor, 2.5)));
    EXPECT_EQ(tensor.strides(), before.source->weight(0).strides());
    EXPECT_TRUE(tensor.requires_grad());
    EXPECT_TRUE(after.source->weight(1).equal(before.source->weight(1)));
}

TEST(ModelCopy, AFailingSinkIsAnErrorAndNoAbort) {
    const ModelCopy copy(std::make_shared<const Archive>(tied_model()));
    for (int good : {0, 1, 5}) {
        int calls = 0;
        const auto sink = [&](std::span<const std::byte>) {
            if (calls++ >= good) throw Error(ErrorKind::Io, "disk full");
        };
        EXPECT_THROW(copy.write(sink), Error);
        EXPECT_EQ(calls, good + 1) << "a sink that failed is left alone";
    }
}

TEST(ModelCopy, ADamagedWeightIsFound) {
    const fs::path path = tied_model();
    std::ifstream in(path, std::ios::binary);
    std::string bytes{std::istreambuf_iterator<char>(in), {}};
    const float one = 1;  // the batch norm's weight
    const size_t at = bytes.find(std::string(reinterpret_cast<const char*>(&one), sizeof one));
    ASSERT_NE(at, std::string::npos);
    bytes[at] = static_cast<char>(bytes[at] ^ 1);
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
    EXPECT_THROW(ModelCopy(std::make_shared<const Archive>(path)), Error);
}

}  // namespace
}  // namespace vpp
