#include "schedule/csv_cell.hpp"

#include "unit/schedule/support.hpp"

namespace vpp {
namespace {

/// What a cell of today's dialect is read as; problems in brackets.
std::string read_cell(const std::string& text, CsvDialect dialect = CsvDialect::Now) {
    const CsvCell cell = parse_csv_cell(text, dialect);
    if (!cell.problem.empty()) return "[" + cell.problem + "]";
    if (cell.is_marker) return "marker";
    if (cell.num_actions == 0) return "idle";
    std::string words = to_text(cell.actions[0]);
    if (cell.num_actions == 2) words += " " + to_text(cell.actions[1]);
    return words;
}

TEST(ParseCsvCell, EveryKind) {
    EXPECT_EQ(read_cell("0F1"), "0F1");
    EXPECT_EQ(read_cell("2I0"), "2I0");
    EXPECT_EQ(read_cell("2W0"), "2W0");
    EXPECT_EQ(read_cell("3B17"), "3B17");
    EXPECT_EQ(read_cell("3REDUCE_GRAD"), "3REDUCE_GRAD");
    EXPECT_EQ(read_cell("0UNSHARD"), "marker");
    EXPECT_EQ(read_cell("12RESHARD"), "marker");
    EXPECT_EQ(read_cell(""), "idle");
    EXPECT_EQ(read_cell("  \t"), "idle");
    EXPECT_EQ(read_cell(" 0F1 "), "0F1");
    EXPECT_EQ(read_cell("(0F7;7B3)OVERLAP_F_B"), "0F7& 7B3");
    EXPECT_EQ(read_cell("( 7B3 ; 0F7 )OVERLAP_F_B"), "7B3& 0F7");
}

TEST(ParseCsvCell, TransfersMayNameTheRank) {
    const CsvCell plain = parse_csv_cell("0SEND_F2", CsvDialect::Now);
    EXPECT_EQ(plain.actions[0], (Action{ActionKind::SendF, 0, 2, -1, -1}));
    EXPECT_EQ(parse_csv_cell("0SEND_F2>3", CsvDialect::Now).actions[0], (Action{ActionKind::SendF, 0, 2, -1, 3}));
    EXPECT_EQ(parse_csv_cell("1RECV_F2<0", CsvDialect::Now).actions[0], (Action{ActionKind::RecvF, 1, 2, -1, 0}));
    EXPECT_EQ(parse_csv_cell("1SEND_B2>0", CsvDialect::Now).actions[0], (Action{ActionKind::SendB, 1, 2, -1, 0}));
    EXPECT_EQ(parse_csv_cell("0RECV_B2<1", CsvDialect::Now).actions[0], (Action{ActionKind::RecvB, 0, 2, -1, 1}));
}

TEST(ParseCsvCell, TheOldDialectHasOtherWords) {
    EXPECT_EQ(read_cell("2B0", CsvDialect::Old), "2I0");
    EXPECT_EQ(read_cell("2BW0", CsvDialect::Old), "2B0");
    EXPECT_EQ(read_cell("2W0", CsvDialect::Old), "2W0");
    EXPECT_EQ(read_cell("2F0", CsvDialect::Old), "2F0");
    EXPECT_CONTAINS(read_cell("2I0", CsvDialect::Old), "'I' is a word of today's dialect");
    EXPECT_CONTAINS(read_cell("2BW0"), "no action is called 'BW'");
}

TEST(ParseCsvCell, TheWholeCellMustMatch) {
    EXPECT_CONTAINS(read_cell("F1"), "[it has no stage number before 'F1'");
    EXPECT_CONTAINS(read_cell("0"), "it has no kind of action");
    EXPECT_CONTAINS(read_cell("0F"), "[it has no microbatch number]");
    EXPECT_CONTAINS(read_cell("0f1"), "it has no kind of action");
    EXPECT_CONTAINS(read_cell("0FF1"), "no action is called 'FF'");
    EXPECT_CONTAINS(read_cell("0OVERLAP_F_B1"), "no action is called 'OVERLAP_F_B'");
    EXPECT_CONTAINS(read_cell("0F1x"), "it should end before 'x'");
    EXPECT_CONTAINS(read_cell("0F1 0F2"), "it should end before ' 0F2'");
    EXPECT_CONTAINS(read_cell("0F1>2"), "it should end before '>2'");
    EXPECT_CONTAINS(read_cell("0SEND_F1<2"), "it should end before '<2'");
    EXPECT_CONTAINS(read_cell("0SEND_F1>"), "it has no rank number");
    EXPECT_CONTAINS(read_cell("0UNSHARD1"), "it should end before '1'");
    EXPECT_CONTAINS(read_cell("0REDUCE_GRAD1"), "it should end before '1'");
    EXPECT_CONTAINS(read_cell("-1F0"), "it has no stage number");
    EXPECT_CONTAINS(read_cell("\"0F1\""), "it has no stage number");
    EXPECT_EQ(read_cell("01F1"), "[a stage number has leading zeros]");
    EXPECT_EQ(read_cell("0F00"), "[a microbatch number has leading zeros]");
    EXPECT_EQ(read_cell("0F4194303"), "0F4194303");
    EXPECT_CONTAINS(read_cell("0F4194304"), "too large (expected at most 4194303)");
    EXPECT_CONTAINS(read_cell("0F99999999999999999999999999"), "too large");
    EXPECT_CONTAINS(read_cell(std::string("0F1\0", 4)), "it should end before '?'");
}

TEST(ParseCsvCell, PairsAreAForwardAndABackward) {
    for (const char* text : {"(0F7)OVERLAP_F_B", "(0F7;0F8)OVERLAP_F_B", "(0B7;0I8)OVERLAP_F_B",
                             "(0F7;0UNSHARD)OVERLAP_F_B", "(0F7;0SEND_F7)OVERLAP_F_B"}) {
        EXPECT_CONTAINS(read_cell(text), "expected two actions, a forward and a backward");
    }
    EXPECT_CONTAINS(read_cell("(0F7;7B3;1F0)OVERLAP_F_B"), "in its second half it should end before ';1F0'");
    EXPECT_CONTAINS(read_cell("((0F7;7B3)OVERLAP_F_B;1F0)OVERLAP_F_B"), "behind ')' stands");
    EXPECT_CONTAINS(read_cell("(0F7;)OVERLAP_F_B"), "in its second half it has no stage number");
    EXPECT_CONTAINS(read_cell("(0F7;7B3"), "never closed");
    EXPECT_CONTAINS(read_cell("(0F7;7B3)"), "behind ')' stands ''");
    EXPECT_CONTAINS(read_cell("(0F7;7B3)OVERLAP_F_B1"), "behind ')' stands 'OVERLAP_F_B1'");
    EXPECT_CONTAINS(read_cell("()OVERLAP_F_B"), "it pairs one action with none");
}

TEST(CsvCellText, IsReadAsTheSameAction) {
    for (const char* text : {"0F1", "12B3", "2I0", "2W0", "3REDUCE_GRAD", "0SEND_F2", "1RECV_F2", "1SEND_B2",
                             "0RECV_B2", "0SEND_F2>3", "1RECV_F2<0", "5SEND_B4>9", "4RECV_B4<7"}) {
        const CsvCell cell = parse_csv_cell(text, CsvDialect::Now);
        ASSERT_EQ(cell.num_actions, 1) << text;
        EXPECT_EQ(csv_cell_text(cell.actions[0], cell.actions[0].peer >= 0), text);
    }
    const CsvCell pair = parse_csv_cell("(0F7;7B3)OVERLAP_F_B", CsvDialect::Now);
    EXPECT_EQ(csv_pair_text(pair.actions[0], pair.actions[1]), "(0F7;7B3)OVERLAP_F_B");
}

/// All cells of a text as "line:cell=text".
std::string walk(const std::string& text) {
    std::string seen;
    for_each_csv_cell(text, [&](int line, int cell, std::string_view inner) {
        seen += std::to_string(line) + ':' + std::to_string(cell) + '=' + std::string(inner) + ' ';
    });
    return seen;
}

TEST(ForEachCsvCell, LinesAndCellsAreCountedFromOne) {
    EXPECT_EQ(walk(""), "");
    EXPECT_EQ(walk("a"), "1:1=a ");
    EXPECT_EQ(walk("a,b\nc\n"), "1:1=a 1:2=b 2:1=c ");
    EXPECT_EQ(walk("a , b\r\nc\r\n"), "1:1=a 1:2=b 2:1=c ");
    EXPECT_EQ(walk(",,a,"), "1:1= 1:2= 1:3=a 1:4= ");
    EXPECT_EQ(walk("a\n\nb"), "1:1=a 2:0= 3:1=b ");
    EXPECT_EQ(walk("\n"), "1:0= ");
}

}  // namespace
}  // namespace vpp
