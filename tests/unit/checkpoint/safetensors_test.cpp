#include "checkpoint/safetensors.hpp"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "samples.hpp"

namespace vpp {
namespace {

using test::expect_error;

TEST(Safetensors, BytesAreThoseOfTheFormat) {
    // The worked example of FORMAT.md, byte by byte.
    const test::ScratchFolder scratch;
    const float values[2] = {1.0f, -2.0f};
    const std::vector<TensorBytes> tensors{{"a", DType::F32, {2}, std::as_bytes(std::span(values))}};
    const auto path = scratch.path() / "a.safetensors";
    const WrittenFile written = write_safetensors(path, tensors, {});
    const std::string expected = std::string("\x38\0\0\0\0\0\0\0", 8) +
                                 "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}  " +
                                 std::string("\x00\x00\x80\x3f\x00\x00\x00\xc0", 8);
    EXPECT_EQ(test::read_file(path), expected);
    EXPECT_EQ(written.size_bytes, 72u);
    EXPECT_EQ(written.digest, hash_text(expected));
}

TEST(Safetensors, RoundTripIsBitwise) {
    const test::ScratchFolder scratch;
    const test::SampleState state(3);
    const auto path = scratch.path() / "a.safetensors";
    write_safetensors(path, state.tensors(), {{"save_id", "s\"1\n"}});
    const SafetensorsFile file(path);
    EXPECT_EQ(file.metadata().at("save_id"), "s\"1\n");
    EXPECT_EQ(file.entries().size(), 4u);
    EXPECT_EQ(file.find("model.h.0"), std::nullopt);
    for (const TensorBytes& expected : state.tensors()) {
        const auto got = file.find(expected.name);
        ASSERT_TRUE(got) << expected.name;
        EXPECT_EQ(got->dtype, expected.dtype);
        EXPECT_EQ(got->shape, expected.shape);
        EXPECT_TRUE(std::equal(got->bytes.begin(), got->bytes.end(), expected.bytes.begin(), expected.bytes.end()));
    }
}

TEST(Safetensors, TensorsAreAligned) {
    const test::ScratchFolder scratch;
    const test::SampleState state(3);
    const auto path = scratch.path() / "a.safetensors";
    write_safetensors(path, state.tensors(), {});
    const SafetensorsFile file(path);
    EXPECT_EQ(file.entries().size(), state.tensors().size());
    for (const SafetensorsEntry& entry : file.entries()) {
        EXPECT_EQ(entry.begin_bytes % size_of(entry.dtype), 0u) << entry.name;
    }
}

TEST(Safetensors, OrderOfTensorsDoesNotChangeTheFile) {
    const test::ScratchFolder scratch;
    const test::SampleState state(3);
    std::vector<TensorBytes> tensors = state.tensors();
    const Digest first = write_safetensors(scratch.path() / "a", tensors, {}).digest;
    std::reverse(tensors.begin(), tensors.end());
    EXPECT_EQ(write_safetensors(scratch.path() / "b", tensors, {}).digest, first);
    EXPECT_NE(write_safetensors(scratch.path() / "c", test::SampleState(4).tensors(), {}).digest, first);
}

TEST(Safetensors, WhatIsReadPieceByPieceMakesTheSameFile) {
    const test::ScratchFolder scratch;
    const test::SampleState state(3);
    std::vector<TensorBytes> far = state.tensors();
    for (TensorBytes& tensor : far) {
        const std::span<const std::byte> bytes = std::exchange(tensor.bytes, {});
        tensor.read = [bytes](uint64_t begin, std::span<std::byte> out) {
            std::ranges::copy(bytes.subspan(begin, out.size()), out.begin());
        };
    }
    const WrittenFile near_one = write_safetensors(scratch.path() / "near", state.tensors(), {});
    const WrittenFile far_one = write_safetensors(scratch.path() / "far", far, {});
    EXPECT_EQ(far_one.digest, near_one.digest);
    EXPECT_EQ(test::read_file(scratch.path() / "far"), test::read_file(scratch.path() / "near"));
}

TEST(Safetensors, WrongCallsAreBugs) {
    const test::ScratchFolder scratch;
    const std::byte bytes[8] = {};
    const auto write = [&](const std::vector<TensorBytes>& tensors) {
        write_safetensors(scratch.path() / "a", tensors, {});
    };
    expect_error(ErrorKind::Bug, "bytes are those", [&] { write({{"a", DType::F32, {3}, bytes}}); });
    expect_error(ErrorKind::Bug, "distinct", [&] {
        write({{"a", DType::F32, {2}, bytes}, {"a", DType::F32, {2}, bytes}});
    });
    expect_error(ErrorKind::Bug, "distinct", [&] {
        write({{"a", DType::F32, {2}, bytes}, {"a", DType::F64, {1}, bytes}});
    });
}

TEST(Safetensors, EveryTruncationIsFound) {
    const test::ScratchFolder scratch;
    const auto path = scratch.path() / "a.safetensors";
    write_safetensors(path, test::SampleState(3).tensors(), {});
    const std::string whole = test::read_file(path);
    EXPECT_NO_THROW(SafetensorsFile{path});
    for (size_t size = 0; size < whole.size(); size += 1 + size / 16) {
        test::write_file(path, whole.substr(0, size));
        expect_error(ErrorKind::BadData, path.string(), [&] { SafetensorsFile{path}; });
    }
    test::write_file(path, whole.substr(0, whole.size() - 1));
    expect_error(ErrorKind::BadData, "of the data, which has", [&] { SafetensorsFile{path}; });
    test::write_file(path, whole + "x");
    expect_error(ErrorKind::BadData, "the tensors end at byte", [&] { SafetensorsFile{path}; });
}

TEST(Safetensors, MissingFilesAndFoldersAreTold) {
    const test::ScratchFolder scratch;
    expect_error(ErrorKind::MissingInput, "none", [&] { SafetensorsFile{scratch.path() / "none"}; });
    expect_error(ErrorKind::BadData, "not a regular file", [&] { SafetensorsFile{scratch.path()}; });
    expect_error(ErrorKind::Output, "cannot create", [&] { write_safetensors(scratch.path() / "no" / "a", {}, {}); });
}

TEST(Safetensors, AFullDiskIsAnIoError) {
    // A limit on the size of files stands for the full disk; a child sets it, so that no other test feels it.
    const test::ScratchFolder scratch;
    const pid_t child = ::fork();
    if (child == 0) {
        ::signal(SIGXFSZ, SIG_IGN);
        const struct rlimit limit { 128, 128 };
        ::setrlimit(RLIMIT_FSIZE, &limit);
        const auto error =
            test::caught_error([&] { write_safetensors(scratch.path() / "a", test::SampleState(3).tensors(), {}); });
        ::_exit(error ? exit_code(error->kind()) : 0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(WEXITSTATUS(status), exit_code(ErrorKind::Io));
}

}  // namespace
}  // namespace vpp
