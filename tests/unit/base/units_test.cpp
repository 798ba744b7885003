#include "base/units.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace vpp {
namespace {

TEST(BytesText, BinaryUnits) {
    EXPECT_EQ(bytes_text(0), "0 B");
    EXPECT_EQ(bytes_text(512), "512 B");
    EXPECT_EQ(bytes_text(1023), "1023 B");
    EXPECT_EQ(bytes_text(1024), "1.0 KiB");
    EXPECT_EQ(bytes_text(1536), "1.5 KiB");
    EXPECT_EQ(bytes_text(int64_t{3435973837}), "3.2 GiB");
    EXPECT_EQ(bytes_text(INT64_MAX), "8192.0 PiB");
    EXPECT_EQ(bytes_text(-2048), "-2.0 KiB");
}

TEST(BytesText, RoundingGoesOnToTheNextUnit) {
    EXPECT_EQ(bytes_text(1024 * 1024 - 1), "1.0 MiB");
    EXPECT_EQ(bytes_text(1023 * 1024), "1023.0 KiB");
}

TEST(ParseBytes, NumbersWithAUnit) {
    EXPECT_EQ(parse_bytes("8GiB"), int64_t{8} << 30);
    EXPECT_EQ(parse_bytes("512 MiB"), int64_t{512} << 20);
    EXPECT_EQ(parse_bytes("4096B"), 4096);
    EXPECT_EQ(parse_bytes("1.5KiB"), 1536);
    EXPECT_EQ(parse_bytes("1.5 GB"), 1'500'000'000);
    EXPECT_EQ(parse_bytes("0.001KiB"), 1) << "rounded down";
    EXPECT_EQ(parse_bytes("2PB"), 2'000'000'000'000'000);
    EXPECT_EQ(parse_bytes("0B"), 0);
}

TEST(ParseBytes, NothingElse) {
    for (const char* text : {"", "8", "GiB", "8gib", "8 G", "-1GiB", "+1GiB", "1.GiB", ".5GiB", "1.2345GiB", "8  GiB",
                             "8GiB ", "1e3B", "9999999999999999999B", "5000PiB"}) {
        EXPECT_EQ(parse_bytes(text), std::nullopt) << text;
    }
}

TEST(ExactBytesText, IsReadBackAsTheSame) {
    EXPECT_EQ(exact_bytes_text(int64_t{8} << 30), "8GiB");
    EXPECT_EQ(exact_bytes_text(1000), "1000B");
    EXPECT_EQ(exact_bytes_text(0), "0B");
    for (const int64_t bytes : {int64_t{1}, int64_t{1024}, int64_t{1536}, int64_t{1} << 52, int64_t{3} << 55}) {
        EXPECT_EQ(parse_bytes(exact_bytes_text(bytes)), bytes);
    }
}

TEST(CountText, DecimalUnits) {
    EXPECT_EQ(count_text(0), "0");
    EXPECT_EQ(count_text(950), "950");
    EXPECT_EQ(count_text(2.5), "2.5");
    EXPECT_EQ(count_text(1234), "1.2 K");
    EXPECT_EQ(count_text(3.4e6), "3.4 M");
    EXPECT_EQ(count_text(5.6e9), "5.6 G");
    EXPECT_EQ(count_text(999.96), "1.0 K");
    EXPECT_EQ(count_text(999960), "1.0 M");
    EXPECT_EQ(count_text(1e18), "1000.0 P");
}

TEST(DurationText, LargestTwoUnits) {
    EXPECT_EQ(duration_text(0), "0 s");
    EXPECT_EQ(duration_text(12.4), "12 s");
    EXPECT_EQ(duration_text(59.6), "1 min 00 s");
    EXPECT_EQ(duration_text(185), "3 min 05 s");
    EXPECT_EQ(duration_text(7620), "2 h 07 min");
    EXPECT_EQ(duration_text(1e6), "277 h 46 min");
}

TEST(DurationText, WhatIsNoDurationIsADash) {
    EXPECT_EQ(duration_text(-1), "-");
    EXPECT_EQ(duration_text(std::nan("")), "-");
    EXPECT_EQ(duration_text(std::numeric_limits<double>::infinity()), "-");
    EXPECT_EQ(duration_text(1e300), "-");
}

TEST(CountedText, OfOneAndMore) {
    EXPECT_EQ(counted_text(1, "stage"), "1 stage");
    EXPECT_EQ(counted_text(0, "stage"), "0 stages");
    EXPECT_EQ(counted_text(2, "microbatch", "microbatches"), "2 microbatches");
}

TEST(Formatted, NoNumberIsNanWhateverItsSign) {
    EXPECT_EQ(formatted("%.3g", 0.12345), "0.123");
    EXPECT_EQ(formatted("%.1f", -std::numeric_limits<double>::infinity()), "-inf");
    EXPECT_EQ(formatted("%.1f", std::nan("")), "nan");
    EXPECT_EQ(formatted("%.1f", -std::nan("")), "nan");
}

TEST(FixedText, Decimals) {
    EXPECT_EQ(fixed_text(0.125, 3), "0.125");
    EXPECT_EQ(fixed_text(2, 0), "2");
    EXPECT_EQ(fixed_text(-1.06, 1), "-1.1");
}

}  // namespace
}  // namespace vpp
