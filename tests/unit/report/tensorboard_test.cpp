#include "report/tensorboard.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <regex>

#include "report/crc32c.hpp"
#include "unit/report/scratch.hpp"
#include "unit/report/support.hpp"

namespace vpp {
namespace {

namespace fs = std::filesystem;

/// Takes the data of the first record off; empty when a checksum does not hold.
std::string take_record(std::string& file) {
    uint64_t length = 0;
    uint32_t sum = 0;
    std::memcpy(&length, file.data(), sizeof length);
    std::memcpy(&sum, file.data() + 8, sizeof sum);
    if (sum != masked_crc32c(file.substr(0, 8))) return "";
    const std::string data = file.substr(12, length);
    std::memcpy(&sum, file.data() + 12 + length, sizeof sum);
    file.erase(0, 16 + length);
    return sum == masked_crc32c(data) ? data : "";
}

class TensorBoard : public test::Scratch {
  protected:
    double now_ = 1'700'000'000.5;
    WallClock clock_ = [this] { return now_; };
};

// The bytes that protobuf itself gives for Event(wall_time=1, step=300, file_version="brain.Event:2").
TEST_F(TensorBoard, MessagesHaveTheBytesOfProtobuf) {
    using std::string_literals::operator""s;
    EXPECT_EQ(version_message(1),
              "\x09\0\0\0\0\0\0\xf0\x3f\x10\0\x1a\x0d"
              "brain.Event:2"s);
    EXPECT_EQ(session_start_message(1, 300), "\x09\0\0\0\0\0\0\xf0\x3f\x10\xac\x02\x3a\x02\x08\x01"s);
    const std::vector<Reading> readings{
        {{"a/b", "", ""}, 1.0}, {{"none", "", ""}, std::nullopt}, {{"c", "", ""}, -2.0}};
    EXPECT_EQ(scalars_message(1, 1, readings),
              "\x09\0\0\0\0\0\0\xf0\x3f\x10\x01\x2a\x16"
              "\x0a\x0a\x0a\x03"
              "a/b\x15\0\0\x80\x3f"
              "\x0a\x08\x0a\x01"
              "c\x15\0\0\0\xc0"s);
}

TEST_F(TensorBoard, RecordsCarryTheirChecksums) {
    std::string file = tfrecord("hello") + tfrecord("");
    EXPECT_EQ(file.size(), 16u + 5 + 16);
    EXPECT_EQ(take_record(file), "hello");
    EXPECT_EQ(take_record(file), "");
    EXPECT_TRUE(file.empty());
    std::string damaged = tfrecord("hello");
    damaged[13] ^= 1;
    EXPECT_EQ(take_record(damaged), "");
}

TEST_F(TensorBoard, AFileBeginsWithItsVersionAndItsSession) {
    TensorBoardReporter reporter(folder_ / "tensorboard", 7, logger_, clock_);
    reporter.step(test::sample_step(8));
    EXPECT_TRUE(std::regex_match(reporter.path().filename().string(),
                                 std::regex(R"(events\.out\.tfevents\.1700000000\..+\.[0-9]+)")));
    std::string file = content(reporter.path());
    EXPECT_EQ(take_record(file), version_message(now_));
    EXPECT_EQ(take_record(file), session_start_message(now_, 8));
    EXPECT_EQ(take_record(file), scalars_message(now_, 8, readings(test::sample_step(8))));
    EXPECT_TRUE(file.empty());
}

TEST_F(TensorBoard, NamesAscendFromSessionToSession) {
    std::string last;
    for (const double now : {1'700'000'000.0, 1'700'000'000.9, 1'600'000'000.0, 1'700'000'009.0}) {
        now_ = now;
        const TensorBoardReporter reporter(folder_, 0, logger_, clock_);
        EXPECT_LT(last, reporter.path().filename().string());
        last = reporter.path().filename().string();
    }
}

TEST_F(TensorBoard, NumbersThatAreNoneAreKept) {
    const std::vector<Reading> readings{{{"a", "", ""}, std::numeric_limits<double>::quiet_NaN()},
                                        {{"b", "", ""}, std::numeric_limits<double>::max()}};
    const std::string message = scalars_message(1, 1, readings);
    float last = 0;
    std::memcpy(&last, message.data() + message.size() - 4, 4);
    EXPECT_EQ(last, std::numeric_limits<float>::infinity());
}

}  // namespace
}  // namespace vpp
