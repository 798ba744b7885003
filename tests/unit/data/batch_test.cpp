#include "data/batch.hpp"

#include "unit/data/support.hpp"

namespace vpp {
namespace {

using test::error_of;

TEST(Batch, SamplesLieOneAfterAnotherInTheGivenOrder) {
    const test::TemporaryFolder folder;
    Plan plan;
    plan.data.kind = "text";
    plan.data.train = {folder.write("a.txt", "0123456")};
    plan.data.sequence_length = 2;
    const auto data = open_dataset(plan, Subset::Train);
    const std::vector<Draw> draws{{2}, {0}, {2, 7}};
    std::vector<int64_t> values(6);
    read_samples(*data, 0, draws, std::as_writable_bytes(std::span(values)));
    EXPECT_EQ(values, (std::vector<int64_t>{'4', '5', '0', '1', '4', '5'}));
    EXPECT_NO_THROW(read_samples(*data, 1, {}, {}));

    const auto out = std::as_writable_bytes(std::span(values));
    error_of(ErrorKind::Bug, [&] { read_samples(*data, 0, draws, out.first(40)); });
    error_of(ErrorKind::Bug, [&] { read_samples(*data, 2, draws, out); });
    error_of(ErrorKind::Bug, [&] { read_samples(*data, 0, std::vector<Draw>{{0}, {1}, {3}}, out); });
}

}  // namespace
}  // namespace vpp
