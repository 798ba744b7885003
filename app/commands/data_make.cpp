// vpp data make.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <sstream>

#include "app/commands/data_commands.hpp"
#include "app/environment.hpp"
#include "app/kept_files.hpp"
#include "app/unfinished_outputs.hpp"
#include "base/error.hpp"
#include "base/units.hpp"
#include "data/csv.hpp"
#include "data/foreign_file.hpp"
#include "data/token_writer.hpp"

namespace vpp {

namespace {

struct MakeArguments {
    std::string out, tokenizer;
    std::vector<std::string> files, fields;
    bool lines = false, overwrite = false;
    std::optional<int64_t> end_token;
};

/// "x=a,b": a field and its columns.
std::pair<std::string, std::vector<std::string>> read_field(const std::string& text) {
    const size_t equals = text.find('=');
    std::vector<std::string> columns;
    std::istringstream rest(equals == std::string::npos ? "" : text.substr(equals + 1));
    bool is_twice = false;
    for (std::string column; std::getline(rest, column, ',');) {
        is_twice = is_twice || std::ranges::find(columns, column) != columns.end();
        columns.push_back(column);
    }
    if (is_twice) {
        throw Error(ErrorKind::CommandLine, "--field takes a column once (got '" + printable(text) + "')");
    }
    if (equals == 0 || columns.empty() || text.ends_with(',')) {
        throw Error(ErrorKind::CommandLine,
                    "--field names a field and its columns, such as x=a,b (got '" + printable(text) + "')");
    }
    return {text.substr(0, equals), columns};
}

int make_fields(const MakeArguments& arguments) {
    if (arguments.files.size() != 1 || arguments.lines || arguments.end_token || !arguments.tokenizer.empty()) {
        throw Error(ErrorKind::CommandLine,
                    "a folder gets the fields of one table, without --lines, --end-token and --tokenizer; for tokens "
                    "name a file that ends with .bin");
    }
    CsvOrder order{arguments.out, arguments.files[0], {}, arguments.overwrite};
    for (const std::string& field : arguments.fields) order.fields.push_back(read_field(field));
    for (const FieldMade& made : make_csv_fields(order)) {
        std::cout << "wrote " << made.file << ", " << name_of(made.dtype) << ' ' << shape_text(made.shape) << '\n';
    }
    return 0;
}

/// An input that is a folder is refused when it is read.
void check_tokens_replace_no_input(const MakeArguments& arguments) {
    namespace fs = std::filesystem;
    std::vector<KeptFile> inputs{{arguments.tokenizer, "the tokenizer"}};
    for (const std::string& text : arguments.files) inputs.push_back({text, "a text that is read"});
    std::error_code ignored;
    std::erase_if(inputs, [&](const KeptFile& input) { return fs::is_directory(input.path, ignored); });
    const std::string index = fs::path(arguments.out).replace_extension(".idx").string();
    check_outputs({{"vpp data make", arguments.out}, {"vpp data make", index}}, inputs);
}

int make_tokens(const MakeArguments& arguments) {
    if (!arguments.fields.empty()) throw Error(ErrorKind::CommandLine, "--field is for tables, which go to a folder");
    check_tokens_replace_no_input(arguments);
    const TokensMade made =
        make_token_file({arguments.out, arguments.files, arguments.lines, arguments.end_token, arguments.overwrite,
                         arguments.tokenizer, program_beside("vpp-tokenizer")});
    std::cout << "wrote " << arguments.out << " and its .idx, " << counted_text(made.num_tokens, "token") << " of "
              << counted_text(static_cast<int64_t>(made.token_bytes), "byte") << " in "
              << counted_text(made.num_documents, "document") << ", a vocabulary of " << made.vocabulary << '\n';
    for (const std::string& text : arguments.files) {
        const std::string note = note_on_text(InputFile(text));
        if (!note.empty()) std::cout << "note: " << printable(text + ": " + note) << '\n';
    }
    if (made.num_documents > 1 && made.end_of_sentence && !arguments.end_token) {
        std::cout << "no token stands between documents; --end-token " << *made.end_of_sentence
                  << " puts the model's own for the end of a sentence behind each\n";
    }
    return 0;
}

int run_data_make(const MakeArguments& arguments) {
    const UnfinishedOutputs unfinished({arguments.out});
    return arguments.out.ends_with(".bin") ? make_tokens(arguments) : make_fields(arguments);
}

}  // namespace

void add_data_make(CLI::App& group, Chosen& chosen) {
    const auto arguments = std::make_shared<MakeArguments>();
    CLI::App& command = add_command(group, "make", "make data files: tokens of texts, or .npy files of a CSV table",
                                    "vpp data make train.bin book.txt notes.txt --end-token 256");
    command
        .add_option("OUT", arguments->out,
                    "FILE.bin: tokens of texts, with an index of documents; else a folder for the fields")
        ->required();
    command.add_option("FILE", arguments->files, "texts, a document each; or one table")->required();
    command
        .add_option("--tokenizer", arguments->tokenizer,
                    "a SentencePiece model that makes the tokens (default: tokens are bytes)")
        ->type_name("FILE");
    command.add_flag("--lines", arguments->lines, "each line of a text is a document");
    command.add_option("--end-token", arguments->end_token, "a token behind each document")->type_name("N");
    command
        .add_option("--field", arguments->fields,
                    "of a table: a field and its columns, FIELD=COLUMN,COLUMN (default: each column is a field)")
        ->type_name("FIELD");
    command.add_flag("--overwrite", arguments->overwrite, "replace files that are there");
    command.callback([arguments, &chosen] { chosen = [arguments] { return run_data_make(*arguments); }; });
}

}  // namespace vpp
