#include "app/display.hpp"

#include <chrono>
#include <iostream>

#include "app/environment.hpp"
#include "app/terminal.hpp"
#include "comm/mpi_session.hpp"
#include "report/console.hpp"

namespace vpp {

namespace {

// mpirun forwards stdout and stderr each on its own; so long a line of the log waits for the live line to go.
constexpr std::chrono::milliseconds kMpirunForwards{20};

ScreenOptions screen_options() {
    ScreenOptions options;
    options.is_live = output_terminal().is_terminal;
    if (launch_info(environment_of(launch_variables()))) options.way = kMpirunForwards;
    return options;
}

}  // namespace

Display::Display(const Job& job) : log_(job.log), every_(job.plan.report.every), screen_(std::cout, screen_options()) {
    if (!screen_.is_live()) return;
    log_->before_lines([this] { screen_.make_way(); });
    set_live_line(true);
}

Display::~Display() {
    log_->before_lines({});
    set_live_line(false);
}

std::unique_ptr<Reporter> Display::reporter() {
    const auto width = [] { return output_terminal().width; };
    return std::make_unique<ConsoleReporter>(screen_, ConsoleOptions{every_, width, output_terminal().colour});
}

void Display::print(std::string lines) {
    lines.pop_back();  // the screen ends the last line itself
    screen_.print(lines);
}

}  // namespace vpp
