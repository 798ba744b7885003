#include "engine/run_folders.hpp"

#include "comm/in_process.hpp"
#include "unit/checkpoint/samples.hpp"

namespace vpp {
namespace {

namespace fs = std::filesystem;
using Keepers = std::vector<int>;

/// What ranks find whose run folders are these.
class RunFoldersTest : public testing::Test {
  protected:
    std::vector<RunFolders> find(const std::vector<std::string>& names) {
        std::vector<RunFolders> found(names.size());
        InProcessWorld({.num_ranks = static_cast<int>(names.size())}).run([&](Transport& transport) {
            const auto rank = static_cast<size_t>(transport.rank());
            found[rank] = RunFolders::find(transport, scratch_.path() / names[rank]);
        });
        return found;
    }

    Keepers keepers_of(const std::vector<std::string>& names) {
        const std::vector<RunFolders> found = find(names);
        Keepers keepers;
        for (size_t rank = 0; rank < names.size(); ++rank) {
            keepers.push_back(found[0].keeper_of(static_cast<int>(rank)));
            EXPECT_EQ(found[rank].text(), found[0].text());
            EXPECT_EQ(found[rank].keepers(), found[0].keepers());
        }
        return keepers;
    }

    void make(const std::string& name) { fs::create_directories(scratch_.path() / name); }

    test::ScratchFolder scratch_;
};

TEST_F(RunFoldersTest, RanksOfOneFolderHaveItsLowestRankAsKeeper) {
    make("a");
    make("b");
    EXPECT_EQ(keepers_of({"a", "a", "a"}), (Keepers{0, 0, 0}));
    EXPECT_EQ(keepers_of({"a", "b"}), (Keepers{0, 1}));
    EXPECT_EQ(keepers_of({"b", "a", "a", "b"}), (Keepers{0, 1, 1, 0}));
    EXPECT_TRUE(find({"a", "a"})[1].is_one());
    EXPECT_FALSE(find({"a", "b"})[0].is_one());
    EXPECT_EQ(find({"a", "b", "b"})[2].keepers(), (Keepers{0, 1}));
    EXPECT_TRUE(fs::is_empty(scratch_.path() / "a")) << "markers go";
    EXPECT_TRUE(fs::is_empty(scratch_.path() / "b"));
}

TEST_F(RunFoldersTest, TheNameOfAFolderSaysNothing) {
    make("a");
    fs::create_directory_symlink(scratch_.path() / "a", scratch_.path() / "mounted");
    EXPECT_EQ(keepers_of({"a", "mounted"}), (Keepers{0, 0}));
}

TEST_F(RunFoldersTest, MarkersOfADeadJobDoNoHarm) {
    make("a");
    make("b");
    for (const char* name : {"a", "b"}) {
        test::write_file(scratch_.path() / name / ".rank-00000000000000000000000000000000", "");
    }
    EXPECT_EQ(keepers_of({"a", "b"}), (Keepers{0, 1}));
}

TEST_F(RunFoldersTest, ARankWithoutAFolderHasItsOwn) {
    make("a");
    EXPECT_EQ(keepers_of({"a", "none", "a", "none"}), (Keepers{0, 1, 0, 3}));
}

// A folder of /proc takes no file from anybody, root not excepted.
TEST_F(RunFoldersTest, WhereNobodyCanWriteRanksOfAHostShareWhatIsOneFolder) {
    EXPECT_EQ(keepers_of({"/proc", "/proc", "/proc/sys", "none", "none"}), (Keepers{0, 0, 2, 3, 4}));
    fs::create_directory_symlink("/proc", scratch_.path() / "mounted");
    EXPECT_EQ(keepers_of({"/proc", "mounted"}), (Keepers{0, 0}));
    make("a");
    EXPECT_EQ(keepers_of({"/proc", "a", "/proc"}), (Keepers{0, 1, 2})) << "the files that are written decide";
}

TEST_F(RunFoldersTest, OneRankWritesNothing) {
    EXPECT_TRUE(find({"none"})[0].is_one());
    EXPECT_EQ(find({"none"})[0].keepers(), Keepers{0});
}

TEST(RunFolders, TextNamesRanksAndHosts) {
    const RunFolders folders({0, 0, 2}, {"alpha", "alpha", "beta"});
    EXPECT_EQ(folders.text(), "ranks 0, 1 on alpha; rank 2 on beta");
    EXPECT_EQ(folders.who(2), "rank 2 on beta");
    EXPECT_TRUE(folders.keeps(2));
    EXPECT_FALSE(folders.keeps(1));
    EXPECT_TRUE(RunFolders().keeps(0));
    EXPECT_FALSE(RunFolders().keeps(5));
    EXPECT_THROW(RunFolders({1, 0}, {"a", "b"}), Error);
}

}  // namespace
}  // namespace vpp
