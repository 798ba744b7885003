#include "plan/replaced_plan.hpp"

#include <filesystem>
#include <sstream>
#include <string>
#include <system_error>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/run_files.hpp"
#include "plan/bounds.hpp"
#include "plan/reader.hpp"

namespace vpp {

namespace fs = std::filesystem;

namespace {

/// Whether all lines of `part` stand in `whole`, in their order. A later version of vpp may have added some.
bool has_lines(const std::string& whole, const std::string& part) {
    std::istringstream lines(whole), wanted(part);
    std::string line, one;
    while (std::getline(wanted, one)) {
        do {
            if (!std::getline(lines, line)) return false;
        } while (line != one);
    }
    return true;
}

}  // namespace

void check_replaced_plan(const Plan& plan, const Names& names) {
    const fs::path replaced = fs::path(plan.run.dir) / run_files::kPlan;
    std::error_code error;
    if (!fs::equivalent(replaced, plan.file, error)) return;
    const std::string text = read_text_file(plan.file, kPlanLimitBytes);
    if (has_lines(parse_plan(text, plan.file, {}, names).resolved_text, text)) return;
    throw Error(ErrorKind::Plan,
                "run.dir is the folder of this plan, so a training would replace " + printable(replaced.string()) +
                    " by the plan with all its defaults and without its comments; set run.dir to another folder, or " +
                    "give the plan another name",
                plan.where("run.dir"));
}

}  // namespace vpp
