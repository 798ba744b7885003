// vpp data info.
#include <CLI/CLI.hpp>

#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "app/commands/data_commands.hpp"
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

std::string range_text(const std::optional<SeenValues>& seen) {
    if (!seen) return "";
    char text[100];
    std::snprintf(text, sizeof text, ", values %.9g to %.9g", seen->low, seen->high);
    return text + std::string(seen->all ? "" : " in its first part");
}

nlohmann::ordered_json range_json(const std::optional<SeenValues>& seen) {
    if (!seen) return nullptr;
    return {{"low", seen->low}, {"high", seen->high}, {"all", seen->all}};
}

void print_info_text(const std::string& path, const FileInfo& info) {
    std::cout << printable(path) << ": " << info.kind << ", " << bytes_text(static_cast<int64_t>(info.size_bytes))
              << '\n';
    for (const ArrayInfo& array : info.arrays) {
        const std::string samples =
            array.num_samples == 0 ? "no samples, " : counted_text(array.num_samples, "sample") + " of ";
        std::cout << "  " << printable(array.name) << ": " << samples << name_of(array.dtype) << ' '
                  << shape_text(array.shape) << range_text(array.values) << '\n';
    }
    if (info.token_bytes == 0) return;
    std::cout << "  " << counted_text(info.num_tokens, "token") << " of "
              << counted_text(static_cast<int64_t>(info.token_bytes), "byte") << range_text(info.tokens) << '\n';
    if (!info.documents) return;
    std::cout << "  " << counted_text(info.documents->count, "document") << " of " << info.documents->shortest << " to "
              << info.documents->longest << " tokens\n";
}

void print_info_json(const std::string& path, const FileInfo& info) {
    nlohmann::ordered_json value{
        {"file", path}, {"kind", info.kind}, {"bytes", info.size_bytes}, {"fields", nlohmann::ordered_json::array()}};
    for (const ArrayInfo& array : info.arrays) {
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
    std::cout << json_text(value) << '\n';
}

int run_data_info(const InfoArguments& arguments) {
    for (const std::string& path : arguments.files) {
        const FileInfo info = look_at_file(path, arguments.kind);
        arguments.json ? print_info_json(path, info) : print_info_text(path, info);
    }
    std::cout << std::flush;
    return 0;
}

}  // namespace

void add_data_info(CLI::App& group, Chosen& chosen) {
    const auto arguments = std::make_shared<InfoArguments>();
    CLI::App& command = add_command(group, "info", "say what data files hold: kind, fields, samples, values",
                                    "vpp data info train.bin labels.npy");
    command.add_option("files", arguments->files, "data files")->type_name("FILE")->required();
    command
        .add_option("--kind", arguments->kind, "tokens, text, arrays, idx or cifar10, where it is not what it seems")
        ->type_name("KIND");
    command.add_flag("--json", arguments->json, "an object a file, for programs");
    command.callback([arguments, &chosen] { chosen = [arguments] { return run_data_info(*arguments); }; });
}

}  // namespace vpp
