// Writes what a training would, without training: run folders through the sinks, and report pages.
//   sample run FOLDER         a run of 30 steps that was resumed behind step 12, with numbers that can be computed
//   again sample page FILE RUN...   vpp report
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <limits>
#include <string>
#include <vector>

#include "report/report_page.hpp"
#include "report/sinks.hpp"

namespace {

namespace fs = std::filesystem;

// The Python side computes the same.
vpp::StepEvent step_at(int64_t step, int session) {
    vpp::StepEvent event;
    event.step = step;
    event.total_steps = 30;
    event.loss =
        step == 17 ? std::numeric_limits<double>::quiet_NaN() : 3.0 / static_cast<double>(step) + session / 7.0;
    event.grad_norm = 1.0 / static_cast<double>(step + 2);
    event.lr = 3e-4 * static_cast<double>(step) / 30;
    event.samples_per_second = 100 + static_cast<double>(step) / 3;
    event.tokens_per_second = 128 * event.samples_per_second;
    event.step_ms = 80 + static_cast<double>(step % 5);
    event.flops = 263.36e6;
    event.bubble_mean = 0.2 + 0.01 * static_cast<double>(step % 3);
    event.bubble_worst = 0.3 + 0.01 * static_cast<double>(step % 3);
    event.worst_rank = static_cast<int>(step % 4 == 0);
    event.memory_bytes = 400 << 20;
    event.activation_bytes = 24 << 20;
    return event;
}

void write_session(const fs::path& folder, int session, int64_t first_step, int64_t last_step) {
    vpp::Reporters reporters;
    vpp::add_sinks(reporters, {folder, first_step, vpp::make_logger("info")});
    for (int64_t step = first_step + 1; step <= last_step; ++step) {
        reporters.step(step_at(step, session));
        if (step == 2 || step == first_step + 2) {
            reporters.memory(
                {step, {{30 << 20, 24 << 20, 23 << 20, 25 << 20}, {20 << 20, 12 << 20, 12 << 20, 13 << 20}}});
        }
        if (step % 10 == 0) reporters.evaluation({step, 2.0 / static_cast<double>(step), 512, 1.25});
        if (step % 12 == 0) reporters.saved({step, "checkpoints", 4096, 0.5, 0.25});
    }
}

void write_run(const fs::path& folder) {
    fs::create_directories(folder);
    write_session(folder, 1, 0, 20);
    write_session(folder, 2, 12, 30);
}

}  // namespace

int main(int argc, char** argv) {
    const std::vector<std::string> words(argv + 1, argv + argc);
    if (words.size() == 2 && words[0] == "run") {
        write_run(words[1]);
        return 0;
    }
    if (words.size() < 3 || words[0] != "page") return 2;
    std::vector<vpp::RecordedRun> runs;
    for (size_t i = 2; i < words.size(); ++i) runs.push_back(vpp::read_run(words[i]));
    std::ofstream(words[1], std::ios::binary) << vpp::report_page(runs);
    return 0;
}
