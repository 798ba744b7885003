#include "report/csv_lines.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "unit/report/scratch.hpp"
#include "unit/report/support.hpp"

namespace vpp {
namespace {

namespace fs = std::filesystem;
using test::sample_step;

class CsvLines : public test::Scratch {
  protected:
    std::string content() const { return Scratch::content(path_); }
    std::vector<std::vector<std::string>> cells() const {
        std::vector<std::vector<std::string>> rows;
        std::istringstream text(content());
        for (std::string line; std::getline(text, line);) {
            rows.emplace_back();
            size_t start = 0;
            for (size_t comma = line.find(','); comma != line.npos; comma = line.find(',', start)) {
                rows.back().push_back(line.substr(start, comma - start));
                start = comma + 1;
            }
            rows.back().push_back(line.substr(start));
        }
        return rows;
    }
    std::string cell(size_t row, const std::string& column) const {
        const auto rows = cells();
        const auto place = std::find(rows[0].begin(), rows[0].end(), column);
        return place == rows[0].end() ? "no such column" : rows[row][static_cast<size_t>(place - rows[0].begin())];
    }

    fs::path path_ = folder_ / "metrics.csv";
};

TEST_F(CsvLines, EveryEventIsOneLine) {
    CsvReporter reporter(path_, logger_);
    reporter.step(sample_step());
    reporter.evaluation({10, 2.5, 512, 1.25, {}, 0.5});
    reporter.saved({10, "folder, with a comma\n", 4096, 0.5, 0.25});
    reporter.memory({10, {{30, 10, 9, 11}}});
    EXPECT_EQ(
        content(),
        "step,event,train/loss,train/grad_norm,train/lr,train/clipped,train/skipped,train/loss_scale,perf/step_s,"
        "perf/reduce_s,perf/samples_per_s,perf/tokens_per_s,perf/flops_per_s,perf/bubble,perf/bubble_worst,"
        "perf/bubble_idle,perf/bubble_predicted,memory/resident_bytes,memory/activation_bytes,eval/loss,eval/"
        "samples,eval/seconds,eval/accuracy,eval/perplexity,checkpoint/bytes,"
        "checkpoint/seconds,checkpoint/pause_s,memory/state_bytes\n"
        "10,step,3.14159,1.2345,3e-04,1,0,,0.0823,0.0015,96.4,12345,,0.21,0.354,0.25,0.2,432013312,25165824,,,,,,,,,\n"
        "10,eval,,,,,,,,,,,,,,,,,,2.5,512,1.25,,0.5,,,,\n"
        "10,save,,,,,,,,,,,,,,,,,,,,,,,4096,0.5,0.25,\n"
        "10,memory,,,,,,,,,,,,,,,,,,,,,,,,,,30\n");
}

TEST_F(CsvLines, NumbersReadBackToTheBit) {
    CsvReporter reporter(path_, logger_);
    const double values[] = {1.0 / 3, 5e-324, std::nextafter(1.0, 2.0), std::numeric_limits<double>::max(), -0.0};
    for (const double value : values) reporter.evaluation({1, value, 1, 1});
    for (size_t i = 0; i < std::size(values); ++i) {
        const double back = std::stod(cell(i + 1, "eval/loss") == "5e-324" ? "0x1p-1074" : cell(i + 1, "eval/loss"));
        EXPECT_EQ(std::bit_cast<uint64_t>(back), std::bit_cast<uint64_t>(values[i])) << i;
    }
}

TEST_F(CsvLines, WhatIsNoNumberHasItsName) {
    CsvReporter reporter(path_, logger_);
    reporter.evaluation({1, -std::numeric_limits<double>::quiet_NaN(), 1, 1});
    reporter.evaluation({2, -std::numeric_limits<double>::infinity(), 1, 1});
    EXPECT_EQ(cell(1, "eval/loss"), "nan");
    EXPECT_EQ(cell(2, "eval/loss"), "-inf");
}

TEST_F(CsvLines, AResumedRunHasTheBytesOfAnUnbrokenOne) {
    {
        CsvReporter reporter(path_, logger_);
        for (int64_t step = 1; step <= 6; ++step) reporter.step(sample_step(step));
    }
    const std::string unbroken = content();
    std::ofstream(path_, std::ios::app) << "7,st";
    const CutResult cut = cut_csv_after(path_, 4, logger_);
    EXPECT_EQ(cut.num_later, 2);
    EXPECT_EQ(cut.num_damaged, 1);
    EXPECT_EQ(content(), unbroken.substr(0, content().size()));
    CsvReporter reporter(path_, logger_);
    for (int64_t step = 5; step <= 6; ++step) reporter.step(sample_step(step));
    EXPECT_EQ(content(), unbroken);
}

TEST_F(CsvLines, ARunFromTheStartKeepsTheHeaderAlone) {
    {
        CsvReporter reporter(path_, logger_);
        reporter.step(sample_step(1));
    }
    cut_csv_after(path_, 0, logger_);
    EXPECT_EQ(content(), csv_header() + "\n");
    cut_csv_after(path_, -1, logger_);
    EXPECT_EQ(content(), "");
    CsvReporter reporter(path_, logger_);
    EXPECT_EQ(content(), csv_header() + "\n");
}

TEST_F(CsvLines, AFileWithOtherColumnsIsSetAside) {
    put(path_, "step,loss\n1,2\n");
    put(folder_ / "metrics.csv.1", "older");
    cut_csv_after(path_, 4, logger_);
    EXPECT_EQ(Scratch::content(folder_ / "metrics.csv.2"), "step,loss\n1,2\n");
    EXPECT_FALSE(fs::exists(path_));
    EXPECT_NE(log_.str().find(path_.string() + " has other columns than this version writes; it is now " +
                              path_.string() + ".2"),
              std::string::npos)
        << log_.str();
}

TEST_F(CsvLines, LinesWithTooFewCellsAreDamaged) {
    const std::string header = csv_header();
    const std::string commas(static_cast<size_t>(std::count(header.begin(), header.end(), ',')), ',');
    put(path_, header + "\n3,step,1\nx" + commas + "\n3,step" + commas.substr(1) + "\n");
    const CutResult cut = cut_csv_after(path_, 4, logger_);
    EXPECT_EQ(cut.num_damaged, 2);
    EXPECT_EQ(cut.num_kept, 2);
}

}  // namespace
}  // namespace vpp
