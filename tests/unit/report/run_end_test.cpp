#include "report/run_end.hpp"

#include <atomic>
#include <fstream>
#include <string>
#include <thread>

#include "base/error.hpp"
#include "unit/report/scratch.hpp"
#include "unit/report/size_limit.hpp"

namespace vpp {
namespace {

class RunEnds : public test::Scratch {};

TEST_F(RunEnds, WhatWasKeptIsReadBackUntilATrainingBegins) {
    EXPECT_EQ(read_run_end(folder_), std::nullopt);
    EXPECT_TRUE(keep_run_end(folder_, {79, "rank 0: \"nan\"\nand no more"}));
    const auto end = read_run_end(folder_);
    ASSERT_TRUE(end.has_value());
    EXPECT_EQ(end->exit_code, 79);
    EXPECT_EQ(end->text, "rank 0: \"nan\"\nand no more");
    forget_run_end(folder_);
    EXPECT_EQ(read_run_end(folder_), std::nullopt);
    forget_run_end(folder_);
    EXPECT_TRUE(keep_run_end(folder_, {0, "done"}));
}

TEST_F(RunEnds, TheFirstOneCountsAndNothingElseIsLeft) {
    EXPECT_TRUE(keep_run_end(folder_, {75, "rank 2 is gone"}));
    EXPECT_FALSE(keep_run_end(folder_, {70, "rank 0: what"}));
    EXPECT_EQ(read_run_end(folder_)->text, "rank 2 is gone");
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
}

// Who looks while it is written finds nothing rather than a part of it.
TEST_F(RunEnds, AnEndIsFoundWhole) {
    std::atomic<bool> is_done = false;
    std::jthread writer([&] {
        for (int i = 0; i < 2000; ++i) {
            forget_run_end(folder_);
            keep_run_end(folder_, {75, "rank 2 is gone"});
        }
        is_done = true;
    });
    int num_found = 0;
    while (!is_done) {
        std::ifstream file(folder_ / "end.json");
        if (!file) continue;
        std::string text;
        std::getline(file, text);
        ASSERT_EQ(text, "{\"exit_code\":75,\"text\":\"rank 2 is gone\"}");
        ++num_found;
    }
    EXPECT_GT(num_found, 0);
}

TEST_F(RunEnds, WhoWasKilledAsItToldBarsNoneOfTheNextTraining) {
    put(folder_ / "end.json.tmp", "{\"exit");
    EXPECT_FALSE(keep_run_end(folder_, {75, "rank 2 is gone"}));
    EXPECT_EQ(read_run_end(folder_), std::nullopt);
    forget_run_end(folder_);
    EXPECT_TRUE(keep_run_end(folder_, {0, "done"}));
}

TEST_F(RunEnds, AFolderThatIsGoneIsNoError) {
    EXPECT_FALSE(keep_run_end(folder_ / "gone", {79, ""}));
    forget_run_end(folder_ / "gone");
    EXPECT_EQ(read_run_end(folder_ / "gone"), std::nullopt);
}

TEST_F(RunEnds, OneThatHasNoRoomBarsNoLaterOne) {
    for (const size_t room : {0, 10}) {
        const test::SizeLimit limit(room);
        EXPECT_FALSE(keep_run_end(folder_, {79, "nan"})) << room;
        EXPECT_FALSE(std::filesystem::exists(folder_ / "end.json")) << room;
    }
    EXPECT_TRUE(keep_run_end(folder_, {75, "rank 2 is gone"}));
    const test::SizeLimit limit(0);
    EXPECT_FALSE(keep_run_end(folder_, {79, "nan"}));
    EXPECT_EQ(read_run_end(folder_)->text, "rank 2 is gone") << "only what it has made goes";
}

TEST_F(RunEnds, ATextOfNoUtf8IsKeptAsWellAsItCan) {
    EXPECT_TRUE(keep_run_end(folder_, {65, "a\xff"}));
    EXPECT_EQ(read_run_end(folder_)->text, "a\xef\xbf\xbd");
}

TEST_F(RunEnds, DoneAndStoppedAreNoFailures) {
    EXPECT_FALSE((RunEnd{0, ""}).is_failure());
    EXPECT_FALSE((RunEnd{85, ""}).is_failure());
    EXPECT_TRUE((RunEnd{130, ""}).is_failure());
    EXPECT_TRUE((RunEnd{75, ""}).is_failure());
}

TEST_F(RunEnds, WhatIsNoEndIsRefused) {
    for (const std::string text : {"", "[]", "{\"exit_code\":79}", "{\"exit_code\":-1,\"text\":\"\"}",
                                   "{\"exit_code\":256,\"text\":\"\"}", "{\"exit_code\":7,\"text\":7}"}) {
        put(folder_ / "end.json", text);
        try {
            read_run_end(folder_);
            ADD_FAILURE() << text;
        } catch (const Error& error) {
            EXPECT_EQ(error.kind(), ErrorKind::BadData);
            EXPECT_STREQ(error.what(), "end.json does not tell an exit_code and a text");
        }
    }
}

}  // namespace
}  // namespace vpp
