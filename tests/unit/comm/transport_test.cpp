#include "comm/transport.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

#include "base/error.hpp"

namespace vpp {
namespace {

TEST(Buffer, IsAlignedAndSharedByCopies) {
    for (const size_t size : {0, 1, 63, 64, 65, 4097}) {
        Buffer buffer(size);
        EXPECT_EQ(buffer.bytes().size(), size);
        EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.owner().get()) % 64, 0u);
        EXPECT_TRUE(buffer);
        Buffer copy = buffer;
        EXPECT_EQ(copy.owner(), buffer.owner());
    }
    EXPECT_FALSE(Buffer());
}

TEST(Buffer, OnlyShrinks) {
    Buffer buffer(10);
    buffer.resize(4);
    EXPECT_EQ(buffer.bytes().size(), 4u);
    EXPECT_THROW(buffer.resize(5), Error);
}

TEST(Buffer, RefusesWhatNoMachineHas) {
    try {
        Buffer buffer(SIZE_MAX - 3);
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::OutOfMemory);
    }
    try {
        Buffer buffer(size_t{1} << 50);
        FAIL();
    } catch (const Error& error) {
        EXPECT_STREQ(error.what(), "no memory for a message of 1.0 PiB between ranks; try a smaller microbatch");
    }
}

MemoryPart text_part(const std::string& text, bool is_on_device) {
    auto owner = std::make_shared<std::string>(text);
    auto* data = reinterpret_cast<std::byte*>(owner->data());
    return {std::shared_ptr<std::byte>(std::move(owner), data), text.size(), is_on_device};
}

TEST(Joined, HasThePartBehindTheBytes) {
    Buffer message(2);
    std::memcpy(message.bytes().data(), "ab", 2);
    EXPECT_EQ(message.size_bytes(), 2u);
    EXPECT_EQ(to_string(joined(message).bytes()), "ab");
    message.set_part(text_part("cde", false));
    EXPECT_EQ(message.size_bytes(), 5u);
    const Buffer whole = joined(message);
    EXPECT_EQ(to_string(whole.bytes()), "abcde");
    EXPECT_FALSE(whole.part().data);
}

TEST(Joined, RefusesMemoryOfDevices) {
    Buffer message(2);
    message.set_part(text_part("cde", true));
    EXPECT_THROW(joined(message), Error);
}

TEST(Channel, HasAText) {
    EXPECT_EQ(to_text(Channel{3, 2, Direction::Forward}), "forward edge 3, microbatch 2");
    EXPECT_EQ(to_text(Channel{0, 7, Direction::Backward}), "backward edge 0, microbatch 7");
    EXPECT_EQ(to_text(Channel{5, 0, Direction::Control}), "control message 5");
    EXPECT_EQ(to_text(Channel{-1, 0, Direction::Control}), "a collective call");
}

}  // namespace
}  // namespace vpp
