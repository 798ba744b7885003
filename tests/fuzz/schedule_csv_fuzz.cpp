// Schedule files from hostile bytes: whatever comes, a file that is written back as it was read, or Error{BadData};
// and a file that is proved is written and proved again as the same schedule.
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/error.hpp"
#include "schedule/csv.hpp"
#include "schedule/custom.hpp"
#include "schedule/edges.hpp"

namespace {

void check_round_trips(const vpp::ScheduleFile& file) {
    const std::string text = vpp::to_csv(file);
    const vpp::ScheduleFile again = vpp::read_schedule_csv(text, "again");
    vpp::check(again.schedule.actions == file.schedule.actions, "a file is written as it was read");
    vpp::check(again.is_lowered == file.is_lowered && vpp::to_csv(again) == text, "a written file is written again");

    const auto edges = vpp::chain_edges(file.schedule.num_stages());
    const vpp::ProvedSchedule proved = vpp::prove_schedule_file(file, edges);
    const vpp::ScheduleFile lowered = vpp::read_schedule_csv(vpp::to_csv(proved.lowered), "lowered");
    vpp::check(vpp::prove_schedule_file(lowered, edges).lowered.actions == proved.lowered.actions,
               "a proved schedule is read as itself");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::string text(reinterpret_cast<const char*>(data), size);
    for (const auto read : {vpp::read_schedule_csv, vpp::read_any_schedule_csv}) {
        try {
            check_round_trips(read(text, "fuzz.csv"));
        } catch (const vpp::Error& error) {
            if (error.kind() != vpp::ErrorKind::BadData) throw;
        }
    }
    return 0;
}
