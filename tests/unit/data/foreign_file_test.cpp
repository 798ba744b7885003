#include "data/foreign_file.hpp"

#include "unit/data/support.hpp"

namespace vpp {
namespace {

class ForeignFiles : public testing::Test {
  protected:
    InputFile file(const std::string& name, const std::string& bytes) const {
        return InputFile(folder_.write(name, bytes));
    }

    test::TemporaryFolder folder_;
};

TEST_F(ForeignFiles, AreKnownByTheirFirstBytes) {
    for (const auto& [begin, what] : std::vector<std::pair<std::string, std::string>>{
             {"\x89PNG\r\n\x1a\n", "a PNG picture"},
             {"\xff\xd8\xff\xe0", "a JPEG picture"},
             {"\x1f\x8b\x08\x08", "a gzip file"},
             {"\x28\xb5\x2f\xfd", "a zstd file"},
             {"\xfd\x37zXZ", "an xz file"},
             {"PK\x03\x04", "a zip file (of torch.save, Excel or numpy.savez)"},
             {"\x80\x02\x8a\x0al\xfc", "a file of torch.save"},
             {"\x80\x04\x95", "a pickle of Python"},
             {"\x80\x05\x95", "a pickle of Python"},
             {"PAR1", "a Parquet file"},
             {"ARROW1", "an Arrow file"},
             {"\x89HDF\r\n\x1a\n", "an HDF5 file"},
             {"\x93NUMPY", "an array of numpy.save"},
             {"%PDF-1.7", "a PDF file"},
         }) {
        const ForeignFile* found = find_foreign_file(begin + "more");
        ASSERT_TRUE(found) << what;
        EXPECT_EQ(found->what, what);
        EXPECT_FALSE(find_foreign_file(begin.substr(0, 2)));
        const InputFile file = this->file("x", begin + "more");
        EXPECT_EQ(note_on_text(file), "it begins as " + what + " does; " + found->remedy);
        EXPECT_EQ(note_on_tokens(file), note_on_text(file));
        EXPECT_HAS(test::error_of(ErrorKind::BadData, [&] { refuse_foreign_file(file); }),
                   "x: it begins as " + what + " does; " + found->remedy);
    }
    EXPECT_HAS(note_on_text(file("x", "\x1f\x8b\x08")), "unpack it first");
    EXPECT_HAS(note_on_text(file("x", "PK\x03\x04")),
               "save arrays with numpy.save, tensors with safetensors.torch.save_file, tables as CSV");
    EXPECT_HAS(note_on_text(file("x", "\xff\xd8\xff")), "make one array of all pictures, in Python (README.md, ");
}

TEST_F(ForeignFiles, TextsGetNotesAndTokensAreAnyBytes) {
    for (const std::string text : {"", "a text", "PAR", "\xfcnicode"}) {
        EXPECT_EQ(note_on_text(file("x.txt", text)), "");
        EXPECT_NO_THROW(refuse_foreign_file(file("x.txt", text)));
    }
    const std::string zeros("a\0b", 3);
    EXPECT_EQ(note_on_text(file("x.txt", zeros)), "it has zero bytes, which no text has");
    EXPECT_EQ(note_on_tokens(file("x.bin", zeros)), "");
    EXPECT_NO_THROW(refuse_foreign_file(file("x.txt", zeros)));
    EXPECT_HAS(note_on_text(file("l.jsonl", "{\"text\": \"a\"}\n")),
               "JSON is read as it is, with its names and braces; take the texts out first, as  jq -r .text ");
    EXPECT_HAS(note_on_text(file("l.ndjson", "{}\n")), "  jq -r .text " + folder_.path("l.ndjson") + " > texts.txt  ");
    EXPECT_HAS(note_on_text(file("l.json", " \n[{\"text\": \"a\"}]\n")),
               "  jq -r '.[].text' " + folder_.path("l.json") + " > texts.txt  does");
    EXPECT_HAS(note_on_text(file("l.json", "{\"text\": [1]}\n")), "  jq -r .text ");
    EXPECT_HAS(note_on_text(file("t.csv", "a,b\n1,2\n")),
               "a table is read as it is, digit by digit; vpp data make FOLDER " + folder_.path("t.csv") + " makes");
}

TEST_F(ForeignFiles, AFolderIsNoFile) {
    EXPECT_HAS(test::error_of(ErrorKind::BadData, [&] { refuse_folder(folder_.path(".")); }),
               "a folder, where a file is read; name the files in it, or of pictures make one array first");
    EXPECT_NO_THROW(refuse_folder(folder_.write("x", "")));
    EXPECT_NO_THROW(refuse_folder(folder_.path("none")));
}

}  // namespace
}  // namespace vpp
