#include "checkpoint/folder_names.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>

#include "base/error.hpp"

namespace vpp {

namespace {

constexpr std::string_view kStepPrefix = "step-";
constexpr std::string_view kReplacedSuffix = ".old";
constexpr std::string_view kTemporaryPrefix = ".tmp-";
constexpr std::string_view kTrashPrefix = ".trash-";
constexpr size_t kStepDigits = 8;

}  // namespace

std::string step_folder_name(int64_t step) {
    check(step >= 0, "a checkpoint's step is not negative");
    const std::string digits = std::to_string(step);
    const size_t num_zeros = kStepDigits - std::min(kStepDigits, digits.size());
    return std::string(kStepPrefix) + std::string(num_zeros, '0') + digits;
}

std::string replaced_folder_name(int64_t step) {
    return step_folder_name(step) + std::string(kReplacedSuffix);
}

std::optional<StepFolder> parse_step_folder(std::string_view name) {
    StepFolder folder;
    std::string_view digits = name;
    if (!digits.starts_with(kStepPrefix)) return std::nullopt;
    digits.remove_prefix(kStepPrefix.size());
    if (digits.ends_with(kReplacedSuffix)) {
        folder.replaced = true;
        digits.remove_suffix(kReplacedSuffix.size());
    }
    const char* end = digits.data() + digits.size();
    const auto [stop, problem] = std::from_chars(digits.data(), end, folder.step);
    if (problem != std::errc() || stop != end || folder.step < 0) return std::nullopt;
    // One step has one name: comparing with it refuses signs, missing and needless zeros at once.
    const std::string canonical = folder.replaced ? replaced_folder_name(folder.step) : step_folder_name(folder.step);
    if (name != canonical) return std::nullopt;
    return folder;
}

std::string temporary_folder_name(int64_t step, const std::string& save_id) {
    check(is_save_id(save_id), "a save id is 1 to 64 letters, digits, '-' and '_'");
    return std::string(kTemporaryPrefix) + step_folder_name(step) + '-' + save_id;
}

std::string trash_folder_name(std::string_view name) {
    return std::string(kTrashPrefix) + std::string(name);
}

bool is_left_over(std::string_view name) {
    return name.starts_with(kTemporaryPrefix) || name.starts_with(kTrashPrefix);
}

bool is_save_id(std::string_view text) {
    return !text.empty() && text.size() <= 64 && std::all_of(text.begin(), text.end(), [](char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_';
    });
}

std::string shard_file_name(int writer) {
    check(writer >= 0, "a writer's number is not negative");
    char name[40];
    std::snprintf(name, sizeof name, "shard-%05d.safetensors", writer);
    return name;
}

}  // namespace vpp
