#include "base/bytes.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>

#include "base/error.hpp"

namespace vpp {
namespace {

ErrorKind kind_of(const std::function<void()>& call) {
    try {
        call();
    } catch (const Error& error) {
        return error.kind();
    }
    ADD_FAILURE() << "no error was thrown";
    return ErrorKind::Bug;
}

TEST(Bytes, TextGoesThereAndBack) {
    const std::string text("a\0b\xff", 4);
    EXPECT_EQ(to_string(to_bytes(text)), text);
    EXPECT_EQ(to_string(Bytes{}), "");
    EXPECT_TRUE(to_bytes("").empty());
}

TEST(Bytes, ValuesComeBackInOrder) {
    ByteWriter writer;
    writer.put(int32_t{-5});
    writer.put(2.5);
    writer.put_text("stage");
    writer.put_text("");
    writer.put(uint8_t{7});
    EXPECT_EQ(writer.size(), 4U + 8 + 8 + 5 + 8 + 1);
    const Bytes bytes = writer.take();
    ByteReader reader(bytes);
    EXPECT_EQ(reader.get<int32_t>(), -5);
    EXPECT_EQ(reader.get<double>(), 2.5);
    EXPECT_EQ(reader.get_text(), "stage");
    EXPECT_EQ(reader.get_text(), "");
    EXPECT_FALSE(reader.empty());
    EXPECT_EQ(reader.get<uint8_t>(), 7);
    EXPECT_TRUE(reader.empty());
}

TEST(Bytes, ReadingPastTheEndIsBadData) {
    ByteWriter writer;
    writer.put(int32_t{1});
    const Bytes bytes = writer.take();
    ByteReader reader(bytes);
    EXPECT_EQ(kind_of([&] { reader.get<int64_t>(); }), ErrorKind::BadData);
    EXPECT_EQ(reader.get<int32_t>(), 1);  // the failed read took nothing
    EXPECT_EQ(kind_of([&] { reader.take(1); }), ErrorKind::BadData);
    EXPECT_TRUE(reader.take(0).empty());
    try {
        ByteReader(bytes).get<int64_t>();
        ADD_FAILURE() << "eight bytes out of four";
    } catch (const Error& error) {
        EXPECT_STREQ(error.what(), "a message ends early (4 bytes left, 8 wanted)");
    }
}

TEST(Bytes, EveryTruncationIsCaught) {
    ByteWriter writer;
    writer.put_text("a message");
    writer.put(int64_t{9});
    const Bytes whole = writer.take();
    for (size_t size = 0; size < whole.size(); ++size) {
        const std::span<const std::byte> part(whole.data(), size);
        ByteReader reader(part);
        EXPECT_EQ(kind_of([&] {
                      reader.get_text();
                      reader.get<int64_t>();
                  }),
                  ErrorKind::BadData)
            << size;
    }
}

TEST(Bytes, ALyingTextLengthIsBadData) {
    ByteWriter writer;
    writer.put(UINT64_MAX);
    writer.put_text("x");
    const Bytes bytes = writer.take();
    ByteReader reader(bytes);
    EXPECT_EQ(kind_of([&] { reader.get_text(); }), ErrorKind::BadData);
}

TEST(Bytes, BytesOfIsAView) {
    const int32_t value = 3;
    EXPECT_EQ(bytes_of(value).size(), 4U);
    EXPECT_EQ(static_cast<const void*>(bytes_of(value).data()), &value);
}

}  // namespace
}  // namespace vpp
