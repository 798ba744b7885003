// vpp checkpoint list.
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "app/commands/checkpoint_place.hpp"
#include "base/error.hpp"
#include "base/json_text.hpp"
#include "base/units.hpp"

namespace vpp {

namespace fs = std::filesystem;

namespace {

/// The fact as the training wrote it; "" without one.
std::string loss_of(const CheckpointSummary& summary) {
    if (!summary.manifest) return "";
    const auto found = summary.manifest->state.facts.find(kValidationLoss);
    return found == summary.manifest->state.facts.end() ? "" : printable(found->second.substr(0, 40));
}

void print_list_json(const RunSurvey& survey, const fs::path& run, const std::string& resume, bool verified) {
    nlohmann::ordered_json value{{"run", run.string()},
                                 {"verified", verified},
                                 {"resumed", nullptr},
                                 {"checkpoints", nlohmann::ordered_json::array()},
                                 {"set_aside", nlohmann::ordered_json::array()},
                                 {"left_overs", nlohmann::ordered_json::array()}};
    if (survey.resumed) value["resumed"] = survey.checkpoints[*survey.resumed].folder.string();
    if (resume != "auto" && resume != "no") value["resumed"] = resume;
    for (const CheckpointSummary& summary : survey.checkpoints) {
        nlohmann::ordered_json entry{{"checkpoint", summary.folder.string()},
                                     {"step", summary.step},
                                     {"bytes", summary.size_bytes},
                                     {"age_seconds", summary.age_seconds},
                                     {"whole", summary.damage.empty()},
                                     {"damage", summary.damage.text},
                                     {"samples", nullptr},
                                     {"shards", nullptr},
                                     {"validation_loss", nullptr}};
        if (summary.manifest) {
            entry["samples"] = summary.manifest->state.samples;
            entry["shards"] = summary.manifest->shards.size();
        }
        if (const std::string loss = loss_of(summary); !loss.empty()) entry["validation_loss"] = loss;
        value["checkpoints"].push_back(std::move(entry));
    }
    for (const fs::path& path : survey.set_aside) value["set_aside"].push_back(path.string());
    for (const fs::path& path : survey.left_overs) value["left_overs"].push_back(path.string());
    std::cout << json_text(value) << std::endl;
}

void print_row(const CheckpointSummary& summary) {
    char row[200];
    const std::string samples = summary.manifest ? std::to_string(summary.manifest->state.samples) : "-";
    const std::string shards = summary.manifest ? std::to_string(summary.manifest->shards.size()) : "-";
    const std::string loss = loss_of(summary);
    std::snprintf(row, sizeof row, "%10lld %12s %10s %6s  %-20s %12s  ", static_cast<long long>(summary.step),
                  samples.c_str(), bytes_text(static_cast<int64_t>(summary.size_bytes)).c_str(), shards.c_str(),
                  loss.empty() ? "-" : loss.c_str(), age_text(summary.age_seconds).c_str());
    std::cout << row;
}

void print_list_text(const RunSurvey& survey, const fs::path& run, const std::string& resume, bool verified) {
    std::cout << printable(run.string()) << ": "
              << counted_text(static_cast<int64_t>(survey.checkpoints.size()), "checkpoint") << '\n';
    if (!survey.checkpoints.empty()) {
        std::cout << "      step      samples       size shards  validation loss               age\n";
    }
    for (size_t i = 0; i < survey.checkpoints.size(); ++i) {
        const CheckpointSummary& summary = survey.checkpoints[i];
        print_row(summary);
        if (!summary.damage.empty()) {
            std::cout << (summary.is_part             ? "A PART, so skipped: "
                          : summary.damage.bars_older ? "CANNOT BE READ HERE, so no older one is taken: "
                                                      : "DAMAGED, so skipped: ")
                      << printable(summary.damage.text);
        }
        if (summary.damage.empty()) std::cout << (verified ? "whole" : "looks whole");
        if (survey.resumed == i) std::cout << "; train goes on from here";
        std::cout << '\n';
    }
    if (resume != "auto") {
        std::cout << "checkpoint.resume = \"" << printable(resume) << "\": train "
                  << (resume == "no" ? "begins anew" : "goes on from there") << '\n';
    } else if (!survey.checkpoints.empty() && !survey.resumed) {
        const bool has_parts =
            std::ranges::any_of(survey.checkpoints, [](const CheckpointSummary& summary) { return summary.is_part; });
        std::cout << (has_parts
                          ? "none of them can be resumed from this folder alone: train goes on only when its "
                            "ranks hold the missing shards in other run folders\n"
                          : "none of them can be resumed: train refuses, unless checkpoint.resume says otherwise\n");
    }
    for (const fs::path& path : survey.set_aside) {
        std::cout << "set aside by a resume from an older step: " << printable(path.string()) << '\n';
    }
    for (const fs::path& path : survey.left_overs) {
        std::cout << "left over, the next save deletes it: " << printable(path.string()) << '\n';
    }
    std::cout << std::flush;
}

}  // namespace

int run_checkpoint_list(const CheckpointArguments& given) {
    const PlannedPlace place = checkpoint_place(given);
    if (place.run.empty()) {
        throw Error(ErrorKind::CommandLine,
                    "vpp checkpoint list takes a plan or a run folder; for one checkpoint "
                    "there is vpp checkpoint show");
    }
    RunSurvey survey = survey_run(place.run, given.verify);
    if (place.resume != "auto") survey.resumed.reset();
    (given.json ? print_list_json : print_list_text)(survey, place.run, place.resume, given.verify);
    return 0;
}

}  // namespace vpp
