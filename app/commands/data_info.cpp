// vpp data info.
#include <CLI/CLI.hpp>

#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "app/commands/data_commands.hpp"
#include "app/failure.hpp"
#include "base/error.hpp"
#include "base/json_text.hpp"
#include "base/units.hpp"
#include "data/file_info.hpp"

namespace vpp {

namespace {

struct InfoArguments {
    std::vector<std::string> files;
    std::string kind;
    bool json = false;
};

/// ", 2 of 3 values are not finite"
std::string not_finite_text(const SeenValues& seen) {
    if (seen.num_not_finite == 0) return "";
    return ", " + std::to_string(seen.num_not_finite) + " of " + counted_text(seen.num_values, "value") +
           (seen.num_not_finite == 1 ? " is not finite" : " are not finite");
}

std::string range_text(const std::optional<SeenValues>& seen) {
    if (!seen) return "";
    char text[100] = "";
    if (seen->has_range()) std::snprintf(text, sizeof text, ", values %.9g to %.9g", seen->low, seen->high);
    return text + not_finite_text(*seen) + (seen->all ? "" : " in its first part");
}

/// Without low and high where no value is finite.
nlohmann::ordered_json range_json(const std::optional<SeenValues>& seen) {
    if (!seen) return nullptr;
    nlohmann::ordered_json range;
    if (seen->has_range()) range = {{"low", seen->low}, {"high", seen->high}};
    range["all"] = seen->all;
    range["not_finite"] = seen->num_not_finite;
    return range;
}

void print_info_text(const FileInfo& info) {
    std::cout << printable(info.file) << ": " << info.kind << ", " << bytes_text(static_cast<int64_t>(info.size_bytes))
              << '\n';
    for (const ArrayInfo& array : info.arrays) {
        if (!array.problem.empty()) continue;
        const std::string samples =
            array.num_samples == 0 ? "no samples, " : counted_text(array.num_samples, "sample") + " of ";
        std::cout << "  " << printable(array.name) << ": " << samples << name_of(array.dtype) << ' '
                  << shape_text(array.shape) << range_text(array.values) << '\n';
    }
    if (!info.note.empty()) std::cout << "  note: " << printable(info.note) << '\n';
    if (info.token_bytes == 0) return;
    std::cout << "  " << counted_text(info.num_tokens, "token") << " of "
              << counted_text(static_cast<int64_t>(info.token_bytes), "byte") << range_text(info.tokens) << '\n';
    if (!info.documents) return;
    std::cout << "  " << counted_text(info.documents->count, "document") << " of " << info.documents->shortest << " to "
              << info.documents->longest << " tokens\n";
}

void print_info_json(const FileInfo& info) {
    nlohmann::ordered_json value{{"file", info.file},
                                 {"kind", info.kind},
                                 {"bytes", info.size_bytes},
                                 {"fields", nlohmann::ordered_json::array()}};
    for (const ArrayInfo& array : info.arrays) {
        if (!array.problem.empty()) {
            value["fields"].push_back({{"name", array.name}, {"error", array.problem}});
            continue;
        }
        value["fields"].push_back({{"name", array.name},
                                   {"dtype", name_of(array.dtype)},
                                   {"shape", array.shape},
                                   {"samples", array.num_samples},
                                   {"values", range_json(array.values)}});
    }
    if (info.token_bytes > 0) {
        value["tokens"] = info.num_tokens;
        value["token_bytes"] = info.token_bytes;
        value["values"] = range_json(info.tokens);
    }
    if (info.documents) {
        value["documents"] = {{"count", info.documents->count},
                              {"shortest", info.documents->shortest},
                              {"longest", info.documents->longest}};
    }
    if (!info.note.empty()) value["note"] = info.note;
    std::cout << json_text(value) << '\n';
}

/// Gives an exit code, by the arrays of the file that cannot be read.
int tell_problems(const FileInfo& info) {
    int code = 0;
    for (const ArrayInfo& array : info.arrays) {
        if (array.problem.empty()) continue;
        std::cout << std::flush;
        say(array.problem);
        code = exit_code(ErrorKind::BadData);
    }
    return code;
}

/// Gives an exit code: what is wrong with one file is told at its place, and keeps no other from being told.
int tell_file(const std::string& path, const InfoArguments& arguments) {
    try {
        const FileInfo info = look_at_file(path, arguments.kind);
        arguments.json ? print_info_json(info) : print_info_text(info);
        return tell_problems(info);
    } catch (const Error& error) {
        if (error.kind() == ErrorKind::CommandLine) throw;
        if (arguments.json) {
            std::cout << json_text(nlohmann::ordered_json{{"file", path}, {"error", error.what()}}) << '\n';
        }
        std::cout << std::flush;
        say(error.what());
        return exit_code(error.kind());
    }
}

/// The exit code is that of the first file that cannot be read.
int run_data_info(const InfoArguments& arguments) {
    int code = 0;
    for (const std::string& path : arguments.files) {
        const int own = tell_file(path, arguments);
        if (code == 0) code = own;
    }
    std::cout << std::flush;
    return code;
}

}  // namespace

void add_data_info(CLI::App& group, Chosen& chosen) {
    const auto arguments = std::make_shared<InfoArguments>();
    CLI::App& command = add_command(group, "info", "say what data files hold: kind, fields, samples, values",
                                    "vpp data info train.bin labels.npy");
    command.add_option("FILE", arguments->files, "data files")->required();
    command
        .add_option("--kind", arguments->kind, "tokens, text, arrays, idx or cifar10, where it is not what it seems")
        ->type_name("KIND");
    command.add_flag("--json", arguments->json, "an object a file, for programs");
    command.callback([arguments, &chosen] { chosen = [arguments] { return run_data_info(*arguments); }; });
}

}  // namespace vpp
