#include "checkpoint/weights_index.hpp"

#include "samples.hpp"

namespace vpp {
namespace {

using test::expect_error;

std::map<std::string, std::string> parse(const std::string& text) {
    return parse_weights_index(text, "i.json");
}

TEST(WeightsIndex, SaysWhichFileHasATensor) {
    const auto file_of = parse(R"({"metadata": {"total_size": 12, "deeper": {"x": [1]}},
                                   "weight_map": {"b": "two.safetensors", "a.c": "one.safetensors"}})");
    EXPECT_EQ(file_of, (std::map<std::string, std::string>{{"a.c", "one.safetensors"}, {"b", "two.safetensors"}}));
}

TEST(WeightsIndex, WhatIsNoneIsRefused) {
    for (const char* text : {"[]", "3", "{}", R"({"weight_map": []})", R"({"weight_map": {}})"}) {
        expect_error(ErrorKind::BadData,
                     "i.json: no index of weights: it has no object 'weight_map' of tensors and their files",
                     [&] { parse(text); });
    }
    expect_error(ErrorKind::BadData, "i.json", [&] { parse(""); });
    expect_error(ErrorKind::BadData, "is there twice", [&] { parse(R"({"weight_map": {"a": "x", "a": "y"}})"); });
    expect_error(ErrorKind::BadData, "holds control bytes", [&] { parse(R"({"weight_map": {"a\u0001": "x"}})"); });
    expect_error(ErrorKind::BadData, "nested deeper", [&] { parse(std::string(100, '[') + std::string(100, ']')); });
}

TEST(WeightsIndex, FilesLieBesideIt) {
    for (const char* file : {R"("../w.safetensors")", R"("/etc/passwd")", R"("a/w")", R"("a\\w")", R"("..")", R"(".")",
                             R"("")", R"("a\u0000b")", "7", "null", R"(["w"])"}) {
        expect_error(ErrorKind::BadData, "i.json",
                     [&] { parse(R"({"weight_map": {"t": )" + std::string(file) + "}}"); });
    }
    expect_error(ErrorKind::BadData,
                 R"(i.json: the file of tensor 't' is "../w", expected the name of a file beside the index)",
                 [&] { parse(R"({"weight_map": {"t": "../w"}})"); });
}

}  // namespace
}  // namespace vpp
