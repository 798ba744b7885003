// What LibTorch is given is what was judged.
#include "graph/jit_load.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zip.h>

#include <algorithm>

#include "unit/graph/models.hpp"

namespace vpp {
namespace {

using namespace test;
using ::testing::HasSubstr;

TEST(JitLoad, WeightsAreLeftOutAndFoundAgain) {
    const auto archive = std::make_shared<const Archive>(save(linear(3, 2)));
    std::vector<LoadedFile> files;
    const torch::jit::Module module = load_module(archive, {}, files);
    ASSERT_EQ(files.size(), 1U);
    ASSERT_EQ(files[0].records.size(), 2U);
    for (const at::Tensor& tensor : module.parameters()) {
        const auto found = std::ranges::find(files[0].records, tensor.storage().data(), &WeightRecord::destination);
        ASSERT_NE(found, files[0].records.end());
        EXPECT_EQ(found->size_bytes, tensor.nbytes());
        EXPECT_NO_THROW(archive->check_stored(found->name, found->offset));
    }
}

/// Gives a record of a zip file other contents, with a checksum that fits.
void replace_record(const std::filesystem::path& path, const std::string& ending, const std::string& contents) {
    zip_t* zip = zip_open(path.c_str(), 0, nullptr);
    for (zip_int64_t i = 0; i < zip_get_num_entries(zip, 0); ++i) {
        const auto index = static_cast<zip_uint64_t>(i);
        if (!std::string(zip_get_name(zip, index, 0)).ends_with(ending)) continue;
        zip_source_t* source = zip_source_buffer(zip, contents.data(), contents.size(), 0);
        ASSERT_EQ(zip_file_replace(zip, index, source, ZIP_FL_OVERWRITE), 0);
    }
    ASSERT_EQ(zip_close(zip), 0);
}

TEST(JitLoad, ACompressedWeightIsRefused) {
    const std::filesystem::path path = save(linear(3, 2));
    zip_t* zip = zip_open(path.c_str(), 0, nullptr);
    for (zip_int64_t i = 0; i < zip_get_num_entries(zip, 0); ++i) {
        const auto index = static_cast<zip_uint64_t>(i);
        if (!std::string(zip_get_name(zip, index, 0)).ends_with("/data/0")) continue;
        ASSERT_EQ(zip_set_file_compression(zip, index, ZIP_CM_DEFLATE, 9), 0);
    }
    ASSERT_EQ(zip_close(zip), 0);
    std::vector<LoadedFile> files;
    EXPECT_EQ(refusal(ErrorKind::BadData, [&] { load_module(std::make_shared<const Archive>(path), {}, files); }),
              path.string() + ": the weight record data/0 is compressed; save the model with torch.jit.save");
}

/// Forty children that are one module, each with forty that are one.
std::filesystem::path save_shared_modules() {
    const auto unit = std::make_shared<torch::jit::CompilationUnit>();
    torch::jit::Module shared(c10::QualifiedName("__torch__.Leaf"), unit);
    for (int i = 0; i < 100; ++i) shared.register_attribute("a" + std::to_string(i), c10::IntType::get(), i);
    for (const char* name : {"__torch__.Inner", "__torch__.Outer"}) {
        torch::jit::Module outer(c10::QualifiedName(name), unit);
        for (int i = 0; i < 40; ++i) outer.register_module("m" + std::to_string(i), shared);
        shared = outer;
    }
    const std::filesystem::path path = save(linear(3, 2));
    shared.save(path.string());
    return path;
}

TEST(JitLoad, MoreNamesThanAnybodyGoesThroughAreRefused) {
    const std::filesystem::path path = save_shared_modules();
    std::vector<LoadedFile> files;
    EXPECT_THAT(refusal(ErrorKind::BadData, [&] { load_module(std::make_shared<const Archive>(path), {}, files); }),
                HasSubstr(path.string() + ": submodules that stand in several places"));
}

TEST(JitLoad, WhatLibTorchCannotLoadIsBadData) {
    const std::filesystem::path path = save(linear(3, 2));
    replace_record(path, "/data.pkl", "no pickle");
    std::vector<LoadedFile> files;
    EXPECT_THAT(refusal(ErrorKind::BadData, [&] { load_module(std::make_shared<const Archive>(path), {}, files); }),
                HasSubstr(path.string() + ": LibTorch cannot load this model: "));
}

}  // namespace
}  // namespace vpp
