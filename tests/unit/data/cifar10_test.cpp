#include "unit/data/support.hpp"

namespace vpp {
namespace {

using test::read_values;

constexpr size_t kImageBytes = 3072;

/// A label and a picture of one colour a channel.
std::string record(char label, const std::string& channels) {
    std::string bytes{label};
    for (const char channel : channels) bytes += std::string(kImageBytes / 3, channel);
    return bytes;
}

Plan cifar_plan(std::vector<std::string> train, std::vector<std::string> val = {}) {
    Plan plan;
    plan.data.kind = "cifar10";
    plan.data.train = std::move(train);
    plan.data.val = std::move(val);
    return plan;
}

TEST(Cifar10, RecordsOfSeveralFiles) {
    const test::TemporaryFolder folder;
    const std::string one = folder.write("1.bin", record(3, std::string("\0\xff\x64", 3)) + record(9, "aaa"));
    const std::string two = folder.write("2.bin", record(0, "\x01\x02\x03"));
    const auto data = open_dataset(cifar_plan({one, two}), Subset::Train);
    const Fields& fields = data->fields();
    EXPECT_EQ(fields.num_samples, 3);
    EXPECT_EQ(fields.fields[0].name, "image");
    EXPECT_EQ(fields.fields[0].dtype, DType::F32);
    EXPECT_EQ(fields.fields[0].shape, (std::vector<int64_t>{3, 32, 32}));
    EXPECT_EQ(fields.fields[1].name, "label");
    EXPECT_EQ(fields.fields[1].bound, 10);
    const auto image = read_values<float>(*data, 0, 0);
    EXPECT_EQ(image.front(), 0);
    EXPECT_EQ(image[1023], 0);
    EXPECT_EQ(image[1024], 1);
    EXPECT_EQ(image[2048], 100.0f / 255);
    EXPECT_EQ(read_values<float>(*data, 2, 0).back(), 3.0f / 255);
    const int64_t labels[] = {3, 9, 0};
    for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(read_values<int64_t>(*data, i, 1), std::vector<int64_t>{labels[i]});
    EXPECT_EQ(data->where(2, 0), two + ", sample 2 (record 0)");
}

TEST(Cifar10, ValidationHasItsOwnFiles) {
    const test::TemporaryFolder folder;
    const std::string one = folder.write("1.bin", record(1, "aaa") + record(2, "aaa"));
    EXPECT_EQ(open_dataset(cifar_plan({one}), Subset::Validation), nullptr);
    const std::string two = folder.write("2.bin", record(1, "aaa"));
    EXPECT_EQ(open_dataset(cifar_plan({one}, {two}), Subset::Validation)->fields().num_samples, 1);
}

TEST(Cifar10, ALabelThatIsNoneIsFoundWhenRead) {
    const test::TemporaryFolder folder;
    const std::string path = folder.write("1.bin", record(1, "aaa") + record(10, "aaa"));
    const auto data = open_dataset(cifar_plan({path}), Subset::Train);
    EXPECT_EQ(read_values<int64_t>(*data, 0, 1), std::vector<int64_t>{1});
    EXPECT_EQ(
        test::error_of(ErrorKind::BadData, [&] { read_values<int64_t>(*data, 1, 1); }),
        path + ", sample 1 (record 1): the label is 10 (expected 0 to 9); the file is damaged, or is no CIFAR-10");
}

TEST(Cifar10, OtherFilesAreRefused) {
    const test::TemporaryFolder folder;
    const std::pair<std::string, std::string> files[] = {{"", "0"}, {std::string(3072, 'a'), "3072"}};
    for (const auto& [bytes, size] : files) {
        const std::string path = folder.write("x.bin", bytes);
        EXPECT_EQ(test::error_of(ErrorKind::BadData, [&] { open_dataset(cifar_plan({path}), Subset::Train); }),
                  path + ": not of CIFAR-10's binary version (got " + size +
                      " bytes, expected a multiple of 3073); take cifar-10-binary.tar.gz, unpacked");
    }
    EXPECT_EQ(test::error_of(ErrorKind::Plan, [] { open_dataset(cifar_plan({}), Subset::Train); }),
              "data.kind cifar10 needs files; try data.train = [\"data_batch_1.bin\"]");
}

TEST(Cifar10, TheDigestFollowsTheBytes) {
    const test::TemporaryFolder folder;
    const std::string one = folder.write("1.bin", record(1, "aaa")), two = folder.write("2.bin", record(1, "aab"));
    const auto digest = [](const std::string& path) {
        return open_dataset(cifar_plan({path}), Subset::Train)->digest();
    };
    EXPECT_EQ(digest(one), digest(one));
    EXPECT_NE(digest(one), digest(two));
}

}  // namespace
}  // namespace vpp
