#pragma once
// The names inside <run>/checkpoints: what is a checkpoint, what is the left-over of a save or a deletion.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace vpp {

/// What a checkpoint's folder name says.
struct StepFolder {
    int64_t step = 0;       ///< finished updates
    bool replaced = false;  ///< "step-00000050.old": set aside while a new save of the same step takes its name
    bool operator==(const StepFolder&) const = default;
};

/// "step-00000050": eight digits, more when the step needs them.  Requires: step >= 0.
std::string step_folder_name(int64_t step);
/// The name a checkpoint has while a new one of its step moves in: step_folder_name + ".old".
std::string replaced_folder_name(int64_t step);
/// What the name says; empty for any other name, also for one with too few digits or needless zeros.
std::optional<StepFolder> parse_step_folder(std::string_view name);

/// ".tmp-step-00000050-<save id>": where a save is written. The save id keeps a late writer of a dead save out.
std::string temporary_folder_name(int64_t step, const std::string& save_id);
/// ".trash-<name>": where a checkpoint goes before its files are deleted.
std::string trash_folder_name(std::string_view name);
/// Whether the name is a temporary or a trash one: nothing of value once no save is running.
bool is_left_over(std::string_view name);

/// Whether a save id can be part of a file name: 1 to 64 letters, digits, '-' and '_'.
bool is_save_id(std::string_view text);

/// "shard-00002.safetensors".  Requires: writer >= 0.
std::string shard_file_name(int writer);

/// The manifest's file name.
inline constexpr std::string_view kManifestFile = "manifest.json";

}  // namespace vpp
