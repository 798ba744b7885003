#include "report/prometheus.hpp"

#include <limits>
#include <regex>

#include "unit/report/scratch.hpp"
#include "unit/report/support.hpp"

namespace vpp {
namespace {

namespace fs = std::filesystem;
using test::sample_step;

/// Every line is a sample or a comment of the format, and no sample comes twice.
void expect_valid(const std::string& text) {
    static const std::regex help(R"(# HELP [a-zA-Z_:][a-zA-Z0-9_:]* .*)"),
        type(R"(# TYPE [a-zA-Z_:][a-zA-Z0-9_:]* gauge)");
    static const std::regex sample(
        R"(([a-zA-Z_:][a-zA-Z0-9_:]*)\{run="([^"\\]|\\["\\n])*"\} (NaN|[+-]Inf|-?[0-9.]+(e[+-][0-9]+)?))");
    std::istringstream lines(text);
    std::vector<std::string> names;
    std::smatch match;
    for (std::string line; std::getline(lines, line);) {
        if (std::regex_match(line, match, sample)) names.push_back(match[1]);
        EXPECT_TRUE(std::regex_match(line, help) || std::regex_match(line, type) || std::regex_match(line, sample))
            << line;
    }
    std::sort(names.begin(), names.end());
    EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
    EXPECT_EQ(text.back(), '\n');
}

class Prometheus : public test::Scratch {
  protected:
    PrometheusReporter reporter(const std::string& run = "runs/gpt") {
        return {path_, run, logger_, [this] { return now_; }};
    }
    std::string content() const { return Scratch::content(path_); }
    bool has(const std::string& line) const { return content().find(line + "\n") != std::string::npos; }

    fs::path path_ = folder_ / "metrics.prom";
    double now_ = 1'700'000'000;
};

TEST_F(Prometheus, GaugesHaveTheFormOfTheFormat) {
    EXPECT_EQ(prometheus_text("a\"\\\nb", {{"vpp_step", "one \\ two\nthree", 12},
                                           {"x", "", std::numeric_limits<double>::quiet_NaN()},
                                           {"y", "", -std::numeric_limits<double>::infinity()},
                                           {"z", "", 1e300}}),
              "# HELP vpp_step one \\\\ two\\nthree\n"
              "# TYPE vpp_step gauge\n"
              "vpp_step{run=\"a\\\"\\\\\\nb\"} 12\n"
              "# HELP x \n# TYPE x gauge\nx{run=\"a\\\"\\\\\\nb\"} NaN\n"
              "# HELP y \n# TYPE y gauge\ny{run=\"a\\\"\\\\\\nb\"} -Inf\n"
              "# HELP z \n# TYPE z gauge\nz{run=\"a\\\"\\\\\\nb\"} 1e+300\n");
}

TEST_F(Prometheus, ANameThatIsNoUtf8IsMadeOne) {
    const std::string text = prometheus_text("a\xff\xc3\xa9", {{"vpp_step", "updates", 1}});
    EXPECT_NE(text.find("{run=\"a\xef\xbf\xbd\xc3\xa9\"}"), std::string::npos) << text;
}

TEST_F(Prometheus, AllEventsAreThere) {
    auto reporter = this->reporter("a\"b");
    reporter.step(sample_step());
    now_ += 1;
    reporter.evaluation({10, 2.5, 512, 1.25});
    now_ += 1;
    reporter.memory({10, {{30, 10, 9, 11}}});
    EXPECT_TRUE(has("vpp_train_loss{run=\"a\\\"b\"} 3.14159")) << content();
    EXPECT_TRUE(has("vpp_step{run=\"a\\\"b\"} 10"));
    EXPECT_TRUE(has("vpp_eval_loss{run=\"a\\\"b\"} 2.5"));
    EXPECT_TRUE(has("vpp_state_bytes{run=\"a\\\"b\"} 30"));
    expect_valid(content());
}

TEST_F(Prometheus, IsPublishedOnceASecondAndAtTheEnd) {
    {
        auto reporter = this->reporter();
        reporter.step(sample_step(1));
        EXPECT_TRUE(has("vpp_step{run=\"runs/gpt\"} 1"));
        now_ += 0.5;
        reporter.step(sample_step(2));
        EXPECT_TRUE(has("vpp_step{run=\"runs/gpt\"} 1"));
        now_ += 0.5;
        reporter.step(sample_step(3));
        EXPECT_TRUE(has("vpp_step{run=\"runs/gpt\"} 3"));
        reporter.step(sample_step(4));
    }
    EXPECT_TRUE(has("vpp_step{run=\"runs/gpt\"} 4"));
    EXPECT_FALSE(fs::exists(path_.string() + ".tmp"));
}

TEST_F(Prometheus, WhatIsNoLongerKnownGoes) {
    auto reporter = this->reporter();
    StepEvent event = sample_step(1);
    reporter.step(event);
    EXPECT_TRUE(has("vpp_bubble_ratio{run=\"runs/gpt\"} 0.21"));
    event.bubble_mean = std::nullopt;
    now_ += 1;
    reporter.step(event);
    EXPECT_EQ(content().find("vpp_bubble_ratio"), std::string::npos);
}

TEST_F(Prometheus, AFolderThatIsGoneIsSaidOnce) {
    {
        PrometheusReporter reporter(folder_ / "none" / "metrics.prom", "run", logger_, [this] { return now_ += 2; });
        reporter.step(sample_step(1));
        reporter.step(sample_step(2));
        EXPECT_EQ(reporter.num_lost(), 2);
    }
    const std::string log = log_.str();
    EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 1) << log;
}

}  // namespace
}  // namespace vpp
