#include "base/process.hpp"

#include <gtest/gtest.h>
#include <sys/utsname.h>

#include <vector>

namespace vpp {
namespace {

TEST(Process, ItsHostHasTheNameOfUname) {
    utsname names{};
    ASSERT_EQ(::uname(&names), 0);
    EXPECT_EQ(host_name(), names.nodename);
}

TEST(Process, ItsHostHasAnIdThatStays) {
    EXPECT_EQ(host_id().size(), 36U) << host_id();
    EXPECT_EQ(host_id(), host_id());
}

TEST(Process, WhatItTouchesIsResident) {
    constexpr size_t kBytes = size_t{64} << 20;
    const std::vector<char> touched(kBytes, 1);
    EXPECT_GE(peak_resident_bytes(), static_cast<int64_t>(kBytes)) << touched.back();
}

}  // namespace
}  // namespace vpp
