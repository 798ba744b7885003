#include "launch/plan_findings.hpp"

#include <algorithm>

#include "base/units.hpp"

namespace vpp {

namespace {

using enum FindingLevel;

// A save this slow is felt, also in the background.
constexpr double kSlowBytesPerSecond = 20e6;

}  // namespace

Finding judge_error(const std::string& topic, const Error& error) {
    return {Bad, topic, error.what(), "", exit_code(error.kind())};
}

Finding judge_plan(const PlanFacts& facts) {
    const std::string length = facts.steps ? counted_text(*facts.steps, "step") + " of "
                                           : counted_text(facts.epochs.value_or(0), "epoch") + ", batches of ";
    return {Ok, "plan",
            facts.file + ": " + counted_text(facts.ranks, "rank") + " (pp " + std::to_string(facts.pp) + " x dp " +
                std::to_string(facts.dp) + "), " + length + counted_text(facts.batch, "sample"),
            ""};
}

std::vector<Finding> judge_prepared(const PreparedFacts& facts) {
    const std::string validation = facts.validation_samples
                                       ? counted_text(*facts.validation_samples, "sample") + " to validate"
                                       : "none to validate";
    std::vector<Finding> findings{{Ok, "model",
                                   facts.model + ": " + counted_text(facts.ops, "op") + ", " +
                                       count_text(static_cast<double>(facts.parameters)) + " parameters, " +
                                       counted_text(facts.legal_cuts, "place") + " to cut",
                                   ""}};
    for (const std::string& warning : facts.warnings) findings.push_back({Note, "model", warning, ""});
    findings.push_back({Ok, "data", facts.data + ", " + counted_text(facts.samples, "sample") + ", " + validation, ""});
    findings.push_back({Ok, "schedule",
                        facts.schedule + ", " + counted_text(facts.stages, "stage") + ", bubble " +
                            fixed_text(100 * facts.bubble, 1) + " %",
                        ""});
    return findings;
}

Finding judge_memory(const MemoryNeed& need, int64_t available_bytes) {
    const int64_t programs = need.program_bytes * need.ranks, certain = need.state_bytes + programs;
    const int64_t most = certain + need.activation_bytes;
    const std::string text = counted_text(need.ranks, "rank") + (need.ranks == 1 ? " takes" : " take") + " up to " +
                             bytes_text(most) + " (state " + bytes_text(need.state_bytes) + ", activations " +
                             bytes_text(need.activation_bytes) + ", programs " + bytes_text(programs) + "), " +
                             bytes_text(available_bytes) + " available";
    const std::string remedy =
        "more pipeline.num_microbatches, pipeline.recompute.what = \"stage\", or fewer ranks on this host";
    if (certain > available_bytes) return {Bad, "memory", text, remedy, exit_code(ErrorKind::OutOfMemory)};
    return {most > available_bytes ? Note : Ok, "memory", text, most > available_bytes ? remedy : ""};
}

Finding judge_spread_memory(const MemoryNeed& need, int64_t available_bytes) {
    const std::string text = "where " + counted_text(need.ranks, "rank") + (need.ranks == 1 ? " runs" : " run") +
                             " is for mpirun to say; the fullest takes up to " + bytes_text(need.fullest_bytes) +
                             ", this host has " + bytes_text(available_bytes) + " available";
    if (need.fullest_bytes <= available_bytes) return {Ok, "memory", text, ""};
    return {Note, "memory", text, "more pipeline.num_microbatches, or pipeline.recompute.what = \"stage\""};
}

Finding judge_disk(const DiskFacts& disk, const SaveNeed& need) {
    const std::string place = disk.run_folder.string() + ": ";
    if (!disk.problem.empty()) {
        const ErrorKind kind = disk.is_full ? ErrorKind::Io : ErrorKind::Output;
        return {Bad, "disk", place + "nothing can be written there, " + disk.problem,
                disk.is_full ? "make room, or name another folder: --set run.dir=FOLDER"
                             : "name a folder that can be written: --set run.dir=FOLDER",
                exit_code(kind)};
    }
    const double speed = disk.bytes_per_second.value_or(0);
    const std::string found =
        place + bytes_text(static_cast<int64_t>(speed)) + "/s with fsync, " + bytes_text(disk.free_bytes) + " free";
    if (need.checkpoint_bytes == 0) return {Ok, "disk", found, ""};
    const int64_t wanted = std::max<int64_t>(1, need.keep + 1 - need.kept);
    const std::string text = found + "; a checkpoint takes " + bytes_text(need.checkpoint_bytes) + ", room is wanted " +
                             "for " + std::to_string(wanted);
    if (disk.free_bytes < need.checkpoint_bytes) {
        return {Bad, "disk", text, "make room, or name another folder: --set run.dir=FOLDER", exit_code(ErrorKind::Io)};
    }
    if (disk.free_bytes / wanted < need.checkpoint_bytes) {
        return {Note, "disk", text, "make room, or a smaller checkpoint.keep"};
    }
    if (speed < kSlowBytesPerSecond) {
        return {Note, "disk",
                text + "; that is slow: " +
                    duration_text(static_cast<double>(need.checkpoint_bytes) / std::max(speed, 1.0)) + " a save",
                "a run.dir on a local disk, or a larger checkpoint.every"};
    }
    return {Ok, "disk", text, ""};
}

Finding judge_resume(const ResumeFacts& facts) {
    if (facts.resume == "no") return {Ok, "run", facts.run + ": begins anew, as checkpoint.resume = \"no\" says", ""};
    if (!facts.step && facts.has_parts) {
        const std::string text = ": its checkpoints lack shards, and are whole only where other hosts have them";
        return {Note, "run", facts.run + text, "a run.dir on a disk that all hosts share, or bring the shards here"};
    }
    if (!facts.step) return {Ok, "run", facts.run + ": begins with the first step, since no checkpoint is there", ""};
    const std::string text = facts.run + ": goes on after step " + std::to_string(*facts.step);
    if (facts.steps && *facts.step >= *facts.steps) {
        return {Note, "run", text + " of " + std::to_string(*facts.steps) + ", so nothing is left to do",
                "more train.steps, or another run.dir"};
    }
    return {Ok, "run", text, ""};
}

}  // namespace vpp
