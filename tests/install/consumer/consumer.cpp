// A program that uses an installed vpp: a schedule is made and proved, and a plan that is not there is an Error.
#include <cstdio>

#include "base/error.hpp"
#include "plan/reader.hpp"
#include "program/prepare.hpp"
#include "schedule/checker.hpp"
#include "schedule/edges.hpp"
#include "schedule/generators.hpp"
#include "schedule/lowering.hpp"

int main() {
    const std::vector<vpp::ScheduleEdge> edges = vpp::chain_edges(2);
    const vpp::ScheduleFacts facts = vpp::check_schedule(vpp::lower(vpp::make_schedule("1F1B", 2, 1, 4), edges), edges);
    try {
        vpp::open_datasets(vpp::load_plan("missing.toml", {}, {}));
    } catch (const vpp::Error& error) {
        std::printf("%d actions; %s\n", static_cast<int>(facts.num_computing), error.what());
        return facts.num_computing == 16 && error.kind() == vpp::ErrorKind::MissingInput ? 0 : 1;
    }
    return 1;
}
