#include "base/safetensors_header.hpp"
#include "unit/data/support.hpp"
#include "unit/data/zip_files.hpp"

namespace vpp {
namespace {

using test::error_of;
using test::npy;
using test::raw;
using test::read_values;
using test::TemporaryFolder;

Plan arrays_plan(NamedTexts train) {
    return test::table_plan("arrays", std::move(train));
}

TEST(Arrays, SampleIIsRowI) {
    const TemporaryFolder folder;
    const auto data = open_dataset(
        arrays_plan({{"image", folder.write("i.npy", npy("<f4", "(3, 2)", raw<float>({1, 2, 3, 4, 5, 6})))},
                     {"label", folder.write("l.npy", npy("<i8", "(3,)", raw<int64_t>({7, 8, 9})))}}),
        Subset::Train);
    EXPECT_EQ(data->fields().num_samples, 3);
    EXPECT_EQ(data->fields().fields[0].shape, std::vector<int64_t>{2});
    EXPECT_EQ(data->fields().fields[1].shape, std::vector<int64_t>{});
    EXPECT_EQ(data->fields().fields[1].dtype, DType::I64);
    EXPECT_EQ(read_values<float>(*data, 1, 0), (std::vector<float>{3, 4}));
    EXPECT_EQ(read_values<int64_t>(*data, 2, 1), std::vector<int64_t>{9});
    EXPECT_EQ(data->where(2, 1), folder.path("l.npy") + ", sample 2");
    error_of(ErrorKind::Bug, [&] { read_values<float>(*data, 3, 0); });
}

TEST(Arrays, AFileThatIsCutWhileItIsOpenIsNamed) {
    const TemporaryFolder folder;
    const std::string path = folder.write("x.npy", npy("<f4", "(3, 2)", raw<float>({1, 2, 3, 4, 5, 6})));
    const auto data = open_dataset(arrays_plan({{"x", path}}), Subset::Train);
    const auto size = std::filesystem::file_size(path);
    std::filesystem::resize_file(path, size - 4);
    EXPECT_EQ(read_values<float>(*data, 1, 0), (std::vector<float>{3, 4}));
    const std::string text = error_of(ErrorKind::BadData, [&] { read_values<float>(*data, 2, 0); });
    EXPECT_HAS(text, path + " ends at byte " + std::to_string(size - 4));
    EXPECT_HAS(text, "it had " + std::to_string(size) + " bytes when it was opened");
}

TEST(Arrays, ValidationHasItsOwnTable) {
    const TemporaryFolder folder;
    Plan plan = arrays_plan({{"x", folder.write("x.npy", npy("<f4", "(2,)", raw<float>({1, 2})))}});
    EXPECT_EQ(open_dataset(plan, Subset::Validation), nullptr);
    plan.data.val_fields = {{"x", folder.write("v.npy", npy("<f4", "(1,)", raw<float>({9})))}};
    EXPECT_EQ(open_dataset(plan, Subset::Validation)->fields().num_samples, 1);
}

TEST(Arrays, AFileOfSeveralArraysGivesTheOneThatIsNamed) {
    const test::TemporaryFolder folder;
    const std::string image = npy("<f4", "(2, 2)", raw<float>({1, 2, 3, 4}));
    const std::string npz = folder.write(
        "d.npz", test::zip_file({{"image.npy", image}, {"y.npy", npy("<i8", "(2,)", raw<int64_t>({7, 8}))}}));
    const std::vector<float> mask{5, 6};
    const TensorBytes tensor{"mask", DType::F32, {2}, std::as_bytes(std::span(mask))};
    const std::string safetensors = folder.write("m.safetensors", make_safetensors_header({&tensor}, {}) + raw(mask));
    const auto data =
        open_dataset(arrays_plan({{"image", npz}, {"label", npz + ":y"}, {"mask", safetensors}}), Subset::Train);
    EXPECT_EQ(data->fields().fields[0].shape, std::vector<int64_t>{2});
    EXPECT_EQ(read_values<float>(*data, 1, 0), (std::vector<float>{3, 4}));
    EXPECT_EQ(read_values<int64_t>(*data, 1, 1), std::vector<int64_t>{8});
    EXPECT_EQ(read_values<float>(*data, 0, 2), std::vector<float>{5});
    EXPECT_EQ(data->where(1, 1), npz + ":y, sample 1");
    const auto digest = [&](const std::string& written) {
        return open_dataset(arrays_plan({{"image", written}}), Subset::Train)->digest();
    };
    EXPECT_EQ(digest(npz), digest(npz + ":image"));
    EXPECT_NE(digest(npz), digest(npz + ":y"));
    EXPECT_HAS(error_of(ErrorKind::BadData, [&] { digest(npz + ":z"); }), "d.npz: it has no array 'z'");
}

TEST(Arrays, ArraysOfFilesMayBeTooFewDimsOrEmpty) {
    const test::TemporaryFolder folder;
    const std::string npz = folder.write(
        "d.npz", test::zip_file({{"a.npy", npy("<f4", "()", raw<float>({1}))}, {"b.npy", npy("<f4", "(0, 3)", "")}}));
    const auto refusal = [&](const std::string& written) {
        return error_of(ErrorKind::BadData, [&] { open_dataset(arrays_plan({{"x", written}}), Subset::Train); });
    };
    EXPECT_HAS(refusal(npz + ":a"), "d.npz:a: the first dim counts samples (got shape []");
    EXPECT_HAS(refusal(npz + ":b"), "d.npz:b: holds no values (got shape [0, 3])");
}

TEST(Arrays, FieldsOfDifferentLengthAreRefused) {
    const TemporaryFolder folder;
    const Plan plan = arrays_plan({{"x", folder.write("x.npy", npy("<f4", "(2,)", raw<float>({1, 2})))},
                                   {"y", folder.write("y.npy", npy("<f4", "(1,)", raw<float>({1})))}});
    const std::string text = error_of(ErrorKind::BadData, [&] { open_dataset(plan, Subset::Train); });
    EXPECT_HAS(text, "y.npy: all fields need the same number of samples (got 1, expected 2 as in ");
}

TEST(Arrays, ScalarsEmptyArraysAndMissingFilesAreRefused) {
    const TemporaryFolder folder;
    const auto refusal = [&](ErrorKind kind, const std::string& path) {
        return error_of(kind, [&] { open_dataset(arrays_plan({{"x", path}}), Subset::Train); });
    };
    EXPECT_HAS(refusal(ErrorKind::BadData, folder.write("a.npy", npy("<f4", "()", raw<float>({1})))), "counts samples");
    EXPECT_HAS(refusal(ErrorKind::BadData, folder.write("b.npy", npy("<f4", "(0, 3)", ""))),
               "b.npy: holds no values (got shape [0, 3])");
    EXPECT_HAS(refusal(ErrorKind::BadData, folder.write("c.npy", npy("<f4", "(3, 0)", ""))), "holds no values");
    EXPECT_HAS(refusal(ErrorKind::BadData, folder.write("d.npy", npy("<f4", "(1, 9223372036854775807, 0)", ""))),
               "d.npy: holds no values (got shape [1, 9223372036854775807, 0])");
    EXPECT_HAS(refusal(ErrorKind::MissingInput, folder.path("missing.npy")), "missing.npy");
    EXPECT_HAS(error_of(ErrorKind::Plan, [&] { open_dataset(arrays_plan({}), Subset::Train); }), "[data.train]");
}

TEST(Arrays, ABoolThatIsNoneIsFoundWhenRead) {
    const TemporaryFolder folder;
    const std::string path = folder.write("m.npy", npy("|b1", "(2, 2)", std::string("\0\1\2\0", 4)));
    const auto data = open_dataset(arrays_plan({{"mask", path}}), Subset::Train);
    EXPECT_EQ(read_values<uint8_t>(*data, 0, 0), (std::vector<uint8_t>{0, 1}));
    EXPECT_EQ(error_of(ErrorKind::BadData, [&] { read_values<uint8_t>(*data, 1, 0); }),
              path + ", sample 1: a bool is neither 0 nor 1; the file is damaged");
}

TEST(Arrays, TheDigestFollowsNamesAndBytes) {
    const TemporaryFolder folder;
    const std::string one = folder.write("1.npy", npy("<f4", "(1,)", raw<float>({1})));
    const std::string two = folder.write("2.npy", npy("<f4", "(1,)", raw<float>({2})));
    const auto digest = [](NamedTexts fields) {
        return open_dataset(arrays_plan(std::move(fields)), Subset::Train)->digest();
    };
    EXPECT_EQ(digest({{"x", one}}), digest({{"x", one}}));
    EXPECT_NE(digest({{"x", one}}), digest({{"y", one}}));
    EXPECT_NE(digest({{"x", one}}), digest({{"x", two}}));
    EXPECT_NE(digest({{"x", one}, {"y", two}}), digest({{"x", two}, {"y", one}}));
}

}  // namespace
}  // namespace vpp
