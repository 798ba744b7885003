// vpp checkpoint verify, show and prune. The list is in checkpoint_list.cpp.
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "app/commands/checkpoint_place.hpp"
#include "app/run_lock.hpp"
#include "base/error.hpp"
#include "base/json_text.hpp"
#include "base/printable_lines.hpp"
#include "base/run_files.hpp"
#include "base/units.hpp"

namespace vpp {

namespace fs = std::filesystem;

namespace {

[[noreturn]] void refuse_empty(const fs::path& run) {
    throw Error(ErrorKind::MissingInput, "there is no checkpoint in " + run.string());
}

std::vector<fs::path> all_of(const CheckpointPlace& place) {
    if (!place.checkpoint.empty()) return {place.checkpoint};
    std::vector<fs::path> folders = CheckpointStore(place.run).entries();
    if (folders.empty()) refuse_empty(place.run);
    return folders;
}

/// A link that a person names is followed; one that lies in a run counts for nothing.
CheckpointSummary look_at(const CheckpointPlace& place, const fs::path& folder, bool read_all) {
    return place.checkpoint.empty() ? look_at_entry(folder, read_all) : look_at_checkpoint(folder, read_all);
}

/// One checkpoint, or of a run the one that a training would go on from, as far as its headers say.
CheckpointSummary chosen(const CheckpointPlace& place) {
    CheckpointSummary summary;
    std::vector<std::string> skipped;
    for (const fs::path& folder : all_of(place)) {
        summary = look_at(place, folder, /*read_all=*/false);
        if (summary.damage.empty()) break;
        if (summary.damage.bars_older && place.checkpoint.empty()) refuse_older(summary.damage);
        skipped.push_back(summary.damage.text);
    }
    if (!summary.manifest) throw Error(ErrorKind::BadData, printable(summary.damage.text));
    if (!summary.damage.empty()) return summary;
    for (const std::string& reason : skipped) std::cerr << "vpp: note: skipped: " << printable(reason) << std::endl;
    return summary;
}

struct TensorTotals {
    int64_t tensors = 0, bytes = 0;
};

/// Weights and optimizer state.
std::map<std::string, TensorTotals> totals_of(const CheckpointReader& reader) {
    std::map<std::string, TensorTotals> totals;
    for (const std::string& name : reader.names()) {
        TensorTotals& part = totals[name.substr(0, name.find('.'))];
        ++part.tensors;
        part.bytes += static_cast<int64_t>(reader.tensor(name).bytes.size());
    }
    return totals;
}

nlohmann::ordered_json tensors_json(const CheckpointReader& reader) {
    auto list = nlohmann::ordered_json::array();
    for (const std::string& name : reader.names()) {
        const TensorBytes tensor = reader.tensor(name);
        list.push_back({{"name", name},
                        {"dtype", name_of(tensor.dtype)},
                        {"shape", tensor.shape},
                        {"bytes", tensor.bytes.size()}});
    }
    return list;
}

void print_checkpoint_json(const CheckpointSummary& summary, const CheckpointReader& reader) {
    const CheckpointState& state = summary.manifest->state;
    nlohmann::ordered_json value{{"checkpoint", summary.folder.string()},
                                 {"step", state.step},
                                 {"samples", state.samples},
                                 {"seed", state.seed},
                                 {"save_id", summary.manifest->save_id},
                                 {"format_version", summary.manifest->format_version},
                                 {"bytes", summary.size_bytes},
                                 {"age_seconds", summary.age_seconds},
                                 {"facts", state.facts},
                                 {"shards", nlohmann::ordered_json::array()}};
    for (const ShardRecord& shard : summary.manifest->shards) {
        value["shards"].push_back(
            {{"file", shard.file}, {"bytes", shard.size_bytes}, {"xxh3_128", to_hex(shard.digest)}});
    }
    value["tensors"] = tensors_json(reader);
    value["plan"] = state.plan;
    std::cout << json_text(value) << std::endl;
}

void print_tensors(const CheckpointReader& reader) {
    for (const std::string& name : reader.names()) {
        const TensorBytes tensor = reader.tensor(name);
        std::cout << "  " << printable(name) << "  " << name_of(tensor.dtype) << ' ' << shape_text(tensor.shape) << "  "
                  << tensor.bytes.size() << " B\n";
    }
}

void print_checkpoint_text(const CheckpointSummary& summary, const CheckpointReader& reader, bool tensors) {
    const CheckpointState& state = summary.manifest->state;
    std::cout << printable(summary.folder.string()) << '\n'
              << "  step " << state.step << ", " << state.samples << " samples, seed " << state.seed << ", "
              << bytes_text(static_cast<int64_t>(summary.size_bytes)) << " in "
              << counted_text(static_cast<int64_t>(summary.manifest->shards.size()), "shard") << ", "
              << age_text(summary.age_seconds) << " old\n";
    for (const auto& [part, totals] : totals_of(reader)) {
        std::cout << "  " << printable(part) << ": " << totals.tensors << " tensors, " << bytes_text(totals.bytes)
                  << '\n';
    }
    std::cout << "facts\n";
    for (const auto& [name, text] : state.facts)
        std::cout << "  " << printable(name) << " = " << printable(text) << '\n';
    if (!tensors) return;
    std::cout << "tensors\n";
    print_tensors(reader);
}

void say_plan(const PrunePlan& plan, bool dry_run) {
    for (const std::string& damage : plan.damaged) {
        std::cout << "damaged, counts for nothing and stays: " << printable(damage) << '\n';
    }
    for (const fs::path& folder : plan.kept) std::cout << "keeps   " << printable(folder.string()) << '\n';
    for (const fs::path& folder : plan.deleted) {
        std::cout << (dry_run ? "would delete " : "deletes ") << printable(folder.string()) << '\n';
    }
    std::cout << std::flush;
}

/// What is planned, told before anything goes.
PrunePlan planned_prune(const CheckpointStore& store, const CheckpointArguments& given) {
    PrunePlan plan = plan_prune(store, given.keep, given.keep_every, given.keep_best);
    if (given.keep_best > 0 && plan.num_best == 0) {
        std::cout << "no checkpoint has a validation loss (train.eval_every), so --keep-best keeps none\n";
    }
    say_plan(plan, given.dry_run);
    return plan;
}

}  // namespace

PlannedPlace checkpoint_place(const CheckpointArguments& given) {
    const std::string& where = given.plan.config;
    std::error_code ignored;
    const bool is_plan = fs::is_regular_file(where, ignored) || where.ends_with(".toml");
    if (!is_plan) return {find_checkpoints(where)};
    const Plan plan = resolved_plan(given.plan);
    const fs::path run = plan.run.dir;
    if (!fs::is_directory(run / run_files::kCheckpoints, ignored)) refuse_empty(run);
    return {{run, {}}, plan.checkpoint.resume};
}

std::string age_text(double seconds) {
    return duration_text(seconds < 0 ? 0 : seconds);
}

int run_checkpoint_verify(const CheckpointArguments& given) {
    const CheckpointPlace place = checkpoint_place(given);
    const std::vector<fs::path> folders = all_of(place);
    size_t num_damaged = 0, num_parts = 0;
    for (const fs::path& folder : folders) {
        const CheckpointSummary summary = look_at(place, folder, /*read_all=*/true);
        std::cout << printable(folder.string()) << ": ";
        if (summary.damage.empty()) {
            std::cout << "whole, " << counted_text(static_cast<int64_t>(summary.manifest->shards.size()), "shard")
                      << ", " << summary.size_bytes << " bytes" << std::endl;
        } else {
            ++num_damaged;
            num_parts += summary.is_part ? 1 : 0;
            std::cout << (summary.is_part ? "A PART: " : "DAMAGED: ") << printable(summary.damage.text) << std::endl;
        }
    }
    if (num_damaged == 0) return 0;
    throw Error(ErrorKind::BadData,
                std::to_string(num_damaged) + " of " +
                    counted_text(static_cast<int64_t>(folders.size()), "checkpoint") + " damaged" +
                    (num_parts > 0 ? ", of which " + std::to_string(num_parts) + " only in part in this folder" : ""));
}

int run_checkpoint_show(const CheckpointArguments& given) {
    const CheckpointSummary summary = chosen(checkpoint_place(given));
    if (given.print_plan) {
        std::cout << printable_lines(summary.manifest->state.plan) << std::flush;
        return 0;
    }
    if (!summary.damage.empty()) throw Error(ErrorKind::BadData, printable(summary.damage.text));
    const CheckpointReader reader(summary.folder);
    given.json ? print_checkpoint_json(summary, reader) : print_checkpoint_text(summary, reader, given.tensors);
    std::cout << std::flush;
    return 0;
}

int run_checkpoint_prune(const CheckpointArguments& given) {
    const CheckpointPlace place = checkpoint_place(given);
    if (!place.checkpoint.empty()) {
        throw Error(ErrorKind::CommandLine, "vpp checkpoint prune takes a plan or a run folder, not one checkpoint");
    }
    CheckpointStore store(place.run);
    if (given.dry_run) {
        planned_prune(store, given);
        return 0;
    }
    const RunLock lock = lock_run_folder(place.run);
    store.remove_left_overs();
    for (const fs::path& folder : planned_prune(store, given).deleted) store.remove(folder);
    return 0;
}

}  // namespace vpp
