#include "schedule/csv.hpp"

#include "unit/schedule/support.hpp"

namespace vpp {
namespace {

using testing::texts;

ScheduleFile read_file(const std::string& text) {
    return read_schedule_csv(text, "s.csv");
}

std::string csv_refusal(const std::string& text) {
    return testing::error_text(ErrorKind::BadData, [&] { read_file(text); });
}

TEST(ReadScheduleCsv, ComputingActions) {
    const ScheduleFile file = read_file("0F0,0F1,,0B0,0B1\n,1F0,1B0,1F1,1B1,\n");
    const Schedule& schedule = file.schedule;
    EXPECT_EQ(schedule.name, "CUSTOM");
    EXPECT_EQ(schedule.num_ranks, 2);
    EXPECT_EQ(schedule.num_microbatches, 2);
    EXPECT_EQ(schedule.rank_of_stage, (std::vector<int>{0, 1}));
    EXPECT_EQ(texts(schedule), (std::vector<std::string>{"0F0 0F1 0B0 0B1", "1F0 1B0 1F1 1B1"}));
    EXPECT_FALSE(schedule.forward_only);
    EXPECT_FALSE(file.is_lowered);
    EXPECT_EQ(file.cells[0], (std::vector<int>{1, 2, 4, 5}));
    EXPECT_EQ(file.idle_before[0], (std::vector<int>{0, 0, 1, 0, 0}));
    EXPECT_EQ(file.idle_before[1], (std::vector<int>{1, 0, 0, 0, 1}));
    EXPECT_TRUE(file.notes().empty());
}

TEST(ReadScheduleCsv, ThePlacementIsThatOfTheRows) {
    const ScheduleFile file = read_file("0F0,3F0,3B0,0B0\n1F0,2F0,2B0,1B0\n");
    EXPECT_EQ(file.schedule.rank_of_stage, (std::vector<int>{0, 1, 1, 0}));
    EXPECT_EQ(read_file("1F0,1B0\n0F0,0B0\n").schedule.rank_of_stage, (std::vector<int>{1, 0}));
}

TEST(ReadScheduleCsv, BlankLinesAtTheEndAreNoRanks) {
    for (const char* end : {"", "\n", "\n\n\n", "\r\n\r\n", "\n \t\n", "\n,,\n,\n"}) {
        const ScheduleFile file = read_file("0F0,0B0\n1F0,1B0" + std::string(end));
        EXPECT_EQ(file.schedule.num_ranks, 2) << end;
        EXPECT_EQ(file.cells.size(), 2U) << end;
        EXPECT_EQ(to_csv(file), "0F0,0B0\n1F0,1B0\n") << end;
    }
}

TEST(ReadScheduleCsv, BlankLinesElsewhereAreRefused) {
    EXPECT_EQ(csv_refusal("0F0,0B0\n\n1F0,1B0\n"),
              "s.csv:2:0: the line has no actions, and would be rank 1 (a line is a rank, and every rank has actions); "
              "take the line out");
    EXPECT_CONTAINS(csv_refusal("\n0F0,0B0"), "s.csv:1:0: the line has no actions, and would be rank 0");
    EXPECT_CONTAINS(csv_refusal("0F0,0B0\n1UNSHARD\n"), "s.csv:2:0: the line has no actions, and would be rank 1");
    const std::string two = csv_refusal("0F0,0B0\n \n,,\n1F0,1B0\n");
    EXPECT_CONTAINS(two, "s.csv:2:0: the line has no actions");
    EXPECT_CONTAINS(two, "s.csv:3:0: the line has no actions");
}

TEST(ReadScheduleCsv, AByteOrderMarkIsSkipped) {
    EXPECT_EQ(to_csv(read_file("\xef\xbb\xbf"
                               "0F0,0B0\r\n1F0,1B0\r\n")),
              "0F0,0B0\n1F0,1B0\n");
    EXPECT_CONTAINS(csv_refusal("0F0,\xef\xbb\xbf"
                                "0B0\n"),
                    "s.csv:1:2: cell 2");
    EXPECT_EQ(find_csv_dialect("\xef\xbb\xbf"
                               "0F0,0BW0"),
              CsvDialect::Old);
}

TEST(ReadScheduleCsv, LoweredFilesHaveTransfers) {
    const ScheduleFile file = read_file(
        "0UNSHARD,0F0,0SEND_F0,,0RECV_B0,0B0,0REDUCE_GRAD,0RESHARD\r\n"
        "1UNSHARD,1RECV_F0,1F0,1B0,1SEND_B0>0,1REDUCE_GRAD,1RESHARD\r\n");
    EXPECT_TRUE(file.is_lowered);
    EXPECT_EQ(texts(file.schedule)[1], "1RECV_F0<-1 1F0 1B0 1SEND_B0>0 1REDUCE_GRAD");
    EXPECT_EQ(file.cells[0], (std::vector<int>{2, 3, 5, 6, 7}));
    EXPECT_EQ(file.num_dropped_markers, 4);
    EXPECT_EQ(file.num_dropped_idle, 1);
    ASSERT_EQ(file.notes().size(), 2U);
    EXPECT_CONTAINS(file.notes()[0], "s.csv: dropped 4 cells of UNSHARD and RESHARD");
    EXPECT_CONTAINS(file.notes()[1], "s.csv: dropped 1 idle cell; a file with transfers has no time steps");
}

TEST(ReadScheduleCsv, PairsAreMarkedAtTheirFirstHalf) {
    const ScheduleFile file = read_file("0F0,0F1,0B0,(0F2;0B1)OVERLAP_F_B,0B2");
    EXPECT_EQ(texts(file.schedule)[0], "0F0 0F1 0B0 0F2& 0B1 0B2");
    EXPECT_EQ(file.cells[0], (std::vector<int>{1, 2, 3, 4, 4, 5}));
}

TEST(ReadScheduleCsv, WithoutBackwardItIsForwardOnly) {
    EXPECT_TRUE(read_file("0F0,0F1\n1F0,1F1\n").schedule.forward_only);
    EXPECT_FALSE(read_file("0F0,0I0,0W0\n").schedule.forward_only);
}

TEST(ReadScheduleCsv, EveryErrorHasLineAndCell) {
    EXPECT_CONTAINS(csv_refusal("0F0,0B0\n1F0,1X0\n"), "s.csv:2:2: cell 2 '1X0': no action is called 'X'");
    EXPECT_CONTAINS(
        csv_refusal("0F0,0B0\n1F0,,1B0,0F1\n"),
        "s.csv:2:4: cell 4 '0F1': stage 0 is on rank 0 already (line 1, cell 1); a stage stands in one row only");
    EXPECT_CONTAINS(csv_refusal("0F0,0F1,0B0\n1F0,1B0\n"), "s.csv:2:1: cell 1 stage 1 has 1 forward");
    const std::string two = csv_refusal("0F0;,0B0\n1F0,1B\n");
    EXPECT_CONTAINS(two, "s.csv:1:1: cell 1 '0F0;'");
    EXPECT_CONTAINS(two, "s.csv:2:2: cell 2 '1B'");
    EXPECT_CONTAINS(csv_refusal("stage,action\n"), "s.csv:1:1: cell 1 'stage': it has no stage number");
}

TEST(ReadScheduleCsv, NumbersInTheFileMakeNothingLargerThanTheFile) {
    EXPECT_CONTAINS(csv_refusal("0F4194303\n"),
                    "has 1 forward in its row (expected 4194304, one for each microbatch 0 to 4194303)");
    EXPECT_CONTAINS(csv_refusal("4194303F0\n"), "stage 0 has no actions (the file names stages up to 4194303)");
    EXPECT_CONTAINS(csv_refusal("0F0,2F0\n"), "stage 1 has no actions");
    EXPECT_CONTAINS(csv_refusal(std::string(1 << 17, '\n') + "0F0"),
                    "s.csv:65536:0: the file has too many lines (expected a line for each rank, at most 65535)");
    EXPECT_CONTAINS(csv_refusal(""), "the file has no actions");
    EXPECT_CONTAINS(csv_refusal(",,\n\n"), "the file has no actions");
    EXPECT_CONTAINS(csv_refusal("0UNSHARD\n"), "the file has no actions");
}

TEST(ReadScheduleCsv, AnErrorNamesAFewCellsNotAll) {
    std::string text;
    for (int i = 0; i < 1000; ++i) text += "x,";
    const std::string error = csv_refusal(text);
    EXPECT_EQ(std::count(error.begin(), error.end(), '\n'), 7);
}

TEST(FindCsvDialect, OldFilesSayBwOrHaveWWithoutI) {
    EXPECT_EQ(find_csv_dialect("0F0,0BW0"), CsvDialect::Old);
    EXPECT_EQ(find_csv_dialect("0F0,0B0,0W0"), CsvDialect::Old);
    EXPECT_EQ(find_csv_dialect("0F0,(0F1;0BW0)OVERLAP_F_B"), CsvDialect::Old);
    EXPECT_EQ(find_csv_dialect("0F0,0B0"), CsvDialect::Now);
    EXPECT_EQ(find_csv_dialect("0F0,0I0,0W0"), CsvDialect::Now);
    EXPECT_EQ(find_csv_dialect("0F0,0I0,0W0,0F1,0B1"), CsvDialect::Now);
    EXPECT_EQ(find_csv_dialect("0F0,0SEND_B0,0W0"), CsvDialect::Now);
    EXPECT_EQ(find_csv_dialect(""), CsvDialect::Now);
}

TEST(ReadScheduleCsv, TheOldDialectIsRefusedWithTheLineThatMendsIt) {
    const std::string error = csv_refusal("0F0,0F1,0B0,0W0,0BW1\n");
    EXPECT_CONTAINS(error,
                    "s.csv: the file is in the old dialect (B is the input gradient, BW the full backward; today they "
                    "are I and B); try vpp schedule convert s.csv > new.csv");
    EXPECT_CONTAINS(testing::error_text(ErrorKind::BadData, [] { read_schedule_csv("0F0,0BW0", "it's a.csv"); }),
                    "vpp schedule convert 'it'\\''s a.csv'");
}

TEST(ReadAnyScheduleCsv, TheOldDialectIsConverted) {
    const ScheduleFile file = read_any_schedule_csv("0F0,0F1,,0B0,0W0,0BW1\n", "s.csv");
    EXPECT_EQ(texts(file.schedule)[0], "0F0 0F1 0I0 0W0 0B1");
    EXPECT_EQ(to_csv(file), "0F0,0F1,,0I0,0W0,0B1\n");
    EXPECT_EQ(to_csv(read_any_schedule_csv("0F0,0B0\n", "s.csv")), "0F0,0B0\n");
    EXPECT_CONTAINS(testing::error_text(ErrorKind::BadData, [] { read_any_schedule_csv("0F0,0I0,0BW0", "s.csv"); }),
                    "s.csv:1:2: cell 2 '0I0': 'I' is a word of today's dialect");
}

}  // namespace
}  // namespace vpp
