#include "schedule/measured_trace.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.hpp"
#include "base/json_text.hpp"
#include "schedule/replay.hpp"

namespace vpp {

namespace {

using nlohmann::json;

constexpr double kNanosecondsPerMicrosecond = 1e3;
constexpr int kPartsThread = 0;  ///< stages follow

class MeasuredTraceWriter {
  public:
    MeasuredTraceWriter(const Schedule& lowered, const MeasuredStep& step)
        : lowered_(lowered), step_(step), begin_(step.begin()) {}

    std::string write() {
        for (size_t number = 0; number < step_.ranks.size(); ++number) add_rank(number);
        const double error_ms = static_cast<double>(step_.clock_error) / kNanosecondsPerMillisecond;
        const json trace{
            {"displayTimeUnit", "ms"},
            {"otherData", {{"step", step_.step}, {"schedule", lowered_.name}, {"clock_error_ms", error_ms}}},
            {"traceEvents", std::move(events_)}};
        return json_text(trace) + '\n';
    }

  private:
    static int thread_of(int stage) { return kPartsThread + 1 + stage; }
    int device_thread() const { return thread_of(lowered_.num_stages()) + 2; }  // behind those of data
    double microseconds(int64_t time) const { return static_cast<double>(time - begin_) / kNanosecondsPerMicrosecond; }

    void add_rank(size_t number) {
        const MeasuredRank& rank = step_.ranks[number];
        const bool has_replicas =
            std::any_of(step_.ranks.begin(), step_.ranks.end(), [](const MeasuredRank& other) { return other.dp > 0; });
        const std::string replica = has_replicas ? ", replica " + std::to_string(rank.dp) : "";
        add_name("process_name", number, kPartsThread, "rank " + std::to_string(number) + replica);
        events_.push_back({{"ph", "M"},
                           {"name", "process_sort_index"},
                           {"pid", number},
                           {"tid", kPartsThread},
                           {"args", {{"sort_index", number}}}});
        add_name("thread_name", number, kPartsThread, "step");
        for (int stage : lowered_.stages_of(rank.pp)) {
            add_name("thread_name", number, thread_of(stage), "stage " + std::to_string(stage));
        }
        add_part(number, "actions", rank.moments.begin, rank.moments.exchange);
        add_part(number, "exchange", rank.moments.exchange, rank.moments.update);
        add_part(number, "update", rank.moments.update, rank.moments.end);
        const std::vector<Action>& actions = lowered_.actions.at(static_cast<size_t>(rank.pp));
        check(actions.size() == rank.actions.size(), "the time of every action is known");
        for (size_t i = 0; i < actions.size(); ++i) add_action(number, actions[i], rank.actions[i]);
        add_data(number, actions, rank);
        add_device(number, actions, rank);
    }

    /// What the host handed out, when the card did it: a lane of what it computed, then one for each of its links.
    void add_device(size_t number, const std::vector<Action>& actions, const MeasuredRank& rank) {
        std::map<std::pair<ActionKind, int>, int> lanes;
        for (size_t i = 0; i < actions.size(); ++i) {
            const Action& action = actions[i];
            const ActionSpan& span = rank.actions[i];
            if (span.device_end == 0) continue;
            const bool moves = is_transfer(action.kind);
            const std::pair key = moves ? std::pair(action.kind, action.peer) : std::pair(ActionKind::F, -1);
            const auto [lane, is_new] = lanes.emplace(key, device_thread() + static_cast<int>(lanes.size()));
            if (is_new) add_name("thread_name", number, lane->second, lane_name(action));
            events_.push_back(
                {{"ph", "X"},
                 {"name", std::string(word_of(action.kind)) + ' ' + std::to_string(action.microbatch)},
                 {"cat", "card"},
                 {"pid", number},
                 {"tid", lane->second},
                 {"ts", microseconds(span.device_begin)},
                 {"dur", static_cast<double>(span.device_end - span.device_begin) / kNanosecondsPerMicrosecond},
                 {"args", {{"stage", action.stage}, {"microbatch", action.microbatch}}}});
        }
    }

    static std::string lane_name(const Action& action) {
        if (!is_transfer(action.kind)) return "card: computing";
        return std::string("card: ") + word_of(action.kind) + (is_send(action.kind) ? " to PP " : " from PP ") +
               std::to_string(action.peer);
    }

    /// The lane of what was read, whenever that was, and the lane of what an F waited for.
    void add_data(size_t number, const std::vector<Action>& actions, const MeasuredRank& rank) {
        const int reading = thread_of(lowered_.num_stages()), waiting = reading + 1;
        if (!rank.reads.empty()) add_name("thread_name", number, reading, "reading data");
        for (const ReadSpan& read : rank.reads) {
            if (read.end < begin_) continue;
            add_data_event(number, reading, "read", read.microbatch, std::max(read.begin, begin_), read.end,
                           {{"step", read.step + 1}, {"microbatch", read.microbatch}, {"input", read.input}});
        }
        const auto waits = [](const ActionSpan& span) { return span.load > 0; };
        if (std::any_of(rank.actions.begin(), rank.actions.end(), waits)) {
            add_name("thread_name", number, waiting, "waiting for data");
        }
        for (size_t i = 0; i < actions.size(); ++i) {
            const ActionSpan& span = rank.actions[i];
            if (!waits(span)) continue;
            add_data_event(number, waiting, "wait", actions[i].microbatch, span.begin, span.begin + span.load,
                           {{"stage", actions[i].stage}, {"microbatch", actions[i].microbatch}});
        }
    }

    /// "read 3"
    void add_data_event(size_t rank, int thread, const std::string& what, int microbatch, int64_t begin, int64_t end,
                        json arguments) {
        events_.push_back({{"ph", "X"},
                           {"name", what + " " + std::to_string(microbatch)},
                           {"cat", what},
                           {"pid", rank},
                           {"tid", thread},
                           {"ts", microseconds(begin)},
                           {"dur", static_cast<double>(end - begin) / kNanosecondsPerMicrosecond},
                           {"args", std::move(arguments)}});
    }

    void add_name(const char* what, size_t rank, int thread, const std::string& name) {
        events_.push_back({{"ph", "M"}, {"name", what}, {"pid", rank}, {"tid", thread}, {"args", {{"name", name}}}});
    }

    void add_part(size_t rank, const char* name, int64_t begin, int64_t end) {
        events_.push_back({{"ph", "X"},
                           {"name", name},
                           {"cat", "step"},
                           {"pid", rank},
                           {"tid", kPartsThread},
                           {"ts", microseconds(begin)},
                           {"dur", static_cast<double>(end - begin) / kNanosecondsPerMicrosecond}});
    }

    void add_action(size_t rank, const Action& action, const ActionSpan& span) {
        const bool is_of_microbatch = action.kind != ActionKind::ReduceGrad;
        json arguments{{"stage", action.stage}};
        if (is_of_microbatch) arguments["microbatch"] = action.microbatch;
        if (is_transfer(action.kind)) {
            arguments["edge"] = action.edge;
            arguments["wait_ms"] = static_cast<double>(span.wait) / kNanosecondsPerMillisecond;
        }
        events_.push_back(
            {{"ph", "X"},
             {"name", word_of(action.kind) + (is_of_microbatch ? " " + std::to_string(action.microbatch) : "")},
             {"cat", word_of(action.kind)},
             {"pid", rank},
             {"tid", thread_of(action.stage)},
             {"ts", microseconds(span.begin)},
             {"dur", static_cast<double>(span.end - span.begin) / kNanosecondsPerMicrosecond},
             {"args", std::move(arguments)}});
        if (is_transfer(action.kind)) add_message_end(rank, action, span);
    }

    /// From the begin of the SEND to the end of the RECV; each lies inside its event, to which viewers tie it.
    void add_message_end(size_t rank, const Action& transfer, const ActionSpan& span) {
        const bool sends = is_send(transfer.kind);
        json event{{"ph", sends ? "s" : "f"},
                   {"name", carries_gradient(transfer.kind) ? "gradient" : "value"},
                   {"cat", "message"},
                   {"id", std::to_string(step_.ranks[rank].dp) + '/' + std::to_string(message_key(transfer))},
                   {"pid", rank},
                   {"tid", thread_of(transfer.stage)},
                   {"ts", microseconds(sends ? span.begin : std::max(span.begin, span.end - 1))}};
        if (!sends) event["bp"] = "e";
        events_.push_back(std::move(event));
    }

    const Schedule& lowered_;
    const MeasuredStep& step_;
    int64_t begin_;
    json events_ = json::array();
};

}  // namespace

std::string write_measured_trace(const Schedule& lowered, const MeasuredStep& step) {
    return MeasuredTraceWriter(lowered, step).write();
}

}  // namespace vpp
