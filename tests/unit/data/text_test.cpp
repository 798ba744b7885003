#include "unit/data/support.hpp"

namespace vpp {
namespace {

using test::error_of;
using test::read_values;
using test::TemporaryFolder;

Plan text_plan(std::vector<std::string> train) {
    Plan plan;
    plan.data.kind = "text";
    plan.data.train = std::move(train);
    plan.data.sequence_length = 2;
    return plan;
}

TEST(Text, BytesAreTokens) {
    const TemporaryFolder folder;
    const auto data = open_dataset(text_plan({folder.write("a.txt", std::string("\xff\x00z", 3))}), Subset::Train);
    EXPECT_EQ(read_values<int64_t>(*data, 0, 0), (std::vector<int64_t>{255, 0}));
    EXPECT_EQ(read_values<int64_t>(*data, 0, 1), (std::vector<int64_t>{0, 'z'}));
    EXPECT_EQ(data->fields().fields[0].bound, 256);
}

TEST(Text, ValidationIsAPartOfItsOwnOrNull) {
    const TemporaryFolder folder;
    Plan plan = text_plan({folder.write("a.txt", "abc")});
    EXPECT_EQ(open_dataset(plan, Subset::Validation), nullptr);
    plan.data.val = {folder.write("b.txt", "xyz")};
    EXPECT_EQ(read_values<int64_t>(*open_dataset(plan, Subset::Validation), 0, 0), (std::vector<int64_t>{'x', 'y'}));
}

TEST(Text, EmptyMissingAndFolderAreNamed) {
    const TemporaryFolder folder;
    const std::string empty = folder.write("empty.txt", "");
    EXPECT_HAS(error_of(ErrorKind::BadData, [&] { open_dataset(text_plan({empty}), Subset::Train); }),
               empty + ": the file is empty");
    const std::string missing = folder.path("missing.txt");
    EXPECT_HAS(error_of(ErrorKind::MissingInput, [&] { open_dataset(text_plan({missing}), Subset::Train); }), missing);
    error_of(ErrorKind::BadData, [&] { open_dataset(text_plan({folder.path("")}), Subset::Train); });
}

}  // namespace
}  // namespace vpp
