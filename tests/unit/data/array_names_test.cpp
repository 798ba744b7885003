#include "data/array_names.hpp"

#include "unit/data/support.hpp"

namespace vpp::detail {
namespace {

void expect_name(const std::string& written, const std::string& file, const std::string& array) {
    const ArrayName name = read_array_name(written, "image");
    EXPECT_EQ(name.file, file) << written;
    EXPECT_EQ(name.array, array) << written;
}

TEST(ArrayNames, FilesOfSeveralArraysMayNameOne) {
    expect_name("x.npy", "x.npy", "");
    expect_name("x:y.npy", "x:y.npy", "");
    expect_name("plain", "plain", "");
    expect_name("d/x.npz", "d/x.npz", "image");
    expect_name("d/x.npz:x_train", "d/x.npz", "x_train");
    expect_name("x.safetensors", "x.safetensors", "image");
    expect_name("x.safetensors:a:b", "x.safetensors", "a:b");
    expect_name("x.npz:", "x.npz", "");
    expect_name("a.npz:b/c.npz", "a.npz:b/c.npz", "image");
    expect_name("d/w.safetensors:x.npz", "d/w.safetensors", "x.npz");
    expect_name("w.npz:x.safetensors", "w.npz", "x.safetensors");
    expect_name("C:x.npz", "C:x.npz", "image");
}

TEST(ArrayNames, WhatThereIsInsteadIsSaid) {
    const auto refusal = [](const std::string& name, const std::vector<std::string>& names) {
        return test::error_of(ErrorKind::BadData, [&] { refuse_unknown_array(name, names, "d.npz"); });
    };
    EXPECT_EQ(refusal("image", {"x", "images"}),
              "d.npz: it has no array 'image' (it has x, images); did you mean 'images'?; name one behind the file: "
              "\"d.npz:x\"");
    EXPECT_HAS(refusal("image", {"1", "2", "3", "4", "5", "6", "7", "8", "9"}), "7, 8, ...)");
    EXPECT_EQ(refusal("image", {}), "d.npz: it has no arrays");
}

}  // namespace
}  // namespace vpp::detail
