#include "engine/profiler.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/median.hpp"
#include "base/run_files.hpp"
#include "base/units.hpp"
#include "comm/clock_exchange.hpp"
#include "comm/collective.hpp"
#include "schedule/measured_trace.hpp"

namespace vpp {

namespace fs = std::filesystem;

namespace {

// Many files on a slow disk.
constexpr double kWritingSeconds = 600;

ActionSpan aligned(const ClockLine& clock, const ActionSpan& span) {
    ActionSpan moved{clock.to_asking(span.begin), clock.to_asking(span.end), span.wait, span.load};
    if (span.device_end > 0) {
        moved.device_begin = clock.to_asking(span.device_begin);
        moved.device_end = clock.to_asking(span.device_end);
    }
    return moved;
}

ReadSpan aligned(const ClockLine& clock, const ReadSpan& span) {
    return {clock.to_asking(span.begin), clock.to_asking(span.end), span.step, span.microbatch, span.input};
}

StepMoments aligned(const ClockLine& clock, const StepMoments& moments) {
    return {clock.to_asking(moments.begin), clock.to_asking(moments.exchange), clock.to_asking(moments.update),
            clock.to_asking(moments.end)};
}

/// By how long its actions took.
const MeasuredStep& median_step(const std::vector<MeasuredStep>& steps) {
    std::vector<const MeasuredStep*> sorted;
    for (const MeasuredStep& step : steps) sorted.push_back(&step);
    return *median(sorted, [](const MeasuredStep* step) { return step->actions_end() - step->begin(); });
}

}  // namespace

Profiler::Profiler(Transport& transport, const Program& program, fs::path folder, StepRange steps, Logger log,
                   std::function<void(const std::string&)> show)
    : transport_(transport),
      program_(program),
      folder_(std::move(folder)),
      steps_(steps),
      log_(std::move(log)),
      show_(std::move(show)) {}

void Profiler::before(int64_t step) {
    if (is_open_ || !steps_.contains(step)) return;
    begin_ = compare_clocks(transport_);
    is_open_ = true;
}

void Profiler::after(int64_t step, const StepMoments& moments, const std::vector<ActionSpan>& actions,
                     const std::vector<ReadSpan>& reads) {
    if (!is_open_) return;
    taken_.push_back({step, moments, actions, reads});
    if (step == steps_.last) finish();
}

void Profiler::finish() {
    if (!is_open_) return;
    is_open_ = false;
    const std::vector<ClockOffset> end = compare_clocks(transport_);
    const std::vector<Bytes> shares = gather(transport_, taken_bytes());
    transport_.set_deadline(kWritingSeconds);
    if (!shares.empty()) write(put_together(shares, end));
    transport_.set_position("waiting until a profile is written");
    barrier(transport_);
    taken_.clear();
    steps_ = {};
}

/// Every rank has the same steps.
Bytes Profiler::taken_bytes() const {
    ByteWriter writer;
    for (const Taken& taken : taken_) {
        writer.put(taken.moments);
        writer.put(static_cast<uint64_t>(taken.actions.size()));
        for (const ActionSpan& action : taken.actions) writer.put(action);
        writer.put(static_cast<uint64_t>(taken.reads.size()));
        for (const ReadSpan& read : taken.reads) writer.put(read);
    }
    return writer.take();
}

std::vector<MeasuredStep> Profiler::put_together(const std::vector<Bytes>& shares,
                                                 const std::vector<ClockOffset>& end) const {
    std::vector<MeasuredStep> steps(taken_.size());
    for (size_t i = 0; i < steps.size(); ++i) steps[i].step = taken_[i].step;
    for (size_t rank = 0; rank < shares.size(); ++rank) {
        const ClockLine clock(begin_[rank], end[rank]);
        const auto place = program_.mesh.coordinate(static_cast<int>(rank));
        ByteReader reader(shares[rank]);
        for (MeasuredStep& step : steps) {
            MeasuredRank& part = step.ranks.emplace_back();
            part.pp = place.pp;
            part.dp = place.dp;
            part.moments = aligned(clock, reader.get<StepMoments>());
            for (auto count = reader.get<uint64_t>(); count > 0; --count) {
                part.actions.push_back(aligned(clock, reader.get<ActionSpan>()));
            }
            for (auto count = reader.get<uint64_t>(); count > 0; --count) {
                part.reads.push_back(aligned(clock, reader.get<ReadSpan>()));
            }
            step.clock_error = std::max(step.clock_error, clock.error());
        }
    }
    return steps;
}

/// A profile that cannot be written is no reason to end a training.
void Profiler::write(const std::vector<MeasuredStep>& steps) const {
    const int64_t start = steady_nanoseconds();
    const Schedule& schedule = program_.training.schedule;
    const MeasuredStep& shown = median_step(steps);
    try {
        fs::create_directories(folder_);
        for (const MeasuredStep& step : steps) {
            write_file_durably(folder_ / ("trace-step" + std::to_string(step.step) + ".json"),
                               write_measured_trace(schedule, step));
        }
        write_file_durably(folder_ / run_files::kTimeline, write_timeline(schedule, shown));
    } catch (const std::exception& error) {
        log_->warn("the profile could not be written: " + std::string(error.what()));
        return;
    }
    if (show_) show_(draw_measured(schedule, shown));
    const auto milliseconds = [](int64_t time) {
        return fixed_text(static_cast<double>(time) / kNanosecondsPerMillisecond, 3) + " ms";
    };
    log_->info("profiled " + std::to_string(steps.size()) + (steps.size() == 1 ? " step" : " steps") + ": traces in " +
               folder_.string() + " (open them in ui.perfetto.dev); the clocks of the ranks agree within " +
               milliseconds(shown.clock_error) + "; writing took " + milliseconds(steady_nanoseconds() - start));
}

}  // namespace vpp
