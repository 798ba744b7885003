#include "data/csv.hpp"

#include <sys/resource.h>

#include <algorithm>

#include "support/disk_calls.hpp"
#include "unit/data/support.hpp"

namespace vpp {
namespace {

using test::error_of;

class Csv : public testing::Test {
  protected:
    CsvOrder order(const std::string& text) const { return {folder_.path("."), folder_.write("t.csv", text), {}}; }

    std::string refusal(const std::string& text) const {
        return error_of(ErrorKind::BadData, [&] { make_csv_fields(order(text)); });
    }

    test::TemporaryFolder folder_;
};

TEST_F(Csv, EachColumnIsAField) {
    const auto made =
        make_csv_fields(order("x, \"the \"\"y\"\"\",z\r\n1,2.5,-3\r\n\r\n+4,1e2,\"9007199254740993\"\r\n"));
    ASSERT_EQ(made.size(), 3U);
    EXPECT_EQ(made[0].dtype, DType::I64);
    EXPECT_EQ(made[1].dtype, DType::F32);
    EXPECT_EQ(made[2].shape, std::vector<int64_t>{2});
    const NpyFile second(folder_.path("the \"y\".npy"));
    EXPECT_EQ(test::float_at(second, 0), 2.5F);
    EXPECT_EQ(test::float_at(second, 1), 100.0F);
    int64_t exact = 0;
    NpyFile(folder_.path("z.npy")).read(8, std::as_writable_bytes(std::span(&exact, 1)));
    EXPECT_EQ(exact, 9007199254740993);
}

TEST_F(Csv, FieldsTakeTheirColumnsInTheirOrder) {
    CsvOrder wanted = order("a,b,word\n1,2,x\n3,4,y\n");
    wanted.fields = {{"v", {"b", "a"}}};
    const auto made = make_csv_fields(wanted);
    EXPECT_EQ(made[0].shape, (std::vector<int64_t>{2, 2}));
    const NpyFile file(folder_.path("v.npy"));
    std::vector<int64_t> values(4);
    file.read(0, std::as_writable_bytes(std::span(values)));
    EXPECT_EQ(values, (std::vector<int64_t>{2, 1, 4, 3}));
    EXPECT_HAS(error_of(ErrorKind::Output, [&] { make_csv_fields(wanted); }),
               "v.npy is there already; name another folder, or replace it with --overwrite");
    wanted.overwrite = true;
    EXPECT_NO_THROW(make_csv_fields(wanted));
    wanted.fields = {{"v", {"wort"}}};
    EXPECT_HAS(error_of(ErrorKind::CommandLine, [&] { make_csv_fields(wanted); }),
               "t.csv has no column 'wort'; did you mean 'word'?");
    wanted.out = folder_.path("none/inside/none");
    wanted.fields = {{"v", {"a"}}};
    EXPECT_HAS(error_of(ErrorKind::Output, [&] { make_csv_fields(wanted); }), "none is not there; make it first");
    wanted.out = folder_.path("made");
    EXPECT_NO_THROW(make_csv_fields(wanted)) << "a folder in one that is there";
}

TEST_F(Csv, WhatIsNoNumberIsNamedByItsPlace) {
    EXPECT_HAS(refusal("a,b\n1,2\n3, four\n"),
               "t.csv:3:4: no number (got 'four'); mend it, or choose other columns with --field");
    for (const char* cell : {"", "nan", "inf", "1e999", "1e39", "0x1", "1.2.3", "+-1"}) {
        EXPECT_HAS(refusal(std::string("a,b\n") + cell + ",1\n"),
                   "t.csv:2:1: no number (got '" + std::string(cell) + "')");
    }
    EXPECT_HAS(refusal("a,b\n1\n"),
               "t.csv:2:1: the line has another number of fields than the first one (got 1, expected 2)");
    EXPECT_HAS(refusal("a\n\"1\n"), "t.csv:2:1: the quote does not end in this line");
    EXPECT_HAS(refusal("a\n\"1\"2\n"), "t.csv:2:4: a comma belongs behind the quote");
    EXPECT_HAS(refusal("a\n\"\u00e4\"2\n"), "t.csv:2:4: a comma belongs behind the quote");
    EXPECT_HAS(refusal(""), "t.csv: the table is empty");
    EXPECT_HAS(refusal("a\n"), "t.csv: the table has no line of numbers behind the names");
    EXPECT_HAS(refusal("a,a\n1,2\n"), "two fields are named 'a'");
    EXPECT_HAS(refusal("a,b/c\n1,2\n"),
               "a field needs a name that can be a file's (got 'b/c'); "
               "the first line names the columns, or name fields with --field");
    EXPECT_FALSE(std::filesystem::exists(folder_.path("a.npy")));
}

TEST_F(Csv, AnEmptyLineOfOneColumnIsAMissingValue) {
    EXPECT_EQ(make_csv_fields(order("\na\n1\n2\n\n\r\n"))[0].shape, std::vector<int64_t>{2})
        << "before, and at the end";
    const std::string text =
        ": an empty line in a table of one column is a missing value; write a number there, or take the line out";
    EXPECT_HAS(refusal("a\n1\n\n\n3\n"), "t.csv:3:1" + text);
    EXPECT_HAS(refusal("a\r\n\r\n1\r\n"), "t.csv:2:1" + text);
}

TEST_F(Csv, NamesThatAreNumbersAreALineOfData) {
    const std::string text =
        "t.csv:1:1: all names are numbers, so that this seems to be a line of numbers; put a line of names in front of "
        "it, or other names in its place";
    for (const char* line : {"1.5,-2,3e4", "7", "nan,0", "\"0\",\"1\""}) {
        EXPECT_HAS(refusal(std::string(line) + "\n" + line + "\n"), text);
    }
    EXPECT_NO_THROW(make_csv_fields(order("1,2,label\n3,4,5\n")));
}

TEST_F(Csv, OtherSeparatorsAreNamed) {
    const std::string more = "; put commas in their place, and points where commas were decimal points:  tr ";
    for (const char* names : {"age;label", "1;2"}) {
        EXPECT_HAS(refusal(std::string(names) + "\n1;2,5\n"),
                   "columns are separated by commas here, and this line has semicolons" + more + "',;' '.,' < ");
    }
    EXPECT_HAS(refusal("age;label\n1;2\n"), "t.csv:1:4: columns");
    EXPECT_HAS(refusal("\u00e4ge;label\n1;2\n"), "t.csv:1:4: columns");
    EXPECT_HAS(refusal(" age\tlabel\n1\t2\n"),
               "t.csv:1:5: columns are separated by commas here, and this line has tabs");
    EXPECT_HAS(refusal("age\tlabel\n1\t2\n"), more + "',\\t' '.,' < " + folder_.path("t.csv") + " > commas.csv");
    for (const char* line : {"\"age\";\"label\"\n", "\"age\"\t\"label\"\n"}) {
        EXPECT_HAS(refusal(line), "t.csv:1:6: columns are separated by commas here");
    }
    CsvOrder wanted = order("age;label\n1;2\n");
    wanted.fields = {{"x", {"age"}}};
    EXPECT_HAS(error_of(ErrorKind::BadData, [&] { make_csv_fields(wanted); }), "this line has semicolons");
    EXPECT_NO_THROW(make_csv_fields(order("\"a;b\"\n1\n"))) << "a name in quotes";
    EXPECT_NO_THROW(make_csv_fields(order("c;d,e\n1,2\n")));
    EXPECT_HAS(refusal("PK\x03\x04"), "t.csv: it begins as a zip file (of torch.save, Excel or numpy.savez) does");
}

TEST_F(Csv, OfTwoColumnsOfOneNameNoneIsTaken) {
    CsvOrder wanted = order("a,a,b\n1,2,3\n");
    wanted.fields = {{"x", {"a"}}};
    EXPECT_HAS(error_of(ErrorKind::BadData, [&] { make_csv_fields(wanted); }),
               "t.csv:1:1: two columns are named 'a'; name one of them anew");
    wanted.fields = {{"x", {"b"}}};
    EXPECT_NO_THROW(make_csv_fields(wanted)) << "columns that nothing is made of";
}

TEST_F(Csv, WholeNumbersThatInt64DoesNotHold) {
    const std::string text =
        ": the whole number is too large for int64 (got '9223372036854775808'); write it with a point where float32 is "
        "meant";
    EXPECT_HAS(refusal("a,b\n1,9223372036854775807\n2,9223372036854775808\n"), "t.csv:3:3" + text);
    EXPECT_HAS(refusal("a\n-9223372036854775809\n"), "(got '-9223372036854775809')");
    EXPECT_EQ(make_csv_fields(order("c\n-9223372036854775808\n+9223372036854775807\n"))[0].dtype, DType::I64);
    EXPECT_EQ(make_csv_fields(order("d\n9223372036854775808\n0.5\n"))[0].dtype, DType::F32);
    EXPECT_EQ(make_csv_fields(order("e\n9223372036854775808.\n"))[0].dtype, DType::F32);
}

TEST_F(Csv, AByteOrderMarkBelongsToNoName) {
    const auto made = make_csv_fields(order("\xef\xbb\xbfx,y\n1,2\n"));
    EXPECT_EQ(made[0].file, folder_.path("./x.npy"));
    EXPECT_HAS(refusal("\xef\xbb\xbf\"x\",x\n1,2\n"), "two fields are named 'x'");
    EXPECT_HAS(refusal("\xef\xbb\xbf"), "t.csv: the table is empty");
    EXPECT_HAS(refusal("x\n\xef\xbb\xbf"
                       "1\n"),
               "t.csv:2:1: no number");
}

TEST_F(Csv, NumbersTooNearToZeroAreZero) {
    const auto made = make_csv_fields(order("x\n1e-400\n-1e-5000\n1e-310\n0.5\n"));
    EXPECT_EQ(made[0].dtype, DType::F32);
    const NpyFile file(folder_.path("x.npy"));
    for (int i = 0; i < 3; ++i) EXPECT_EQ(test::float_at(file, i), 0);
    EXPECT_EQ(test::float_at(file, 3), 0.5F);
    EXPECT_HAS(refusal("x\n1e-400x\n"), "no number (got '1e-400x')");
}

TEST_F(Csv, NoNewFieldLiesBesideAnOldOne) {
    CsvOrder again = order("x,y\n1,2\n");
    again.out = folder_.path("");
    again.overwrite = true;
    make_csv_fields(again);
    test::DiskCalls disk(folder_.path("."));
    make_csv_fields(again);
    const std::string mark = ".npy.tmp-" + std::to_string(::getpid());
    const std::vector<std::string> expected{"fsync x" + mark,
                                            "fsync y" + mark,
                                            "fsync .",  // x.npy is removed
                                            "fsync .",  // and y.npy
                                            "rename x" + mark + " to x.npy",
                                            "fsync .",
                                            "rename y" + mark + " to y.npy",
                                            "fsync ."};
    EXPECT_EQ(disk.take(), expected);
}

TEST_F(Csv, TheFolderIsMadeDurablyOrNotAtAll) {
    CsvOrder wanted = order("x\n1\n");
    wanted.out = folder_.path("made/");
    test::DiskCalls disk(folder_.path("."));
    make_csv_fields(wanted);
    const std::vector<std::string> calls = disk.take();
    EXPECT_EQ(std::ranges::count(calls, "fsync ."), 1);
    make_csv_fields({folder_.path("made/"), folder_.write("y.csv", "y\n1\n"), {}});
    EXPECT_EQ(std::ranges::count(disk.take(), "fsync ."), 0) << "it was there";
    CsvOrder failing = order(std::string(250, 'n') + "\n1\n");
    failing.out = folder_.path("empty");
    EXPECT_HAS(error_of(ErrorKind::Output, [&] { make_csv_fields(failing); }), "File name too long");
    EXPECT_FALSE(std::filesystem::exists(failing.out));
}

TEST_F(Csv, WhatLiesInTheWayOfTheFolderIsNamed) {
    CsvOrder wanted = order("x\n1\n");
    wanted.out = folder_.write("out.txt", "");
    EXPECT_EQ(error_of(ErrorKind::Output, [&] { make_csv_fields(wanted); }),
              wanted.out + " is there and is no folder; name another, or FILE.bin for tokens");
    wanted.out += "/data";
    EXPECT_EQ(error_of(ErrorKind::Output, [&] { make_csv_fields(wanted); }),
              "cannot make the folder " + wanted.out + ": Not a directory");
}

TEST_F(Csv, MoreFieldsThanOpenFilesAreRefusedBeforehand) {
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
    const rlimit few{100, before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
    std::string names = "a", numbers = "1";
    for (int i = 0; i < 99; ++i) names += ",n" + std::to_string(i), numbers += ",2";
    CsvOrder wanted = order(names + "\n" + numbers + "\n");
    wanted.out = folder_.path("data");
    const std::string text = error_of(ErrorKind::Output, [&] { make_csv_fields(wanted); });
    EXPECT_HAS(text, "a table of 100 fields needs ");
    EXPECT_HAS(text, " open files, and this process may have 100; allow more with  ulimit -n ");
    EXPECT_HAS(text, " , or join columns to fewer fields with --field x=a,b");
    EXPECT_FALSE(std::filesystem::exists(wanted.out));
    wanted.fields = {{"x", {"a", "n0"}}, {"y", {"n98"}}};
    EXPECT_EQ(make_csv_fields(wanted)[0].shape, (std::vector<int64_t>{1, 2}));
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

TEST_F(Csv, LongTextsAreShownByTheirBegin) {
    const std::string begin(59, 'x');
    EXPECT_HAS(refusal("a\n" + begin + "y\n"), "no number (got '" + begin + "y'); mend it");
    EXPECT_HAS(refusal("a\n" + begin + "\xc3\xa4" + std::string(1 << 20, 'z') + "\n"),
               "no number (got '" + begin + "...'); mend it");
    EXPECT_LT(refusal("a\n" + std::string(1 << 20, '9') + "x\n").size(), 300U);
    EXPECT_LT(refusal("a," + std::string(1 << 20, 'n') + "\n1,2\n").size(), 400U);
}

TEST_F(Csv, NoMoreCellsAreKeptThanThereAreNames) {
    EXPECT_HAS(refusal("a,b\n1,2,3\n"),
               "t.csv:2:1: the line has another number of fields than the first one (got more than 2, expected 2)");
    EXPECT_HAS(refusal("a,b\n1,2,3,\"not looked at\n"), "(got more than 2, expected 2)");
    EXPECT_HAS(refusal("a" + std::string(1 << 20, ',') + "\n1\n"),
               "t.csv:1:1: the first line names more than 1048576 columns; a table has a line a sample, so cut it, or "
               "turn it round");
}

TEST_F(Csv, LongTablesAreReadInPieces) {
    std::string text = "a,b\n";
    for (int i = 0; i < 300000; ++i) text += std::to_string(i) + ",0.5\n";
    EXPECT_EQ(make_csv_fields(order(text))[0].shape, std::vector<int64_t>{300000});
    std::vector<int64_t> values(300000);
    NpyFile(folder_.path("a.npy")).read(0, std::as_writable_bytes(std::span(values)));
    for (int64_t i = 0; i < 300000; ++i) ASSERT_EQ(values[static_cast<size_t>(i)], i);
}

}  // namespace
}  // namespace vpp
