#include "data/npy_writer.hpp"

#include "data/npy.hpp"
#include "unit/data/support.hpp"

namespace vpp {
namespace {

using test::error_of;
using test::TemporaryFolder;

std::span<const std::byte> bytes(const std::vector<float>& values) {
    return std::as_bytes(std::span(values));
}

TEST(NpyWriter, WritesWhatTheReaderReads) {
    const TemporaryFolder folder;
    const std::string path = folder.path("a.npy");
    NpyWriter writer(path, DType::F32, {3, 2});
    writer.write(bytes({1, 2, 3, 4}));
    writer.write(bytes({5, 6}));
    EXPECT_FALSE(std::filesystem::exists(path)) << "it has its name only when it is whole";
    writer.publish();
    const NpyFile file(path);
    EXPECT_EQ(file.dtype(), DType::F32);
    EXPECT_EQ(file.shape(), (std::vector<int64_t>{3, 2}));
    EXPECT_EQ(test::float_at(file, 5), 6);
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path(".")), {}), 1);
}

TEST(NpyWriter, EveryDtypeAndShapeComesBack) {
    for (const DType dtype : {DType::F32, DType::F64, DType::F16, DType::I64, DType::I32, DType::I16, DType::I8,
                              DType::U8, DType::U16, DType::U32, DType::Bool}) {
        for (const std::vector<int64_t>& shape : {std::vector<int64_t>{}, {7}, {0, 3}, {2, 3, 4, 5}}) {
            const std::string header = npy_header(dtype, shape);
            EXPECT_EQ(header.size() % 64, 0U);
            const NpyHeader read = parse_npy_header(std::string_view(header).substr(10), "a.npy");
            EXPECT_EQ(read.dtype, dtype);
            EXPECT_EQ(read.shape, shape);
        }
    }
    EXPECT_EQ(error_of(ErrorKind::BadData, [] { npy_header(DType::BF16, {1}); }),
              "a .npy file cannot hold bfloat16; let the model return it as float32");
}

TEST(NpyWriter, LeavesNothingWhenItIsNotPublished) {
    const TemporaryFolder folder;
    {
        NpyWriter writer(folder.path("a.npy"), DType::F32, {2});
        writer.write(bytes({1}));
    }
    EXPECT_TRUE(std::filesystem::is_empty(folder.path(".")));
}

TEST(NpyWriter, FinishesAndMakesRoomBeforeItPublishes) {
    const TemporaryFolder folder;
    const std::string path = folder.write("a.npy", "old");
    NpyWriter writer(path, DType::F32, {1});
    writer.write(bytes({7}));
    writer.finish();
    EXPECT_EQ(std::filesystem::file_size(path), 3U) << "the old one stays";
    writer.remove_old();
    EXPECT_FALSE(std::filesystem::exists(path));
    writer.publish();
    EXPECT_EQ(test::float_at(NpyFile(path), 0), 7);
}

TEST(NpyWriter, CountsWhatIsWritten) {
    const TemporaryFolder folder;
    NpyWriter writer(folder.path("a.npy"), DType::F32, {2});
    writer.write(bytes({1}));
    EXPECT_HAS(error_of(ErrorKind::Bug, [&] { writer.publish(); }), "as many values");
    EXPECT_HAS(error_of(ErrorKind::Bug, [&] { writer.write(bytes({1, 2})); }), "no more values");
    error_of(ErrorKind::Output, [&] { NpyWriter(folder.path("none/a.npy"), DType::F32, {2}); });
    NpyWriter late(folder.path("b.npy"), DType::F32, {1});
    late.write(bytes({1}));
    std::filesystem::create_directory(folder.path("b.npy"));
    EXPECT_EQ(error_of(ErrorKind::Io, [&] { late.publish(); }),
              "cannot rename to " + folder.path("b.npy") + ": Is a directory");
}

}  // namespace
}  // namespace vpp
