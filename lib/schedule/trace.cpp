#include "schedule/trace.hpp"

#include <nlohmann/json.hpp>

#include "base/json_text.hpp"
#include "schedule/csv_cell.hpp"
#include "schedule/replay.hpp"

namespace vpp {

namespace {

using nlohmann::json;

constexpr double kMicrosecondsPerUnit = 1000;

class TraceWriter {
  public:
    TraceWriter(const Schedule& lowered, const ScheduleCosts& costs)
        : lowered_(lowered), costs_(costs), simulation_(simulate(lowered, costs)) {}

    std::string write() {
        for (size_t rank = 0; rank < lowered_.actions.size(); ++rank) {
            add_thread_name(thread(rank, false), "rank " + std::to_string(rank));
            const std::vector<Action>& list = lowered_.actions[rank];
            for (size_t i = 0; i < list.size(); ++i) {
                const bool overlapped = i > 0 && list[i - 1].paired;
                if (overlapped) name_second_thread(rank);
                if (is_transfer(list[i].kind)) {
                    add_message_end(list[i], simulation_.times[rank][i], thread(rank, false));
                } else {
                    add_action(list[i], simulation_.times[rank][i], thread(rank, overlapped));
                }
            }
        }
        const json trace{
            {"displayTimeUnit", "ms"}, {"otherData", {{"schedule", lowered_.name}}}, {"traceEvents", events_}};
        return json_text(trace) + '\n';
    }

  private:
    static size_t thread(size_t rank, bool overlapped) { return 2 * rank + (overlapped ? 1 : 0); }
    double microseconds(Ticks ticks) const { return kMicrosecondsPerUnit * costs_.units(ticks); }

    void add_thread_name(size_t thread, const std::string& name) {
        events_.push_back(
            {{"ph", "M"}, {"name", "thread_name"}, {"pid", 0}, {"tid", thread}, {"args", {{"name", name}}}});
    }
    void name_second_thread(size_t rank) {
        if (second_named_ == static_cast<int>(rank)) return;
        second_named_ = static_cast<int>(rank);
        add_thread_name(thread(rank, true), "rank " + std::to_string(rank) + ", overlapped");
    }

    void add_action(const Action& action, const ActionTime& time, size_t thread) {
        events_.push_back({{"ph", "X"},
                           {"name", csv_cell_text(action, false)},
                           {"cat", word_of(action.kind)},
                           {"pid", 0},
                           {"tid", thread},
                           {"ts", microseconds(time.start)},
                           {"dur", microseconds(time.end - time.start)},
                           {"args", {{"stage", action.stage}, {"microbatch", action.microbatch}}}});
    }

    void add_message_end(const Action& transfer, const ActionTime& time, size_t thread) {
        json event{{"ph", is_send(transfer.kind) ? "s" : "f"},
                   {"name", carries_gradient(transfer.kind) ? "gradient" : "value"},
                   {"cat", "message"},
                   {"id", std::to_string(message_key(transfer))},
                   {"pid", 0},
                   {"tid", thread},
                   {"ts", microseconds(time.end)}};
        if (!is_send(transfer.kind)) event["bp"] = "e";
        events_.push_back(std::move(event));
    }

    const Schedule& lowered_;
    const ScheduleCosts& costs_;
    Simulation simulation_;
    json events_ = json::array();
    int second_named_ = -1;
};

}  // namespace

std::string write_trace(const Schedule& lowered, const ScheduleCosts& costs) {
    return TraceWriter(lowered, costs).write();
}

}  // namespace vpp
