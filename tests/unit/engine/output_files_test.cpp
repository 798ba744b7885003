#include "engine/output_files.hpp"

#include <ATen/ops/arange.h>
#include <ATen/ops/zeros.h>

#include <filesystem>

#include "data/npy.hpp"
#include "unit/engine/support.hpp"

namespace vpp::test {
namespace {

/// Two outputs with rows of three, and one number for all samples.
Graph graph_with_outputs() {
    Graph graph;
    for (const std::vector<int64_t>& shape : {std::vector<int64_t>{2, 3}, {}, {2}}) {
        GraphTensor tensor;
        tensor.shape = shape;
        graph.outputs.push_back(
            {"output" + std::to_string(graph.tensors.size()), static_cast<int>(graph.tensors.size())});
        graph.tensors.push_back(tensor);
    }
    return graph;
}

std::vector<at::Tensor> outputs_from(int64_t first, int64_t num_samples) {
    const at::Tensor rows = at::arange(first * 3, (first + num_samples) * 3, at::kFloat).view({num_samples, 3});
    return {rows, at::zeros({}), rows.select(1, 0)};
}

TEST(OutputsBySample, LeavesOutWhatHasNoRowForEachSample) {
    const Graph graph = graph_with_outputs();
    std::vector<std::string> left_out;
    EXPECT_EQ(outputs_by_sample(graph, 2, left_out), (std::vector<int>{0, 2}));
    EXPECT_EQ(left_out, std::vector<std::string>{"output1 []"});
    EXPECT_EQ(output_paths(graph, {0, 2}, "here"),
              (std::vector<std::filesystem::path>{"here/output0.npy", "here/output2.npy"}));
}

TEST(OutputPaths, NeverLeaveTheFolder) {
    Graph graph = graph_with_outputs();
    graph.outputs[0].name = "../x";
    EXPECT_HAS(error_of(ErrorKind::BadData, [&] { output_paths(graph, {0}, "here"); }), "cannot name a file");
}

TEST(OutputFiles, HoldTheRowsInOrderAndAppearWhenTheyAreWhole) {
    const TemporaryFolder folder;
    const std::string place = folder.path("new/folder");
    OutputFiles files(graph_with_outputs(), {0, 2}, place, 5, false);
    files.take(outputs_from(0, 2), 2);
    files.take(outputs_from(2, 2), 2);
    files.take(outputs_from(4, 1), 1);
    EXPECT_FALSE(std::filesystem::exists(place + "/output0.npy"));
    files.publish();
    const NpyFile rows(place + "/output0.npy"), firsts(place + "/output2.npy");
    EXPECT_EQ(rows.shape(), (std::vector<int64_t>{5, 3}));
    EXPECT_EQ(firsts.shape(), std::vector<int64_t>{5});
    for (int i = 0; i < 15; ++i) EXPECT_EQ(float_at(rows, i), i);
    for (int i = 0; i < 5; ++i) EXPECT_EQ(float_at(firsts, i), 3 * i);
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(place), {}), 2) << "nothing temporary is left";
}

TEST(OutputFiles, ReplaceNothingUnlessTheyMay) {
    const TemporaryFolder folder;
    folder.write("output2.npy", "precious");
    const auto open = [&](bool overwrite) {
        OutputFiles(graph_with_outputs(), {0, 2}, folder.path("."), 1, overwrite);
    };
    EXPECT_HAS(error_of(ErrorKind::Output, [&] { open(false); }), "--overwrite");
    EXPECT_NO_THROW(open(true));
    EXPECT_EQ(std::filesystem::file_size(folder.path("output2.npy")), 8U) << "not before the new one is whole";
    folder.write("file", "");
    EXPECT_HAS(error_of(ErrorKind::Output,
                        [&] { OutputFiles(graph_with_outputs(), {0}, folder.path("file") + "/in", 1, false); }),
               "cannot make the folder " + folder.path("file") + "/in: Not a directory");
}

TEST(OutputFiles, NeverLieBesideOldOnes) {
    const TemporaryFolder folder;
    folder.write("output0.npy", "old");
    OutputFiles files(graph_with_outputs(), {0, 2}, folder.path("."), 2, true);
    files.take(outputs_from(0, 2), 2);
    EXPECT_EQ(std::filesystem::file_size(folder.path("output0.npy")), 3U);
    std::filesystem::create_directory(folder.path("output2.npy"));  // stands for whatever ends the program here
    EXPECT_HAS(error_of(ErrorKind::Io, [&] { files.publish(); }), "Is a directory");
    EXPECT_FALSE(std::filesystem::exists(folder.path("output0.npy"))) << "neither old nor new";
}

TEST(OutputFiles, RefuseRowsThatAreNotTheSamples) {
    const TemporaryFolder folder;
    OutputFiles files(graph_with_outputs(), {0}, folder.path("."), 4, false);
    files.take(outputs_from(0, 2), 2);
    EXPECT_HAS(error_of(ErrorKind::BadData, [&] { files.take(outputs_from(2, 2), 1); }),
               "which is no row for each sample like before; was the model traced with its batch size? Try "
               "--drop-last, or script it");
    EXPECT_HAS(error_of(ErrorKind::BadData,
                        [&] {
                            files.take({at::zeros({2, 4})}, 2);
                        }),
               "the output 'output0' has the shape [2, 4] for a microbatch of 2 samples, which is no row");
    EXPECT_HAS(error_of(ErrorKind::BadData, [&] { files.take({at::zeros({2, 3}, at::kDouble)}, 2); }), "output0");
}

}  // namespace
}  // namespace vpp::test
