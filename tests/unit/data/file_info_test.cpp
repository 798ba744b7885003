#include "data/file_info.hpp"

#include <cmath>

#include "base/safetensors_header.hpp"
#include "data/token_writer.hpp"
#include "unit/data/support.hpp"
#include "unit/data/zip_files.hpp"

namespace vpp {
namespace {

using test::npy;
using test::raw;

TEST(FileInfo, TellsWhatEachKindHolds) {
    const test::TemporaryFolder folder;
    const FileInfo array =
        look_at_file(folder.write("x.npy", npy("<f4", "(2, 3)", raw<float>({1, -2, 3, 4, 5, 6.5}))), "");
    EXPECT_EQ(array.kind, "arrays");
    ASSERT_EQ(array.arrays.size(), 1U);
    EXPECT_EQ(array.arrays[0].name, "x");
    EXPECT_EQ(array.arrays[0].shape, std::vector<int64_t>{3});
    EXPECT_EQ(array.arrays[0].num_samples, 2);
    EXPECT_EQ(array.arrays[0].values->low, -2);
    EXPECT_EQ(array.arrays[0].values->high, 6.5);
    EXPECT_TRUE(array.arrays[0].values->all);
    EXPECT_FALSE(look_at_file(folder.path("x.npy"), "", 12).arrays[0].values->all);
    EXPECT_EQ(look_at_file(folder.path("x.npy"), "", 12).arrays[0].values->high, 3);
    const std::string halves = raw<uint16_t>({0x3c00, 0xc000, 0x7c00});
    const FileInfo half = look_at_file(folder.write("h.npy", npy("<f2", "(3,)", halves)), "");
    EXPECT_EQ(half.arrays[0].values->low, -2);
    EXPECT_EQ(half.arrays[0].values->high, 1);
    EXPECT_EQ(half.arrays[0].values->num_not_finite, 1);
    const std::vector<uint16_t> brain{0x3f80, 0xc000};
    const TensorBytes tensor{"b", DType::BF16, {2}, std::as_bytes(std::span(brain))};
    const std::string shard = make_safetensors_header({&tensor}, {}) + raw(brain);
    const FileInfo saved = look_at_file(folder.write("b.safetensors", shard), "");
    EXPECT_EQ(saved.arrays[0].values->low, -2);
    EXPECT_EQ(saved.arrays[0].values->high, 1);

    const FileInfo labels = look_at_file(folder.write("labels", std::string("\0\0\x08\x01\0\0\0\x02\x03\x07", 10)), "");
    EXPECT_EQ(labels.kind, "idx");
    EXPECT_EQ(labels.arrays[0].values->high, 7);

    std::string records(2 * 3073, '\xff');
    records[0] = records[3073] = 4;
    const FileInfo cifar = look_at_file(folder.write("data_batch_1.bin", records), "");
    EXPECT_EQ(cifar.kind, "cifar10");
    EXPECT_EQ(cifar.arrays[1].values->low, 4);
    records[3073] = 10;
    EXPECT_EQ(look_at_file(folder.write("tokens.bin", records), "").kind, "tokens");

    const FileInfo text = look_at_file(folder.write("a.txt", "hello"), "");
    EXPECT_EQ(text.kind, "text");
    EXPECT_EQ(text.num_tokens, 5);
    EXPECT_EQ(text.tokens->low, 'e');
    EXPECT_EQ(look_at_file(folder.path("a.txt"), "", 8).tokens->all, false);
    EXPECT_EQ(text.note, "");
    EXPECT_HAS(look_at_file(folder.write("a.txt.gz", "\x1f\x8b\x08\x08"), "").note, "it begins as a gzip file does");
    EXPECT_HAS(look_at_file(folder.write("p.bin", "\x89PNG\r\n\x1a\n"), "").note, "it begins as a PNG picture does");
    EXPECT_HAS(test::error_of(ErrorKind::BadData, [&] { look_at_file(folder.path("."), ""); }),
               "a folder, where a file is read");
    EXPECT_HAS(test::error_of(ErrorKind::CommandLine, [&] { look_at_file(folder.path("a.txt"), "synthetic"); }),
               "no kind of data files (got 'synthetic', expected tokens, text, arrays, idx or cifar10)");
}

TEST(FileInfo, ValuesThatAreNotFiniteAreCounted) {
    const test::TemporaryFolder folder;
    const float nan = NAN, inf = INFINITY;
    const auto seen = [&](const std::vector<float>& values) {
        const std::string shape = "(" + std::to_string(values.size()) + ",)";
        return *look_at_file(folder.write("x.npy", npy("<f4", shape, raw<float>(values))), "").arrays[0].values;
    };
    const SeenValues one = seen({0, nan, 1});
    EXPECT_EQ(one.num_values, 3);
    EXPECT_EQ(one.num_not_finite, 1);
    EXPECT_TRUE(one.has_range());
    EXPECT_EQ(one.low, 0);
    EXPECT_EQ(one.high, 1);
    EXPECT_EQ(seen({nan, 2, inf, -inf}).num_not_finite, 3);
    EXPECT_EQ(seen({nan, 2, inf, -inf}).high, 2);
    EXPECT_FALSE(seen({nan, nan}).has_range());
    EXPECT_EQ(seen({1, 2}).num_not_finite, 0);
}

TEST(FileInfo, ArraysWithoutSamplesStandAmongTheOthers) {
    const test::TemporaryFolder folder;
    const std::string step = npy("<f4", "()", raw<float>({3})), none = npy("<i8", "(2, 0)", "");
    const std::string values = npy("<f4", "(2,)", raw<float>({1, 2}));
    const std::string npz = test::zip_file({{"step.npy", step}, {"none.npy", none}, {"x.npy", values}});
    const FileInfo zipped = look_at_file(folder.write("x.npz", npz), "");
    ASSERT_EQ(zipped.arrays.size(), 3U);
    EXPECT_EQ(zipped.arrays[0].name, "step");
    EXPECT_EQ(zipped.arrays[0].dtype, DType::F32);
    EXPECT_EQ(zipped.arrays[0].num_samples, 0);
    EXPECT_FALSE(zipped.arrays[0].values);
    EXPECT_EQ(zipped.arrays[1].num_samples, 2);
    EXPECT_EQ(zipped.arrays[1].shape, std::vector<int64_t>{0});
    EXPECT_FALSE(zipped.arrays[1].values);
    EXPECT_EQ(zipped.arrays[2].values->high, 2);

    const std::vector<float> number{3}, two{1, 2};
    const TensorBytes tensors[] = {{"step", DType::F32, {}, std::as_bytes(std::span(number))},
                                   {"x", DType::F32, {2}, std::as_bytes(std::span(two))}};
    const std::string shard = make_safetensors_header({&tensors[0], &tensors[1]}, {}) + raw(number) + raw(two);
    const FileInfo saved = look_at_file(folder.write("x.safetensors", shard), "");
    ASSERT_EQ(saved.arrays.size(), 2U);
    EXPECT_EQ(saved.arrays[0].num_samples, 0);
    EXPECT_EQ(saved.arrays[1].num_samples, 2);
    EXPECT_HAS(test::error_of(ErrorKind::BadData, [&] { look_at_file(folder.write("s.npy", step), ""); }),
               "s.npy: the first dim counts samples");
    const std::string odd = test::zip_file({{"x.npy", npy("<f4", "(1, 9223372036854775807, 0)", "")}});
    const FileInfo large = look_at_file(folder.write("odd.npz", odd), "");
    EXPECT_EQ(large.arrays[0].shape, (std::vector<int64_t>{9223372036854775807, 0})) << "it holds nothing all the same";
    EXPECT_FALSE(large.arrays[0].values);
}

TEST(FileInfo, AnArrayThatCannotBeReadStandsAmongTheOthers) {
    const test::TemporaryFolder folder;
    const std::string words = npy("<U1", "(2,)", std::string(8, 'a')), damaged = npy("|b1", "(3,)", "\1\1\2");
    const std::string values = npy("<f4", "(2,)", raw<float>({1, 2}));
    const std::string mixed =
        test::zip_file({{"x.npy", values}, {"words.npy", words}, {"flags.npy", damaged}, {"y.npy", values}});
    const FileInfo info = look_at_file(folder.write("mix.npz", mixed), "");
    ASSERT_EQ(info.arrays.size(), 4U);
    EXPECT_EQ(info.arrays[0].values->high, 2);
    EXPECT_EQ(info.arrays[0].problem, "");
    EXPECT_EQ(info.arrays[1].name, "words");
    EXPECT_HAS(info.arrays[1].problem, "mix.npz:words: unknown dtype (got '<U1'");
    EXPECT_HAS(info.arrays[2].problem, "mix.npz:flags, sample 2: a bool is neither 0 nor 1");
    EXPECT_EQ(info.arrays[3].values->high, 2);
    const std::string none = folder.write("none.npz", test::zip_file({{"a.npy", words}, {"b.npy", words}}));
    EXPECT_HAS(test::error_of(ErrorKind::BadData, [&] { look_at_file(none, ""); }), "none.npz:a: unknown dtype");
}

TEST(FileInfo, TensorsMayBeNamedAsFiles) {
    const test::TemporaryFolder folder;
    const std::vector<float> two{1, 2};
    const TensorBytes tensor{"x.npz", DType::F32, {2}, std::as_bytes(std::span(two))};
    const std::string shard = make_safetensors_header({&tensor}, {}) + raw(two);
    const FileInfo info = look_at_file(folder.write("q.safetensors", shard), "");
    EXPECT_EQ(info.arrays.at(0).name, "x.npz");
    EXPECT_EQ(info.arrays.at(0).values->high, 2);
}

TEST(FileInfo, NoMoreThanTheLimitIsReadWhateverTheSizeOfASample) {
    const test::TemporaryFolder folder;
    std::string bytes(200001, '\1');
    bytes.back() = '\x07';
    const auto seen = [&](const std::string& path, int64_t most_bytes) {
        return *look_at_file(path, "", most_bytes).arrays.at(0).values;
    };
    const std::string rows = folder.write("rows.npy", npy("|u1", "(200001,)", bytes));
    EXPECT_EQ(seen(rows, 1 << 20).num_values, 200001);
    EXPECT_EQ(seen(rows, 1 << 20).high, 7) << "in the last piece";
    const std::string one = folder.write("one.npy", npy("|i1", "(1, 200001)", bytes));
    EXPECT_TRUE(seen(one, 200001).all);
    EXPECT_EQ(seen(one, 200001).high, 7);
    EXPECT_FALSE(seen(one, 200000).all);
    EXPECT_EQ(seen(one, 200000).num_values, 200000);
    EXPECT_EQ(seen(one, 200000).high, 1);
    const std::string picture = folder.write("p", std::string("\0\0\x08\2\0\0\0\1\0\0\0\4\0\xff\0\0", 16));
    EXPECT_EQ(seen(picture, 16).high, 1);
    EXPECT_TRUE(seen(picture, 16).all);
    EXPECT_EQ(seen(picture, 7).num_values, 1) << "as float32";
    EXPECT_EQ(seen(picture, 7).high, 0);
}

TEST(FileInfo, OfTokensWithAnIndexTheDocuments) {
    const test::TemporaryFolder folder;
    make_token_file({folder.path("x.bin"), {folder.write("a", "abc"), folder.write("b", "z")}, false, 256});
    for (const char* name : {"x.bin", "x.idx"}) {
        const FileInfo info = look_at_file(folder.path(name), "");
        EXPECT_EQ(info.kind, "tokens");
        EXPECT_EQ(info.file, folder.path("x.bin")) << "an index stands for its tokens";
        EXPECT_EQ(info.size_bytes, 12U);
        EXPECT_EQ(info.num_tokens, 6);
        EXPECT_EQ(info.token_bytes, 2U);
        EXPECT_EQ(info.tokens->high, 256);
        EXPECT_EQ(info.documents->count, 2);
        EXPECT_EQ(info.documents->shortest, 2);
        EXPECT_EQ(info.documents->longest, 4);
    }
}

}  // namespace
}  // namespace vpp
