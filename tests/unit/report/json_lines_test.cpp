#include "report/json_lines.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>

#include "base/error.hpp"
#include "unit/report/scratch.hpp"
#include "unit/report/size_limit.hpp"
#include "unit/report/support.hpp"

namespace vpp {
namespace {

namespace fs = std::filesystem;
using test::sample_step;

class JsonLines : public test::Scratch {
  protected:
    std::string content() const { return Scratch::content(path_); }
    void put(const std::string& text) const { Scratch::put(path_, text); }
    int code_of(const std::function<void()>& call) const {
        try {
            call();
        } catch (const Error& error) {
            return exit_code(error.kind());
        }
        return 0;
    }

    fs::path path_ = folder_ / "metrics.jsonl";
};

TEST_F(JsonLines, AnEvaluationHasTheMetricsThatWereAskedFor) {
    const EvalEvent both{10, 2.5, 512, 1.25, 0.75, 12.5}, one{10, 2.5, 512, 1.25, std::nullopt, 12.5};
    EXPECT_TRUE(to_json_line(both).ends_with(R"("seconds":1.25,"accuracy":0.75,"perplexity":12.5})"));
    EXPECT_TRUE(to_json_line(one).ends_with(R"("seconds":1.25,"perplexity":12.5})"));
}

TEST_F(JsonLines, EveryEventIsOneLine) {
    JsonLinesReporter reporter(path_, logger_);
    reporter.step(sample_step());
    reporter.evaluation({10, 2.5, 512, 1.25});
    reporter.saved({10, "runs/\"g\npt\"/step-00000010", 4096, 0.5});
    reporter.memory({2, {{30, 10, 9, 11}, {20, 5, 4, 6}}});
    reporter.pipeline({3, 10, "1F1B", 1, 4, {{0, 1, 2, 0.5, 0}}, 12.5, 12, 0.25, std::nullopt});
    EXPECT_EQ(content(),
              R"({"event":"step","step":10,"total_steps":300,"loss":3.14159,"microbatch_losses":[3.25,3.0],)"
              R"("grad_norm":1.2345,"clipped":true,"skipped":false,"loss_scale":null,"lr":0.0003,)"
              R"("samples_per_second":96.4,"tokens_per_second":12345.0,)"
              R"("step_ms":82.3,"reduce_ms":1.5,"flops_per_second":null,)"
              R"("bubble_mean":0.21,"bubble_worst":0.354,"worst_rank":3,)"
              R"("stages":[{"rank":0,"forward_ms":4.125,"backward_ms":8.25,"transfer_ms":0.5,"wait_ms":3.0},)"
              R"({"rank":1,"forward_ms":4.0,"backward_ms":9.0,"transfer_ms":0.25,"wait_ms":2.5}],)"
              R"("bubble_idle":0.25,"bubble_predicted":0.2,"memory_bytes":432013312,)"
              R"("activation_bytes":25165824,)"
              R"("eta_seconds":80.0})"
              "\n"
              R"({"event":"eval","step":10,"loss":2.5,"samples":512,"seconds":1.25})"
              "\n"
              R"({"event":"save","step":10,"folder":"runs/\"g\npt\"/step-00000010","size_bytes":4096,"seconds":0.5,)"
              R"("pause_seconds":0.0})"
              "\n"
              R"({"event":"memory","step":2,"ranks":[{"state_bytes":30,"activation_bytes":10,)"
              R"("least_simulated_bytes":9,"most_simulated_bytes":11},)"
              R"({"state_bytes":20,"activation_bytes":5,)"
              R"("least_simulated_bytes":4,"most_simulated_bytes":6}]})"
              "\n"
              R"({"event":"pipeline","step":10,"first_step":3,"schedule":"1F1B","num_ranks":1,"num_microbatches":4,)"
              R"("stages":[{"rank":0,"forward_ms":1.0,"backward_ms":2.0,"transfer_ms":0.5,"wait_ms":0.0}],)"
              R"("actions_ms":12.5,"predicted_ms":12.0,"bubble_idle":0.25,"bubble_predicted":null})"
              "\n");
    EXPECT_EQ(reporter.num_lost(), 0);
}

TEST_F(JsonLines, WhatIsNotKnownIsNullAndWhatIsNoNumberIsText) {
    StepEvent event;
    event.loss = std::numeric_limits<double>::quiet_NaN();
    event.microbatch_losses = {std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()};
    const auto json = nlohmann::json::parse(to_json_line(event));
    EXPECT_EQ(json["loss"], "nan");
    EXPECT_EQ(json["microbatch_losses"], nlohmann::json::array({"inf", "-inf"}));
    for (const char* key : {"bubble_mean", "bubble_worst", "worst_rank", "bubble_idle", "bubble_predicted",
                            "tokens_per_second", "eta_seconds"}) {
        EXPECT_TRUE(json[key].is_null()) << key;
    }
}

TEST_F(JsonLines, LossesReadBackToTheBit) {
    std::mt19937_64 bits(7);
    StepEvent event;
    event.microbatch_losses = {-0.0, 5e-324, 1.0 / 3, std::nextafter(1.0, 2.0), std::numeric_limits<double>::max()};
    while (event.microbatch_losses.size() < 5000) {
        const auto wide = std::bit_cast<double>(bits());
        if (std::isfinite(wide)) event.microbatch_losses.push_back(wide);
        event.microbatch_losses.push_back(static_cast<double>(static_cast<float>(bits() % 1000) / 7));
    }
    const auto json = nlohmann::json::parse(to_json_line(event));
    for (size_t i = 0; i < event.microbatch_losses.size(); ++i) {
        const double back = json["microbatch_losses"][i].get<double>();
        ASSERT_EQ(std::bit_cast<uint64_t>(back), std::bit_cast<uint64_t>(event.microbatch_losses[i])) << back;
    }
}

TEST_F(JsonLines, NamesThatAreNoUtf8AreTakenWithReplacements) {
    const auto json = nlohmann::json::parse(to_json_line(SaveEvent{1, "a\xff", 0, 0}));
    EXPECT_EQ(json["folder"], "a\xef\xbf\xbd");
}

TEST_F(JsonLines, AppendsToWhatIsThereAndEndsATornLine) {
    put("{\"step\":1}\n{\"ste");
    JsonLinesReporter reporter(path_, logger_);
    reporter.evaluation({2, 1, 1, 1});
    reporter.evaluation({3, 1, 1, 1});
    const std::string text = content();
    EXPECT_EQ(text.rfind("{\"step\":1}\n{\"ste\n{\"event\":\"eval\",\"step\":2,", 0), 0u) << text;
    EXPECT_EQ(cut_after(path_, 3, logger_).num_kept, 3);
}

TEST_F(JsonLines, PathsThatCannotBeAppendedToAreRefused) {
    EXPECT_EQ(code_of([&] { JsonLinesReporter(folder_ / "no" / "metrics.jsonl", logger_); }), 73);
    EXPECT_EQ(code_of([&] { JsonLinesReporter(folder_, logger_); }), 73);
    fs::create_symlink("/dev/null", folder_ / "link");
    EXPECT_EQ(code_of([&] { JsonLinesReporter(folder_ / "link", logger_); }), 73);
    ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
    EXPECT_EQ(code_of([&] { JsonLinesReporter(folder_ / "pipe", logger_); }), 73);
    EXPECT_EQ(code_of([&] { cut_after(folder_ / "pipe", 1, logger_); }), 65);
}

TEST_F(JsonLines, AFullDiskIsSaidOnceAndLeavesWholeLines) {
    JsonLinesReporter reporter(path_, logger_);
    reporter.evaluation({1, 1, 1, 1});
    const auto size = content().size();
    {
        const test::SizeLimit limit(size + 10);
        for (int64_t step = 2; step < 5; ++step) reporter.evaluation({step, 1, 1, 1});
    }
    EXPECT_EQ(content().size(), size);
    EXPECT_EQ(reporter.num_lost(), 3);
    const std::string log = log_.str();
    EXPECT_NE(log.find("training goes on"), std::string::npos) << log;
    EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 1) << log;
    reporter.evaluation({5, 1, 1, 1});
    const CutResult cut = cut_after(path_, 9, logger_);
    EXPECT_EQ(cut.num_kept, 2);
    EXPECT_EQ(cut.num_damaged, 0);
}

TEST_F(JsonLines, AResumedRunHasTheBytesOfAnUnbrokenOne) {
    {
        JsonLinesReporter reporter(path_, logger_);
        for (int64_t step = 1; step <= 6; ++step) reporter.step(sample_step(step));
    }
    const std::string unbroken = content();
    const CutResult cut = cut_after(path_, 4, logger_);
    EXPECT_EQ(cut.num_kept, 4);
    EXPECT_EQ(cut.num_later, 2);
    EXPECT_EQ(content(), unbroken.substr(0, content().size()));
    EXPECT_NE(content(), unbroken);
    JsonLinesReporter reporter(path_, logger_);
    for (int64_t step = 5; step <= 6; ++step) reporter.step(sample_step(step));
    EXPECT_EQ(content(), unbroken);
    EXPECT_TRUE(log_.str().empty()) << log_.str();
}

TEST_F(JsonLines, NothingToCutLeavesTheFileAlone) {
    EXPECT_EQ(cut_after(path_, 1, logger_).num_kept, 0);
    EXPECT_FALSE(fs::exists(path_));
    put("{\"step\":1}\n");
    struct stat before {
    }, after{};
    ::stat(path_.c_str(), &before);
    EXPECT_EQ(cut_after(path_, 1, logger_).num_kept, 1);
    ::stat(path_.c_str(), &after);
    EXPECT_EQ(before.st_ino, after.st_ino);
    EXPECT_EQ(cut_after(path_, 0, logger_).num_later, 1);
    EXPECT_EQ(content(), "");
    EXPECT_FALSE(fs::exists(folder_ / "metrics.jsonl.tmp"));
}

TEST_F(JsonLines, DamagedLinesAreDroppedAndSaid) {
    const std::string good = "{\"event\":\"step\",\"step\":2, \"loss\" : 1}\n";
    put("{\"step\":1}\nnot json\n" + good + "{\"step\":-1}\n{\"step\":1.5}\n[1]\n{}\n\n{\"step\":\"1\"}\n" +
        std::string("\0\xff\n", 3) + "{\"step\":99999999999999999999}\n" + std::string(100'000, '[') + "\n" +
        "{\"step\":18446744073709551615}\n{\"step\":2,\"lo");
    const CutResult cut = cut_after(path_, 2, logger_);
    EXPECT_EQ(content(), "{\"step\":1}\n" + good);
    EXPECT_EQ(cut.num_kept, 2);
    EXPECT_EQ(cut.num_later, 1);
    EXPECT_EQ(cut.num_damaged, 11);
    EXPECT_NE(log_.str().find("11 damaged lines dropped"), std::string::npos) << log_.str();
}

TEST_F(JsonLines, ATornTailOfAnyLengthIsDropped) {
    JsonLinesReporter(path_, logger_).step(sample_step(1));
    const std::string line = content();
    for (size_t length = 1; length < line.size(); length += 7) {
        put(line + line.substr(0, length));
        EXPECT_EQ(cut_after(path_, 1, logger_).num_damaged, 1) << length;
        EXPECT_EQ(content(), line);
    }
}

}  // namespace
}  // namespace vpp
