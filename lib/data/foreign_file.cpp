#include "data/foreign_file.hpp"

#include <algorithm>
#include <filesystem>
#include <initializer_list>
#include <span>
#include <vector>

#include "base/bad_data.hpp"
#include "base/shell.hpp"

namespace vpp {

namespace {

namespace fs = std::filesystem;

/// None is known by two bytes alone, which are a token that may well come first.
const std::vector<ForeignFile>& foreign_files() {
    static const std::string kPictures =
        "make one array of all pictures, in Python (README.md, \"Pictures\", has the lines)";
    static const std::string kArrays =
        "save arrays with numpy.save, tensors with safetensors.torch.save_file, tables as CSV";
    static const std::string kUnpack = "unpack it first";
    static const std::vector<ForeignFile> kFiles = {
        {"\x89PNG\r\n\x1a\n", "a PNG picture", kPictures},
        {"\xff\xd8\xff", "a JPEG picture", kPictures},
        {"\x1f\x8b\x08", "a gzip file", kUnpack},
        {"\x28\xb5\x2f\xfd", "a zstd file", kUnpack},
        {"\xfd"
         "7zXZ",
         "an xz file", kUnpack},
        {"PK\x03\x04", "a zip file (of torch.save, Excel or numpy.savez)", kArrays},
        {"\x80\x02\x8a\x0a", "a file of torch.save", kArrays},
        {"\x80\x04\x95", "a pickle of Python", kArrays},
        {"\x80\x05\x95", "a pickle of Python", kArrays},
        {"PAR1", "a Parquet file", kArrays},
        {"ARROW1", "an Arrow file", kArrays},
        {"\x89HDF\r\n\x1a\n", "an HDF5 file", kArrays},
        {"\x93NUMPY", "an array of numpy.save", "name it .npy, and read it with data.kind = \"arrays\""},
        {"%PDF-", "a PDF file", "take its text out first, as pdftotext does"},
    };
    return kFiles;
}

std::string first_text(const InputFile& file) {
    constexpr uint64_t kBegin = 4096;
    std::string begin(static_cast<size_t>(std::min(file.size_bytes(), kBegin)), '\0');
    file.read(0, std::as_writable_bytes(std::span(begin)));
    return begin;
}

bool ends_with_one_of(const fs::path& path, std::initializer_list<const char*> endings) {
    return std::ranges::any_of(endings, [&](const char* ending) { return path.extension() == ending; });
}

std::string note_on_begin(std::string_view begin) {
    const ForeignFile* file = find_foreign_file(begin);
    return file ? "it begins as " + file->what + " does; " + file->remedy : "";
}

}  // namespace

const ForeignFile* find_foreign_file(std::string_view begin) {
    const auto& files = foreign_files();
    const auto found =
        std::ranges::find_if(files, [&](const ForeignFile& file) { return begin.starts_with(file.begin); });
    return found == files.end() ? nullptr : &*found;
}

std::string note_on_text(const InputFile& file) {
    const std::string begin = first_text(file), path = shell_quoted(file.path().string());
    if (std::string note = note_on_begin(begin); !note.empty()) return note;
    if (ends_with_one_of(file.path(), {".jsonl", ".ndjson", ".json"})) {
        const size_t first = begin.find_first_not_of(" \t\r\n");
        const bool is_list = first != std::string::npos && begin[first] == '[';  // else an object a line
        return std::string("JSON is read as it is, with its names and braces; take the texts out first, as  jq -r ") +
               (is_list ? "'.[].text' " : ".text ") + path + " > texts.txt  does";
    }
    if (ends_with_one_of(file.path(), {".csv", ".tsv"})) {
        return "a table is read as it is, digit by digit; vpp data make FOLDER " + path +
               " makes fields of its numbers";
    }
    return begin.find('\0') == std::string::npos ? "" : "it has zero bytes, which no text has";
}

std::string note_on_tokens(const InputFile& file) {
    return note_on_begin(first_text(file));
}

void refuse_foreign_file(const InputFile& file) {
    const std::string note = note_on_begin(first_text(file));
    if (!note.empty()) refuse_data(file.path().string(), note);
}

void refuse_folder(const std::string& path) {
    std::error_code ignored;
    if (!fs::is_directory(path, ignored)) return;
    refuse_data(path,
                "a folder, where a file is read; name the files in it, or of pictures make one array first "
                "(README.md, \"Pictures\")");
}

}  // namespace vpp
