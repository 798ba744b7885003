#include "report/sinks.hpp"

#include <algorithm>

#include "unit/report/scratch.hpp"
#include "unit/report/support.hpp"

namespace vpp {
namespace {

namespace fs = std::filesystem;

class Sinks : public test::Scratch {};

TEST_F(Sinks, AllAreOpenedWithoutBeingAskedFor) {
    Reporters reporters;
    add_sinks(reporters, {folder_, 0, logger_});
    reporters.step(test::sample_step(1));
    for (const Sink& sink : sinks()) EXPECT_TRUE(fs::exists(folder_ / sink.file)) << sink.file;
    EXPECT_EQ(log_.str(), "");
}

TEST_F(Sinks, OneThatCannotBeOpenedIsSaidAndTheOthersGoOn) {
    for (const Sink& broken : sinks()) {
        log_.str("");
        const fs::path folder = folder_ / (std::string("run.") + broken.file);
        const bool is_folder = std::string(broken.file) == "tensorboard";
        fs::create_directories(is_folder ? folder : folder / broken.file);
        if (is_folder) put(folder / broken.file, "a file");
        {
            Reporters reporters;
            EXPECT_NO_THROW(add_sinks(reporters, {folder, 0, logger_}));
            reporters.step(test::sample_step(1));
            reporters.step(test::sample_step(2));
        }
        for (const Sink& sink : sinks()) {
            EXPECT_TRUE(fs::exists(folder / sink.file)) << broken.file << sink.file;
        }
        const std::string log = log_.str();
        EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 1) << broken.file << log;
        const bool is_opened_late = std::string(broken.file) == "metrics.prom";
        const std::string begin = is_opened_late ? "cannot write " + (folder / broken.file).string() + ": "
                                                 : std::string("nothing is written to ") + broken.file + ": ";
        const std::string end = is_opened_late ? "; training goes on, and the file is old until it can be written\n"
                                               : "; training goes on without it\n";
        EXPECT_NE(log.find(begin), std::string::npos) << log;
        EXPECT_TRUE(log.ends_with(end)) << log;
    }
}

TEST_F(Sinks, LaterStepsAreCutOffEverywhere) {
    for (const int64_t first_step : {0, 2}) {
        Reporters reporters;
        add_sinks(reporters, {folder_, first_step, logger_});
        for (int64_t step = first_step + 1; step <= 4; ++step) reporters.step(test::sample_step(step));
    }
    for (const char* file : {"metrics.jsonl", "metrics.csv"}) {
        const std::string text = content(folder_ / file);
        EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 4 + (text[0] == 's')) << text;
    }
    EXPECT_EQ(std::distance(fs::directory_iterator(folder_ / "tensorboard"), {}), 2);
}

TEST_F(Sinks, TheirSizeIsThatOfTheFiles) {
    EXPECT_EQ(size_of_sinks(folder_ / "none"), 0u);
    fs::create_directory(folder_ / "tensorboard");
    put(folder_ / "metrics.jsonl", "12345");
    put(folder_ / "metrics.csv", "123");
    put(folder_ / "other", "1");
    EXPECT_EQ(size_of_sinks(folder_), 8u);
}

TEST_F(Sinks, ARunThatBeginsKeepsNothingOfTheOneBefore) {
    for (const int64_t last_own_step : {0, 0, -1}) {
        Reporters reporters;
        add_sinks(reporters, {folder_, last_own_step, logger_});
        reporters.evaluation({0, 2.5, 10, 0.1, {}, {}});
        for (const char* file : {"metrics.jsonl", "metrics.csv"}) {
            const std::string text = content(folder_ / file);
            EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1 + (text[0] == 's')) << text;
        }
    }
}

}  // namespace
}  // namespace vpp
