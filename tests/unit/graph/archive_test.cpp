// The archive: what is in it, and every kind of damage that a file can have.
#include "graph/archive.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <fstream>
#include <functional>
#include <utility>
#include <vector>

#include "base/error.hpp"

namespace vpp {
namespace {

using ::testing::HasSubstr;

struct Entry {
    std::string name;
    std::string bytes;
};

void put(std::string& out, uint64_t value, int num_bytes) {
    for (int i = 0; i < num_bytes; ++i) out += static_cast<char>(value >> (8 * i));
}

/// The fields that a local header and a directory entry share.
std::string common_fields(const Entry& entry) {
    const auto* data = reinterpret_cast<const Bytef*>(entry.bytes.data());
    std::string out;
    put(out, 20, 2);  // version
    put(out, 0, 2);   // flags
    put(out, 0, 2);   // stored
    put(out, 0, 4);   // time and date
    put(out, crc32(0, data, static_cast<uInt>(entry.bytes.size())), 4);
    put(out, entry.bytes.size(), 4);
    put(out, entry.bytes.size(), 4);
    put(out, entry.name.size(), 2);
    put(out, 0, 2);
    return out;
}

/// A zip of stored entries, written by hand so that names may be anything.
std::string zip_of(const std::vector<Entry>& entries) {
    std::string out, directory;
    for (const Entry& entry : entries) {
        directory += "PK\x01\x02";
        put(directory, 20, 2);
        directory += common_fields(entry);
        for (int i = 0; i < 5; ++i) put(directory, 0, 2);  // comment, disk, attributes
        put(directory, out.size(), 4);
        directory += entry.name;
        out += "PK\x03\x04" + common_fields(entry) + entry.name + entry.bytes;
    }
    const size_t offset = out.size();
    out += directory + "PK\x05\x06";
    put(out, 0, 4);
    put(out, entries.size(), 2);
    put(out, entries.size(), 2);
    put(out, directory.size(), 4);
    put(out, offset, 4);
    put(out, 0, 2);
    return out;
}

const std::vector<Entry> kGood{{"m/data.pkl", "pickle"},
                               {"m/constants.pkl", "none"},
                               {"m/code/a.py", "def forward(self)"},
                               {"m/data/0", std::string("\x01\x02\x03\x04", 4)},
                               {"m/data/1", "weights!"}};

class ArchiveTest : public ::testing::Test {
  protected:
    ArchiveTest()
        : path_(std::filesystem::path(::testing::TempDir()) / ("vpp_archive_" + std::to_string(::getpid()))) {}
    ~ArchiveTest() override { std::filesystem::remove_all(path_); }

    const std::filesystem::path& file(const std::string& bytes) {
        std::ofstream(path_, std::ios::binary | std::ios::trunc) << bytes;
        return path_;
    }

    std::string error(ErrorKind kind, const std::string& bytes) {
        return error_of(kind, [&] { Archive archive(file(bytes)); });
    }

    static std::string error_of(ErrorKind kind, const std::function<void()>& call) {
        try {
            call();
        } catch (const Error& error) {
            EXPECT_EQ(error.kind(), kind) << error.what();
            return error.what();
        }
        ADD_FAILURE() << "nothing was thrown";
        return "";
    }

    std::filesystem::path path_;
};

TEST_F(ArchiveTest, ListsItsRecordsWithoutTheTopFolder) {
    const std::string bytes = zip_of(kGood);
    const Archive archive(file(bytes));
    ASSERT_EQ(archive.records().size(), 5U);
    EXPECT_EQ(archive.records().at("data/1").size_bytes, 8U);
    EXPECT_TRUE(archive.records().at("code/a.py").stored);
    EXPECT_NO_THROW(archive.check_stored("data/1", bytes.find("weights!")));
}

TEST_F(ArchiveTest, AFlippedBitInCodeIsFoundWhenOpened) {
    std::string bytes = zip_of(kGood);
    bytes[bytes.find("def forward")] ^= 1;
    EXPECT_EQ(error(ErrorKind::BadData, bytes),
              path_.string() + ": the record m/code/a.py is damaged; export the model again or copy the file anew");
}

TEST_F(ArchiveTest, AFlippedBitInAWeightIsFoundWhenThatWeightIsChecked) {
    std::string bytes = zip_of(kGood);
    const size_t offset = bytes.find("weights!");
    bytes[offset + 3] ^= 4;
    const Archive archive(file(bytes));  // nobody asked for it yet
    EXPECT_THAT(error_of(ErrorKind::BadData, [&] { archive.check_stored("data/1", offset); }),
                HasSubstr(": the record data/1 is damaged (its checksum differs); export the model again"));
    EXPECT_NO_THROW(archive.check_stored("data/0", bytes.find("\x01\x02\x03\x04")));
}

TEST_F(ArchiveTest, ForgottenPagesHoldWhatTheFileHolds) {
    std::vector<Entry> entries = kGood;
    entries.push_back({"m/data/2", std::string(1 << 20, 'w')});
    const std::string bytes = zip_of(entries);
    const size_t offset = bytes.find("wwww");
    const Archive archive(file(bytes));
    std::byte& middle = archive.bytes()[offset + (1 << 19)];
    middle = std::byte{0};
    EXPECT_NE(error_of(ErrorKind::BadData, [&] { archive.check_stored("data/2", offset); }), "");
    archive.forget(offset, 1 << 20);
    EXPECT_EQ(middle, std::byte{'w'});
    EXPECT_NO_THROW(archive.check_stored("data/2", offset));
    archive.bytes()[offset] = std::byte{0};  // no whole page: what others wrote beside it stays
    archive.forget(offset, 1);
    EXPECT_EQ(archive.bytes()[offset], std::byte{0});
    EXPECT_THROW(archive.forget(bytes.size() - 1, 2), Error);
}

TEST_F(ArchiveTest, AWrongOffsetIsNoCrash) {
    const std::string bytes = zip_of(kGood);
    const Archive archive(file(bytes));
    for (uint64_t offset : {bytes.size() - 7, bytes.size(), bytes.size() + 1, ~size_t{0}, ~size_t{0} - 4}) {
        error_of(ErrorKind::BadData, [&] { archive.check_stored("data/1", offset); });
    }
    EXPECT_THAT(error_of(ErrorKind::BadData, [&] { archive.check_stored("data/1", bytes.size()); }),
                HasSubstr(": the record data/1 ends behind the file; "));
    EXPECT_THAT(error_of(ErrorKind::BadData, [&] { archive.check_stored("data/9", 0); }),
                HasSubstr(": there is no plain record data/9; "));
}

TEST_F(ArchiveTest, ATruncatedFileIsRefusedAtEveryLength) {
    const std::string bytes = zip_of(kGood);
    for (size_t length = 0; length < bytes.size(); ++length) {
        EXPECT_THROW(Archive archive(file(bytes.substr(0, length))), Error) << "of " << length << " bytes";
    }
}

TEST_F(ArchiveTest, AFlippedByteAnywhereIsAnErrorOrHarmless) {
    const std::string good = zip_of(kGood);
    int refused = 0;
    for (size_t i = 0; i < good.size(); ++i) {
        std::string bytes = good;
        bytes[i] ^= 0x55;
        try {
            const Archive archive(file(bytes));
            for (const auto& [name, record] : archive.records())
                EXPECT_LE(record.size_bytes, uint64_t{1} << 33) << name;
        } catch (const Error&) {
            ++refused;
        }
    }
    EXPECT_GT(refused, static_cast<int>(good.size()) / 4);
}

TEST_F(ArchiveTest, WhatIsNoModelIsRefused) {
    EXPECT_THAT(error(ErrorKind::BadData, "hello, this is text"), HasSubstr("not a TorchScript file"));
    EXPECT_THAT(error(ErrorKind::BadData, ""), HasSubstr(": this is not a model file that can be mapped; "));
    EXPECT_THAT(error(ErrorKind::BadData, zip_of({})), HasSubstr(": the archive has no plausible directory; "));
    EXPECT_THAT(
        error(ErrorKind::BadData, zip_of({{"m/readme", "x"}})),
        HasSubstr(": this is a zip file but not a TorchScript one (what torch.save and torch.export write has no "
                  "code that runs without Python); save it with torch.jit.script(model).save(FILE)"));
    EXPECT_EQ(error_of(ErrorKind::MissingInput, [] { Archive archive("/nonexistent/model.pt"); }),
              "cannot open the model file /nonexistent/model.pt: No such file or directory");
    EXPECT_THAT(error_of(ErrorKind::BadData, [] { Archive archive(::testing::TempDir()); }),
                HasSubstr("not a model file"));
}

TEST_F(ArchiveTest, DuplicateNamesAreRefused) {
    std::vector<Entry> entries = kGood;
    entries.push_back({"m/data/1", "replaced"});
    EXPECT_THAT(error(ErrorKind::BadData, zip_of(entries)), HasSubstr("data/1 is there twice"));
}

TEST_F(ArchiveTest, NamesThatLeaveTheFolderAreRefused) {
    for (const char* name : {"../data/2", "m/../../x", "/etc/x", "m/a\nb", "m/a\x1b[2J", ".."}) {
        std::vector<Entry> entries = kGood;
        entries.push_back({name, "x"});
        const std::string text = error(ErrorKind::Refused, zip_of(entries));
        EXPECT_THAT(text, HasSubstr("unsafe record name"));
        EXPECT_EQ(text.find('\x1b'), std::string::npos) << "foreign text cannot steer a terminal";
    }
}

TEST_F(ArchiveTest, SeveralTopFoldersAreRefused) {
    std::vector<Entry> entries = kGood;
    entries.push_back({"n/data/2", "x"});
    EXPECT_THAT(error(ErrorKind::BadData, zip_of(entries)), HasSubstr(": the archive does not have one top folder; "));
    EXPECT_THAT(error(ErrorKind::BadData, zip_of({{"data.pkl", "x"}, {"constants.pkl", "x"}})),
                HasSubstr("one top folder"));
}

}  // namespace
}  // namespace vpp
